//===- Timing.h - Predicting how long a kernel takes ------------*- C++ -*-===//
//
// A model of a chip's compute units over the instructions that the simulator
// executes. It runs representative workgroups of a launch, replays their
// instructions on a model of one compute unit (issue, pipes, LDS, caches,
// barriers), and extends the result to the grid. What it models, where its
// constants come from and how far to trust it: docs/Timing.md.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_H
#define FOVEA_SIMULATOR_TIMING_H

#include "fovea/Simulator/Launch.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::sim {

/// Why a wave did not issue an instruction.
enum class Stall : uint8_t {
  Alu,        ///< a vector or scalar ALU result was not ready
  Matrix,     ///< a matrix instruction's result was not ready
  MatrixPipe, ///< the matrix core was busy
  VectorPort, ///< the vector ALU was busy (long instructions, other waves)
  Port,       ///< another wave took the scalar, branch, LDS or memory port
  MemoryQueue,///< LDS or vector memory could take no more
  WaitVector, ///< s_waitcnt on vector memory
  WaitLds,    ///< s_waitcnt on LDS
  WaitScalar, ///< s_waitcnt on scalar memory
  WaitOther,  ///< s_waitcnt on exports, messages
  Barrier,    ///< waiting for the other waves of the workgroup
  Fetch,      ///< branches and the instruction cache
  Idle,       ///< s_nop, s_sleep
  kCount
};
constexpr unsigned kStalls = static_cast<unsigned>(Stall::kCount);
/// "alu", "matrix-pipe", "wait-vector"...
std::string_view name(Stall stall);

struct TimingOptions {
  /// Workgroups to execute and time, besides those that their differences call
  /// for; more are more exact and slower.
  unsigned maxSamples = 8;
  /// Keep the issue timeline of this many clocks of the sample with most work,
  /// from `timelineStart` on; 0 keeps none.
  uint64_t timelineClocks = 0;
  uint64_t timelineStart = 0;
  /// Clock of the chip, Hz; 0: what the chip's power limit allows this kernel.
  double clockHz = 0;
  /// Workgroups that share a compute unit; 0: as many as fit.
  unsigned residentWorkgroups = 0;
  /// Memory is afterwards as it was before: for a launch that is to run itself
  /// once its time is predicted. Nobody else may write what it writes meanwhile.
  bool takeBack = false;
  /// The product with the chip, where it matters: "w7900"; empty: the first.
  std::string board;
  /// Also the times of the ensemble's members, TimingReport::members. Costs a
  /// replay or two a member, and no execution.
  bool ensemble = false;
};

/// One instruction of the kernel, over all waves of the samples.
struct InstTiming {
  uint32_t offset = 0;     ///< bytes from the kernel's entry; may be negative as
                           ///< a signed number for functions before it
  std::string text;        ///< disassembly
  std::string source;      ///< "file.cpp:12:3"; empty without debug information
  InstClass cls = InstClass::Other;
  uint64_t issues = 0;
  uint64_t busyClocks = 0; ///< clocks that its unit was busy with it
  uint64_t conflictClocks = 0; ///< of these: LDS bank conflicts
  std::array<uint64_t, kStalls> stalls{}; ///< clocks waited before it issued
};

/// A wave's issue of one instruction.
struct TimelineEvent {
  uint64_t clock = 0;     ///< when it issued
  uint32_t clocks = 0;    ///< how long its unit was busy
  uint32_t stallClocks = 0; ///< how long the wave had been ready for nothing else
  Stall stall = Stall::Alu; ///< the reason for most of them
  uint32_t inst = 0;      ///< index into TimingReport::instructions
  uint16_t simd = 0, wave = 0; ///< wave: number in the compute unit
  uint32_t workgroup = 0;
  InstClass cls = InstClass::Other;
};

/// One workgroup that was executed.
struct TimingSample {
  uint64_t workgroup = 0;
  uint64_t waveInstructions = 0;
  double clocks = 0; ///< from its start to its end beside `resident` - 1 others
};

