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
#include <unordered_map>

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

/// Wave instructions that a replay of short workgroups should have.
constexpr double kShortRun = 100000;

/// Wave instructions of a sample that tell enough of a workgroup that goes
/// through many tiles.
constexpr uint64_t kEnoughInstructions = 2000000;

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
          const uint32_t *grid, uint64_t persistent)
      : Code(code), Kernel(kernel), Config(config), Chip(chip),
        Lds(ldsShape(code.device()->chip())), Grid(grid),
        Persistent(persistent) {}

  /// Wave instructions of each workgroup asked for.
  Status count(const std::vector<uint64_t> &groups,
               std::map<uint64_t, uint64_t> &result) {
    for (uint64_t group : groups) {
      if (result.count(group))
        continue;
      LaunchConfig config = Config;
      config.workgroups = {group};
      config.options.threads = 1;
      TraceRecorder recorder(Chip, Lds, Grid, Persistent, false);
      config.options.observers = Persistent > 1 ? &recorder : nullptr;
      Counters counters;
      if (Status status = launch(Code, Kernel, config, &counters); !status)
        return status;
      result[group] = counters.instructions;
    }
    return Status::success();
  }

  /// Whether the first workgroup takes work from a counter.
  Status probe(bool &persistent, uint64_t &executed) {
    LaunchConfig config = Config;
    TraceRecorder recorder(Chip, Lds, Grid, Persistent, false);
    config.workgroups = {0};
    config.options.threads = 1;
    config.options.observers = &recorder;
    Counters counters;
    Status status = launch(Code, Kernel, config, &counters);
    executed = counters.instructions;
    persistent = recorder.tiles().size() > 1;
    return status;
  }

  /// Adds the tiles that a workgroup takes to \p tiles; lowers \p last to the
  /// first index at which it found none left.
  Status tiles(uint64_t group, std::map<uint64_t, uint64_t> &tiles,
               uint64_t &last) {
    LaunchConfig config = Config;
    TraceRecorder recorder(Chip, Lds, Grid, Persistent, false);
    config.workgroups = {group};
    config.options.threads = 1;
    config.options.observers = &recorder;
    if (Status status = launch(Code, Kernel, config); !status)
      return status;
    const auto &found = recorder.tiles();
    for (size_t i = 0; i + 1 < found.size(); ++i)
      tiles[found[i].index] = found[i].instructions;
    if (!found.empty())
      last = std::min<uint64_t>(last, found.back().index);
    return Status::success();
  }

  Status trace(uint64_t group, std::unique_ptr<GroupTrace> &result) {
    TraceRecorder recorder(Chip, Lds, Grid, Persistent);
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
  const LdsShape &Lds;
  const uint32_t *Grid;
  uint64_t Persistent;
};

