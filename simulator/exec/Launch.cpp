//===- Launch.cpp - Running a kernel over a grid --------------------------===//
//
// Checks a launch, builds what the command processor would (argument segment,
// dispatch packet, initial registers), and runs workgroups on host threads. The
// waves of a workgroup take turns on one thread: each runs until a barrier, its
// end or the end of its time slice. Initial registers: LLVM's "User Guide for
// AMDGPU Backend", section on initial kernel execution state.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Launch.h"
#include "check/CheckObserver.h"
#include "decode/CodeObjectImpl.h"
#include "exec/Barrier.h"
#include "exec/Observer.h"
#include "fovea/Threads/Parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

namespace fovea::sim {

namespace {

/// Instructions that a wave runs before the next wave of its workgroup. Few, so
/// that waves advance side by side as on hardware: kernels written by hand may
/// overwrite LDS without a barrier where the write takes so long to arrive (loads
/// to LDS above all) that the readers are done.
constexpr int64_t kSlice = 16;
/// What registers, LDS and scratch hold before they are written: a NaN in fp32,
/// and in both halves of a word as fp16 and as bf16.
constexpr uint32_t kPoison = 0x7ff77ff7;
constexpr uint64_t kMaxScratch = uint64_t(1) << 30;

/// Values of kernel code properties and resource registers, by their bits.
constexpr uint32_t field(uint32_t word, unsigned shift, unsigned width) {
  return (word >> shift) & ((1u << width) - 1);
}

/// Vector registers that the kernel descriptor asks for. Waves of 64 lanes on
/// chips that also have waves of 32 take half as many in a unit.
unsigned vgprCount(const KernelInfo &k, const ChipInfo &chip) {
  bool half = chip.otherWaveSize && k.waveSize == 64;
  return (field(k.rsrc1, 0, 6) + 1) * (half ? chip.vgprGranule / 2 : chip.vgprGranule);
}

struct Geometry {
  uint64_t groups[3];   ///< workgroups, partial ones included
  uint64_t items[3];    ///< work-items of the grid
  uint32_t block[3];
};

uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Geometry geometryOf(const LaunchConfig &config) {
  Geometry g;
  bool byItems = config.gridWorkItems[0] || config.gridWorkItems[1] ||
                 config.gridWorkItems[2];
  for (int i = 0; i < 3; ++i) {
    g.block[i] = config.block[i];
    g.items[i] = byItems ? std::max<uint64_t>(config.gridWorkItems[i], 1)
                         : uint64_t(config.grid[i]) * config.block[i];
    g.groups[i] = g.block[i] ? ceilDiv(g.items[i], g.block[i]) : 0;
  }
  return g;
}

std::string triple(const uint32_t *x) {
  return "(" + std::to_string(x[0]) + ", " + std::to_string(x[1]) + ", " +
         std::to_string(x[2]) + ")";
}

/// A launch in progress, shared by its worker threads.
struct Run {
  Run(const CodeObject &code, const KernelInfo &kernel,
      const LaunchConfig &config)
      : code(code), kernel(kernel), config(config),
        chip(code.device()->chip()), geometry(geometryOf(config)) {}

  const CodeObject &code;
  const KernelInfo &kernel;
  const LaunchConfig &config;
  const ChipInfo &chip;
  Geometry geometry;
  uint64_t packet = 0, queue = 0, kernarg = 0; ///< device addresses
  uint32_t ldsBytes = 0, privateBytes = 0;
  unsigned waveSlots = 0; ///< waves of a full workgroup
  uint64_t totalGroups = 0;
  ObserverFactory *observers = nullptr;
  uint64_t groupsToRun() const {
    return config.workgroups.empty() ? totalGroups : config.workgroups.size();
  }
  std::atomic<uint64_t> nextGroup{0};
  std::atomic<bool> failed{false};
  std::mutex mutex; ///< guards what follows
  Status status;
  Counters counters;

  void fail(const Status &why) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failed.exchange(true))
      status = why;
  }
};

