//===- Predict.cpp - From some workgroups to a launch ---------------------===//
//
// Chooses workgroups that stand for all, executes and replays them, and lets
// the chip work through the grid at the pace that they show.
//
//===----------------------------------------------------------------------===//
#include "decode/CodeObjectImpl.h"
#include "exec/LaunchRun.h"
#include "fovea/Simulator/Timing.h"
#include "timing/ComputeUnit.h"
#include "timing/Ensemble.h"
#include "timing/Grid.h"
#include "timing/Neighbours.h"
#include "timing/Sampler.h"
#include "timing/Uncertainty.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace fovea::sim {

std::string_view name(Stall stall) {
  static constexpr std::string_view names[] = {
      "alu",          "matrix",      "matrix-pipe", "vector-port", "port",
      "memory-queue", "wait-vector", "wait-lds",    "wait-scalar", "wait-other",
      "barrier",      "fetch",       "idle"};
  static_assert(sizeof names / sizeof *names == kStalls, "a name for each");
  return names[static_cast<unsigned>(stall)];
}

bool hasTiming(const ChipInfo &chip) { return timingConstants(chip.target); }

std::string noTimingOf(std::string_view target, std::string_view board) {
  const std::string chip(target);
  if (!timingConstants(target))
    return "there is no timing model of " + chip + "; there is one of " +
           timedChipList();
  if (board.empty() || timedBoard(target, board))
    return "";
  const std::string known = boardList(target);
  return "there is no board '" + std::string(board) + "' of " + chip + "; " +
         (known.empty() ? "it has none to choose from" : "there are " + known);
}

namespace {

/// Wave instructions that a replay of short workgroups should have.
constexpr double kShortRun = 100000;

/// Wave instructions of a sample that tell enough of a workgroup that goes
/// through many tiles.
constexpr uint64_t kEnoughInstructions = 2000000;

/// Whether workgroups have the two compute units of a WGP: bit 29 of
/// COMPUTE_PGM_RSRC1 from gfx10 on.
bool inWgpMode(const KernelInfo &kernel) { return bitField(kernel.rsrc1, 29, 1); }

/// How many workgroups a compute unit holds, and what stops the next.
struct Occupancy {
  unsigned groups = 1;
  std::string limit;
};

/// Bytes of LDS that the chip sets aside for a workgroup.
uint64_t ldsOf(const TimingConstants &core, const KernelInfo &kernel,
               const LaunchConfig &config) {
  const uint64_t lds = uint64_t(kernel.staticLdsBytes) + config.dynamicLdsBytes;
  return ceilDiv(lds, core.ldsGranule) * core.ldsGranule;
}

Occupancy occupancyOf(const ChipInfo &chip, const TimingConstants &core,
                      const KernelInfo &kernel, const LaunchConfig &config,
                      unsigned wavesPerGroup) {
  // Registers a wave takes of its SIMD's file: granules of 8 (4 where AGPRs
  // have a file of their own), AGPRs behind the VGPRs where the file is one.
  unsigned granules = (kernel.rsrc1 & 63) + 1;
  unsigned registers = granules * (chip.unifiedRegisters ? 8 : 4);
  unsigned file = chip.unifiedRegisters ? chip.vgprsPerSimdLane : 256;
  if (chip.otherWaveSize) { // RDNA: a 64th of a file that waves of 64 halve
    file = chip.vgprsPerSimdLane * 32 / kernel.waveSize;
    registers = unsigned(ceilDiv(vgprCount(kernel, chip), file / 64) * (file / 64));
  }
  unsigned byRegisters = std::max(1u, file / registers);
  unsigned wavesPerSimd = std::min(chip.maxWavesPerSimd, byRegisters);
  Occupancy result;
  const unsigned units = core.simds / chip.simdsPerCU; // 2: a WGP
  result.groups = std::max(1u, core.simds * wavesPerSimd / wavesPerGroup);
  result.limit =
      byRegisters < chip.maxWavesPerSimd ? "registers" : "wave slots";
  if (const uint64_t lds = ldsOf(core, kernel, config)) {
    unsigned byLds = static_cast<unsigned>(
        std::max<uint64_t>(1, units * chip.ldsPerCU / lds));
    if (byLds < result.groups) {
      result.groups = byLds;
      result.limit = "LDS";
    }
  }
  if (wavesPerGroup > 1 && result.groups > 16 * units) {
    result.groups = 16 * units;
    result.limit = "barriers";
  }
  return result;
}

/// One prediction, step by step.
class Prediction {
public:
  Prediction(const CodeObject &code, const KernelInfo &kernel,
             const LaunchConfig &config, const TimingOptions &options,
             const TimingConstants &chip, const Board *board,
             const std::vector<Member> &members, TimingReport &report)
      : code(code), kernel(kernel), config(config), options(options),
        info(code.device()->chip()), chip(chip),
        units((board ? board->computeUnits : info.computeUnits) *
              info.simdsPerCU / chip.simds),
        board(board), members(members), report(report),
        insts(TimedProgram::placesOf(code.impl().program(kernel.waveSize))) {}