/// The share of the lines of \p own that \p other touches as well, not more than
/// \p window lines of its own earlier or later: workgroups that start together
/// go through their data at one pace.
double commonShare(const std::vector<uint64_t> &own,
                   const std::vector<uint64_t> &other, double window) {
  if (own.empty())
    return 1;
  std::unordered_map<uint64_t, std::vector<size_t>> places;
  for (size_t i = 0; i < other.size(); ++i)
    places[other[i]].push_back(i);
  size_t step = own.size() / 20000 + 1, common = 0, looked = 0;
  for (size_t i = 0; i < own.size(); i += step) {
    ++looked;
    auto it = places.find(own[i]);
    if (it == places.end())
      continue;
    for (size_t at : it->second)
      if (std::abs(double(at) - double(i)) <= window) {
        ++common;
        break;
      }
  }
  return double(common) / double(looked);
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
  // A grid that fits the chip at once may be one whose workgroups take tiles
  // from a counter until there are none left.
  // Those that start when it is empty have nothing to do.
  uint64_t together = std::min<uint64_t>(total, uint64_t(units) * occupancy.groups);
  // A sample takes only as many of its tiles as are quick to execute; `stretch`
  // is how many times more it has.
  bool persistent = false;
  uint64_t stretch = 1, executed = 0;
  if (total <= 4 * together) {
    for (stretch = 64;; stretch /= 4) {
      Sampler probe(code, kernel, config, chip, grid, together * stretch);
      if (Status status = probe.probe(persistent, executed); !status)
        return status;
      if (!persistent || stretch == 1 || executed * 4 > kEnoughInstructions)
        break;
    }
    if (!persistent)
      stretch = 1;
  }
  if (persistent) {
    total = together;
    grid[0] = static_cast<uint32_t>(std::min<uint64_t>(grid[0], total));
    report.notes.push_back(
        "workgroups take their work from a counter: those that are on the chip "
        "at a time, " + std::to_string(together) +
        ", take tiles as they come");
  }
  Sampler sampler(code, kernel, config, chip, grid,
                  persistent ? together * stretch : 0);
  WorkMap work(grid, total);
  std::map<uint64_t, uint64_t> counts;
  if (persistent) {
    // How large which tiles are, and how many there are.
    std::map<uint64_t, uint64_t> tiles;
    uint64_t last = ~uint64_t(0);
    for (uint64_t i = 0; i < 32; ++i)
      if (Status status = sampler.tiles((2 * i + 1) * total / 64, tiles, last);
          !status)
        return status;
    tiles.erase(tiles.lower_bound(last), tiles.end());
    if (tiles.empty())
      persistent = false;
    else
      work.setTiles(last, tiles);
  }
  while (true) {
    std::vector<uint64_t> wanted = work.wanted(counts);
    if (wanted.empty())
      break;
    if (Status status = sampler.count(wanted, counts); !status)
      return status;
  }
  if (!persistent)
    work.finish(counts);
  if (!work.note().empty())
    report.notes.push_back(work.note());

  // Workgroups to replay: one for each of a few amounts of work.
  std::vector<uint64_t> levels{total / 2};
  if (!persistent)
    levels = work.levels(std::max(1u, std::min(4u, options.maxSamples)));
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
    uint64_t neighbours =
        std::min(uint64_t(sharing.unitsPerL2 * occupancy.groups),
                 ceilDiv(total, xcds));
    // How many of `count` workgroups, the sample among them, touch a line while a
    // cache holds it. The more do, the longer does it hold a line.
    auto sharers = [&](const std::vector<uint64_t> &steps, double count,
                       double cacheLines, double groups, double &result) {
      std::vector<std::unique_ptr<GroupTrace>> others;
      std::set<uint64_t> used{middle.id};
      for (uint64_t step : steps) {
        uint64_t other = middle.id + step < total ? middle.id + step
                         : middle.id >= step      ? middle.id - step
                                                  : total;
        if (other >= total || !used.insert(other).second)
          continue;
        others.emplace_back();
        if (Status status = sampler.trace(other, others.back()); !status)
          return status;
      }
      result = 1;
      for (int pass = 0; pass < 3 && !others.empty(); ++pass) {
        double window = cacheLines / std::max(1.0, groups) * result, sum = 0;
        for (const auto &other : others)
          sum += commonShare(middle.lines, other->lines, window);
        result = 1 + sum / double(others.size()) * std::max(0.0, count - 1);
      }
      return Status::success();
    };
    // Near and far, odd and even: heads and blocks alternate in many ways.
    std::vector<uint64_t> nearSteps, farSteps;
    for (uint64_t step : {uint64_t(1), uint64_t(2), neighbours / 3 | 1,
                          neighbours * 2 / 3 & ~uint64_t(1), neighbours - 1})
      if (step && step < neighbours)
        nearSteps.push_back(xcds * step);
    double near = 1, far = 1;
    if (Status status =
            sharers(nearSteps, double(neighbours),
                    double(chip.l2Bytes / chip.lineBytes), double(neighbours), near);
        !status)
      return status;
    if (xcds > 1 && chip.farBytes) {
      farSteps = {1, xcds / 2, xcds - 1};
      if (Status status =
              sharers(farSteps, xcds, double(chip.farBytes / chip.lineBytes),
                      double(neighbours) * xcds, far);
          !status)
        return status;
    }
    sharing.l2Miss = 1 / near;
    sharing.farMiss = 1 / far;
    report.notes.push_back(
        "of " + std::to_string(neighbours) + " workgroups behind an L2, about " +
        std::to_string(int(near + 0.5)) + " use a line together; of " +
        std::to_string(xcds) + " L2s, about " + std::to_string(int(far + 0.5)));
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
        // Short workgroups need many behind each other to show their pace.
        double enough = std::ceil(kShortRun / std::max(1.0, pace.work * together));
        unsigned behind = report.rounds <= 1 || persistent
                              ? 1
                              : unsigned(std::min(std::ceil(report.rounds),
                                                  std::max(2.0, enough)));
        std::vector<const GroupTrace *> queue(size_t(together) * behind, &trace);
        unit.run(queue, together);
        double clocks = double(unit.counters().clocks) / behind;
        (full ? pace.clocksFull : pace.clocksAlone) = clocks;
        if (full) {
          sum += unit.counters();
          memory += unit.memory();
        }
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
    double capacity = std::max(1.0, double(sum.clocks) * chip.simds);
    double wideShare = double(sum.wideClocks) / capacity;
    double narrowShare = double(sum.matrixClocks - sum.wideClocks) / capacity;
    double vectorShare = double(sum.valuClocks) / capacity;
    // Tiles are taken in order by whoever is free, whatever the XCD.
    result = runGrid(work, paces, units, persistent ? 1 : xcds,
                     persistent ? 1 : chip.engines, occupancy.groups,
                     chip.groupInterval);
    result.clocks *= chip.spread;
    result.busyShare /= chip.spread;
    double instructions = result.instructions;
    report.flops = instructions * flopsPerInstruction;
    matrixShare = result.clocks ? instructions * matrixPerInstruction /
                                      (result.clocks * units * chip.simds)
                                : 0;
    if (!options.clockHz && round == 0)
      hz = std::min(chip.peakHz,
                    1e9 / (chip.powerBase +
                           result.busyShare *
                               (chip.powerWide * wideShare +
                                chip.powerNarrow * narrowShare +
                                chip.powerVector * vectorShare)));
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
