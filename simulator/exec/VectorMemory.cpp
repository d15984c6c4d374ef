//===- VectorMemory.cpp - FLAT, GLOBAL, SCRATCH and BUFFER ----------------===//
//
// Works out every lane's address, checks it against the allocations, and moves
// the data. Buffer range checks: "Range checking" in the chapter on vector
// memory of AMD's CDNA3 ISA reference; raw buffers are checked word by word.
//
//===----------------------------------------------------------------------===//
#include "exec/Access.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

uint32_t bytesOf(const Row &row) {
  return row.flags & kAtomic ? row.param : row.param * row.count;
}

void outside(Wave &w, const MicroOp &op, int lane, uint64_t address,
             uint32_t bytes) {
  const char *what = op.row->flags & kStore    ? "store of "
                     : op.row->flags & kAtomic ? "atomic on "
                                               : "load of ";
  w.fail(ErrorCode::IllegalAddress, op, lane,
         what + w.group->cache.memory->describe(address, bytes));
}

void count(Wave &w, const Row &row, uint64_t mask, uint32_t bytes) {
  uint64_t n = static_cast<uint64_t>(__builtin_popcountll(mask)) * bytes;
  if (row.flags & kLoad)
    w.group->bytesLoaded += n;
  else
    w.group->bytesStored += n;
}

/// Moves data between registers and places that have been checked.
template <class Place>
void transfer(Wave &w, const MicroOp &op, uint64_t mask, Place place) {
  const Row &row = *op.row;
  if (!observed(w, op, accessKind(row), mask, place, bytesOf(row)))
    return;
  if (row.flags & kAtomic) {
    unsigned x = op.s[1].reg;
    unsigned c = isCompareSwap(row.count) ? x + row.param / 4 : x;
    int bad = -1;
    if (!atomicAny(w, row, mask, place, x, c, op.d.reg, op.flags & kReturn, bad))
      w.fail(ErrorCode::IllegalAddress, op, bad,
             "atomic on an address that is not a multiple of " +
                 std::to_string(row.param));
  } else if (row.flags & kStore) {
    storeAny(w, row, op.s[1].reg, mask, place);
  } else if (op.flags & kLdsDirect) {
    // To LDS: M0 and the instruction's offset are the base of lane 0.
    uint32_t bytes = row.param == 4 ? 4 * row.count : 4;
    uint64_t base = (w.s[kM0] & w.group->m0LdsMask) +
                    static_cast<uint32_t>(op.offset1);
    auto inLds = [&](int l) { return w.group->lds + base + uint64_t(l) * bytes; };
    if (!observed(w, op, MemoryAccess::Store, mask, inLds, bytes))
      return;
    forEachLane(mask, [&](int l) {
      uint64_t at = base + uint64_t(l) * bytes;
      if (at + bytes > w.group->ldsBytes) {
        if (w.state == WaveState::Running)
          w.fail(ErrorCode::IllegalAddress, op, l,
                 "load to LDS offset " + std::to_string(at) + " of " +
                     std::to_string(w.group->ldsBytes) + " bytes");
        return;
      }
      uint32_t x[4] = {0, 0, 0, 0};
      std::memcpy(x, place(l), row.param * row.count);
      if (row.param < 4)
        x[0] = extend(x[0], row.param, row.flags, 0);
      std::memcpy(w.group->lds + at, x, bytes);
    });
  } else {
    loadAny(w, row, op.d.reg, mask, place);
  }
}

void scratchAccess(Wave &w, const MicroOp &op, uint64_t mask) {
  uint32_t bytes = bytesOf(*op.row), size = w.group->privateBytes;
  int64_t base = static_cast<int64_t>(static_cast<int32_t>(
                     readS32(w, op.s[2]))) + op.offset;
  const uint32_t *v =
      op.s[0].kind == Operand::Vgpr ? w.vreg(op.s[0].reg) : nullptr;
  uint32_t offset[kLaneStride];
  int bad = -1;
  forEachLane(mask, [&](int l) {
    int64_t at = base + (v ? static_cast<int32_t>(v[l]) : 0);
    if (bad < 0 && (at < 0 || at + bytes > size))
      bad = l;
    offset[l] = static_cast<uint32_t>(at);
  });
  if (bad >= 0)
    return w.fail(ErrorCode::IllegalAddress, op, bad,
                  std::to_string(bytes) + " bytes at offset " +
                      std::to_string(static_cast<int32_t>(offset[bad])) +
                      ": the kernel has " + std::to_string(size) +
                      " bytes of scratch a lane");
  count(w, *op.row, mask, bytes);
  transfer(w, op, mask, [&](int l) {
    return w.scratch + size_t(l) * size + offset[l];
  });
}

