//===- Kernels.cpp - attention kernels on the device ----------------------===//
//
// Each problem of the grid runs on the device, is judged by the fp64 reference,
// and runs on the simulator, whose bits are set beside the device's.
//
//===----------------------------------------------------------------------===//

#include "BackwardRun.h"
#include "GridCases.h"
#include "Parts.h"
#include "Report.h"
#include "fovea/Package/Keys.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace fovea;
using namespace fovea::qualify;
using namespace fovea::run;
using nlohmann::json;

namespace {

/// A kernel of the packages that runs on the device.
struct Kernel {
  uint32_t id;
  ProblemKey key;
};

std::vector<Kernel> kernelsFor(const Session &session, OpKind op) {
  std::vector<Kernel> kernels;
  const Expected<TargetId> device = TargetId::parse(session.arch());
  for (uint32_t id = 1; id <= fovea_kernel_count(session.context()); ++id) {
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(session.context(), id, &info) != FOVEA_STATUS_OK)
      continue;
    const Expected<ProblemKey> key = ProblemKey::parse(info.problem);
    const Expected<TargetId> target = TargetId::parse(info.target);
    // Score programs capture what no grid knows.
    if (key && key->op == op && !key->score && target && device &&
        checkTargetRunsOn(*target, *device).ok())
      kernels.push_back({id, *key});
  }
  return kernels;
}

/// Whether one of the kernels is for the problem.
bool isServed(const std::vector<Kernel> &kernels, const ForwardCase &c) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const Kernel &kernel) {
    return kernel.key.headDim == c.headDim && kernel.key.dtype == c.type &&
           (kernel.key.takesWindow() ||
            maskInfo(kernel.key.mask).window == c.mask);
  });
}

/// The cases of the grid that the kernels are for.
std::vector<GridCase> gridOf(const std::vector<Kernel> &kernels) {
  std::set<int64_t> headDims;
  std::vector<Window> masks(std::begin(kNamedMasks), std::end(kNamedMasks));
  for (const Kernel &kernel : kernels) {
    headDims.insert(kernel.key.headDim);
    if (kernel.key.takesWindow())
      masks.assign(std::begin(kWindows), std::end(kWindows));
  }
  const Grid grid = {"qualify",
                     1,
                     {257, 129, 65, 17, 1, 0},
                     {headDims.begin(), headDims.end()}};
  std::vector<GridCase> cases = thinnedGrid(grid, {}, masks);
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [&](const GridCase &one) {
                               return !isServed(kernels, one.problem);
                             }),
              cases.end());
  return cases;
}

/// A problem for a kernel by itself: the grid may never choose it.
ForwardCase caseOf(const Kernel &kernel) {
  ForwardCase c;
  c.type = kernel.key.dtype;
  c.headDim = kernel.key.headDim;
  c.mask = kernel.key.takesWindow() ? kWindows[kernel.id % std::size(kWindows)]
                                    : maskInfo(kernel.key.mask).window;
  c.heads = 2;
  c.seqQ = 129;
  c.seqK = 200;
  c.layout = reference::Layout::BSHD;
  c.seed = kernel.id;
  return c;
}

/// Distances of results from the simulator's, in units in the last place of the
/// type: none, one, two, up to four, ...
struct Distances {
  std::vector<uint64_t> counts = std::vector<uint64_t>(8);
  double most = 0;
  void add(const std::vector<float> &device, const std::vector<float> &simulated,
           reference::ElemType type) {
    const int fraction = dataTypeInfo(type).fractionBits;
    // Below it fp16 has denormals; what is smaller is no result here.
    const int least = type == reference::ElemType::F16 ? -14 : -126;
    for (size_t i = 0; i != std::min(device.size(), simulated.size()); ++i) {
      const double d = device[i], s = simulated[i];
      double ulps = 0;
      if (d != s && !(std::isnan(d) && std::isnan(s))) {
        const double size = std::max(std::abs(d), std::abs(s));
        ulps = std::isfinite(d) && std::isfinite(s)
                   ? std::abs(d - s) /
                         std::ldexp(1.0, std::max(std::ilogb(size), least) -
                                             fraction)
                   : INFINITY;
      }
      most = std::max(most, ulps);
      size_t bucket = 0;
      for (double bound = 0; ulps > bound && bucket + 1 < counts.size();
           bound = bound == 0 ? 1 : 2 * bound)
        ++bucket;
      ++counts[bucket];
    }
  }
  json toJson() const {
    return {{"counts", counts},
            {"most", std::isfinite(most) ? json(most) : json()}};
  }
};

