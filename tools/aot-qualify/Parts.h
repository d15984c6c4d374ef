//===- Parts.h - the parts of a report --------------------------*- C++ -*-===//
//
// Each runs in a process of its own, gives JSON, and has a "result": "pass",
// "not run" (with "why"), or something that a reader has to look at.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_PARTS_H
#define FOVEA_TOOLS_AOTQUALIFY_PARTS_H

#include "ForwardRun.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fovea::qualify {

/// What all parts are told.
struct Request {
  run::Session::Options session; ///< its package is set
  unsigned cases = 0;            ///< of the grid; 0: all
  std::vector<int64_t> lengths;  ///< of the benchmark
  int64_t heads = 16;            ///< of the benchmark
  int64_t tokens = 16384;        ///< of the benchmark: batch times length
};

/// Why parts that run on the first device alone are not run on another.
inline constexpr char kFirstDeviceAlone[] =
    "this part runs on device 0; show the one that is meant alone, with "
    "HIP_VISIBLE_DEVICES";

/// Every image of the packages that the device's chip runs, loaded.
nlohmann::json loadImages(const run::Session &session, const Request &request);

/// The conformance suite, a program beside this one.
nlohmann::json runConformance(const run::Session &session,
                              const Request &request);

/// The grid of problems against the fp64 reference, and beside the simulator.
nlohmann::json runKernels(run::Session &session, const Request &request);

/// Attention over lengths: predicted where there is a model of the chip, and
/// measured where the device is a GPU.
nlohmann::json runBenchmark(const run::Session &session,
                            const Request &request);

/// The chip without its features.
inline std::string chipOf(const run::Session &session) {
  return session.arch().substr(0, session.arch().find(':'));
}

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_PARTS_H
