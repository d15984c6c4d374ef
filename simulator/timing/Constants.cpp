//===- Constants.cpp - What the timing model knows of a chip --------------===//
//
// Sources, by letter: [L] LLVM's SISchedule.td and GCNHazardRecognizer; [C]
// AMD's matrix instruction calculator; [R] ROCm compute profiler documentation;
// [G] AMD's gfx950 tutorials with thread traces; [B] gpu-benches (MI100,
// MI210); [U] microbenchmarks of carlushuang/gcnasm (MI308X); [N] nod-ai LDS
// measurements; [E] ml-engineering, issue 76; [W] CDNA white papers and data
// sheets; [H] HipKittens' phases; [M] measurements of MI300X at Chips and
// Cheese; [F] fitted, see docs/Timing.md.
//
//===----------------------------------------------------------------------===//
#include "timing/Constants.h"

namespace fovea::sim {

namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

/// \p latency and \p totalClock: clocks, and bytes a clock of one L2.
MemoryLevel l2(uint64_t bytes, double latency, double totalClock) {
  return {"L2", true, bytes, latency, 0, 64, totalClock, 0}; // [W]
}
MemoryLevel memory(double seconds, double bytesPerSecond) {
  return {"memory", false, 0, 0, seconds, 0, 0, bytesPerSecond};
}

TimingConstants cdna3() {
  TimingConstants c{};
  c.target = "gfx942";
  c.slot = 4;              // [R] each SIMD is considered every fourth clock
  c.simds = 4;
  c.valuClocks = 4;        // [R] 64 lanes on 16
  c.transClocks = 16;      // [L] quarter rate
  c.quarterClocks = 16;    // [L]
  c.doubleClocks = 4;      // [L] [W] full rate
  c.packedClocks = 4;      // [L] [W] 256 flops a clock
  c.swapClocks = 8;
  c.valuLatency = 4;       // [R] dependent v_mov issue back to back
  c.transLatency = 20;     // [L] one wait state behind the last pass
  c.scalarLatency = 4;     // [R]
  c.maskLatency = 8;
  c.branchTaken = 32;
  c.branchNotTaken = 8;
  c.barrierLatency = 16;
  c.waitClocks = 4;        // [G]
  c.matrixIssue = 4;       // [R] [C] vector issue again from clock 4 on
  c.matrixLatency = 12;    // [L] n + 3 wait states to readers
  c.packedExcludesMatrix = true; // [L] isNeverCoissue
  c.packedAfterMatrix = 12;      // [G]
  c.wideExcludesVector = true;   // [C]
  c.ldsLatency = 56;       // [G] 50 to 70 clocks
  c.ldsPortBytes = 64;     // [R] SIMDs attach in pairs
  c.ldsPairs = 2;
  c.ldsQueue = 8;          // [G]
  c.ldsWriteAddress = true;// [R]
  c.l1Bytes = 32 * KiB;    // [W]
  c.lineBytes = 128;       // [W]
  c.l1Ways = 64;           // [R]
  c.l1Clock = 64;          // [W]
  c.addressLanes = 16;     // [G] a dword of 64 lanes in four clocks
  c.l1Latency = 120;       // [B] [U]
  c.vmemQueue = 12;        // [G]
  c.flightBytes = 44 * KiB;// [G]
  c.levels = {
      l2(4 * MiB, 300, 2048), // [W] 16 channels of 128 bytes; [U] 205 ns near
                              // 1.45 GHz
      {"memory-side cache", false, 256 * MiB, 0, 220e-9, 0, 0, 11.9e12}, // [W]
                                                                         // [M]
      memory(438e-9, 4.3e12), // [U]
  };
  c.atomicWordsPerSecond = 295e9; // [F]
  c.scalarHit = 50;
  c.scalarMiss = 250;
  c.scalarBytes = 16 * KiB;// [W]
  c.fetchMiss = 200;
  c.icacheBytes = 64 * KiB;// [W]
  c.icacheLine = 128;      // [W]
  c.engines = 4;           // [R]
  c.groupLaunch = 400;
  c.groupInterval = 12;
  c.launchSeconds = 3e-6;
  c.peakHz = 2.1e9;        // [W]
  c.loadHz = 1.10e9;       // [F]
  c.loadSlope = 0.42;      // [F]
  c.spread = 1.03;         // [F]
  c.matrixFlopsPerClock = 2048; // [W]
  return c;
}

TimingConstants cdna4() {
  TimingConstants c = cdna3();
  c.target = "gfx950";
  c.transClocks = 8;       // [G]
  c.transLatency = 12;
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
  c.loadSlope = 0.33;      // as power and volts would have it; no figures
  c.atomicWordsPerSecond = 32 * 1.1 * c.peakHz; // a channel as on gfx942
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
  c.atomicWordsPerSecond = 32 * 1.1 * c.peakHz;
  c.loadHz = 1.15e9; // the share of the peak that gfx90a keeps; no figures
  c.matrixFlopsPerClock = 1024; // [W]
  return c;
}

} // namespace

const TimingConstants *timingConstants(std::string_view target) {
  static const TimingConstants table[] = {cdna1(), cdna2(), cdna3(), cdna4()};
  for (const TimingConstants &row : table)
    if (row.target == target)
      return &row;
  return nullptr;
}

} // namespace fovea::sim
