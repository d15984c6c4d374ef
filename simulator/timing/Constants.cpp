//===- Constants.cpp - What the timing model knows of a chip --------------===//
//
// Sources, by letter: [L] LLVM's SISchedule.td and GCNHazardRecognizer; [C]
// AMD's matrix instruction calculator; [R] ROCm compute profiler documentation;
// [G] AMD's gfx950 tutorials with thread traces; [B] gpu-benches (MI100,
// MI210); [U] microbenchmarks of carlushuang/gcnasm (MI308X); [N] nod-ai LDS
// measurements; [E] ml-engineering, issue 76; [W] CDNA white papers and data
// sheets; [H] HipKittens' phases; [M] measurements of MI300X at Chips and
// Cheese; [F] fitted, see docs/Timing.md. RDNA: [I] RDNA3 and RDNA4 ISA
// documents; [T] hardware thread traces (2187Nick/tinygrad's, gfx1100, and
// tinygrad's, gfx1200); [V] its replay model; [P] llvm/llvm-project#204254
// (gfx1151); [X] ChipBenchmarker (7900 XT); [J] braidinfer's microbenchmarks
// (7900 XTX); [D] data sheets. [A] assumed.
//
//===----------------------------------------------------------------------===//
#include "timing/Constants.h"

namespace fovea::sim {

namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

/// \p latency and \p totalClock: clocks, and bytes a clock of one L2.
MemoryLevel l2(uint64_t bytes, double latency, double totalClock) {
  return {"L2", Scope::Die, true, bytes, latency, 0, 64, totalClock, 0}; // [W]
}
MemoryLevel memory(double seconds, double bytesPerSecond) {
  return {"memory", Scope::Chip, false, 0, 0, seconds, 0, 0, bytesPerSecond};
}

TimingConstants cdna3() {
  TimingConstants c{};
  c.target = "gfx942";
  c.slot = 4;              // [R] each SIMD is considered every fourth clock
  c.simds = 4;
  c.waveLanes = 64;
  c.valuClocks = 4;        // [R] 64 lanes on 16
  c.transClocks = 16;      // [L] quarter rate
  c.transPort = c.transClocks;
  c.quarterClocks = 16;    // [L]
  c.doubleClocks = 4;      // [L] [W] full rate
  c.packedClocks = 4;      // [L] [W] 256 flops a clock
  c.swapClocks = 8;        // [A]
  c.valuLatency = 4;       // [R] dependent v_mov issue back to back
  c.transLatency = 20;     // [L] one wait state behind the last pass
  c.scalarLatency = 4;     // [R]
  c.scalarToVector = 4;    // [R]
  c.maskLatency = 8;       // [A]
  c.maskToScalar = 8;      // [A]
  c.branchTaken = 32;      // [A]
  c.branchNotTaken = 8;    // [A]
  c.barrierLatency = 16;   // [A]
  c.waitClocks = 4;        // [G]
  c.matrixIssue = 4;       // [R] [C] vector issue again from clock 4 on
  c.matrixLatency = 12;    // [L] n + 3 wait states to readers
  c.packedExcludesMatrix = true; // [L] isNeverCoissue
  c.packedAfterMatrix = 12;      // [G]
  c.wideExcludesVector = true;   // [C]
  c.ldsLatency = 56;       // [G] 50 to 70 clocks
  c.ldsPortBytes = 64;     // [R] SIMDs attach in pairs
  c.ldsPairs = 2;
  c.ldsHalves = 1;
  c.ldsQueue = 8;          // [G]
  c.ldsWriteAddress = true;// [R]
  c.l1s = 1;
  c.l1Bytes = 32 * KiB;    // [W]
  c.lineBytes = 128;       // [W]
  c.l1Ways = 64;           // [R]
  c.l1Clock = 64;          // [W]
  c.l1Lines = 1;
  c.addressLanes = 16;     // [G] a dword of 64 lanes in four clocks
  c.l1Latency = 120;       // [B] [U]
  c.vmemQueue = 12;        // [G]
  c.flightBytes = 44 * KiB;// [G]
  c.levels = {
      l2(4 * MiB, 300, 2048), // [W] 16 channels of 128 bytes; [U] 205 ns near
                              // 1.45 GHz
      {"memory-side cache", Scope::Chip, false, 256 * MiB, 0, 220e-9, 0, 0, 11.9e12}, // [W]
                                                                         // [M]
      memory(438e-9, 4.3e12), // [U]
  };
  c.atomicWordsPerSecond = 295e9; // [F]
  c.scalarHit = 50;               // [A]
  c.scalarMiss = 250;             // [A]
  c.scalarBytes = 16 * KiB;// [W]
  c.fetchMiss = 200;       // [A]
  c.icacheBytes = 64 * KiB;// [W]
  c.icacheLine = 128;      // [W]
  c.engines = 4;           // [R]
  c.arrays = 1;
  c.unitsOfWgp = 1;
  c.groupLaunch = 400;     // [A]
  c.groupInterval = 12;    // [A]
  c.launchSeconds = 3e-6;  // [A]
  c.peakHz = 2.1e9;        // [W]
  c.loadHz = 1.10e9;       // [F]
  c.loadSlope = 0.42;      // [F]
  c.spread = 1.03;         // [F]
  c.matrixFlopsPerClock = 2048; // [W]
  c.ldsGranule = 512;
  return c;
}

TimingConstants cdna4() {
  TimingConstants c = cdna3();
  c.target = "gfx950";
  c.transClocks = 8;       // [G]
  c.transPort = c.transClocks;
  c.transLatency = 12;     // [A]
  c.swapClocks = 20;       // [G]
  c.matrixIssue = 8;       // [G] two slots of operand reads
  c.ldsPortBytes = 128;    // [G]
  c.peakHz = 2.4e9;        // [W]
  c.loadHz = 1.56e9;       // [F]
  c.loadSlope = 0.20;      // [F]
  c.atomicWordsPerSecond = 347e9; // [F]
  c.matrixFlopsPerClock = 4096; // [W]
  // [W] times the share that MI308X reaches
  c.levels.back() = memory(438e-9, 6.4e12);
  c.levels[1].totalSecond = 6e12; // [F] see docs/Timing.md, Order of the grid
  c.loadedSeconds = 550e-9;       // [F] likewise
  return c;
}

TimingConstants cdna2() {
  TimingConstants c = cdna3();
  c.target = "gfx90a";
  c.packedExcludesMatrix = false; // [L] only gfx942 and gfx950
  c.packedAfterMatrix = 0;
  c.wideExcludesVector = false;   // [C]
  c.l1Bytes = 16 * KiB;    // [W]
  c.lineBytes = 64;        // [R]
  c.levels = {
      l2(8 * MiB, 240, 4096),  // [W] [B]; [R] 32 channels of 128 bytes
      memory(340e-9, 1.38e12), // [B]
  };
  c.icacheBytes = 32 * KiB;// [W]
  c.icacheLine = 64;       // [W]
  c.peakHz = 1.7e9;        // [W]
  c.loadHz = 1.305e9;      // [E] 147 of 191.5 TFLOPS, the best found on a GCD
  c.loadSlope = 0.33;      // [A] as power and volts would have it
  c.atomicWordsPerSecond = 32 * 1.1 * c.peakHz; // [A] a channel as on gfx942
  c.spread = 1;
  c.matrixFlopsPerClock = 1024; // [W]
  return c;
}

TimingConstants cdna1() {
  TimingConstants c = cdna2();
  c.target = "gfx908";
  c.doubleClocks = 8;      // [W] half rate
  c.packedClocks = 8;      // it has none
  c.matrixIssue = 8;       // [C]
  c.levels = {
      l2(8 * MiB, 240, 2048),  // [R] 32 channels of 64 bytes
      memory(340e-9, 0.96e12), // [B]
  };
  c.peakHz = 1.502e9;      // [W]
  c.atomicWordsPerSecond = 32 * 1.1 * c.peakHz; // [A]
  c.loadHz = 1.15e9;            // [A] the share of the peak that gfx90a keeps
  c.matrixFlopsPerClock = 1024; // [W]
  return c;
}

/// What RDNA's chips have in common. Clocks are those of waves of 32 lanes.
TimingConstants rdna3() {
  TimingConstants c{};
  c.slot = 1;              // [T]
  c.simds = 2;             // [I]
  c.waveLanes = 32;        // [I]
  c.valuClocks = 1;        // [T]
  c.transClocks = 4;       // [T] [V]
  c.transPort = 1;         // [T] other vector work issues from the next clock on
  c.quarterClocks = 4;     // [T] v_mad_u64_u32
  c.doubleClocks = 16;     // [I] a sixteenth (DPFP_RATE)
  c.packedClocks = 1;      // it has none
  c.swapClocks = 1;        // [A]
  c.dualForward = 4;       // [V]
  c.valuLatency = 5;       // [T] [L]
  c.transLatency = 10;     // [L]; [T] 27 where s_waitcnt_depctr waits, 4 to 14
                           // between transcendentals
  c.laneLatency = 1;       // [I] "an extra cycle of delay"
  c.addressLatency = 17;   // [T] 22 in all to LDS and loads; 21 to 27
  c.scalarLatency = 2;     // [T] [L]
  c.scalarToVector = 4;    // [T]
  c.maskLatency = 5;       // [T] 4 or 5: v_cmp to v_cndmask
  c.maskToScalar = 20;     // [T] 16 to 24: v_cmpx to s_cbranch_execz
  c.branchTaken = 16;      // [T] 3 and the fetch
  c.branchNotTaken = 8;    // [T] 8 to 13
  c.barrierLatency = 13;   // [T] 6 to 14
  c.waitClocks = 1;        // [T]
  c.matrixIssue = 1;       // [A]
  c.matrixLatency = 8;     // [A] a vector instruction's and some
  c.matrixExcludesVector = true; // [C] [T]
  c.matrixFlops16 = 256;   // [C] 32 clocks for 16x16x16; [P] as measured
  c.matrixFlops8 = 256;    // [C]
  c.matrixFlops4 = 512;    // [C]
  c.registerBanks = 4;     // [I]
  c.matrixClash = 2;       // [P]
  c.matrixClashMost = 4;   // [A]
  c.ldsLatency = 31;       // [T] 31 to 33; 36 of 16 bytes a lane
  c.ldsPortBytes = 128;    // [I]
  c.ldsPairs = 1;
  c.ldsHalves = 1;
  c.ldsSideBytes = 64 * KiB; // [I]
  c.ldsQueue = 8; // [A] as CDNA
  c.l1s = 1;
  c.l1Bytes = 32 * KiB;    // [D]
  c.lineBytes = 64;        // [R] of gfx1151
  c.l1Ways = 16;           // [A]
  c.l1Clock = 64;          // [B] measured on gfx1102
  c.l1Lines = 2;           // [F]
  c.addressLanes = 16;     // [A] as CDNA: a dword of 32 lanes in two clocks
  c.l1Latency = 120;       // [A] as CDNA
  c.vmemQueue = 12;        // [A] likewise
  c.invalidateClocks = 1;  // [J] 1.2 back to back
  c.flightBytes = 32 * KiB; // [A] likewise
  c.scalarHit = 50;         // [A]
  c.scalarMiss = 200;      // [T]
  c.scalarBytes = 16 * KiB;// [D]
  c.fetchMiss = 200;       // [A]
  c.icacheBytes = 32 * KiB;// [D]
  c.icacheLine = 128;      // [D]
  c.unitsOfWgp = 2;        // [I]
  c.groupLaunch = 300;     // [A]
  c.groupInterval = 12;    // [A]
  c.launchSeconds = 3e-6;  // [A]
  c.spread = 1;
  c.matrixFlopsPerClock = 512;
  c.ldsGranule = 1024;     // [L]
  return c;
}

TimingConstants rdna4() {
  TimingConstants c = rdna3();
  c.branchTaken = 9;       // [T]
  c.branchNotTaken = 3;    // [T]
  c.matrixFlops16 = 512;   // [C] [T] 16 clocks; [U] as measured
  c.matrixFlops8 = 1024;   // [C]
  c.matrixFlops4 = 1024;   // [C] 8 clocks; 16x16x32 twice as many operations
  c.matrixClash = 0;       // [U] bf16 with A, B, C in one bank: at most 0.8
  c.matrixClashMost = 2;   // [U] fp16 takes 1.12 times as long as bf16
  c.countsInvalidates = true; // [L] LOADcnt; none of gfx11
  c.matrixFlopsPerClock = 1024;
  return c;
}

/// What differs between RDNA's chips. [D] data sheets and die descriptions.
struct Rdna {
  std::string_view target;
  TimingConstants (*generation)();
  unsigned engines, arrays;
  uint64_t l2MiB, cacheMiB;   ///< cache: the memory-side one; 0: it has none
  double l2Clock;             ///< bytes a clock, all of it
  double cacheBytesPerSecond;
  double memorySeconds;       ///< latency
};
/// gfx1100, beside [X]'s of a RX 7900 XT: L2 1536 bytes a clock [D] (3253 GB/s
/// measured, at 2.35 GHz nine tenths of it), DRAM's latency 300 ns [A] (551
/// clocks measured, about 230 ns of a chip alone); the Infinity Cache's latency
/// [M]; its rate is half of AMD's peak. All others are scaled by compute units
/// and channels [A].
constexpr Rdna kRdna[] = {
    {"gfx1100", rdna3, 6, 12, 6, 96, 1536, 2.7e12, 300e-9},
    {"gfx1101", rdna3, 3, 6, 4, 64, 1024, 1.8e12, 300e-9},
    {"gfx1102", rdna3, 2, 4, 2, 32, 512, 0.9e12, 300e-9},
    {"gfx1103", rdna3, 1, 2, 2, 0, 512, 0, 350e-9},
    {"gfx1150", rdna3, 1, 2, 2, 0, 512, 0, 350e-9},
    {"gfx1151", rdna3, 2, 4, 2, 32, 1024, 0.9e12, 350e-9},
    {"gfx1152", rdna3, 1, 1, 2, 0, 256, 0, 350e-9},
    {"gfx1153", rdna3, 1, 1, 1, 0, 128, 0, 350e-9},
    {"gfx1200", rdna4, 2, 4, 4, 32, 1024, 1.4e12, 300e-9},
    {"gfx1201", rdna4, 4, 8, 8, 64, 2048, 2.8e12, 300e-9},
};

/// Peak clocks [D]; memory's rates: [D] times what measurements reach of it.
/// Clocks under load: as measured on RX 9070 XT (docs/Timing.md), all others
/// [A].
const std::vector<Board> kBoards = {
    {"rx7900xtx", "gfx1100", "Radeon RX 7900 XTX, 355 W", 96, 2.5e9, 2.35e9,
     0.10, 943e9, true},
    {"w7900", "gfx1100", "Radeon PRO W7900, 295 W", 96, 2.495e9, 2.2e9, 0.15,
     849e9, false},
    {"rx7800xt", "gfx1101", "Radeon RX 7800 XT", 60, 2.43e9, 2.3e9, 0.10, 613e9,
     false},
    {"rx7600", "gfx1102", "Radeon RX 7600", 32, 2.655e9, 2.5e9, 0.10, 283e9,
     false},
    {"radeon780m", "gfx1103", "Radeon 780M", 12, 2.7e9, 2.2e9, 0.2, 102e9,
     false},
    {"radeon890m", "gfx1150", "Radeon 890M", 16, 2.9e9, 2.2e9, 0.2, 102e9,
     false},
    {"strix-halo-120w", "gfx1151", "Radeon 8060S at 120 W", 40, 2.9e9, 2.6e9,
     0.15, 226e9, false},
    {"strix-halo-55w", "gfx1151", "Radeon 8060S at 55 W", 40, 2.9e9, 1.9e9,
     0.25, 226e9, false},
    {"radeon860m", "gfx1152", "Radeon 860M", 8, 3.0e9, 2.3e9, 0.2, 109e9,
     false},
    {"gfx1153", "gfx1153", "a processor with gfx1153", 2, 2.8e9, 2.3e9, 0.2,
     54e9, false},
    {"rx9060xt", "gfx1200", "Radeon RX 9060 XT", 32, 3.2e9, 3.05e9, 0.05, 306e9,
     false},
    {"rx9070xt", "gfx1201", "Radeon RX 9070 XT, 304 W", 64, 3.2e9, 3.05e9, 0.05,
     608e9, true},
    {"r9700", "gfx1201", "Radeon AI PRO R9700, 300 W", 64, 2.92e9, 2.57e9, 0.10,
     608e9, false},
};

TimingConstants rdna(const Rdna &row) {
  TimingConstants c = row.generation();
  c.target = row.target;
  c.engines = row.engines;
  c.arrays = row.arrays;
  // Workgroups that share an L0 find each other's lines there.
  c.levels.push_back({"L0", Scope::Unit, false, c.l1Bytes, double(c.l1Latency),
                      0, double(c.l1Clock), double(c.l1Clock), 0});
  if (row.generation == rdna3) // [D] 256 KiB an array; RDNA4's only gathers
    c.levels.push_back({"GL1", Scope::Array, true, 256 * KiB, 200, 0, 64, 256,
                        0}); // latency [A]
  c.levels.push_back({"L2", Scope::Die, true, row.l2MiB * MiB, 320, 0, 64,
                      row.l2Clock, 0}); // [X] 340 of flat loads
  if (row.cacheMiB)
    c.levels.push_back({"Infinity Cache", Scope::Chip, true, row.cacheMiB * MiB, 0,
                        150e-9, 0, 0, row.cacheBytesPerSecond}); // [M]
  c.levels.push_back(memory(row.memorySeconds, 0)); // the board's
  c.atomicWordsPerSecond = 64e9 * row.l2MiB; // as gfx942 by L2; no figures
  return c;
}

/// \p board's product in place of the chip's figures.
TimingConstants onBoard(TimingConstants c, const Board &board) {
  c.peakHz = board.peakHz;
  c.loadHz = board.loadHz;
  c.loadSlope = board.loadSlope;
  c.levels.back().totalSecond = board.memoryBytesPerSecond;
  return c;
}

/// The rows of all chips; RDNA: one a board.
struct ChipRow {
  const Board *board; ///< null: there are none of the chip
  TimingConstants constants;
};
const std::vector<ChipRow> &chipRows() {
  static const std::vector<ChipRow> rows = [] {
    std::vector<ChipRow> table;
    for (auto make : {cdna1, cdna2, cdna3, cdna4})
      table.push_back({nullptr, make()});
    for (const Rdna &row : kRdna)
      for (const Board &board : kBoards)
        if (board.target == row.target)
          table.push_back({&board, onBoard(rdna(row), board)});
    return table;
  }();
  return rows;
}

/// Names of rows, "a, b", each once.
template <typename Name> std::string listOf(Name name) {
  std::string list, last;
  for (const ChipRow &row : chipRows()) {
    const std::string next(name(row));
    if (next.empty() || next == last)
      continue;
    list += (list.empty() ? "" : ", ") + next;
    last = next;
  }
  return list;
}

} // namespace

