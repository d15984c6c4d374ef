//===- Launch.h - Running a kernel on the simulated device ------*- C++ -*-===//
//
// Runs one kernel over a grid, to its end, on the calling thread and helpers
// that are kept for the next launch. Several may run at a time on one device.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_LAUNCH_H
#define FOVEA_SIMULATOR_LAUNCH_H

#include "fovea/Simulator/Checks.h"
#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/Device.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::sim {

class ObserverFactory; // exec/Observer.h

/// Classes of instructions, for the counters.
enum class InstClass : uint8_t {
  Valu,      ///< vector ALU without the classes below
  Trans,     ///< transcendental: exp, log, rcp, rsq, sqrt, sin, cos
  Mfma,      ///< matrix instructions
  Salu,      ///< scalar ALU
  Smem,      ///< scalar loads
  Vmem,      ///< global, flat, buffer and scratch
  Lds,       ///< ds_*
  Branch,    ///< branches, calls, s_endpgm
  Sync,      ///< s_barrier, s_waitcnt, s_nop, s_sleep, hints
  Other,
  kCount,
};
constexpr unsigned kInstClasses = static_cast<unsigned>(InstClass::kCount);
/// "valu", "mfma"... for reports.
std::string_view name(InstClass cls);

/// What a launch executed. All counts are of wave instructions.
struct Counters {
  std::array<uint64_t, kInstClasses> byClass{};
  uint64_t instructions = 0; ///< the sum of byClass
  uint64_t workgroups = 0;
  uint64_t waves = 0;
  uint64_t barriers = 0;
  uint64_t bytesLoaded = 0, bytesStored = 0; ///< vector memory, by active lanes
  double seconds = 0; ///< wall time on the host
  uint64_t operator[](InstClass cls) const {
    return byClass[static_cast<unsigned>(cls)];
  }
  Counters &operator+=(const Counters &other);
};

/// A fault planted into the matrix instructions, so that tests can show that
/// they would notice a wrong operand layout.
enum class MfmaFault : uint8_t { None, SwapRowsOfA, RotateK, SwapBlocksOfD };

struct LaunchOptions {
  unsigned threads = 0; ///< host threads; 0: one per host CPU
  /// Instructions that one wave may execute; 0: no limit.
  uint64_t waveBudget = uint64_t(1) << 34;
  /// Fill registers, LDS and scratch that a kernel has not written with a NaN
  /// pattern instead of zeros.
  bool poison = true;
  /// Scratch of a lane for kernels with a dynamic stack (recursion, calls
  /// through pointers): at least this many bytes.
  uint32_t dynamicStackBytes = 16384;
  MfmaFault mfmaFault = MfmaFault::None;
  /// What the launch writes is taken back by the caller: for later launches
  /// that watch for memory never written, it was not there.
  bool trial = false;
  /// Workgroups start from the last to the first.
  bool reverse = false;
  /// What the launch is watched for: Check bits.
  uint32_t checks = kAlwaysChecked;
  /// Watches the launch when not null; must outlive it.
  ObserverFactory *observers = nullptr;
};

struct LaunchConfig {
  std::array<uint32_t, 3> grid{1, 1, 1};  ///< workgroups
  std::array<uint32_t, 3> block{1, 1, 1}; ///< work-items of a workgroup
  /// When not 0: the grid in work-items (OpenCL style); the last workgroup of a
  /// dimension may then be partial, and `grid` is ignored.
  std::array<uint64_t, 3> gridWorkItems{0, 0, 0};
  /// When not empty: only these workgroups run (index x + y * X + z * X * Y), in
  /// this order; each index below the number of workgroups.
  std::vector<uint64_t> workgroups;
  uint32_t dynamicLdsBytes = 0;
  /// The kernarg segment. May be shorter than KernelInfo::kernargSize: explicit
  /// arguments alone will do, hidden ones are then filled in by the launch.
  const void *kernarg = nullptr;
  size_t kernargBytes = 0;
  /// Fill in the hidden arguments (grid sizes, apertures...) although
  /// `kernargBytes` covers them.
  bool fillHiddenArgs = true;
  LaunchOptions options;
};

/// Runs \p kernel of \p code. \p counters, when not null, receives what was
/// executed, also after a failure. Errors: InvalidArgument (kernarg too short),
/// LaunchFailure (geometry, LDS, registers), and all errors of execution, with
/// kernel, program counter, disassembly, workgroup, wave, lane and address.
Status launch(const CodeObject &code, const KernelInfo &kernel,
              const LaunchConfig &config, Counters *counters = nullptr);

/// Writes the hidden arguments of \p kernel for a launch of \p config into the
/// kernarg segment \p segment (of at least kernel.kernargSize bytes). launch()
/// does this itself; exported for callers that build segments.
void fillHiddenArguments(const KernelInfo &kernel, const LaunchConfig &config,
                         uint8_t *segment);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_LAUNCH_H
