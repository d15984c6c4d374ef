//===- ScalarAtomic.cpp - Scalar stores and atomics -----------------------===//
//
// s_store_*, s_buffer_store_*, s_atomic_* and s_buffer_atomic_* (GFX9). Addresses
// are rounded down to multiples of the element size's words; what lies outside a
// buffer is not written.
//
//===----------------------------------------------------------------------===//
#include "exec/Access.h"
#include "exec/Observer.h"

#include <deque>
#include <string>

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// The place of an access, and how many of its words lie inside the resource.
struct Place {
  uint64_t address = 0;
  unsigned words = 0;
};

Place placeOf(const Wave &w, const MicroOp &op, unsigned words) {
  uint64_t offset = static_cast<uint64_t>(int64_t(op.offset));
  if (op.s[1].kind != Operand::None)
    offset += readS32(w, op.s[1]);
  Place place;
  if (op.s[0].words != 4) {
    place.address = (readS64(w, op.s[0]) + offset) & ~uint64_t(3);
    place.words = words;
    return place;
  }
  const uint32_t *r = &w.s[op.s[0].reg];
  uint64_t base = r[0] | uint64_t(r[1] & 0xffff) << 32;
  uint64_t stride = (r[1] >> 16) & 0x3fff;
  uint64_t size = stride ? stride * r[2] : r[2];
  offset &= ~uint64_t(3);
  place.address = base + offset;
  if (offset < size)
    place.words = static_cast<unsigned>(
        std::min<uint64_t>((size - offset) / 4, words));
  return place;
}

bool reach(Wave &w, const MicroOp &op, const Place &place,
           MemoryAccess::Kind kind) {
  uint32_t bytes = 4 * place.words;
  MemoryCache &cache = w.group->cache;
  if (cache.covers(place.address, place.address + bytes))
    return !w.group->observer ||
           observeScalar(w, op, kind, place.address, bytes);
  w.fail(ErrorCode::IllegalAddress, op, -1,
         std::string(kind == MemoryAccess::Store ? "scalar store of "
                                                 : "scalar atomic on ") +
             cache.memory->describe(place.address, bytes));
  return false;
}

void scalarStore(Wave &w, const MicroOp &op) {
  Place place = placeOf(w, op, op.row->count);
  if (place.words && reach(w, op, place, MemoryAccess::Store))
    std::memcpy(reinterpret_cast<void *>(place.address), &w.s[op.d.reg],
                4 * size_t(place.words));
}

template <class T>
void scalarAtomic(Wave &w, const MicroOp &op) {
  constexpr unsigned words = sizeof(T) / 4;
  Place place = placeOf(w, op, words);
  auto kind = static_cast<AtomicOp>(op.row->param);
  if (place.words < words) {
    if (op.flags & kReturn)
      for (unsigned i = 0; i < words; ++i)
        w.s[op.d.reg + i] = 0;
    return;
  }
  if (place.address % sizeof(T))
    return w.fail(ErrorCode::IllegalAddress, op, -1,
                  "scalar atomic on an address that is not a multiple of " +
                      std::to_string(sizeof(T)));
  if (!reach(w, op, place, MemoryAccess::Atomic))
    return;
  T x, c = 0;
  std::memcpy(&x, &w.s[op.d.reg], sizeof x);
  if (kind == kCmpSwap)
    std::memcpy(&c, &w.s[op.d.reg + words], sizeof c);
  T old = atomicApply<T>(kind, reinterpret_cast<uint8_t *>(place.address), x, c);
  if (op.flags & kReturn)
    std::memcpy(&w.s[op.d.reg], &old, sizeof old);
}

} // namespace

void addScalarAtomicRows(std::vector<Row> &rows) {
  static std::deque<std::string> names;
  auto add = [&](std::string name, Handler handler, uint32_t flags,
                 uint32_t kind, uint32_t words) {
    names.push_back(std::move(name));
    rows.push_back(memoryRow(names.back(), InstClass::Smem, Form::Smem, handler,
                             flags, kind, words));
  };
  struct Atomic {
    const char *name;
    AtomicOp op;
  };
  constexpr Atomic kAtomics[] = {
      {"swap", kSwap}, {"cmpswap", kCmpSwap}, {"add", kAdd},   {"sub", kSub},
      {"smin", kSmin}, {"umin", kUmin},       {"smax", kSmax}, {"umax", kUmax},
      {"and", kAnd},   {"or", kOr},           {"xor", kXor},   {"inc", kInc},
      {"dec", kDec}};
  for (const char *prefix : {"s_", "s_buffer_"}) {
    const std::string p = prefix;
    add(p + "store_dword", scalarStore, kStore, 0, 1);
    add(p + "store_dwordx2", scalarStore, kStore, 0, 2);
    add(p + "store_dwordx4", scalarStore, kStore, 0, 4);
    for (const Atomic &atomic : kAtomics) {
      uint32_t words = atomic.op == kCmpSwap ? 2 : 1;
      add(p + "atomic_" + atomic.name, scalarAtomic<uint32_t>, kAtomic,
          atomic.op, words);
      add(p + "atomic_" + atomic.name + "_x2", scalarAtomic<uint64_t>, kAtomic,
          atomic.op, 2 * words);
    }
  }
}

} // namespace fovea::sim::FOVEA_VARIANT