/// Registers, LDS and scratch of the workgroup that a thread runs; kept for the
/// thread's next workgroup.
class Worker {
public:
  explicit Worker(Run &run) : R(run) {
    Memory.memory = &run.code.device()->memory();
    size_t registers = size_t(kVectorFile) * kLaneStride * 4;
    Registers = static_cast<uint8_t *>(
        std::aligned_alloc(64, registers * run.waveSlots));
    Waves.reset(new (std::nothrow) Wave[run.waveSlots]);
    Lds.resize(run.ldsBytes + 64);
    ScratchStride = size_t(run.privateBytes) * run.kernel.waveSize;
    Scratch.resize(ScratchStride * run.waveSlots + 64);
    for (unsigned i = 0; Registers && i < run.waveSlots; ++i)
      Waves[i].v = reinterpret_cast<uint32_t *>(Registers + registers * i);
  }
  ~Worker() { std::free(Registers); }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  void run() {
    if (!Registers || !Waves) {
      R.fail({ErrorCode::OutOfMemory, "no host memory for the waves' registers"});
      return;
    }
    if (R.observers) {
      Watcher = R.observers->create();
      G.observer = Watcher.get();
    }
    while (!R.failed.load(std::memory_order_relaxed)) {
      uint64_t index = R.nextGroup.fetch_add(1, std::memory_order_relaxed);
      if (index >= R.groupsToRun())
        break;
      if (R.config.options.reverse)
        index = R.groupsToRun() - 1 - index;
      setUp(R.config.workgroups.empty() ? index : R.config.workgroups[index]);
      runGroup();
      ++Total.workgroups;
    }
    for (unsigned i = 0; i < kInstClasses; ++i) {
      Total.byClass[i] = G.counts[i];
      Total.instructions += G.counts[i];
    }
    Total.bytesLoaded = G.bytesLoaded;
    Total.bytesStored = G.bytesStored;
    std::lock_guard<std::mutex> lock(R.mutex);
    R.counters += Total;
  }

private:
  void setUp(uint64_t index) {
    const Geometry &geo = R.geometry;
    G.chip = &R.chip;
    std::fill(std::begin(G.barriers), std::end(G.barriers), SplitBarrier());
    G.program = &R.code.impl().program(R.kernel.waveSize);
    G.ops = G.program->ops();
    G.textBegin = G.program->begin();
    G.textDwords = G.program->dwords();
    G.cache.memory = Memory.memory;
    G.undecoded = Program::undecoded();
    G.decodeAt = [](Wave &w) { w.group->program->decode(w.pc); };
    G.lds = Lds.data();
    G.ldsBytes = R.ldsBytes;
    G.m0LdsMask = R.chip.ldsPerWorkgroup > 0x10000 ? 0x3ffff : 0xffff;
    G.privateBytes = R.privateBytes;
    G.mfmaFault = R.config.options.mfmaFault;
    G.id[0] = static_cast<uint32_t>(index % geo.groups[0]);
    G.id[1] = static_cast<uint32_t>(index / geo.groups[0] % geo.groups[1]);
    G.id[2] = static_cast<uint32_t>(index / geo.groups[0] / geo.groups[1]);
    std::copy(std::begin(geo.groups), std::end(geo.groups), G.grid);
    G.number = index;
    uint32_t size[3];
    for (int i = 0; i < 3; ++i)
      size[i] = static_cast<uint32_t>(std::min<uint64_t>(
          geo.block[i], geo.items[i] - uint64_t(G.id[i]) * geo.block[i]));
    uint32_t items = size[0] * size[1] * size[2];
    Count = static_cast<unsigned>(ceilDiv(items, R.kernel.waveSize));
    uint32_t fill = R.config.options.poison ? kPoison : 0;
    std::fill_n(reinterpret_cast<uint32_t *>(Lds.data()), Lds.size() / 4, fill);
    if (R.privateBytes)
      std::fill_n(reinterpret_cast<uint32_t *>(Scratch.data()),
                  Scratch.size() / 4, fill);
    G.waves = Waves.get();
    G.waveCount = Count;
    for (unsigned i = 0; i < Count; ++i)
      setUpWave(i, items, size, fill);
    Total.waves += Count;
    if (G.observer)
      G.observer->beginGroup(G, Waves.get(), Count);
  }

