//===- Dispatch.cpp - What a launch puts into device memory ---------------===//
//
// Packet and queue: the HSA runtime's kernel dispatch packet and amd_queue_t.
// Hidden arguments: LLVM's "User Guide for AMDGPU Backend", code object V5
// metadata.
//
//===----------------------------------------------------------------------===//
#include "exec/Dispatch.h"
#include "exec/Wave.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {

constexpr uint64_t kPacketBytes = 64, kQueueBytes = 512;
constexpr uint64_t kQueueApertures = 0x40; ///< offset in amd_queue_t

struct HiddenArgument {
  std::string_view kind;
  uint64_t value;
};

} // namespace

void fillHiddenArguments(const KernelInfo &kernel, const LaunchConfig &config,
                         uint8_t *segment) {
  Geometry g = geometryOf(config);
  unsigned dims = g.items[2] > 1 || g.block[2] > 1   ? 3
                  : g.items[1] > 1 || g.block[1] > 1 ? 2
                                                     : 1;
  auto whole = [&](int i) { return g.block[i] ? g.items[i] / g.block[i] : 0; };
  auto rest = [&](int i) { return g.block[i] ? g.items[i] % g.block[i] : 0; };
  const HiddenArgument values[] = {
      {"hidden_block_count_x", whole(0)},
      {"hidden_block_count_y", whole(1)},
      {"hidden_block_count_z", whole(2)},
      {"hidden_group_size_x", g.block[0]},
      {"hidden_group_size_y", g.block[1]},
      {"hidden_group_size_z", g.block[2]},
      {"hidden_remainder_x", rest(0)},
      {"hidden_remainder_y", rest(1)},
      {"hidden_remainder_z", rest(2)},
      {"hidden_grid_dims", dims},
      {"hidden_dynamic_lds_size", config.dynamicLdsBytes},
      {"hidden_private_base", kPrivateBase >> 32},
      {"hidden_shared_base", kSharedBase >> 32},
  };
  for (const KernelArg &arg : kernel.args) {
    if (!arg.hidden() || arg.size > 8 ||
        arg.offset + arg.size > kernel.kernargSize)
      continue;
    uint64_t value = 0; // global offsets, printf and host call buffers: none
    for (const HiddenArgument &known : values)
      if (arg.kind == known.kind)
        value = known.value;
    std::memcpy(segment + arg.offset, &value, arg.size);
  }
}

Dispatch::~Dispatch() {
  for (uint64_t address : {packet, segment})
    if (address)
      (void)memory.free(address);
}

Status Dispatch::create(Run &run) {
  const KernelInfo &kernel = run.kernel;
  const LaunchConfig &config = run.config;
  uint32_t needed = kernel.explicitKernargSize();
  if (config.kernargBytes < needed || (needed && !config.kernarg))
    return {ErrorCode::InvalidArgument,
            "kernel '" + kernel.name + "' takes " + std::to_string(needed) +
                " bytes of arguments; " + std::to_string(config.kernargBytes) +
                " were passed"};
  // Compilers load arguments in wider pieces than they need: the segment ends
  // at a cache line.
  uint64_t bytes = (std::max(kernel.kernargSize, 1u) + 63) & ~uint64_t(63);
  if (Status s = memory.allocate(bytes, 256, segment); !s)
    return s;
  if (Status s = memory.allocate(kPacketBytes + kQueueBytes, 256, packet); !s)
    return s;
  run.kernarg = segment;
  run.packet = packet;
  run.queue = packet + kPacketBytes;
  fillSegment(run, bytes);
  fillPacket(run);
  return Status::success();
}

void Dispatch::fillSegment(const Run &run, uint64_t bytes) {
  const LaunchConfig &config = run.config;
  const uint32_t size = run.kernel.kernargSize;
  auto *at = reinterpret_cast<uint8_t *>(segment);
  std::memset(at, 0, bytes);
  if (config.kernarg)
    std::memcpy(at, config.kernarg,
                std::min<uint64_t>(config.kernargBytes, size));
  if (config.fillHiddenArgs || config.kernargBytes < size)
    fillHiddenArguments(run.kernel, config, at);
}

/// The packet that dispatch_ptr points to, and behind it a queue without
/// contents.
void Dispatch::fillPacket(const Run &run) {
  auto *p = reinterpret_cast<uint8_t *>(packet);
  std::memset(p, 0, kPacketBytes + kQueueBytes);
  auto put16 = [&](unsigned at, uint32_t x) { std::memcpy(p + at, &x, 2); };
  auto put32 = [&](unsigned at, uint64_t x) { std::memcpy(p + at, &x, 4); };
  put16(0, 2); // kernel dispatch
  put16(2, 3); // dimensions
  for (unsigned i = 0; i < 3; ++i) {
    put16(4 + 2 * i, run.geometry.block[i]);
    put32(12 + 4 * i, run.geometry.items[i]);
  }
  put32(24, run.privateBytes);
  put32(28, run.ldsBytes);
  std::memcpy(p + 32, &run.kernel.descriptorAddress, 8);
  std::memcpy(p + 40, &run.kernarg, 8);
  uint32_t apertures[2] = {kSharedBase >> 32, kPrivateBase >> 32};
  std::memcpy(p + kPacketBytes + kQueueApertures, apertures, sizeof apertures);
}

} // namespace fovea::sim
