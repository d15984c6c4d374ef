//===- Choice.cpp - which kernels for a problem ---------------------------===//
//
// Each candidate is accepted or refused with a reason; of the accepted ones the
// tuning table picks, or else the rule below, which docs/Runtime.md states.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"

#include "fovea/Package/BackwardAbi.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace fovea::rt {
namespace {

constexpr int64_t kMaxGridYZ = 65535;

/// What the runtime knows of a kernel. That of a forward pass is the record's
/// only one, and of no algorithm.
abi::BackwardKernel kindOf(Operation op, const KernelLaunch &launch) {
  static constexpr abi::BackwardLaunch forward = {"", false, kOut, 0, 2};
  if (op == Operation::Backward)
    return abi::findBackwardKernel(launch.suffix);
  return {launch.suffix == forward.suffix ? &forward : nullptr, nullptr};
}

/// Names of a set of outputs, "dk and dv".
std::string namesOf(unsigned outputs) {
  const std::pair<Output, const char *> names[] = {
      {kOut, "out"}, {kDq, "dq"}, {kDk, "dk"}, {kDv, "dv"}};
  std::string text;
  for (const auto &[output, name] : names)
    if (outputs & output)
      text += (text.empty() ? "" : " and ") + std::string(name);
  return text;
}

struct Grid {
  int64_t extent[3]; ///< workgroups
  bool empty() const {
    return extent[0] == 0 || extent[1] == 0 || extent[2] == 0;
  }
  int64_t workgroups() const { return extent[0] * extent[1] * extent[2]; }
};

Grid gridOf(const Problem &problem, const abi::BackwardLaunch &kind,
            const KernelLaunch &launch) {
  const Sizes &sizes = problem.sizes;
  const int64_t rows = kind.ownsKeys ? sizes.seqlenK : sizes.seqlenQ;
  return {{kind.ownsKeys ? sizes.headsK : sizes.headsQ,
           (rows + launch.blockRows - 1) / launch.blockRows, sizes.batch}};
}

/// Whether a launch has something to do: what is wanted is its doing, or that
/// of a later one, and its grid is not empty.
bool isNeeded(const Problem &problem, const abi::BackwardLaunch &kind,
              const KernelLaunch &launch) {
  return ((kind.writes | kind.feeds) & problem.wanted) != 0 &&
         !gridOf(problem, kind, launch).empty();
}

/// Empty: the launch can be done; else why not.
std::string refusal(const KernelLaunch &launch, const Problem &problem) {
  const abi::BackwardLaunch *kind = kindOf(problem.key.op, launch).launch;
  if (!kind)
    return "its kernel '" + launch.suffix +
           "' is unknown to this library; update libfovea";
  if (!isNeeded(problem, *kind, launch))
    return "";
  if (const unsigned together = kind->writes & ~problem.wanted)
    return "one launch computes " + namesOf(kind->writes) + ", but " +
           namesOf(together) + " is not wanted; ask for all or none of them";
  const char *heads = kind->ownsKeys ? "heads_k " : "heads_q ",
             *rows = kind->ownsKeys ? "seqlen_k " : "seqlen_q ";
  const Sizes &sizes = problem.sizes;
  const Grid grid = gridOf(problem, *kind, launch);
  if (grid.extent[1] > kMaxGridYZ)
    return rows +
           std::to_string(kind->ownsKeys ? sizes.seqlenK : sizes.seqlenQ) +
           " makes " + std::to_string(grid.extent[1]) + " blocks of " +
           std::to_string(launch.blockRows) + " rows, more than " +
           std::to_string(kMaxGridYZ);
  // HIP counts work-items of a dimension in 32 bits.
  if (grid.extent[0] * launch.threads >
      int64_t(std::numeric_limits<uint32_t>::max()))
    return heads + std::to_string(grid.extent[0]) + " x " +
           std::to_string(launch.threads) + " work-items is more than 2^32 - 1";
  return "";
}

/// Empty: the kernel can run the problem on the device; else why not.
std::string refusal(const Kernel &kernel, const Problem &problem,
                    const DeviceTraits &device) {
  const KernelRecord &record = *kernel.record;
  if (record.problem != problem.key)
    return "it is for '" + kernel.problem + "'";
  if (record.abiVersion != abiVersionOf(problem.key.op))
    return "its argument layout has version " +
           std::to_string(record.abiVersion) + ", this library's is " +
           std::to_string(abiVersionOf(problem.key.op)) +
           "; build the package again";
  if (Status status =
          checkTargetRunsOn(kernel.package->target(), device.target);
      !status.ok())
    return status.message();
  unsigned writes = 0;
  const abi::BackwardAlgorithm *algorithm = nullptr;
  for (const KernelLaunch &launch : kernel.launches) {
    if (std::string why = refusal(launch, problem); !why.empty())
      return why;
    const abi::BackwardKernel kind = kindOf(problem.key.op, launch);
    writes |= kind.launch->writes;
    if (algorithm && kind.algorithm != algorithm)
      return std::string("its record mixes launches of '") + algorithm->name +
             "' and '" + kind.algorithm->name + "'; build the package again";
    algorithm = kind.algorithm;
  }
  if (problem.deterministic && algorithm && !algorithm->deterministic)
    return std::string("its algorithm is '") + algorithm->name +
           "', which may give other bits in every run, and deterministic is 1; "
           "ask with 0, or compile one with aot-compile "
           "--algorithm=deterministic";
  if (const unsigned missing = problem.wanted & ~writes)
    return "its record has no launch that writes " + namesOf(missing) +
           "; build the package again";
  return "";
}

/// Keeps the kernels made most closely for the device: its chip's own, or where
/// there are none those of its generic target.
void keepClosest(std::vector<const Kernel *> &kernels, const TargetId &device) {
  int best = 0;
  for (const Kernel *kernel : kernels)
    best = std::max(best, targetFit(kernel->package->target(), device));
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(),
                               [&](const Kernel *kernel) {
                                 return targetFit(kernel->package->target(),
                                                  device) < best;
                               }),
                kernels.end());
}

