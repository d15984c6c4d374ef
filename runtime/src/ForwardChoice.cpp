//===- ForwardChoice.cpp - which kernel for a forward pass ----------------===//
//
// Each candidate is accepted or refused with a reason; of the accepted ones the
// tuning table picks, or else the rule below, which docs/Runtime.md states.
//
//===----------------------------------------------------------------------===//

#include "Forward.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace fovea::rt {
namespace {

constexpr int64_t kMaxGridYZ = 65535;

int64_t blocksOf(const ForwardProblem &problem, const KernelRecord &record) {
  return (problem.params.seqlen_q + record.blockM - 1) / record.blockM;
}

/// Empty: the kernel can run the problem on the device; else why not.
std::string refusal(const Kernel &kernel, const ForwardProblem &problem,
                    const DeviceTraits &device) {
  const KernelRecord &record = *kernel.record;
  if (record.problem != problem.key)
    return "it is for '" + kernel.problem + "'";
  if (record.abiVersion != abi::kForwardAbiVersion)
    return "its argument layout has version " +
           std::to_string(record.abiVersion) + ", this library's is " +
           std::to_string(abi::kForwardAbiVersion) +
           "; build the package again";
  if (Status status =
          checkTargetRunsOn(kernel.package->target(), device.target);
      !status.ok())
    return status.message();
  if (int64_t blocks = blocksOf(problem, record); blocks > kMaxGridYZ)
    return "seqlen_q " + std::to_string(problem.params.seqlen_q) + " makes " +
           std::to_string(blocks) + " blocks of " +
           std::to_string(record.blockM) + " rows, more than " +
           std::to_string(kMaxGridYZ);
  // HIP counts work-items of a dimension in 32 bits.
  if (problem.params.heads_q * record.threads >
      int64_t(std::numeric_limits<uint32_t>::max()))
    return "heads_q " + std::to_string(problem.params.heads_q) + " x " +
           std::to_string(record.threads) + " work-items is more than 2^32 - 1";
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
const Kernel *tuned(const ProblemEntry &entry, const ForwardProblem &problem,
                    const std::vector<const Kernel *> &accepted) {
  const fovea_forward_params_t &p = problem.params;
  for (const std::shared_ptr<const PackageReader> &package : entry.packages)
    for (const TuningRow &row : package->tuning()) {
      if (row.problem != problem.key || p.seqlen_q > row.maxSeqlenQ ||
          p.seqlen_k > row.maxSeqlenK ||
          p.batch * p.heads_q > row.maxBatchHeads)
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
/// on the chip and with the rows of each, so `cost` is their product: it sees
/// idle compute units in small launches and padding in short ones. Within an
/// eighth of the least cost the largest block wins, since it reads the keys the
/// fewest times.
const Kernel *byRule(const ForwardProblem &problem, const DeviceTraits &device,
                     const std::vector<const Kernel *> &accepted) {
  auto cost = [&](const Kernel *kernel) {
    const int64_t workgroups = problem.params.batch * problem.params.heads_q *
                               blocksOf(problem, *kernel->record);
    const int64_t units = std::max(device.computeUnits, 1);
    return double((workgroups + units - 1) / units) * kernel->record->blockM;
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
           " kernels of the open packages that it can run have another type or "
           "mask" +
           remedy;
  std::string text = "the open packages have head_dim";
  for (int32_t dim : dims)
    text += " " + std::to_string(dim);
  return text + " for this type and mask" + remedy;
}

} // namespace

Result chooseForward(const Catalog &catalog, const ForwardProblem &problem,
                     const DeviceTraits &device, ForwardPlan &plan) {
  if (uint32_t id = problem.params.kernel) {
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
  plan.grid[0] = uint32_t(problem.params.heads_q);
  plan.grid[1] = uint32_t(blocksOf(problem, *plan.kernel->record));
  plan.grid[2] = uint32_t(problem.params.batch);
  return Result();
}

} // namespace fovea::rt