  void setUpWave(unsigned index, uint32_t items, const uint32_t *size,
                 uint32_t fill) {
    Wave &w = Waves[index];
    const KernelInfo &k = R.kernel;
    unsigned waveSize = k.waveSize;
    w.group = &G;
    w.index = index;
    w.lanes = static_cast<int>(waveSize);
    w.fullMask = waveSize == 64 ? ~uint64_t(0) : 0xffffffffu;
    w.scratch = Scratch.data() + ScratchStride * index;
    w.state = WaveState::Running;
    w.barrierDone = w.barrierWait = 0;
    w.joined = 0;
    w.scc = false;
    w.indexing = false;
    w.executed = 0;
    w.fault = Fault();
    w.pc = static_cast<uint32_t>((k.entryAddress - G.textBegin) / 4);
    std::fill(std::begin(w.s), std::end(w.s), fill);
    unsigned vgprs = std::min(256u, vgprCount(k, R.chip));
    std::fill_n(w.v, size_t(vgprs) * kLaneStride, fill);
    if (k.agprs)
      std::fill_n(w.vreg(kAgprBase), size_t(std::min(k.agprs, 256u)) * kLaneStride,
                  fill);
    // MODE: float mode, DX10 clamp, IEEE, FP16 overflow. Chips without the bits
    // behave as with DX10 clamp.
    uint32_t clampAndIeee = R.chip.modeHasIeee ? field(k.rsrc1, 21, 1) << 8 |
                                                     field(k.rsrc1, 23, 1) << 9
                                               : 1 << 8;
    w.setMode(field(k.rsrc1, 12, 8) | clampAndIeee |
              field(k.rsrc1, 26, 1) << 23);
    w.s[kM0] = 0;
    w.setS64(kNull, 0);
    w.setS64(kVcc, 0);
    if (R.chip.sgprsPerWave <= kFlatScratch)
      w.setS64(kFlatScratch, kPrivateBase);
    uint32_t first = index * waveSize;
    uint32_t active = std::min(items - first, waveSize);
    w.setExec(active == 64 ? ~uint64_t(0) : (uint64_t(1) << active) - 1);
    scalarRegisters(w);
    // Work-item ids, x fastest.
    unsigned dims = field(k.rsrc2, 11, 2);
    w.initialVgprs = R.chip.packedWorkItemIds ? 1 : 1 + std::min(dims, 2u);
    for (uint32_t l = 0; l < active; ++l) {
      uint32_t flat = first + l;
      uint32_t x = flat % size[0], y = flat / size[0] % size[1];
      uint32_t z = flat / size[0] / size[1];
      if (R.chip.packedWorkItemIds) { // ids that are not asked for stay 0
        w.v[l] = x | (dims >= 1 ? y << 10 : 0) | (dims >= 2 ? z << 20 : 0);
      } else {
        w.v[l] = x;
        if (dims >= 1)
          w.v[kLaneStride + l] = y;
        if (dims >= 2)
          w.v[2 * kLaneStride + l] = z;
      }
    }
  }

  void scalarRegisters(Wave &w) {
    const KernelInfo &k = R.kernel;
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
      put64(R.packet);
    if (properties & 4)
      put64(R.queue);
    if (properties & 8)
      put64(R.kernarg);
    if (properties & 16)
      put64(1); // dispatch id
    if (properties & 32)
      put64(kPrivateBase); // flat scratch init
    if (properties & 64)
      put(R.privateBytes);
    // Arguments that the hardware preloads after the other user registers.
    unsigned length = k.kernargPreload & 0x7f, offset = k.kernargPreload >> 7;
    unsigned userCount = field(k.rsrc2, 1, 5);
    for (unsigned i = 0; i < length && next < userCount; ++i) {
      uint32_t value = 0;
      if (4 * (offset + i) + 4 <= k.kernargSize)
        std::memcpy(&value,
                    reinterpret_cast<const void *>(R.kernarg + 4 * (offset + i)),
                    4);
      put(value);
    }
    next = userCount;
    auto putSystem = [&](unsigned bit, uint32_t value) {
      if ((k.rsrc2 >> bit) & 1)
        w.s[next++] = value;
    };
    if (R.chip.workgroupIdsInTtmp) {
      // Ids of dimensions that the kernel does not ask for read 0.
      uint32_t y = (k.rsrc2 >> 8) & 1 ? G.id[1] : 0;
      uint32_t z = (k.rsrc2 >> 9) & 1 ? G.id[2] : 0;
      w.s[kTtmp0 + 9] = G.id[0];
      w.s[kTtmp0 + 7] = y | z << 16;
      w.s[kTtmp0 + 8] = w.index << 25; // number of the wave in its workgroup
    } else {
      putSystem(7, G.id[0]);
      putSystem(8, G.id[1]);
      putSystem(9, G.id[2]);
    }
    putSystem(10, Count); // workgroup info
    if (!R.chip.architectedFlatScratch)
      putSystem(0, 0); // private segment wave offset
    w.initialSgprs = next;
  }