  ~Prediction() { written.restore(); }

  Status run();

private:
  UndoLog *undo() { return options.takeBack ? &written : nullptr; }
  Status setGrid();
  void limitResidence(unsigned wavesPerGroup);
  Status probeForTiles();
  Status mapWork();
  Status mapTiles();
  Status traceSamples();
  void replayAtAllowedClock();
  void replayMembers();
  void replayAll();
  Pace replay(size_t sample);
  unsigned copiesBehind(double work, unsigned together) const;
  double allowedClock() const;
  void reportTime();
  void reportUse();
  void reportInstructions();
  /// Workgroups that the chip holds.
  uint64_t places() const {
    return uint64_t(units) * resident.groups;
  }
  unsigned xcds() const { return std::max(1u, info.xcds); }

  const CodeObject &code;
  const KernelInfo &kernel;
  const LaunchConfig &config;
  const TimingOptions &options;
  const ChipInfo &info;
  const TimingConstants &chip;
  const unsigned units; ///< compute units; WGPs of kernels that have them
  const Board *board;   ///< null: the chip has no boards
  const std::vector<Member> &members;
  TimingReport &report;

  // The launch.
  uint32_t grid[3] = {1, 1, 1};
  uint64_t total =
      1; ///< workgroups; of those that take tiles, the ones at work
  Occupancy resident;
  bool persistent = false; ///< workgroups take tiles from a counter
  /// A sample takes only as many of its tiles as are quick to execute; this is
  /// how many times more it has.
  uint64_t stretch = 1;

  // What samples tell, and what they wrote over.
  UndoLog written;
  std::optional<Sampler> sampler;
  std::optional<WorkMap> work;
  std::vector<std::unique_ptr<GroupTrace>> traces; ///< from least work to most
  Sharing sharing;