/// A launch by the model with other constants, within what is known of them:
/// docs/Timing.md, "Ratios by an ensemble".
struct MemberTime {
  std::string name; ///< which constants: "L2 latency x 1.25"
  double seconds = 0;
};

struct TimingReport {
  std::string kernel, chip;
  std::string board;       ///< that was assumed; empty: the chip has one alone
  double seconds = 0;      ///< of the launch on an otherwise idle chip
  double clocks = 0;       ///< seconds * clockHz
  double clockHz = 0;      ///< the clock that was assumed
  double launchSeconds = 0;///< of `seconds`: start and end of a launch
  /// Nine of ten published kernels of this kind took from seconds / (1 + this)
  /// to seconds * (1 + this).
  double timeError = 0;
  /// The same of the ratio of two kernels on one chip: what lies within is a
  /// tie.
  double ratioError = 0;
  /// The same of two schedules of one program, beside what `members` say.
  double scheduleError = 0;
  bool errorIsEstimate = false; ///< there are too few of its kind to tell
  /// Of kernels on one chip the same members in the same order; empty unless
  /// TimingOptions::ensemble.
  std::vector<MemberTime> members;

  uint64_t workgroups = 0;
  unsigned wavesPerWorkgroup = 0;
  unsigned resident = 0;   ///< workgroups that a compute unit holds
  std::string residentLimit; ///< "registers", "LDS", "wave slots", "grid"...
  double wavesPerSimd = 0;
  unsigned simds = 0;      ///< of a compute unit
  unsigned slotClocks = 0; ///< a SIMD issues every so many clocks
  double rounds = 0;       ///< workgroups / places on the chip
  double busyShare = 0;    ///< mean share of compute units at work (the tail)

  // Shares of the time of the compute units that are at work.
  double matrix = 0, valu = 0, salu = 0, lds = 0, vectorMemory = 0, issue = 0;
  double matrixOfChip = 0; ///< matrix-core share over the whole launch and chip
  double flops = 0;        ///< multiply-adds * 2 that matrix instructions execute
  double peakFlops = 0;    ///< a second, of that chip and type at peakClockHz
  double peakClockHz = 0;

  // Memory, per launch.
  double l1Bytes = 0, l2Bytes = 0, memoryBytes = 0;
  double memoryBytesPerSecond = 0; ///< that the chip's memory delivers at most
  double l1HitRate = 0, l2HitRate = 0;
  double ldsConflictShare = 0; ///< of LDS clocks

  std::array<double, kStalls> stalls{}; ///< share of all wave clocks
  double issuedShare = 0;  ///< share of wave clocks in which a wave issued
  std::vector<TimingSample> samples;
  std::vector<InstTiming> instructions; ///< in order of address; executed ones
  std::vector<TimelineEvent> timeline;
  std::vector<std::string> notes; ///< what the model had to assume
};

/// How a ratio of times moves over the members, and which moves it furthest.
struct RatioRange {
  double least = 0, greatest = 0; ///< 0: there are no members
  std::string leastBy, greatestBy;
};
/// \p a over \p b, of kernels on one chip.
RatioRange ratioOverMembers(const std::vector<MemberTime> &a,
                            const std::vector<MemberTime> &b);

/// Whether the timing model has constants for the chip.
bool hasTiming(const ChipInfo &chip);

/// Why there is no prediction for a chip on a board (empty: any), and what there
/// is instead; empty: there is one.
std::string noTimingOf(std::string_view target, std::string_view board = {});

/// Predicts the launch \p config of \p kernel. Executes some of its workgroups:
/// their results are written to memory as in a launch, and stay there unless
/// TimingOptions::takeBack. Errors: those of
/// launch(), and NotFound for a chip without constants.
Status predict(const CodeObject &code, const KernelInfo &kernel,
               const LaunchConfig &config, const TimingOptions &options,
               TimingReport &report);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_H