  /// Runs the waves of the workgroup until all have ended, or one fails.
  void runGroup() {
    uint64_t budget = R.config.options.waveBudget;
    while (true) {
      unsigned running = 0, waiting = 0;
      const Wave *stuck = nullptr; // in the second half of a split barrier
      for (unsigned i = 0; i < Count; ++i) {
        Wave &w = Waves[i];
        if (w.state == WaveState::Running) {
          if (__builtin_expect(G.observer != nullptr, 0))
            runSliceObserved(w);
          else
            runSlice(w);
          if (w.state == WaveState::Faulted)
            return report(w);
          if (w.state == WaveState::Ended)
            endedAtBarriers(G);
          if (budget && w.executed > budget && w.state == WaveState::Running)
            return overBudget(w);
        }
      }
      // Counted afterwards: a wave can let others go on.
      for (unsigned i = 0; i < Count; ++i) {
        if (Waves[i].state == WaveState::Faulted) // at another wave's signal
          return report(Waves[i]);
        running += Waves[i].state == WaveState::Running;
        waiting += Waves[i].state == WaveState::Barrier;
        if (Waves[i].state == WaveState::Barrier && Waves[i].barrierWait)
          stuck = &Waves[i];
      }
      if (running == 0 && waiting == 0) {
        if (G.observer)
          G.observer->endGroup(G);
        return;
      }
      if (running == 0 && stuck)
        return deadlock(*stuck);
      if (running == 0) { // all that still live have arrived
        ++Total.barriers;
        if (G.observer) {
          G.observer->barrier(G);
          for (unsigned i = 0; i < Count; ++i)
            if (Waves[i].state == WaveState::Faulted)
              return report(Waves[i]);
        }
        for (unsigned i = 0; i < Count; ++i)
          if (Waves[i].state == WaveState::Barrier)
            Waves[i].state = WaveState::Running;
      }
      if (R.failed.load(std::memory_order_relaxed))
        return;
    }
  }

  void runSlice(Wave &w) {
    uint64_t before = executed();
    w.slice = kSlice;
    const MicroOp *ops = G.ops;
    do {
      const MicroOp &op = ops[w.pc];
      Handler fn = op.fn.load(std::memory_order_acquire);
      if (__builtin_expect(fn == G.undecoded, 0)) {
        G.program->decode(w.pc);
        fn = op.fn.load(std::memory_order_acquire);
      }
      ++G.counts[op.cls];
      w.pc += op.size;
      fn(w, op);
    } while (--w.slice > 0);
    w.executed += executed() - before;
  }
  void runSliceObserved(Wave &w) {
    w.slice = kSlice;
    do {
      uint32_t index = w.pc;
      const MicroOp &op = G.ops[index];
      Handler fn = op.fn.load(std::memory_order_acquire);
      if (fn == G.undecoded) {
        G.program->decode(index);
        fn = op.fn.load(std::memory_order_acquire);
      }
      ++G.counts[op.cls];
      ++w.executed;
      w.pc += op.size;
      G.observer->before(w, op, index);
      if (w.state == WaveState::Faulted)
        return;
      fn(w, op);
      if (w.state != WaveState::Faulted)
        G.observer->after(w, op, index);
    } while (--w.slice > 0);
  }
  uint64_t executed() const {
    uint64_t sum = 0;
    for (unsigned i = 0; i < kInstClasses; ++i)
      sum += G.counts[i];
    return sum;
  }