json rowOf(const Session &session, const ForwardCase &c, const RunReport &r) {
  return toJson(session, c, r);
}
json rowOf(const Session &session, const BackwardCase &c, const RunReport &r) {
  return toJson(session, c, r);
}

template <typename Case>
void runOne(Session &session, Session *simulator, const Case &problem,
            const ForwardCase &forward, RunOptions options, json &result) {
  const RunReport report = session.run(problem, options);
  if (report.outcome == Outcome::Refused) {
    result["refused"].push_back(
        {{"problem", problem.str()}, {"why", report.message}});
    return;
  }
  json row = rowOf(session, problem, report);
  row["text"] = problem.str();
  row.erase("executed");
  row.erase("seconds"); // a first launch: no measurement
  row.erase("seconds_are");
  if (simulator && report.launched) {
    options.check = false;
    options.guards = Guards::Auto;
    const RunReport other = simulator->run(problem, options);
    if (other.outcome == Outcome::Pass) {
      Distances distances;
      distances.add(report.out, other.out, forward.type);
      for (size_t i = 0;
           i != std::min(report.gradients.size(), other.gradients.size()); ++i)
        distances.add(report.gradients[i].values, other.gradients[i].values,
                      forward.type);
      row["beside_simulator"] = distances.toJson();
    } else {
      row["beside_simulator"] = {{"why", other.message}};
    }
  }
  if (report.outcome != Outcome::Pass)
    result["result"] = "FAILS";
  result["problems"].push_back(std::move(row));
}

} // namespace

json qualify::runKernels(Session &session, const Request &request) {
  json result = {{"result", "pass"},
                 {"problems", json::array()},
                 {"refused", json::array()}};
  std::unique_ptr<Session> simulator;
  if (session.simulated()) {
    result["beside_simulator"] = "not run: the device is the simulator";
  } else {
    Session::Options options = request.session;
    options.hip = "sim";
    options.target = chipOf(session);
    options.device = 0;
    std::string error;
    bool deviceError = false;
    simulator = Session::open(options, error, deviceError);
    result["beside_simulator"] =
        simulator ? "the simulated " + chipOf(session) : "not run: " + error;
  }
  for (OpKind op : {OpKind::Forward, OpKind::Backward}) {
    const std::vector<Kernel> kernels = kernelsFor(session, op);
    if (kernels.empty()) {
      result["without"].push_back(toString(op));
      continue;
    }
    auto runCase = [&](const ForwardCase &c, const RunOptions &options) {
      if (op == OpKind::Forward)
        runOne(session, simulator.get(), c, c, options, result);
      else
        runOne(session, simulator.get(), BackwardCase{c, 1}, c, options,
               result);
    };
    unsigned left = request.cases ? request.cases : ~0u;
    for (const GridCase &one : gridOf(kernels))
      if (left && left--) {
        RunOptions options;
        options.guards = one.guards;
        runCase(one.problem, options);
      }
    left = request.cases ? request.cases : ~0u;
    for (const Kernel &kernel : kernels)
      if (left && left--) {
        RunOptions options;
        options.kernel = kernel.id;
        options.deterministic = false; // whichever it is
        runCase(caseOf(kernel), options);
      }
  }
  if (result["problems"].empty()) {
    result["result"] = "not run";
    result["why"] = "no kernel of the packages serves a problem of the grid";
  }
  return result;
}