/// The schedule that the first package with a matching tuning row names, if an
/// accepted kernel of that package has it.
const Kernel *tuned(const ProblemEntry &entry, const Problem &problem,
                    const std::vector<const Kernel *> &accepted) {
  const Sizes &p = problem.sizes;
  for (const std::shared_ptr<const PackageReader> &package : entry.packages)
    for (const TuningRow &row : package->tuning()) {
      if (row.problem != problem.key || p.seqlenQ > row.maxSeqlenQ ||
          p.seqlenK > row.maxSeqlenK || p.batch * p.headsQ > row.maxBatchHeads)
        continue;
      for (const Kernel *kernel : accepted)
        if (kernel->package == package &&
            kernel->record->schedule == row.schedule)
          return kernel;
      break; // its bucket's schedule is not there: the rule decides
    }
  return nullptr;
}

/// The rule. The time of a launch goes with the rounds that its workgroups take
/// on the chip, with the rows of each and with the matrix products of a pair of
/// blocks, so `cost` is their product, added up over the launches: it sees idle
/// compute units in small launches, padding in short ones, and what an
/// algorithm computes twice. Within an
/// eighth of the least cost the largest block wins, since it reads the keys the
/// fewest times.
const Kernel *byRule(const Problem &problem, const DeviceTraits &device,
                     const std::vector<const Kernel *> &accepted) {
  auto cost = [&](const Kernel *kernel) {
    const int64_t units = std::max(device.computeUnits, 1);
    double sum = 0;
    for (const KernelLaunch &launch : kernel->launches) {
      const abi::BackwardLaunch &kind = *kindOf(problem.key.op, launch).launch;
      if (isNeeded(problem, kind, launch))
        sum += double((gridOf(problem, kind, launch).workgroups() + units - 1) /
                      units) *
               launch.blockRows * kind.products;
    }
    return sum;
  };
  double least = std::numeric_limits<double>::max();
  for (const Kernel *kernel : accepted)
    least = std::min(least, cost(kernel));
  auto rank = [&](const Kernel *kernel) {
    const KernelRecord &record = *kernel->record;
    return std::make_tuple(record.resources.scratchBytes > 0,
                           cost(kernel) > least * 1.125, -record.blockM,
                           -record.resources.occupancy, -record.blockN,
                           kernel->id);
  };
  return *std::min_element(
      accepted.begin(), accepted.end(),
      [&](const Kernel *a, const Kernel *b) { return rank(a) < rank(b); });
}