  std::string where(const Wave &w, uint32_t index) {
    // Functions that the kernel calls may lie before it.
    int64_t offset = static_cast<int64_t>(
        G.textBegin + uint64_t(index) * 4 - R.kernel.entryAddress);
    char pc[32];
    std::snprintf(pc, sizeof pc, "%c0x%" PRIx64, offset < 0 ? '-' : '+',
                  static_cast<uint64_t>(offset < 0 ? -offset : offset));
    return "kernel '" + R.kernel.name + "', pc " + pc + ", `" +
           G.program->text(index) + "`, " + sourceOf(index) + "workgroup " +
           triple(G.id) + ", wave " + std::to_string(w.index);
  }
  std::string sourceOf(uint32_t index) {
    std::string line = G.program->sourceLine(index);
    return line.empty() ? line : "source " + line + ", ";
  }
  /// "0-3, 8" for the bits of \p lanes.
  static std::string lanesText(uint64_t lanes) {
    std::string text;
    for (unsigned l = 0; l < 64; ++l) {
      if (!((lanes >> l) & 1))
        continue;
      unsigned last = l;
      while (last < 63 && ((lanes >> (last + 1)) & 1))
        ++last;
      text += (text.empty() ? "" : ", ") + std::to_string(l);
      if (last > l)
        text += "-" + std::to_string(last);
      l = last;
    }
    return text;
  }
  void report(const Wave &w) {
    // An instruction moved by VGPR indexing is not in the program itself.
    auto at = w.fault.op - G.ops;
    uint32_t index = at >= 0 && at < int64_t(G.textDwords) + 1
                         ? static_cast<uint32_t>(at)
                         : w.pc - 1;
    std::string text = where(w, index);
    if (w.fault.lanes & (w.fault.lanes - 1))
      text += ", lanes " + lanesText(w.fault.lanes);
    else if (w.fault.lane >= 0)
      text += ", lane " + std::to_string(w.fault.lane);
    R.fail({w.fault.code, text + ": " + w.fault.what});
  }
  void deadlock(const Wave &w) {
    R.fail({ErrorCode::LaunchFailure,
            where(w, w.pc - 1) +
                ": the wave waits for a barrier that no other wave will "
                "complete"});
  }
  void overBudget(const Wave &w) {
    R.fail({ErrorCode::BudgetExceeded,
            where(w, w.pc) + ": the wave executed " +
                std::to_string(w.executed) + " instructions; the budget is " +
                std::to_string(R.config.options.waveBudget) +
                " (an endless loop?)"});
  }

  Run &R;
  Group G;
  MemoryCache Memory;
  Counters Total;
  uint8_t *Registers = nullptr;
  std::unique_ptr<Observer> Watcher;
  std::unique_ptr<Wave[]> Waves;
  std::vector<uint8_t> Lds, Scratch;
  size_t ScratchStride = 0;
  unsigned Count = 0;
};

Status launchFailure(const KernelInfo &kernel, const std::string &why) {
  return {ErrorCode::LaunchFailure, "kernel '" + kernel.name + "': " + why};
}

