//===- Predict.cpp - From some workgroups to a launch ---------------------===//
//
// Chooses workgroups that stand for all, executes and replays them, and lets
// the chip work through the grid at the pace that they show.
//
//===----------------------------------------------------------------------===//
#include "decode/CodeObjectImpl.h"
#include "fovea/Simulator/Timing.h"
#include "timing/ComputeUnit.h"
#include "timing/Grid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

namespace fovea::sim {

std::string_view name(Stall stall) {
  static constexpr std::string_view names[] = {
      "alu",         "matrix",   "matrix-pipe", "vector-port", "port",
      "memory-queue", "wait-vector", "wait-lds", "wait-scalar", "wait-other",
      "barrier",     "fetch",    "idle"};
  static_assert(sizeof names / sizeof *names == kStalls, "a name for each");
  return names[static_cast<unsigned>(stall)];
}

bool hasTiming(const ChipInfo &chip) { return timingConstants(chip.target); }

namespace {

uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// How many workgroups a compute unit holds, and what stops the next.
struct Occupancy {
  unsigned groups = 1;
  std::string limit;
};

Occupancy occupancyOf(const ChipInfo &chip, const KernelInfo &kernel,
                      const LaunchConfig &config, unsigned wavesPerGroup) {
  // Registers a wave takes of its SIMD's file: granules of 8 (4 where AGPRs have
  // a file of their own), AGPRs behind the VGPRs where the file is one.
  unsigned granules = (kernel.rsrc1 & 63) + 1;
  unsigned registers = granules * (chip.unifiedRegisters ? 8 : 4);
  unsigned file = chip.unifiedRegisters ? chip.vgprsPerSimdLane : 256;
  unsigned byRegisters = std::max(1u, file / registers);
  unsigned wavesPerSimd = std::min(chip.maxWavesPerSimd, byRegisters);
  Occupancy result;
  result.groups = std::max(1u, chip.simdsPerCU * wavesPerSimd / wavesPerGroup);
  result.limit = byRegisters < chip.maxWavesPerSimd ? "registers" : "wave slots";
  uint64_t lds = uint64_t(kernel.staticLdsBytes) + config.dynamicLdsBytes;
  if (lds) {
    uint64_t granule = 512;
    unsigned byLds = static_cast<unsigned>(
        std::max<uint64_t>(1, chip.ldsPerCU / (ceilDiv(lds, granule) * granule)));
    if (byLds < result.groups) {
      result.groups = byLds;
      result.limit = "LDS";
    }
  }
  if (wavesPerGroup > 1 && result.groups > 16) {
    result.groups = 16;
    result.limit = "barriers";
  }
  return result;
}

/// Executes workgroups of a launch and keeps what they did.
class Sampler {
public:
  Sampler(const CodeObject &code, const KernelInfo &kernel,
          const LaunchConfig &config, const TimingConstants &chip,
          const uint32_t *grid)
      : Code(code), Kernel(kernel), Config(config), Chip(chip), Grid(grid) {}

  /// Wave instructions of each workgroup asked for.
  Status count(const std::vector<uint64_t> &groups,
               std::map<uint64_t, uint64_t> &result) {
    for (uint64_t group : groups) {
      if (result.count(group))
        continue;
      LaunchConfig config = Config;
      config.workgroups = {group};
      config.options.threads = 1;
      config.options.observers = nullptr;
      Counters counters;
      if (Status status = launch(Code, Kernel, config, &counters); !status)
        return status;
      result[group] = counters.instructions;
    }
    return Status::success();
  }