/// Buffer instructions on the scratch resource. Its records are swizzled: 64
/// lanes' words lie side by side, so a scalar offset counts for all lanes
/// together, while the other offsets are a lane's own.
void scratchBuffer(Wave &w, const MicroOp &op, uint64_t base, uint64_t mask) {
  uint32_t bytes = bytesOf(*op.row), size = w.group->privateBytes;
  uint64_t common = (base & 0xffffffff) + readS32(w, op.s[3]);
  if (common % (4 * static_cast<uint64_t>(w.lanes)))
    return w.fail(ErrorCode::IllegalAddress, op, -1,
                  "a scalar offset of " + std::to_string(common) +
                      " into scratch: no multiple of a word of all lanes");
  uint64_t start = common / static_cast<uint64_t>(w.lanes) +
                   static_cast<uint32_t>(op.offset);
  const uint32_t *v = op.flags & kOffen
                          ? w.vreg(op.s[0].reg + (op.flags & kIdxen ? 1 : 0))
                          : nullptr;
  uint64_t offset[kLaneStride];
  int bad = -1;
  forEachLane(mask, [&](int l) {
    offset[l] = start + (v ? v[l] : 0);
    if (bad < 0 && offset[l] + bytes > size)
      bad = l;
  });
  if (bad >= 0)
    return w.fail(ErrorCode::IllegalAddress, op, bad,
                  std::to_string(bytes) + " bytes at offset " +
                      std::to_string(offset[bad]) + ": the kernel has " +
                      std::to_string(size) + " bytes of scratch a lane");
  count(w, *op.row, mask, bytes);
  transfer(w, op, mask, [&](int l) {
    return w.scratch + size_t(l) * size + offset[l];
  });
}

} // namespace

bool checkMemory(Wave &w, const MicroOp &op, const uint64_t *address,
                 uint64_t mask, uint32_t bytes) {
  uint64_t low = ~uint64_t(0), high = 0;
  if (mask == w.fullMask) {
    for (int l = 0; l < w.lanes; ++l) {
      low = address[l] < low ? address[l] : low;
      high = address[l] > high ? address[l] : high;
    }
  } else {
    forEachLane(mask, [&](int l) {
      low = address[l] < low ? address[l] : low;
      high = address[l] > high ? address[l] : high;
    });
  }
  MemoryCache &cache = w.group->cache;
  if (high + bytes > high && cache.covers(low, high + bytes))
    return true;
  int bad = -1;
  forEachLane(mask, [&](int l) {
    if (bad < 0 && (address[l] + bytes < address[l] ||
                    !cache.covers(address[l], address[l] + bytes)))
      bad = l;
  });
  if (bad < 0)
    return true;
  outside(w, op, bad, address[bad], bytes);
  return false;
}

