//===- Bench.cpp - how long attention takes -------------------------------===//
//
// A kernel is the same subject to the timing model and to the device: what is
// predicted is what is measured.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "LaunchRun.h"
#include "Main.h"
#include "Parts.h"
#include "TemporaryFolder.h"
#include "TimeRun.h"
#include "fovea/Simulator/Chip.h"

#include <set>

using namespace fovea;
using namespace fovea::qualify;
using nlohmann::json;

namespace {

json predicted(const timing::Subject &subject,
               const describe::Overrides &variables) {
  const timing::SubjectTime time =
      timing::predictSubject(subject, variables, sim::TimingOptions());
  if (!time.error.empty())
    return {{"why", time.error}};
  const sim::TimingReport &longest = timing::longestOf(time).report;
  double launch = 0, memory = 0;
  for (const timing::LaunchTime &one : time.launches) {
    launch += one.report.launchSeconds;
    memory += one.report.memoryBytes;
  }
  return {{"seconds", time.seconds()},
          {"launch_seconds", launch},
          {"time_error", longest.timeError},
          {"error_is_estimate", longest.errorIsEstimate},
          {"clock_hz", longest.clockHz},
          {"peak_flops_per_second", longest.peakFlops},
          {"memory_bytes", memory},
          {"peak_bytes_per_second", longest.memoryBytesPerSecond}};
}

/// Measures a subject; its image goes through a file.
json measured(launch::Machine &machine, const timing::Subject &subject,
              describe::Problem problem, const tool::TemporaryFolder &folder,
              const std::string &chip) {
  std::string error = folder.error();
  std::string image;
  const std::string file = folder.path() + "/image.hsaco";
  if (!error.empty() || !subject.image("", image, error) ||
      !tool::writeFile(file, image, error))
    return {{"why", error}};
  for (describe::Launch &launch : problem.launches)
    launch.codeObject = file;
  const launch::Measured times =
      machine.measure({problem}, launch::MeasureOptions(), chip);
  if (!times.error.empty())
    return {{"why", times.error}};
  return {{"seconds", times.seconds[0]},
          {"spread", times.spread[0]},
          {"settled", times.isSettled}};
}

} // namespace

json qualify::runBenchmark(const run::Session &session,
                           const Request &request) {
  json result = {{"result", "pass"}, {"rows", json::array()}};
  const std::string chip = chipOf(session);
  const sim::ChipInfo *known = sim::findChip(chip);
  const bool hasModel = known && sim::hasTiming(*known);
  if (!hasModel)
    result["without_prediction"] = "there is no timing model of " + chip;
  std::unique_ptr<launch::Machine> machine;
  std::string error;
  if (session.simulated())
    result["without_measurement"] =
        "the device is simulated, and its times are this machine's CPU's, not "
        "a GPU's";
  else if (request.session.device != 0)
    result["without_measurement"] = kFirstDeviceAlone;
  else if (!(machine = launch::Machine::open(request.session.hip, error)))
    result["without_measurement"] = error;
  if (!machine && !hasModel) {
    result["result"] = "not run";
    result["why"] = result["without_measurement"];
    return result;
  }
  const tool::TemporaryFolder folder("aot-qualify");
  for (const char *op : {"forward", "backward"})
    for (const char *dtype : {"bf16", "fp16"})
      for (int headDim : {64, 128})
        for (const char *mask : {"none", "causal-bottom-right"}) {
          timing::PackageQuery query;
          query.package = request.session.package;
          query.target = chip;
          query.op = op;
          query.dtype = dtype;
          query.headDim = headDim;
          query.mask = mask;
          std::vector<std::unique_ptr<timing::Subject>> subjects;
          std::string none;
          if (!timing::packageSubjects(query, subjects, none))
            continue;
          for (int64_t length : request.lengths)
            for (const auto &subject : subjects) {
              const int64_t batch = std::max<int64_t>(1, request.tokens / length);
              const describe::Overrides variables = {
                  {"batch", std::to_string(batch)},
                  {"heads", std::to_string(request.heads)},
                  {"heads_k", std::to_string(request.heads)},
                  {"seqlen", std::to_string(length)}};
              describe::Problem problem;
              json row = {{"op", op},          {"dtype", dtype},
                          {"head_dim", headDim}, {"mask", mask},
                          {"batch", batch},      {"heads", request.heads},
                          {"seqlen", length},    {"label", subject->label()},
                          {"schedule", subject->schedule()}};
              if (!subject->problem(variables, problem, error)) {
                row["why"] = error;
                result["result"] = "FAILS";
                result["rows"].push_back(std::move(row));
                continue;
              }
              double flops = 0;
              for (const describe::Launch &launch : problem.launches)
                flops += launch.flops;
              row["flops"] = flops;
              if (hasModel)
                row["predicted"] = predicted(*subject, variables);
              if (machine) {
                row["measured"] =
                    measured(*machine, *subject, problem, folder, chip);
                if (row["measured"].count("why"))
                  result["result"] = "FAILS";
              }
              result["rows"].push_back(std::move(row));
            }
        }
  if (result["rows"].empty()) {
    result["result"] = "not run";
    result["why"] = "the packages have no kernel of head dimension 64 or 128 "
                    "for " + chip;
  }
  return result;
}
