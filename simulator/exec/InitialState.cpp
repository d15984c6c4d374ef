//===- InitialState.cpp - What a wave starts with -------------------------===//
//
// Initial registers: LLVM's "User Guide for AMDGPU Backend", section on initial
// kernel execution state.
//
//===----------------------------------------------------------------------===//
#include "exec/InitialState.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {

/// A NaN in fp32, and in both halves of a word as fp16 and as bf16.
constexpr uint32_t kPoison = 0x7ff77ff7;

/// A wave that has executed nothing.
void resetControl(Wave &w, unsigned index, const Run &run) {
  const KernelInfo &k = run.kernel;
  w.index = index;
  w.lanes = static_cast<int>(k.waveSize);
  w.fullMask = k.waveSize == 64 ? ~uint64_t(0) : 0xffffffffu;
  w.state = WaveState::Running;
  w.barrierDone = w.barrierWait = 0;
  w.joined = 0;
  w.scc = false;
  w.indexing = false;
  w.executed = 0;
  w.fault = Fault();
  w.pc = static_cast<uint32_t>((k.entryAddress - w.group->textBegin) / 4);
}

void fillRegisters(Wave &w, const Run &run) {
  const KernelInfo &k = run.kernel;
  uint32_t fill = unwrittenWord(run);
  std::fill(std::begin(w.s), std::end(w.s), fill);
  unsigned vgprs = std::min(256u, vgprCount(k, run.chip));
  std::fill_n(w.v, size_t(vgprs) * kLaneStride, fill);
  if (k.agprs)
    std::fill_n(w.vreg(kAgprBase),
                size_t(std::min(k.agprs, 256u)) * kLaneStride, fill);
}

/// MODE: float mode, DX10 clamp, IEEE, FP16 overflow. Chips without the bits
/// behave as with DX10 clamp.
uint32_t initialMode(const KernelInfo &k, const ChipInfo &chip) {
  uint32_t clampAndIeee = chip.modeHasIeee ? bitField(k.rsrc1, 21, 1) << 8 |
                                                 bitField(k.rsrc1, 23, 1) << 9
                                           : 1 << 8;
  return bitField(k.rsrc1, 12, 8) | clampAndIeee |
         bitField(k.rsrc1, 26, 1) << 23;
}

void setSpecialRegisters(Wave &w, const Run &run, uint32_t activeLanes) {
  w.setMode(initialMode(run.kernel, run.chip));
  w.s[kM0] = 0;
  w.setS64(kNull, 0);
  w.setS64(kVcc, 0);
  if (run.chip.sgprsPerWave <= kFlatScratch)
    w.setS64(kFlatScratch, kPrivateBase);
  w.setExec(activeLanes == 64 ? ~uint64_t(0)
                              : (uint64_t(1) << activeLanes) - 1);
}

/// The user registers, of which there are 16 at most, in the order of the
/// descriptor's properties.
void setUserRegisters(Wave &w, const Run &run) {
  const KernelInfo &k = run.kernel;
  unsigned next = 0;
  auto put = [&](uint32_t value) {
    if (next < 16)
      w.s[next++] = value;
  };
  auto put64 = [&](uint64_t value) {
    put(static_cast<uint32_t>(value));
    put(static_cast<uint32_t>(value >> 32));
  };
  unsigned properties = k.codeProperties;
  if (properties & 1) { // private segment buffer (see kScratchBuffer)
    put64(kScratchBuffer | uint64_t(1) << 63); // swizzled
    put64(0xffffffffu | uint64_t(1u << 23 | 3u << 21) << 32);
  }
  if (properties & 2)
    put64(run.packet);
  if (properties & 4)
    put64(run.queue);
  if (properties & 8)
    put64(run.kernarg);
  if (properties & 16)
    put64(1); // dispatch id
  if (properties & 32)
    put64(kPrivateBase); // flat scratch init
  if (properties & 64)
    put(run.privateBytes);
  // Arguments that the hardware preloads after the other user registers.
  unsigned length = k.kernargPreload & 0x7f, offset = k.kernargPreload >> 7;
  unsigned userCount = bitField(k.rsrc2, 1, 5);
  for (unsigned i = 0; i < length && next < userCount; ++i) {
    uint32_t value = 0;
    uint32_t at = 4 * (offset + i);
    if (at + 4 <= k.kernargSize)
      std::memcpy(&value, reinterpret_cast<const void *>(run.kernarg + at), 4);
    put(value);
  }
}