  Status trace(uint64_t group, std::unique_ptr<GroupTrace> &result) {
    TraceRecorder recorder(Chip, Grid);
    LaunchConfig config = Config;
    config.workgroups = {group};
    config.options.threads = 1;
    config.options.observers = &recorder;
    if (Status status = launch(Code, Kernel, config); !status)
      return status;
    auto traces = recorder.take();
    if (traces.empty())
      return {ErrorCode::LaunchFailure, "kernel '" + Kernel.name +
                                            "': workgroup " +
                                            std::to_string(group) +
                                            " did not end"};
    result = std::move(traces[0]);
    return Status::success();
  }

private:
  const CodeObject &Code;
  const KernelInfo &Kernel;
  const LaunchConfig &Config;
  const TimingConstants &Chip;
  const uint32_t *Grid;
};

std::vector<uint64_t> linesOf(const GroupTrace &trace) {
  std::vector<uint64_t> lines = trace.lines;
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}
double commonShare(const std::vector<uint64_t> &a,
                   const std::vector<uint64_t> &b) {
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++common;
      ++i;
      ++j;
    } else if (a[i] < b[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return a.empty() ? 1 : double(common) / double(a.size());
}

} // namespace

Status predict(const CodeObject &code, const KernelInfo &kernel,
               const LaunchConfig &config, const TimingOptions &options,
               TimingReport &report) {
  report = TimingReport();
  const ChipInfo &info = code.device()->chip();
  const TimingConstants *constants = timingConstants(info.target);
  if (!constants)
    return {ErrorCode::NotFound,
            "there is no timing model of " + std::string(info.target) +
                "; it knows gfx908, gfx90a, gfx942 and gfx950"};
  const TimingConstants &chip = *constants;
  report.kernel = kernel.name;
  report.chip = info.target;
  report.simds = chip.simds;
  report.slotClocks = chip.slot;

  // The grid.
  uint32_t grid[3];
  uint64_t total = 1, items = 1;
  bool byItems = config.gridWorkItems[0] || config.gridWorkItems[1] ||
                 config.gridWorkItems[2];
  for (int i = 0; i < 3; ++i) {
    uint64_t n = byItems ? ceilDiv(std::max<uint64_t>(1, config.gridWorkItems[i]),
                                   std::max(1u, config.block[i]))
                         : config.grid[i];
    grid[i] = static_cast<uint32_t>(n);
    total *= n;
    items *= config.block[i];
  }
  if (!total || !items)
    return {ErrorCode::InvalidArgument,
            "kernel '" + kernel.name + "': the grid is empty"};
  unsigned waves = static_cast<unsigned>(ceilDiv(items, kernel.waveSize));
  Occupancy occupancy = occupancyOf(info, kernel, config, waves);
  if (options.residentWorkgroups) {
    occupancy.groups = options.residentWorkgroups;
    occupancy.limit = "the caller";
  }
  unsigned units = info.computeUnits;
  if (total < uint64_t(units) * occupancy.groups) {
    unsigned needed = static_cast<unsigned>(ceilDiv(total, units));
    if (needed < occupancy.groups) {
      occupancy.groups = needed;
      occupancy.limit = "grid";
    }
  }
  report.workgroups = total;
  report.wavesPerWorkgroup = waves;
  report.resident = occupancy.groups;
  report.residentLimit = occupancy.limit;
  report.wavesPerSimd = double(waves) * occupancy.groups / chip.simds;
  report.rounds = double(total) / (double(units) * occupancy.groups);

  // How much the workgroups have to do.
  Sampler sampler(code, kernel, config, chip, grid);
  WorkMap work(grid, total);
  std::map<uint64_t, uint64_t> counts;
  while (true) {
    std::vector<uint64_t> wanted = work.wanted(counts);
    if (wanted.empty())
      break;
    if (Status status = sampler.count(wanted, counts); !status)
      return status;
  }
  work.finish(counts);
  if (!work.note().empty())
    report.notes.push_back(work.note());

  // Workgroups to replay: one for each of a few amounts of work.
  std::vector<uint64_t> levels = work.levels(std::max(1u, std::min(4u, options.maxSamples)));
  std::vector<std::unique_ptr<GroupTrace>> traces;
  for (uint64_t group : levels) {
    std::unique_ptr<GroupTrace> trace;
    if (Status status = sampler.trace(group, trace); !status)
      return status;
    traces.push_back(std::move(trace));
  }

  // What neighbours share. Workgroups go to the XCDs in turn.
  Sharing sharing;
  unsigned xcds = std::max(1u, info.xcds);
  sharing.units = std::min<double>(units, double(total));
  sharing.unitsPerL2 = std::max(1.0, sharing.units / xcds);
  {
    const GroupTrace &middle = *traces[traces.size() / 2];
    std::vector<uint64_t> own = linesOf(middle);
    auto meanShare = [&](const std::vector<uint64_t> &steps, double &share) {
      double sum = 0;
      unsigned n = 0;
      std::set<uint64_t> used{middle.id};
      for (uint64_t step : steps) {
        uint64_t other = middle.id + step < total ? middle.id + step
                         : middle.id >= step      ? middle.id - step
                                                  : total;
        if (other >= total || !used.insert(other).second)
          continue;
        std::unique_ptr<GroupTrace> trace;
        if (Status status = sampler.trace(other, trace); !status)
          return status;
        sum += commonShare(own, linesOf(*trace));
        ++n;
      }
      share = n ? sum / n : 0;
      return Status::success();
    };
    double near = 0, far = 0;
    uint64_t together = uint64_t(sharing.unitsPerL2 * occupancy.groups);
    std::vector<uint64_t> nearSteps{xcds}, farSteps;
    if (together > 2)
      nearSteps.push_back(xcds * (together / 2));
    if (together > 1)
      nearSteps.push_back(xcds * (together - 1));
    if (Status status = meanShare(nearSteps, near); !status)
      return status;
    if (xcds > 1) {
      farSteps = {1, xcds - 1};
      if (Status status = meanShare(farSteps, far); !status)
        return status;
    }
    sharing.l2Miss = 1 / (1 + near * std::max(0.0, double(together) - 1));
    sharing.farMiss = chip.farBytes ? 1 / (1 + far * (xcds - 1)) : 1;
  }

  // Replay, at a clock that follows from the result.
  TimedProgram timed(code.impl().program(kernel.waveSize), chip);
  std::vector<InstCounters> insts(timed.dwords());
  double hz = options.clockHz ? options.clockHz : chip.peakHz;
  std::vector<Pace> paces;
  UnitCounters sum;
  MemoryCounters memory;
  GridResult result;
  double matrixShare = 0;
  for (unsigned round = 0; round < (options.clockHz ? 1u : 2u); ++round) {
    bool last = options.clockHz || round == 1;
    sharing.clockHz = hz;
    paces.clear();
    sum = UnitCounters();
    memory = MemoryCounters();
    double flopsPerInstruction = 0, matrixPerInstruction = 0;
    for (size_t i = 0; i < traces.size(); ++i) {
      const GroupTrace &trace = *traces[i];
      Pace pace;
      pace.work = double(trace.instructions);
      // Full: several copies beside each other, one more behind each.
      for (unsigned together : {occupancy.groups, 1u}) {
        ComputeUnit unit(chip, timed, sharing);
        bool full = together == occupancy.groups;
        if (full && last)
          unit.collect(&insts,
                       i + 1 == traces.size() && options.timelineClocks
                           ? &report.timeline
                           : nullptr,
                       options.timelineStart,
                       options.timelineStart + options.timelineClocks);
        unsigned behind = report.rounds > 1 ? 2 : 1;
        std::vector<const GroupTrace *> queue(size_t(together) * behind, &trace);
        std::vector<Residence> done = unit.run(queue, together);
        double clocks = double(unit.counters().clocks) / behind;
        (full ? pace.clocksFull : pace.clocksAlone) = clocks;
        if (full) {
          const UnitCounters &c = unit.counters();
          sum.clocks += c.clocks;
          sum.waveClocks += c.waveClocks;
          sum.issued += c.issued;
          sum.matrixClocks += c.matrixClocks;
          sum.valuClocks += c.valuClocks;
          sum.scalarClocks += c.scalarClocks;
          sum.flops += c.flops;
          for (unsigned s = 0; s < kStalls; ++s)
            sum.stalls[s] += c.stalls[s];
          const MemoryCounters &m = unit.memory();
          memory.l1Lines += m.l1Lines;
          memory.l1Hits += m.l1Hits;
          memory.l2Lines += m.l2Lines;
          memory.l2Hits += m.l2Hits;
          memory.l1Bytes += m.l1Bytes;
          memory.l2Bytes += m.l2Bytes;
          memory.memoryBytes += m.memoryBytes;
          memory.busyClocks += m.busyClocks;
          memory.ldsClocks += m.ldsClocks;
          memory.ldsConflicts += m.ldsConflicts;
        }
        if (together == 1)
          pace.clocksAlone = clocks;
        if (occupancy.groups == 1)
          break;
      }
      if (occupancy.groups == 1)
        pace.clocksAlone = pace.clocksFull;
      paces.push_back(pace);
    }
    if (sum.issued) {
      flopsPerInstruction = sum.flops / double(sum.issued);
      matrixPerInstruction = double(sum.matrixClocks) / double(sum.issued);
    }
    result = runGrid(work, paces, units, xcds, occupancy.groups, chip.groupInterval);
    double instructions = result.instructions;
    report.flops = instructions * flopsPerInstruction;
    matrixShare = result.clocks ? instructions * matrixPerInstruction /
                                      (result.clocks * units * chip.simds)
                                : 0;
    if (!options.clockHz && round == 0)
      hz = std::min(chip.peakHz, chip.powerHz / (chip.powerBase + matrixShare));
  }

  report.clockHz = hz;
  report.clocks = result.clocks;
  report.launchSeconds = chip.launchSeconds;
  report.seconds = result.clocks / hz + chip.launchSeconds;
  report.busyShare = result.busyShare;
  report.matrixOfChip = matrixShare;
  report.peakClockHz = chip.peakHz;
  report.peakFlops = double(chip.matrixFlopsPerClock) * units * chip.peakHz;

  double simdClocks = double(sum.clocks) * chip.simds;
  if (simdClocks > 0) {
    report.matrix = double(sum.matrixClocks) / simdClocks;
    report.valu = double(sum.valuClocks) / simdClocks;
    report.salu = double(sum.scalarClocks) / simdClocks;
    report.issue = double(sum.issued) * chip.slot / simdClocks;
    report.lds = double(memory.ldsClocks) / double(sum.clocks);
    report.vectorMemory = double(memory.busyClocks) / double(sum.clocks);
  }
  double scale = sum.issued ? result.instructions / double(sum.issued) : 0;
  report.l1Bytes = double(memory.l1Bytes) * scale;
  report.l2Bytes = double(memory.l2Bytes) * scale;
  report.memoryBytes = double(memory.memoryBytes) * scale;
  report.l1HitRate = memory.l1Lines ? double(memory.l1Hits) / double(memory.l1Lines) : 0;
  report.l2HitRate = memory.l2Lines ? double(memory.l2Hits) / double(memory.l2Lines) : 0;
  report.ldsConflictShare =
      memory.ldsClocks ? double(memory.ldsConflicts) / double(memory.ldsClocks) : 0;
  double stalled = 0;
  for (unsigned s = 0; s < kStalls; ++s) {
    report.stalls[s] = sum.waveClocks ? double(sum.stalls[s]) / double(sum.waveClocks) : 0;
    stalled += report.stalls[s];
  }
  report.issuedShare = std::max(0.0, 1 - stalled);
  for (size_t i = 0; i < traces.size(); ++i)
    report.samples.push_back(
        {traces[i]->id, traces[i]->instructions, paces[i].clocksFull});

  // Instructions in order of address.
  std::vector<uint32_t> place(insts.size(), 0);
  uint32_t entry = static_cast<uint32_t>(
      (kernel.entryAddress - code.impl().program(kernel.waveSize).begin()) / 4);
  for (uint32_t i = 0; i < insts.size(); ++i) {
    if (!insts[i].issues)
      continue;
    place[i] = static_cast<uint32_t>(report.instructions.size());
    InstTiming inst;
    inst.offset = (i - entry) * 4;
    inst.text = code.impl().program(kernel.waveSize).text(i);
    inst.source = code.impl().program(kernel.waveSize).sourceLine(i);
    inst.cls = timed.at(i).cls;
    inst.issues = insts[i].issues;
    inst.busyClocks = insts[i].busy;
    inst.conflictClocks = insts[i].conflicts;
    inst.stalls = insts[i].stalls;
    report.instructions.push_back(std::move(inst));
  }
  for (TimelineEvent &event : report.timeline)
    event.inst = place[event.inst];
  return Status::success();
}

} // namespace fovea::sim