/// What there is instead, for the message when a problem has no kernel at all.
std::string alternatives(const Catalog &catalog, const ProblemKey &key,
                         const DeviceTraits &device) {
  std::set<int32_t> dims;
  std::set<std::string> targets;
  size_t usable = 0;
  for (const std::shared_ptr<const Kernel> &kernel : catalog.kernels()) {
    targets.insert(kernel->target);
    if (!checkTargetRunsOn(kernel->package->target(), device.target).ok())
      continue;
    ++usable;
    ProblemKey other = kernel->record->problem;
    other.headDim = key.headDim;
    if (other == key)
      dims.insert(kernel->record->problem.headDim);
  }
  if (catalog.packageCount() == 0)
    return "no package is open; call fovea_package_open";
  const std::string remedy =
      "; compile one with aot-compile --target=" + device.target.arch;
  if (usable == 0) {
    std::string text = "the open packages have no kernel for the device at "
                       "all, but for";
    for (const std::string &target : targets)
      text += " " + target;
    return (targets.empty() ? "the open packages hold no kernels" : text) +
           remedy;
  }
  if (dims.empty())
    return "the " + std::to_string(usable) +
           " kernels of the open packages that it can run have another "
           "operation, type or mask" +
           remedy;
  std::string text = "the open packages have head_dim";
  for (int32_t dim : dims)
    text += " " + std::to_string(dim);
  return text + " for this type and mask" + remedy;
}

} // namespace

Result chooseKernel(const Catalog &catalog, const Problem &problem,
                    const DeviceTraits &device, Plan &plan) {
  if (uint32_t id = problem.kernel) {
    const Kernel *kernel = catalog.find(id);
    if (!kernel)
      return invalid("kernel is " + std::to_string(id) + ", not an id of the " +
                     std::to_string(catalog.kernels().size()) +
                     " kernels in the open packages, nor 0");
    if (std::string why = refusal(*kernel, problem, device); !why.empty())
      return Result(FOVEA_STATUS_NOT_FOUND,
                    kernel->name() + " can't run " + describe(problem) +
                        " on " + device.target.str() + ": " + why);
    plan.kernel = kernel;
    plan.chosenBy = FOVEA_CHOSEN_BY_CALLER;
  } else {
    const ProblemEntry *entry = catalog.find(problem.key);
    if (!entry)
      return Result(FOVEA_STATUS_NOT_FOUND,
                    "no kernel for " + describe(problem) + " on " +
                        device.target.str() + ": " +
                        alternatives(catalog, problem.key, device));
    std::vector<const Kernel *> accepted;
    accepted.reserve(entry->kernels.size());
    std::string reasons;
    for (const std::shared_ptr<const Kernel> &kernel : entry->kernels) {
      if (std::string why = refusal(*kernel, problem, device); why.empty())
        accepted.push_back(kernel.get());
      else
        reasons += "\n  " + kernel->name() + ": " + why;
    }
    if (accepted.empty())
      return Result(FOVEA_STATUS_NOT_FOUND,
                    "no kernel for " + describe(problem) + " on " +
                        device.target.str() + "; candidates:" + reasons);
    keepClosest(accepted, device.target);
    plan.kernel = tuned(*entry, problem, accepted);
    plan.chosenBy = FOVEA_CHOSEN_BY_TUNING;
    if (!plan.kernel) {
      plan.kernel = byRule(problem, device, accepted);
      plan.chosenBy = FOVEA_CHOSEN_BY_RULE;
    }
  }
  for (const KernelLaunch &launch : plan.kernel->launches) {
    const abi::BackwardLaunch &kind = *kindOf(problem.key.op, launch).launch;
    if (!isNeeded(problem, kind, launch))
      continue;
    const Grid grid = gridOf(problem, kind, launch);
    plan.launches.push_back(
        {&launch,
         {uint32_t(grid.extent[0]), uint32_t(grid.extent[1]),
          uint32_t(grid.extent[2])}});
  }
  const Sizes &sizes = problem.sizes;
  if (problem.key.op == Operation::Backward)
    plan.workspaceBytes = uint64_t(abi::backwardWorkspaceBytes(
        *kindOf(problem.key.op, plan.kernel->launches.front()).algorithm,
        sizes.batch, sizes.headsQ, sizes.seqlenQ, sizes.headDim));
  return Result();
}

std::string describe(const Plan &plan) {
  const char *by = plan.chosenBy == FOVEA_CHOSEN_BY_CALLER ? "the caller"
                   : plan.chosenBy == FOVEA_CHOSEN_BY_TUNING
                       ? "the tuning table"
                       : "the rule";
  std::string text = plan.kernel->name() + ", chosen by " + by;
  for (const PlannedLaunch &launch : plan.launches) {
    text += ", ";
    if (!launch.kernel->suffix.empty())
      text += launch.kernel->suffix + " ";
    text += "grid " + std::to_string(launch.grid[0]) + "x" +
            std::to_string(launch.grid[1]) + "x" +
            std::to_string(launch.grid[2]) + " of " +
            std::to_string(launch.kernel->threads) + " work-items";
  }
  return text;
}

} // namespace fovea::rt
