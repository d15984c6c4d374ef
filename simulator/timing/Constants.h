//===- Constants.h - What the timing model knows of a chip ------*- C++ -*-===//
//
// One row a chip. Clocks are those of the shader engine; every figure's source
// stands beside it in Constants.cpp and in docs/Timing.md.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_CONSTANTS_H
#define FOVEA_SIMULATOR_TIMING_CONSTANTS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::sim {

/// Which compute units share a cache: none (workgroups beside each other do),
/// those of a shader array, of an XCD, or all.
enum class Scope : uint8_t { Unit, Array, Die, Chip };

/// A level of memory behind L1. What L1 misses goes from one to the next until
/// one has it; the last one is memory.
struct MemoryLevel {
  std::string_view name;
  Scope scope;
  /// What a workgroup brought and the levels before have lost it finds here, as
  /// long as its share of the bytes has room.
  bool keepsOwn;
  uint64_t bytes;  ///< it holds; memory: 0
  /// Latency from L1 on, unloaded: of what runs at the compute units' clock, and
  /// of what doesn't.
  double clocks, seconds;
  double unitClock; ///< bytes a clock to one compute unit; 0: any
  /// Bytes a clock, or a second, to all compute units that share it.
  double totalClock, totalSecond;
};

/// A product with a chip: what differs between cards of one target.
struct Board {
  std::string_view name; ///< as --board takes it
  std::string_view target;
  std::string_view product;
  unsigned computeUnits;
  /// As in TimingConstants.
  double peakHz, loadHz, loadSlope;
  double memoryBytesPerSecond; ///< that it delivers
  bool published; ///< times of kernels on it were, which the model was held to
};

/// "a, b": the boards of a target, for error messages; empty: it has none.
std::string boardList(std::string_view target);

struct TimingConstants {
  std::string_view target;

  // Issue. A SIMD issues every `slot` clocks, at most one instruction a wave and
  // one a unit.
  unsigned slot;              ///< clocks
  unsigned simds;             ///< of a compute unit
  unsigned waveLanes;         ///< of the waves that costs are for; longer ones
                              ///< take vector instructions several times
  unsigned valuClocks;        ///< a plain vector instruction holds its SIMD
  unsigned transClocks;       ///< a transcendental one its unit
  unsigned transPort;         ///< ... and the SIMD, where the unit is its own
  unsigned quarterClocks;     ///< a 32-bit integer multiply
  unsigned doubleClocks;      ///< fp64 arithmetic
  unsigned packedClocks;      ///< packed fp32
  unsigned swapClocks;        ///< v_permlane*_swap
  unsigned dualForward;       ///< clocks of a wave between a dual instruction
                              ///< that reads what it writes and the next one
  unsigned valuLatency;       ///< issue to issue of a dependent instruction
  unsigned transLatency;
  unsigned laneLatency;       ///< more of them where an operand is DPP
  unsigned addressLatency;    ///< more of them to LDS and vector memory
  unsigned scalarLatency;
  unsigned scalarToVector;    ///< scalar result to a vector instruction
  unsigned maskLatency;       ///< vector result in scalar registers to VALU
  unsigned maskToScalar;      ///< ... to SALU and branches
  unsigned branchTaken, branchNotTaken; ///< clocks until the wave's next issue
  unsigned barrierLatency;    ///< last arrival to the next issue
  unsigned waitClocks;        ///< an s_waitcnt whose condition holds

  // Matrix cores.
  unsigned matrixIssue;       ///< clocks that an MFMA holds the vector port
  unsigned matrixLatency;     ///< passes end to a reader other than an MFMA's C
  bool packedExcludesMatrix;  ///< packed fp32 and MFMA do not run together
  unsigned packedAfterMatrix; ///< clocks between an MFMA's end and packed fp32
  bool wideExcludesVector;    ///< fp32 and fp64 MFMA keep the vector ALU idle
  bool matrixExcludesVector;  ///< all do, and wait for transcendentals
  /// Operations a clock of one SIMD on elements of 16, 8 and 4 bits; 0: the
  /// passes of LLVM's scheduling model.
  unsigned matrixFlops16, matrixFlops8, matrixFlops4;
  unsigned registerBanks;     ///< of vector registers; 0: none that clash
  unsigned matrixClash;       ///< clocks that two of A, B, C in one bank cost
  unsigned matrixClashMost;   ///< as many as figures leave room for