Status check(Run &run) {
  const KernelInfo &k = run.kernel;
  const Geometry &g = run.geometry;
  const ChipInfo &chip = run.chip;
  uint64_t items = 1, groups = 1;
  for (int i = 0; i < 3; ++i) {
    if (!g.block[i] || !g.groups[i])
      return launchFailure(k, "grid and workgroup need at least 1 in each "
                              "dimension; the workgroup is " + triple(g.block));
    if (g.block[i] > chip.maxWorkgroupSize)
      return launchFailure(k, "a workgroup of " + triple(g.block) +
                                  " work-items; at most " +
                                  std::to_string(chip.maxWorkgroupSize));
    if (g.groups[i] > 0xffffffffu)
      return launchFailure(k, "a grid of " + std::to_string(g.groups[i]) +
                                  " workgroups in dimension " +
                                  std::to_string(i) + "; at most 2^32 - 1");
    items *= g.block[i];
    if (groups > (uint64_t(1) << 62) / g.groups[i])
      return launchFailure(k, "the grid has more than 2^62 workgroups");
    groups *= g.groups[i];
    if (k.requiredWorkgroupSize[i] && k.requiredWorkgroupSize[i] != g.block[i])
      return launchFailure(k, "a workgroup of " + triple(g.block) +
                                  "; it was compiled for " +
                                  triple(k.requiredWorkgroupSize.data()));
  }
  uint64_t limit = std::min<uint64_t>(chip.maxWorkgroupSize, k.maxWorkgroupSize);
  if (items > limit)
    return launchFailure(k, "a workgroup of " + std::to_string(items) +
                                " work-items; at most " + std::to_string(limit));
  uint64_t lds = uint64_t(k.staticLdsBytes) + run.config.dynamicLdsBytes;
  if (lds > chip.ldsPerWorkgroup)
    return launchFailure(k, std::to_string(lds) + " bytes of LDS; " +
                                std::string(chip.target) + " has " +
                                std::to_string(chip.ldsPerWorkgroup));
  unsigned regs = vgprCount(k, chip);
  if (regs > chip.vgprsPerSimdLane)
    return launchFailure(k, std::to_string(regs) + " vector registers; " +
                                std::string(chip.target) + " has " +
                                std::to_string(chip.vgprsPerSimdLane));
  run.ldsBytes = static_cast<uint32_t>(lds);
  run.privateBytes = k.privateBytes;
  if (k.usesDynamicStack)
    run.privateBytes =
        std::max(run.privateBytes, run.config.options.dynamicStackBytes);
  run.privateBytes = (run.privateBytes + 15) & ~15u;
  run.waveSlots = static_cast<unsigned>(ceilDiv(items, k.waveSize));
  if (uint64_t(run.privateBytes) * k.waveSize * run.waveSlots > kMaxScratch)
    return launchFailure(k, std::to_string(run.privateBytes) +
                                " bytes of scratch a lane are too much for " +
                                std::to_string(items) + " work-items");
  for (uint64_t index : run.config.workgroups)
    if (index >= groups)
      return launchFailure(k, "workgroup " + std::to_string(index) +
                                  " is asked for; the grid has " +
                                  std::to_string(groups));
  run.totalGroups = groups;
  return Status::success();
}

/// Device memory that lives as long as the launch.
struct LaunchMemory {
  DeviceMemory &memory;
  uint64_t address = 0;
  ~LaunchMemory() {
    if (address)
      (void)memory.free(address);
  }
};

/// The packet that dispatch_ptr points to (HSA kernel dispatch packet).
void fillPacket(uint8_t *p, const Run &run) {
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
}

} // namespace

//===-- Wave and cache -----------------------------------------------------===//

void Wave::fail(ErrorCode code, const MicroOp &op, int lane, std::string what) {
  if (state == WaveState::Faulted)
    return;
  fault.code = code;
  fault.op = &op;
  fault.lane = lane;
  fault.what = std::move(what);
  stop(WaveState::Faulted);
}

bool MemoryCache::lookUp(uint64_t begin, uint64_t end) {
  uint64_t now = memory->generation();
  if (now != generation) {
    for (Range &range : ranges)
      range = Range();
    generation = now;
  }
  Allocation found;
  if (begin >= end || !memory->find(begin, found))
    return false;
  ranges[next] = {found.base, found.base + found.size};
  next = (next + 1) % 8;
  return end <= found.base + found.size;
}

//===-- Public interface ---------------------------------------------------===//

std::string_view name(InstClass cls) {
  static constexpr std::string_view names[] = {
      "valu", "trans", "mfma", "salu", "smem",
      "vmem", "lds",   "branch", "sync", "other"};
  return names[static_cast<unsigned>(cls)];
}