const TimingConstants *timingConstants(std::string_view target,
                                       std::string_view board) {
  for (const ChipRow &row : chipRows())
    if (row.constants.target == target &&
        (board.empty() || (row.board && row.board->name == board)))
      return &row.constants;
  return nullptr;
}

const Board *timedBoard(std::string_view target, std::string_view board) {
  for (const ChipRow &row : chipRows())
    if (row.constants.target == target && row.board &&
        (board.empty() || row.board->name == board))
      return row.board;
  return nullptr;
}

std::string boardList(std::string_view target) {
  return listOf([&](const ChipRow &row) {
    return row.board && row.constants.target == target ? row.board->name
                                                       : std::string_view();
  });
}

std::string timedChipList() {
  return listOf([](const ChipRow &row) { return row.constants.target; });
}

TimingConstants asWgp(const TimingConstants &chip) {
  TimingConstants c = chip;
  const unsigned units = chip.unitsOfWgp;
  c.simds *= units;
  c.l1s *= units;
  c.ldsPairs *= units;
  c.ldsSides = units;
  c.matrixFlopsPerClock *= units;
  for (MemoryLevel &level : c.levels) {
    level.unitClock *= units;
    if (level.scope == Scope::Unit)
      level.totalClock *= units;
  }
  return c;
}

} // namespace fovea::sim