  // LDS, beside its banks (timing/Lds.h). SIMDs reach it in pairs through ports
  // of half its width.
  unsigned ldsLatency;        ///< last phase to data in registers
  unsigned ldsPortBytes;      ///< a clock of one pair's port
  unsigned ldsPairs;          ///< ports
  unsigned ldsHalves;         ///< that serve accesses side by side
  /// Halves of a WGP's LDS: each has its addresses and serves an access at a
  /// time. 0: as above.
  unsigned ldsSides, ldsSideBytes;
  unsigned ldsQueue;          ///< instructions that a port accepts ahead
  bool ldsWriteAddress;       ///< writes send addresses through the data port

  // Vector memory.
  unsigned l1s;               ///< L1s of a compute unit, of as many SIMDs each
  unsigned l1Bytes, lineBytes, l1Ways;
  unsigned l1Clock;           ///< bytes a clock from L1
  unsigned l1Lines;           ///< lines a clock that it looks up
  unsigned addressLanes;      ///< lanes a clock of the address unit
  unsigned l1Latency;         ///< clocks, unloaded
  unsigned vmemQueue;         ///< instructions that it accepts ahead
  unsigned invalidateClocks;  ///< an L1's invalidation holds its address unit
  bool countsInvalidates;     ///< waits for loads wait for invalidations, too
  unsigned flightBytes;       ///< L1 misses in flight
  std::vector<MemoryLevel> levels; ///< behind L1, from L2 to memory
  /// What the way behind L2 takes longer when all compute units have all the
  /// misses under way that they can; with fewer in proportion.
  double loadedSeconds;
  double atomicWordsPerSecond; ///< dwords that the chip's L2s add up
  unsigned scalarHit, scalarMiss, scalarBytes; ///< latencies in clocks, and size

  // Instructions.
  unsigned fetchMiss;         ///< clocks
  unsigned icacheBytes, icacheLine;

  // Dispatch.
  unsigned engines;           ///< shader engines of an XCD
  unsigned arrays;            ///< shader arrays of the chip
  /// Compute units that workgroups of kernels in WGP mode have together, with
  /// their LDS; 1: there is no such mode.
  unsigned unitsOfWgp;
  unsigned groupLaunch;       ///< clocks from a free place to the first issue
  unsigned groupInterval;     ///< clocks between workgroups of one XCD
  double launchSeconds;       ///< an empty kernel

  // Clock under load: loadHz * share^-loadSlope, share being that of the time
  // that the matrix cores are at work; at most the peak. (Switching takes power
  // in proportion to share * clock * volts^2, and volts grow with the clock: at
  // a power limit a slope of a third, if nothing else took power.)
  double peakHz, loadHz, loadSlope;
  /// How much longer the slowest XCD takes than the mean of them.
  double spread;

  // What the table has no figures of, and the ensemble varies.
  double smallProductPower =
      1;                ///< of 16 x 16 products, of others' that work as long
  double ldsScale = 1;  ///< clocks of all LDS accesses
  double l1Scale = 1;   ///< clocks of all vector memory
  double missScale = 1; ///< misses of caches that are shared

  // Peak, for reports.
  unsigned matrixFlopsPerClock; ///< dense fp16, of a compute unit

  // Registers and LDS are handed out in granules.
  unsigned vgprGranule;       ///< 0: as descriptors count them
  unsigned ldsGranule;        ///< bytes
};

/// The constants of a chip on a board, or null; \p board empty: its first, or
/// the only ones of a chip without boards.
const TimingConstants *timingConstants(std::string_view target,
                                       std::string_view board = {});

/// That board's row, or null: there is none.
const Board *timedBoard(std::string_view target, std::string_view board = {});

/// "gfx908, gfx90a": the chips that have constants, for error messages.
std::string timedChipList();

/// Two compute units as one, as kernels in WGP mode have them: a workgroup's
/// LDS counts as in one half then (that of its middle), which serves all four
/// SIMDs (docs/Timing.md).
TimingConstants asWgp(const TimingConstants &chip);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_CONSTANTS_H
