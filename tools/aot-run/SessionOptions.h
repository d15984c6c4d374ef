//===- SessionOptions.h - options for packages and devices ------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTRUN_SESSIONOPTIONS_H
#define FOVEA_TOOLS_AOTRUN_SESSIONOPTIONS_H

#include "ForwardRun.h"

#include <CLI/CLI.hpp>
#include <climits>

namespace fovea::run {

/// Adds --package, --hip, --target and --device. `options` must outlive `app`.
inline void addSessionOptions(CLI::App &app, Session::Options &options) {
  app.add_option("--package", options.package,
                 "Kernel package, or a folder of packages (default: those of "
                 "FOVEA_PACKAGE, or else the installed ones)")
      ->default_str("")
      ->group("Where");
  app.add_option("--hip", options.hip,
                 "HIP library: auto, rocm, sim, or a path (default: "
                 "FOVEA_HIP_LIBRARY, or else auto)")
      ->group("Where");
  app.add_option("--target", options.target,
                 "Chip that the device is to be; the simulated one becomes it "
                 "(default: FOVEA_SIM_TARGET, or else the package's)")
      ->group("Where");
  app.add_option("--device", options.device, "Number of the device")
      ->check(CLI::Range(0, INT_MAX).description(""))
      ->group("Where");
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SESSIONOPTIONS_H
