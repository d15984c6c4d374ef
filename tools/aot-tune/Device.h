//===- Device.h - what a machine's devices say of kernels -------*- C++ -*-===//
//
// Times are measured where a HIP library has a GPU of the chip. A simulated
// device executes kernels, to check what they compute, and its times are this
// machine's: they are never taken for the chip's.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_DEVICE_H
#define FOVEA_TOOLS_AOTTUNE_DEVICE_H

#include "Kernel.h"

namespace fovea::tune {

/// How times are had, and the words for it in reports and rows.
struct Method {
  /// What `by` of a row begins with.
  static constexpr const char *kMeasured = "measured";
  bool isMeasured = false;
  std::string device; ///< of measurements: the GPU
  std::string hip;    ///< HIP library: "auto", "rocm", "sim" or a path
  const char *name() const { return isMeasured ? kMeasured : "predicted"; }
};

/// Whether this machine has a GPU of the chip. The library is opened, so this
/// belongs in a process of its own. {"device"}, or {"none"} with the reason.
nlohmann::json probeDevice(const std::string &target, const std::string &hip);

/// Measures kernels, whose code objects are files, against one another on the
/// GPU: {"seconds", "tie_error"} of each, or {"error"}.
nlohmann::json measure(const std::vector<const tools::BuiltKernel *> &kernels,
                       const std::vector<std::string> &files,
                       const std::string &target, const Size &size,
                       const Condition &condition, const std::string &hip);

/// Runs a kernel at sizes that no block divides under a mask, on a GPU or the
/// simulated device with all its checks, and holds the results against the fp64
/// reference: {}, {"wrong"}, or {"unchecked"} where this machine can't do it.
nlohmann::json checkKernel(const tools::BuiltKernel &kernel,
                           const std::string &file, const std::string &target,
                           const std::string &mask, const Method &method);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_DEVICE_H
