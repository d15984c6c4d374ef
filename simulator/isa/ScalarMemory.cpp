//===- ScalarMemory.cpp - Scalar loads ------------------------------------===//
//
// s_load_* and s_buffer_load_*. Addresses are rounded down to multiples of four
// bytes; words of a buffer beyond its size read 0.
//
//===----------------------------------------------------------------------===//
#include "exec/Observer.h"
#include "isa/Table.h"

namespace fovea::sim {

namespace {

bool readWords(Wave &w, const MicroOp &op, uint64_t address, unsigned count) {
  MemoryCache &cache = w.group->cache;
  if (!cache.covers(address, address + 4 * uint64_t(count))) {
    w.fail(ErrorCode::IllegalAddress, op, -1,
           "scalar load of " + cache.memory->describe(address, 4 * count));
    return false;
  }
  if (w.group->observer &&
      !observeScalar(w, op, MemoryAccess::Load, address, 4 * count))
    return false;
  std::memcpy(&w.s[op.d.reg], reinterpret_cast<const void *>(address),
              4 * size_t(count));
  return true;
}

void scalarLoad(Wave &w, const MicroOp &op) {
  uint64_t address = readS64(w, op.s[0]) + static_cast<uint64_t>(int64_t(op.offset));
  if (op.s[1].kind != Operand::None)
    address += readS32(w, op.s[1]);
  readWords(w, op, address & ~uint64_t(3), op.row->count);
}

void scalarBufferLoad(Wave &w, const MicroOp &op) {
  const uint32_t *r = &w.s[op.s[0].reg];
  uint64_t base = r[0] | uint64_t(r[1] & 0xffff) << 32;
  uint64_t stride = (r[1] >> 16) & 0x3fff;
  uint64_t size = stride ? stride * r[2] : r[2];
  uint64_t offset = static_cast<uint64_t>(int64_t(op.offset));
  if (op.s[1].kind != Operand::None)
    offset += readS32(w, op.s[1]);
  offset &= ~uint64_t(3);
  unsigned inside = 0;
  if (offset < size)
    inside = static_cast<unsigned>(
        std::min<uint64_t>((size - offset) / 4, op.row->count));
  for (unsigned i = inside; i < op.row->count; ++i)
    w.s[op.d.reg + i] = 0;
  if (inside)
    readWords(w, op, base + offset, inside);
}

/// One or two bytes, widened; of a buffer resource or from an address.
template <bool BUFFER>
void scalarLoadSmall(Wave &w, const MicroOp &op) {
  uint32_t bytes = op.row->param;
  uint64_t offset = static_cast<uint64_t>(int64_t(op.offset));
  if (op.s[1].kind != Operand::None)
    offset += readS32(w, op.s[1]);
  uint64_t address = w.s64(op.s[0].reg);
  if (BUFFER) {
    const uint32_t *r = &w.s[op.s[0].reg];
    uint64_t stride = (r[1] >> 16) & 0x3fff;
    uint64_t size = stride ? stride * r[2] : r[2];
    address = r[0] | uint64_t(r[1] & 0xffff) << 32;
    if (offset + bytes > size)
      return writeS32(w, op.d, 0);
  }
  address = (address + offset) & ~uint64_t(bytes - 1);
  MemoryCache &cache = w.group->cache;
  if (!cache.covers(address, address + bytes))
    return w.fail(ErrorCode::IllegalAddress, op, -1,
                  "scalar load of " + cache.memory->describe(address, bytes));
  if (w.group->observer &&
      !observeScalar(w, op, MemoryAccess::Load, address, bytes))
    return;
  uint32_t x = 0;
  std::memcpy(&x, reinterpret_cast<const void *>(address), bytes);
  if (op.row->flags & kSigned)
    x = bytes == 1 ? static_cast<uint32_t>(static_cast<int8_t>(x))
                   : static_cast<uint32_t>(static_cast<int16_t>(x));
  writeS32(w, op.d, x);
}

} // namespace

void addScalarMemoryRows(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, unsigned count) {
    rows.push_back(
        memoryRow(name, InstClass::Smem, Form::Smem, handler, kLoad, 0, count));
  };
  auto addSmall = [&](const char *name, Handler handler, unsigned bytes,
                      uint32_t flags) {
    rows.push_back(memoryRow(name, InstClass::Smem, Form::Smem, handler,
                             kLoad | flags, bytes, 1));
  };
  addSmall("s_load_u8", scalarLoadSmall<false>, 1, 0);
  addSmall("s_load_i8", scalarLoadSmall<false>, 1, kSigned);
  addSmall("s_load_u16", scalarLoadSmall<false>, 2, 0);
  addSmall("s_load_i16", scalarLoadSmall<false>, 2, kSigned);
  addSmall("s_buffer_load_u8", scalarLoadSmall<true>, 1, 0);
  addSmall("s_buffer_load_i8", scalarLoadSmall<true>, 1, kSigned);
  addSmall("s_buffer_load_u16", scalarLoadSmall<true>, 2, 0);
  addSmall("s_buffer_load_i16", scalarLoadSmall<true>, 2, kSigned);
  add("s_load_b96", scalarLoad, 3);
  add("s_buffer_load_b96", scalarBufferLoad, 3);
  add("s_load_dword", scalarLoad, 1);
  add("s_load_dwordx2", scalarLoad, 2);
  add("s_load_dwordx4", scalarLoad, 4);
  add("s_load_dwordx8", scalarLoad, 8);
  add("s_load_dwordx16", scalarLoad, 16);
  add("s_buffer_load_dword", scalarBufferLoad, 1);
  add("s_buffer_load_dwordx2", scalarBufferLoad, 2);
  add("s_buffer_load_dwordx4", scalarBufferLoad, 4);
  add("s_buffer_load_dwordx8", scalarBufferLoad, 8);
  add("s_buffer_load_dwordx16", scalarBufferLoad, 16);
}

} // namespace fovea::sim