void execFlat(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  if (row.flags & kScratch)
    return scratchAccess(w, op, mask);
  uint64_t address[kLaneStride];
  const uint32_t *v = w.vreg(op.s[0].reg);
  int64_t offset = op.offset;
  if (op.s[2].kind != Operand::None) {
    uint64_t base = readS64(w, op.s[2]) + static_cast<uint64_t>(offset);
    for (int l = 0; l < w.lanes; ++l)
      address[l] = base + v[l];
  } else {
    for (int l = 0; l < w.lanes; ++l)
      address[l] = (v[l] | uint64_t(v[l + kLaneStride]) << 32) +
                   static_cast<uint64_t>(offset);
  }
  uint32_t bytes = bytesOf(row);
  if (!(row.flags & kGlobal)) {
    // FLAT: LDS and scratch have apertures in the address space.
    uint64_t memory = mask;
    Group &g = *w.group;
    bool failed = false;
    forEachLane(mask, [&](int l) {
      uint64_t high = address[l] >> 32, low = address[l] & 0xffffffff;
      bool lds = high == kSharedBase >> 32;
      if (!lds && high != kPrivateBase >> 32)
        return;
      memory &= ~(uint64_t(1) << l);
      uint64_t size = lds ? g.ldsBytes : g.privateBytes;
      if (low + bytes > size) {
        if (!failed)
          w.fail(ErrorCode::IllegalAddress, op, l,
                 std::to_string(bytes) + " bytes at offset " +
                     std::to_string(low) + " of " + std::to_string(size) +
                     (lds ? " bytes of LDS" : " bytes of scratch"));
        failed = true;
        return;
      }
      uint8_t *base = lds ? g.lds : w.scratch + size_t(l) * g.privateBytes;
      address[l] = reinterpret_cast<uint64_t>(base + low);
    });
    if (failed || (memory && !checkMemory(w, op, address, memory, bytes)))
      return;
  } else if (!checkMemory(w, op, address, mask, bytes)) {
    return;
  }
  count(w, row, mask, bytes);
  transfer(w, op, mask,
           [&](int l) { return reinterpret_cast<uint8_t *>(address[l]); });
}

/// global_load_tr_b128: groups of eight lanes load eight halves each and
/// transpose the square.
void execTransposed(Wave &w, const MicroOp &op) {
  if (w.lanes != 32)
    return w.fail(ErrorCode::IllegalInstruction, op, -1,
                  "in waves of 64 lanes the order of what transposing loads "
                  "give is not documented");
  execFlat(w, op);
  if (w.state != WaveState::Running)
    return;
  uint16_t halves[8][8]; // by lane of the group, then element
  for (int group = 0; group < 32; group += 8) {
    for (int l = 0; l < 8; ++l)
      for (unsigned e = 0; e < 8; ++e)
        halves[l][e] = static_cast<uint16_t>(
            w.vreg(op.d.reg + e / 2)[group + l] >> (16 * (e & 1)));
    for (int l = 0; l < 8; ++l)
      for (unsigned e = 0; e < 8; e += 2)
        w.vreg(op.d.reg + e / 2)[group + l] =
            halves[e][l] | static_cast<uint32_t>(halves[e + 1][l]) << 16;
  }
}