Counters &Counters::operator+=(const Counters &other) {
  for (unsigned i = 0; i < kInstClasses; ++i)
    byClass[i] += other.byClass[i];
  instructions += other.instructions;
  workgroups += other.workgroups;
  waves += other.waves;
  barriers += other.barriers;
  bytesLoaded += other.bytesLoaded;
  bytesStored += other.bytesStored;
  seconds += other.seconds;
  return *this;
}

void fillHiddenArguments(const KernelInfo &kernel, const LaunchConfig &config,
                         uint8_t *segment) {
  Geometry g = geometryOf(config);
  unsigned dims = g.items[2] > 1 || g.block[2] > 1   ? 3
                  : g.items[1] > 1 || g.block[1] > 1 ? 2
                                                     : 1;
  struct Value {
    std::string_view kind;
    uint64_t value;
  };
  auto whole = [&](int i) { return g.block[i] ? g.items[i] / g.block[i] : 0; };
  auto rest = [&](int i) { return g.block[i] ? g.items[i] % g.block[i] : 0; };
  const Value values[] = {
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
    for (const Value &known : values)
      if (arg.kind == known.kind)
        value = known.value;
    std::memcpy(segment + arg.offset, &value, arg.size);
  }
}

Status launch(const CodeObject &code, const KernelInfo &kernel,
              const LaunchConfig &config, Counters *counters) {
  if (counters)
    *counters = Counters();
  auto start = std::chrono::steady_clock::now();
  Run run(code, kernel, config);
  if (Status status = check(run); !status)
    return status;
  uint32_t needed = kernel.explicitKernargSize();
  if (config.kernargBytes < needed || (needed && !config.kernarg))
    return {ErrorCode::InvalidArgument,
            "kernel '" + kernel.name + "' takes " + std::to_string(needed) +
                " bytes of arguments; " + std::to_string(config.kernargBytes) +
                " were passed"};
  // The packet, a queue without contents, and the arguments. Compilers load
  // arguments in wider pieces than they need: the segment ends at a cache line.
  DeviceMemory &memory = code.device()->memory();
  LaunchMemory segment{memory}, packet{memory};
  uint64_t segmentBytes = (std::max(kernel.kernargSize, 1u) + 63) & ~uint64_t(63);
  if (Status s = memory.allocate(segmentBytes, 256, segment.address); !s)
    return s;
  if (Status s = memory.allocate(64 + 512, 256, packet.address); !s)
    return s;
  run.kernarg = segment.address;
  run.packet = packet.address;
  run.queue = packet.address + 64;
  auto *bytes = reinterpret_cast<uint8_t *>(segment.address);
  std::memset(bytes, 0, segmentBytes);
  if (config.kernarg)
    std::memcpy(bytes, config.kernarg,
                std::min<uint64_t>(config.kernargBytes, kernel.kernargSize));
  if (config.fillHiddenArgs || config.kernargBytes < kernel.kernargSize)
    fillHiddenArguments(kernel, config, bytes);
  auto *p = reinterpret_cast<uint8_t *>(packet.address);
  std::memset(p, 0, 64 + 512);
  fillPacket(p, run);
  uint32_t apertures[2] = {kSharedBase >> 32, kPrivateBase >> 32};
  std::memcpy(p + 64 + 0x40, apertures, sizeof apertures); // amd_queue_t

  // What this launch writes is not seen by a later one that watches memory.
  if (!(config.options.checks & kCheckUninitMem))
    memory.written().forgetAll();
  std::optional<CheckFactory> checks;
  run.observers = config.options.observers;
  if (config.options.checks & ~kAlwaysChecked) {
    checks.emplace(code.impl().program(kernel.waveSize), kernel, run.chip, config.options.checks,
                   memory.written(), config.options.observers);
    run.observers = &*checks;
  }

  const unsigned threads = static_cast<unsigned>(std::min<uint64_t>(
      threadsFor(config.options.threads), run.groupsToRun()));
  runTogether(threads, [&run] {
    try {
      Worker(run).run();
    } catch (const std::bad_alloc &) {
      run.fail({ErrorCode::OutOfMemory, "the host's memory is full"});
    }
  });

  run.counters.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (counters)
    *counters = run.counters;
  return run.failed ? run.status : Status::success();
}

} // namespace fovea::sim