/// The system registers, behind the user registers that the kernel asks for.
void setSystemRegisters(Wave &w, const Run &run, const GroupExtent &extent) {
  const KernelInfo &k = run.kernel;
  const uint32_t *id = w.group->id;
  unsigned next = bitField(k.rsrc2, 1, 5);
  auto put = [&](unsigned bit, uint32_t value) {
    if ((k.rsrc2 >> bit) & 1)
      w.s[next++] = value;
  };
  if (run.chip.workgroupIdsInTtmp) {
    // Ids of dimensions that the kernel does not ask for read 0.
    uint32_t y = (k.rsrc2 >> 8) & 1 ? id[1] : 0;
    uint32_t z = (k.rsrc2 >> 9) & 1 ? id[2] : 0;
    w.s[kTtmp0 + 9] = id[0];
    w.s[kTtmp0 + 7] = y | z << 16;
    w.s[kTtmp0 + 8] = w.index << 25; // number of the wave in its workgroup
  } else {
    put(7, id[0]);
    put(8, id[1]);
    put(9, id[2]);
  }
  put(10, extent.waves); // workgroup info
  if (!run.chip.architectedFlatScratch)
    put(0, 0); // private segment wave offset
  w.initialSgprs = next;
}

/// Work-item ids of the first \p active lanes, x fastest. Those that are not
/// asked for stay as they are, or 0 where all share a register.
void setWorkItemIds(Wave &w, const Run &run, const GroupExtent &extent,
                    uint32_t active) {
  unsigned dims = bitField(run.kernel.rsrc2, 11, 2);
  const bool packed = run.chip.packedWorkItemIds;
  w.initialVgprs = packed ? 1 : 1 + std::min(dims, 2u);
  const uint32_t first = w.index * run.kernel.waveSize;
  const uint32_t *size = extent.size;
  for (uint32_t l = 0; l < active; ++l) {
    uint32_t flat = first + l;
    uint32_t x = flat % size[0], y = flat / size[0] % size[1];
    uint32_t z = flat / size[0] / size[1];
    if (packed) {
      w.v[l] = x | (dims >= 1 ? y << 10 : 0) | (dims >= 2 ? z << 20 : 0);
      continue;
    }
    w.v[l] = x;
    if (dims >= 1)
      w.v[kLaneStride + l] = y;
    if (dims >= 2)
      w.v[2 * kLaneStride + l] = z;
  }
}

} // namespace

GroupExtent extentOf(const Run &run, const uint32_t (&id)[3]) {
  const Geometry &g = run.geometry;
  GroupExtent extent;
  for (int i = 0; i < 3; ++i)
    extent.size[i] = static_cast<uint32_t>(std::min<uint64_t>(
        g.block[i], g.items[i] - uint64_t(id[i]) * g.block[i]));
  extent.items = extent.size[0] * extent.size[1] * extent.size[2];
  extent.waves =
      static_cast<unsigned>(ceilDiv(extent.items, run.kernel.waveSize));
  return extent;
}

uint32_t unwrittenWord(const Run &run) {
  return run.config.options.poison ? kPoison : 0;
}

void setInitialState(Wave &w, unsigned index, const Run &run,
                     const GroupExtent &extent) {
  const unsigned waveSize = run.kernel.waveSize;
  const uint32_t active = std::min(extent.items - index * waveSize, waveSize);
  resetControl(w, index, run);
  fillRegisters(w, run);
  setSpecialRegisters(w, run, active);
  setUserRegisters(w, run);
  setSystemRegisters(w, run, extent);
  setWorkItemIds(w, run, extent, active);
}

} // namespace fovea::sim
