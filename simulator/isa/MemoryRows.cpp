//===- MemoryRows.cpp - Rows of vector memory instructions ----------------===//
//
// flat_*, global_*, scratch_* and buffer_* share their names, sizes and flags;
// only how a lane's address comes about differs.
//
//===----------------------------------------------------------------------===//
#include "exec/Access.h"

#include <deque>
#include <mutex>
#include <string>

namespace fovea::sim::FOVEA_VARIANT {

namespace {
struct Plain {
  const char *name;
  uint32_t flags, bytes, count;
};
constexpr Plain kPlain[] = {
    {"load_ubyte", kLoad, 1, 1},
    {"load_sbyte", kLoad | kSigned, 1, 1},
    {"load_ushort", kLoad, 2, 1},
    {"load_sshort", kLoad | kSigned, 2, 1},
    {"load_ubyte_d16", kLoad | kD16, 1, 1},
    {"load_ubyte_d16_hi", kLoad | kD16 | kHigh, 1, 1},
    {"load_sbyte_d16", kLoad | kD16 | kSigned, 1, 1},
    {"load_sbyte_d16_hi", kLoad | kD16 | kHigh | kSigned, 1, 1},
    {"load_short_d16", kLoad | kD16, 2, 1},
    {"load_short_d16_hi", kLoad | kD16 | kHigh, 2, 1},
    {"load_dword", kLoad, 4, 1},
    {"load_dwordx2", kLoad, 4, 2},
    {"load_dwordx3", kLoad, 4, 3},
    {"load_dwordx4", kLoad, 4, 4},
    {"store_byte", kStore, 1, 1},
    {"store_short", kStore, 2, 1},
    {"store_byte_d16_hi", kStore | kHigh, 1, 1},
    {"store_short_d16_hi", kStore | kHigh, 2, 1},
    {"store_dword", kStore, 4, 1},
    {"store_dwordx2", kStore, 4, 2},
    {"store_dwordx3", kStore, 4, 3},
    {"store_dwordx4", kStore, 4, 4},
    {"load_lds_ubyte", kLoad, 1, 1},
    {"load_lds_sbyte", kLoad | kSigned, 1, 1},
    {"load_lds_ushort", kLoad, 2, 1},
    {"load_lds_sshort", kLoad | kSigned, 2, 1},
    {"load_lds_dword", kLoad, 4, 1},
    {"load_lds_dwordx3", kLoad, 4, 3},
    {"load_lds_dwordx4", kLoad, 4, 4},
};
struct Atomic {
  const char *name;
  AtomicOp op;
  bool wide; ///< also as _x2, on 64 bits
  uint32_t bytes;
};
constexpr Atomic kAtomics[] = {
    {"atomic_swap", kSwap, true, 4},   {"atomic_cmpswap", kCmpSwap, true, 4},
    {"atomic_add", kAdd, true, 4},     {"atomic_sub", kSub, true, 4},
    {"atomic_smin", kSmin, true, 4},   {"atomic_umin", kUmin, true, 4},
    {"atomic_smax", kSmax, true, 4},   {"atomic_umax", kUmax, true, 4},
    {"atomic_and", kAnd, true, 4},     {"atomic_or", kOr, true, 4},
    {"atomic_xor", kXor, true, 4},     {"atomic_inc", kInc, true, 4},
    {"atomic_dec", kDec, true, 4},     {"atomic_add_f32", kAddF, false, 4},
    {"atomic_pk_add_f16", kPkAddF16, false, 4},
    {"atomic_pk_add_bf16", kPkAddBf16, false, 4},
    {"atomic_min_f32", kMinF, false, 4},
    {"atomic_max_f32", kMaxF, false, 4},
    {"atomic_add_f64", kAddF, false, 8},
    {"atomic_min_f64", kMinF, false, 8},
    {"atomic_max_f64", kMaxF, false, 8},
    // GFX11 and GFX12.
    {"atomic_min_num_f32", kMinNumF, false, 4},
    {"atomic_max_num_f32", kMaxNumF, false, 4},
    {"atomic_cmpswap_f32", kCmpSwapF, false, 4},
    {"atomic_csub_u32", kSubClamp, false, 4},
    {"atomic_sub_clamp_u32", kSubClamp, false, 4},
    {"atomic_cond_sub_u32", kCondSub, false, 4},
};
struct Space {
  const char *prefix;
  Form form;
  uint32_t flags;
  Handler handler;
};
} // namespace

void addLdsRows(std::vector<Row> &rows);

void addMemoryRows(std::vector<Row> &rows) {
  // Names made here live as long as the program; the table is built once.
  static std::deque<std::string> names;
  const Space spaces[] = {
      {"flat_", Form::Flat, 0, execFlat},
      {"global_", Form::Flat, kGlobal, execFlat},
      {"scratch_", Form::Flat, kScratch, execFlat},
      {"buffer_", Form::Buffer, 0, execBuffer},
  };
  for (const Space &space : spaces) {
    auto add = [&](const std::string &name, uint32_t flags, uint32_t bytes,
                   uint32_t count) {
      names.push_back(space.prefix + name);
      rows.push_back(memoryRow(names.back(), InstClass::Vmem, space.form,
                               space.handler, flags | space.flags, bytes,
                               count));
    };
    for (const Plain &plain : kPlain) {
      // Loads to LDS have names of their own only here; buffer_* has a modifier.
      bool toLds = std::string_view(plain.name).substr(0, 8) == "load_lds";
      if (toLds && !(space.flags & (plain.count > 1 ? kGlobal : kGlobal | kScratch)))
        continue;
      add(plain.name, plain.flags, plain.bytes, plain.count);
    }
    if (space.flags & kScratch)
      continue;
    for (const Atomic &atomic : kAtomics) {
      add(atomic.name, kAtomic, atomic.bytes, atomic.op);
      if (atomic.wide)
        add(std::string(atomic.name) + "_x2", kAtomic, 8, atomic.op);
    }
  }
  struct Formatted {
    const char *suffix;
    uint32_t flags, count;
  };
  constexpr Formatted kFormatted[] = {
      {"x", 0, 1},          {"xy", 0, 2},        {"xyz", 0, 3},
      {"xyzw", 0, 4},       {"d16_x", kD16, 1},  {"d16_xy", kD16, 2},
      {"d16_xyz", kD16, 3}, {"d16_xyzw", kD16, 4},
      {"d16_hi_x", kD16 | kHigh, 1}};
  for (const char *prefix : {"buffer_", "tbuffer_"})
    for (const Formatted &f : kFormatted)
      for (bool load : {true, false}) {
        if (*prefix == 't' && (f.flags & kHigh))
          continue; // there are none
        names.push_back(std::string(prefix) + (load ? "load" : "store") +
                        "_format_" + f.suffix);
        rows.push_back(memoryRow(
            names.back(), InstClass::Vmem, Form::Buffer, execBufferFormat,
            f.flags | (load ? kLoad : kStore), 4, f.count));
      }
  rows.push_back(memoryRow("global_load_tr_b128", InstClass::Vmem, Form::Flat,
                           execTransposed, kLoad | kGlobal, 4, 4));
  addLdsRows(rows);
}

} // namespace fovea::sim::FOVEA_VARIANT
