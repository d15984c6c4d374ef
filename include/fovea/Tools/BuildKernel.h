//===- BuildKernel.h - single kernels, compiled in process ------*- C++ -*-===//
//
// aot-compile's way from a problem and a schedule to a code object, for
// programs that want the kernel and no file: a tuner asks for many schedules of
// a problem and keeps few. No type of LLVM's or MLIR's shows.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_BUILDKERNEL_H
#define FOVEA_TOOLS_BUILDKERNEL_H

#include "fovea/Package/Package.h"

#include <map>
#include <string>
#include <vector>

namespace fovea::tools {

/// Parameters of a schedule that take the place of the chosen ones, by the keys
/// of a spec's "schedules" (docs/AotCompile.md).
struct ScheduleChoice {
  std::map<std::string, int32_t> numbers;   ///< "block_m": 64
  std::map<std::string, std::string> names; ///< "inst": "mfma_32x32x8"

  size_t size() const { return numbers.size() + names.size(); }
  friend bool operator==(const ScheduleChoice &a, const ScheduleChoice &b) {
    return a.numbers == b.numbers && a.names == b.names;
  }
};

/// One kernel of one chip.
struct KernelOrder {
  std::string target; ///< "gfx942"
  ProblemKey problem;
  ScheduleChoice schedule;
};

/// What a package would say of the kernel, without build, figures and image.
/// Incompatible when the chip cannot run it, which takes no compilation to
/// know; InvalidArgument for a chip, key or name that nothing has.
Expected<KernelRecord> planKernel(const KernelOrder &order);

/// A compiled kernel. Its record has the figures but neither build nor hash.
struct BuiltKernel {
  KernelRecord record;
  std::string image;
};
/// As planKernel, and Incompatible when the compilation fails.
Expected<BuiltKernel> buildKernel(const KernelOrder &order);

/// The instructions that a schedule for the chip and type may name.
std::vector<std::string> matrixInstrsOf(const std::string &target,
                                        DataType type);

/// The chips that a text of `--target` stands for: a name, a beginning of
/// names, "all". InvalidArgument if it is none of them.
Expected<std::vector<std::string>> targetsOf(const std::string &text);

/// Names everything that decides what a kernel's code is, other than the order.
/// Equal texts, equal kernels.
std::string compilerBuildId();

} // namespace fovea::tools

#endif // FOVEA_TOOLS_BUILDKERNEL_H