void execBuffer(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  // The resource: base [47:0], stride [61:48], swizzle [63], num_records
  // [95:64], index stride [118:117], add thread id [119].
  const uint32_t *r = &w.s[op.s[2].reg];
  uint64_t base = r[0] | uint64_t(r[1] & 0xffff) << 32;
  uint32_t stride = (r[1] >> 16) & 0x3fff;
  bool swizzle = r[1] >> (w.group->chip->bufferOobSelect ? 30 : 31);
  bool addTid = (r[3] >> 23) & 1;
  if (__builtin_expect(base >> 32 == kScratchBuffer >> 32, 0))
    return scratchBuffer(w, op, base, mask);
  uint32_t indexStride = 8u << ((r[3] >> 21) & 3);
  if (addTid)
    stride |= ((r[3] >> 15) & 15) << 14;
  uint32_t soffset = readS32(w, op.s[3]);
  bool idxen = op.flags & kIdxen, offen = op.flags & kOffen;
  const uint32_t *vIndex = idxen ? w.vreg(op.s[0].reg) : nullptr;
  const uint32_t *vOffset =
      offen ? w.vreg(op.s[0].reg + (idxen ? 1 : 0)) : nullptr;
  uint32_t bytes = bytesOf(row);
  const ChipInfo &chip = *w.group->chip;
  const BufferRange range =
      bufferRange(chip, r, stride, swizzle, idxen, soffset, bytes);
  // Words are checked one by one, but in atomics.
  const bool byWord = row.param == 4 && !(row.flags & kAtomic);

  uint64_t address[kLaneStride];
  uint64_t inRange = 0, partial = 0;
  uint32_t room[kLaneStride]; // words in range, of partial lanes
  if (!idxen && !addTid && !swizzle) {
    uint64_t start = base + soffset;
    uint64_t highest = 0, limit = range.records ? range.limit : 0;
    for (int l = 0; l < w.lanes; ++l) {
      uint64_t at = static_cast<uint64_t>(static_cast<uint32_t>(op.offset)) +
                    (vOffset ? vOffset[l] : 0);
      address[l] = at;
      highest = at > highest ? at : highest;
    }
    if (highest + bytes <= limit) {
      inRange = mask;
    } else {
      forEachLane(mask, [&](int l) {
        if (address[l] + bytes <= limit)
          inRange |= uint64_t(1) << l;
        else if (byWord && address[l] + 4 <= limit) {
          partial |= uint64_t(1) << l;
          room[l] = static_cast<uint32_t>((limit - address[l]) / 4);
        }
      });
    }
    for (int l = 0; l < w.lanes; ++l)
      address[l] += start;
  } else {
    forEachLane(mask, [&](int l) {
      uint64_t index = (vIndex ? vIndex[l] : 0) + uint64_t(addTid ? l : 0);
      uint64_t offset = static_cast<uint64_t>(static_cast<uint32_t>(op.offset)) +
                        (vOffset ? vOffset[l] : 0);
      if (range.holds(index, offset + bytes)) {
        inRange |= uint64_t(1) << l;
      } else if (byWord && chip.bufferOobSelect &&
                 range.holds(index, offset + 4)) {
        partial |= uint64_t(1) << l;
        room[l] = static_cast<uint32_t>((range.limit - offset) / 4);
      }
      if (swizzle && stride)
        address[l] = base + soffset +
                     (index / indexStride * stride + offset / 4 * 4) *
                         indexStride +
                     index % indexStride * 4 + offset % 4;
      else
        address[l] = base + soffset + index * stride + offset;
    });
  }
  if (inRange && !checkMemory(w, op, address, inRange, bytes))
    return;
  uint64_t out = mask & ~inRange;
  if (out && (row.flags & kLoad) && !(op.flags & kLdsDirect)) {
    // Out of range reads give 0, each word for itself.
    forEachLane(out, [&](int l) {
      uint64_t words = (partial >> l) & 1 ? room[l] : 0;
      if (words) {
        uint64_t n = words * 4;
        if (!w.group->cache.covers(address[l], address[l] + n)) {
          if (w.state == WaveState::Running)
            outside(w, op, l, address[l], static_cast<uint32_t>(n));
          return;
        }
      }
      for (uint64_t i = 0; i < row.count; ++i) {
        uint32_t x = 0;
        if (i < words)
          std::memcpy(&x, reinterpret_cast<uint8_t *>(address[l]) + 4 * i, 4);
        uint32_t *d = w.vreg(op.d.reg + static_cast<unsigned>(i));
        d[l] = row.param < 4
                   ? extend(0, row.param, row.flags, d[l] & keptByD16(w))
                   : x;
      }
    });
  } else if (partial && (row.flags & kStore)) {
    forEachLane(partial, [&](int l) {
      uint64_t n = uint64_t(room[l]) * 4;
      if (!w.group->cache.covers(address[l], address[l] + n)) {
        if (w.state == WaveState::Running)
          outside(w, op, l, address[l], static_cast<uint32_t>(n));
        return;
      }
      for (unsigned i = 0; i < n / 4; ++i)
        std::memcpy(reinterpret_cast<uint8_t *>(address[l]) + 4 * i,
                    &w.vreg(op.s[1].reg + i)[l], 4);
    });
  } else if (out && (row.flags & kAtomic) && (op.flags & kReturn)) {
    forEachLane(out, [&](int l) {
      for (unsigned i = 0; i < row.param / 4; ++i)
        w.vreg(op.d.reg + i)[l] = 0;
    });
  } else if (out && (op.flags & kLdsDirect)) {
    // Zeros arrive in LDS as well.
    static const uint8_t zeros[16] = {};
    transfer(w, op, out, [&](int) { return const_cast<uint8_t *>(zeros); });
  }
  if (!inRange || w.state != WaveState::Running)
    return;
  count(w, row, inRange, bytes);
  transfer(w, op, inRange,
           [&](int l) { return reinterpret_cast<uint8_t *>(address[l]); });
}

} // namespace fovea::sim::FOVEA_VARIANT