  // The replay: by the chip's constants, then by those of members.
  const TimingConstants *core = &chip;
  bool isMember = false;
  std::optional<TimedProgram> timed;
  std::vector<InstCounters> insts; ///< by dword of the program
  double hz = 0;
  std::vector<Pace> paces; ///< one for each trace
  UnitCounters sum;        ///< of full compute units
  MemoryCounters memory;
  GridResult result;
};

Status Prediction::run() {
  report.kernel = kernel.name;
  report.chip = info.target;
  if (board)
    report.board = board->name;
  report.simds = chip.simds;
  report.slotClocks = chip.slot;
  for (auto step : {&Prediction::setGrid, &Prediction::probeForTiles,
                    &Prediction::mapWork, &Prediction::traceSamples})
    if (Status status = (this->*step)(); !status)
      return status;
  hz = options.clockHz ? options.clockHz : chip.loadHz;
  replayAtAllowedClock();
  reportTime();
  reportUse();
  reportInstructions();
  replayMembers();
  return Status::success();
}

//===-- The launch --------------------------------------------------------===//

Status Prediction::setGrid() {
  uint64_t items = 1;
  bool byItems = config.gridWorkItems[0] || config.gridWorkItems[1] ||
                 config.gridWorkItems[2];
  for (int i = 0; i < 3; ++i) {
    uint64_t n = byItems
                     ? ceilDiv(std::max<uint64_t>(1, config.gridWorkItems[i]),
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
  limitResidence(waves);
  report.workgroups = total;
  report.wavesPerWorkgroup = waves;
  report.resident = resident.groups;
  report.residentLimit = resident.limit;
  report.wavesPerSimd = double(waves) * resident.groups / chip.simds;
  report.rounds = double(total) / (double(units) * resident.groups);
  return Status::success();
}

void Prediction::limitResidence(unsigned wavesPerGroup) {
  resident = occupancyOf(info, chip, kernel, config, wavesPerGroup);
  if (options.residentWorkgroups)
    resident = {options.residentWorkgroups, "the caller"};
  if (total >= places())
    return;
  unsigned needed = static_cast<unsigned>(ceilDiv(total, units));
  if (needed < resident.groups)
    resident = {needed, "grid"};
}

/// A grid that fits the chip at once may be one whose workgroups take tiles
/// from a counter until there are none left. Those that start when it is empty
/// have nothing to do.
Status Prediction::probeForTiles() {
  const uint64_t together = std::min(total, places());
  if (total > 4 * together)
    return Status::success();
  for (stretch = 64;; stretch /= 4) {
    uint64_t executed = 0;
    Sampler probe(code, kernel, config, chip, grid, together * stretch, undo());
    if (Status status = probe.probe(persistent, executed); !status)
      return status;
    if (!persistent || stretch == 1 || executed * 4 > kEnoughInstructions)
      break;
  }
  if (!persistent) {
    stretch = 1;
    return Status::success();
  }
  total = together;
  grid[0] = static_cast<uint32_t>(std::min<uint64_t>(grid[0], total));
  report.notes.push_back(
      "workgroups take their work from a counter: those that are on the chip "
      "at a time, " +
      std::to_string(together) + ", take tiles as they come");
  return Status::success();
}

//===-- Samples -----------------------------------------------------------===//

/// How much the workgroups have to do.
Status Prediction::mapWork() {
  sampler.emplace(code, kernel, config, chip, grid,
                  persistent ? total * stretch : 0, undo());
  work.emplace(grid, total);
  if (persistent)
    if (Status status = mapTiles(); !status)
      return status;
  std::map<uint64_t, uint64_t> counts;
  for (;;) {
    std::vector<uint64_t> wanted = work->wanted(counts);
    if (wanted.empty())
      break;
    if (Status status = sampler->count(wanted, counts); !status)
      return status;
  }
  if (!persistent)
    work->finish(counts);
  if (!work->note().empty())
    report.notes.push_back(work->note());
  return Status::success();
}

/// How large which tiles are, and how many there are.
Status Prediction::mapTiles() {
  std::map<uint64_t, uint64_t> tiles;
  uint64_t last = ~uint64_t(0);
  for (uint64_t i = 0; i < 32; ++i)
    if (Status status = sampler->tiles((2 * i + 1) * total / 64, tiles, last);
        !status)
      return status;
  tiles.erase(tiles.lower_bound(last), tiles.end());
  if (tiles.empty())
    persistent = false;
  else
    work->setTiles(last, tiles);
  return Status::success();
}

/// Workgroups to replay: one for each of a few amounts of work. And what they
/// share with their neighbours.
Status Prediction::traceSamples() {
  std::vector<uint64_t> levels{total / 2};
  if (!persistent)
    levels = work->levels(std::max(1u, std::min(4u, options.maxSamples)));
  for (uint64_t group : levels) {
    traces.emplace_back();
    if (Status status = sampler->trace(group, traces.back()); !status)
      return status;
  }
  // Not one of those at the edge of the grid, whose data few others need.
  const uint64_t usual = persistent ? total / 2 : work->usual();
  const bool atOnce = !persistent && total <= places();
  std::string note;
  if (Status status = measureSharing(
          *sampler, chip,
          {total, units, xcds(), chip.arrays, resident.groups, atOnce}, usual,
          sharing, note);
      !status)
    return status;
  report.notes.push_back(note);
  return Status::success();
}

//===-- Replay ------------------------------------------------------------===//

/// At the clock that follows from the result, unless the caller names one: what
/// waits for memory takes more of the faster clocks, and leaves more power.
void Prediction::replayAtAllowedClock() {
  timed.emplace(code.impl().program(kernel.waveSize), *core);
  replayAll();
  constexpr int kMostReplays = 4;
  for (int i = 1; i < kMostReplays && !options.clockHz; ++i) {
    const double allowed = allowedClock();
    if (std::abs(allowed - hz) < 0.01 * hz)
      return;
    hz = allowed;
    replayAll();
  }
}

/// The same traces by other constants. The clock of the chip's is the first
/// guess.
void Prediction::replayMembers() {
  const double chipHz = hz;
  isMember = true;
  for (const Member &member : members) {
    core = &member.constants;
    hz = options.clockHz
             ? chipHz
             : std::min(core->peakHz, chipHz * core->loadHz / chip.loadHz);
    replayAtAllowedClock();
    report.members.push_back(
        {member.name, result.clocks / hz + core->launchSeconds});
  }
}

/// Replays all samples at the clock `hz`, and lets the chip work through the
/// grid.
void Prediction::replayAll() {
  sharing.clockHz = hz;
  sharing.ldsBytes = ldsOf(*core, kernel, config);
  if (!isMember) {
    std::fill(insts.begin(), insts.end(), InstCounters());
    report.timeline.clear();
  }
  paces.clear();
  sum = UnitCounters();
  memory = MemoryCounters();
  for (size_t i = 0; i < traces.size(); ++i)
    paces.push_back(replay(i));
  // Tiles are taken in order by whoever is free, whatever the XCD.
  result = runGrid(*work, paces, units, persistent ? 1 : xcds(),
                   persistent ? 1 : core->engines, resident.groups,
                   core->groupInterval);
  result.clocks *= core->spread;
  result.busyShare /= core->spread;
}

/// The pace of a sample beside copies of itself, and alone.
Pace Prediction::replay(size_t sample) {
  const GroupTrace &trace = *traces[sample];
  Pace pace;
  pace.work = double(trace.instructions);
  for (unsigned together : {resident.groups, 1u}) {
    ComputeUnit unit(*core, *timed, sharing);
    bool full = together == resident.groups;
    bool timeline = sample + 1 == traces.size() && options.timelineClocks;
    if (full && !isMember)
      unit.collect(&insts, timeline ? &report.timeline : nullptr,
                   options.timelineStart,
                   options.timelineStart + options.timelineClocks);
    unsigned behind = copiesBehind(pace.work, together);
    std::vector<const GroupTrace *> queue(size_t(together) * behind, &trace);
    unit.run(queue, together);
    double clocks = double(unit.counters().clocks) / behind;
    (full ? pace.clocksFull : pace.clocksAlone) = clocks;
    if (full) {
      sum += unit.counters();
      memory += unit.memory();
    }
    if (resident.groups == 1)
      break;
  }
  if (resident.groups == 1)
    pace.clocksAlone = pace.clocksFull;
  return pace;
}

/// How many copies of a sample run behind each other: short workgroups need
/// many to show their pace.
unsigned Prediction::copiesBehind(double work, unsigned together) const {
  if (report.rounds <= 1 || persistent)
    return 1;
  double enough = std::ceil(kShortRun / std::max(1.0, work * together));
  return unsigned(std::min(std::ceil(report.rounds), std::max(2.0, enough)));
}

/// The clock that the chip's power limit allows for what was replayed, Hz.
double Prediction::allowedClock() const {
  const double capacity = std::max(1.0, double(sum.clocks) * core->simds);
  const double drawing =
      double(sum.matrixClocks) +
      (core->smallProductPower - 1) * double(sum.smallMatrixClocks);
  const double share = result.busyShare * drawing / capacity;
  return std::min(core->peakHz,
                  core->loadHz * std::pow(share, -core->loadSlope));
}

//===-- Report ------------------------------------------------------------===//

void Prediction::reportTime() {
  double flopsPerInstruction = 0, matrixPerInstruction = 0;
  if (sum.issued) {
    flopsPerInstruction = sum.flops / double(sum.issued);
    matrixPerInstruction = double(sum.matrixClocks) / double(sum.issued);
  }
  report.clockHz = hz;
  report.clocks = result.clocks;
  report.launchSeconds = chip.launchSeconds;
  report.seconds = result.clocks / hz + chip.launchSeconds;
  // A counter that hands out tiles is not what this means.
  constexpr double kNoticed = 0.05;
  const Uncertainty uncertainty = uncertaintyOf(
      info.target,
      {report.seconds, memory.atomicClocks > kNoticed * double(sum.clocks),
       !board || board->published});
  report.timeError = uncertainty.time;
  report.errorIsEstimate = uncertainty.isEstimate;
  report.ratioError = uncertainty.ratio;
  report.scheduleError = uncertainty.schedule;
  report.busyShare = result.busyShare;
  report.flops = result.instructions * flopsPerInstruction;
  report.matrixOfChip = result.clocks
                            ? result.instructions * matrixPerInstruction /
                                  (result.clocks * units * chip.simds)
                            : 0;
  report.peakClockHz = chip.peakHz;
  // Of the instructions that were executed: types differ in their rates.
  double flopsPerClock = sum.matrixClocks
                             ? sum.flops * chip.simds / double(sum.matrixClocks)
                             : chip.matrixFlopsPerClock;
  report.peakFlops = flopsPerClock * units * chip.peakHz;
  for (size_t i = 0; i < traces.size(); ++i)
    report.samples.push_back(
        {traces[i]->id, traces[i]->instructions, paces[i].clocksFull});
}

/// How busy units and memory are, and what waves wait for.
void Prediction::reportUse() {
  auto share = [](uint64_t part, uint64_t whole) {
    return whole ? double(part) / double(whole) : 0;
  };
  double simdClocks = double(sum.clocks) * chip.simds;
  if (simdClocks > 0) {
    report.matrix = double(sum.matrixClocks) / simdClocks;
    report.valu = double(sum.valuClocks) / simdClocks;
    report.salu = double(sum.scalarClocks) / simdClocks;
    report.issue = double(sum.issued) * chip.slot / simdClocks;
    report.lds = double(memory.ldsClocks) / double(sum.clocks) /
                 (chip.ldsHalves * std::max(1u, chip.ldsSides));
    report.vectorMemory =
        double(memory.busyClocks) / double(sum.clocks) / chip.l1s;
  }
  double scale = sum.issued ? result.instructions / double(sum.issued) : 0;
  report.l1Bytes = double(memory.l1Bytes) * scale;
  report.l2Bytes = double(memory.l2Bytes) * scale;
  report.memoryBytes = double(memory.memoryBytes) * scale;
  report.memoryBytesPerSecond = chip.levels.back().totalSecond;
  report.l1HitRate = share(memory.l1Hits, memory.l1Lines);
  report.l2HitRate = share(memory.l2Hits, memory.l2Lines);
  report.ldsConflictShare = share(memory.ldsConflicts, memory.ldsClocks);
  double stalled = 0;
  for (unsigned s = 0; s < kStalls; ++s) {
    report.stalls[s] = share(sum.stalls[s], sum.waveClocks);
    stalled += report.stalls[s];
  }
  report.issuedShare = std::max(0.0, 1 - stalled);
}

/// Instructions in order of address.
void Prediction::reportInstructions() {
  Program &program = code.impl().program(kernel.waveSize);
  std::vector<uint32_t> place(insts.size(), 0);
  uint32_t entry =
      static_cast<uint32_t>((kernel.entryAddress - program.begin()) / 4);
  for (uint32_t i = 0; i < insts.size(); ++i) {
    if (!insts[i].issues)
      continue;
    place[i] = static_cast<uint32_t>(report.instructions.size());
    InstTiming inst;
    inst.offset = (i - entry) * 4;
    inst.text = program.text(i);
    inst.source = program.sourceLine(i);
    inst.cls = timed->at(i).cls;
    inst.issues = insts[i].issues;
    inst.busyClocks = insts[i].busy;
    inst.conflictClocks = insts[i].conflicts;
    inst.stalls = insts[i].stalls;
    report.instructions.push_back(std::move(inst));
  }
  for (TimelineEvent &event : report.timeline)
    event.inst = place[event.inst];
}

} // namespace

Status predict(const CodeObject &code, const KernelInfo &kernel,
               const LaunchConfig &config, const TimingOptions &options,
               TimingReport &report) {
  report = TimingReport();
  const ChipInfo &info = code.device()->chip();
  const std::string why = noTimingOf(info.target, options.board);
  if (!why.empty())
    return {ErrorCode::NotFound, why};
  const TimingConstants &unit = *timingConstants(info.target, options.board);
  const auto forKernel = [&](const TimingConstants &constants) {
    return constants.unitsOfWgp > 1 && inWgpMode(kernel) ? asWgp(constants)
                                                         : constants;
  };
  std::vector<Member> members;
  if (options.ensemble)
    members = ensembleOf(unit);
  for (Member &member : members)
    member.constants = forKernel(member.constants);
  const TimingConstants chip = forKernel(unit);
  return Prediction(code, kernel, config, options, chip,
                    timedBoard(info.target, options.board), members, report)
      .run();
}

} // namespace fovea::sim
