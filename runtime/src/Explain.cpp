//===- Explain.cpp - a choice of kernels in words -------------------------===//

#include "Explain.h"
#include "fovea/Package/Counted.h"

#include <algorithm>
#include <limits>
#include <set>

namespace fovea::rt {
namespace {

/// The names of the feature groups that `groups` has and `others` has not.
std::string besides(GroupVersions groups, const GroupVersions &others) {
  for (size_t row = 0; row != groups.size(); ++row)
    if (others[row])
      groups[row] = 0;
  return spec::groupNames(groups);
}

/// Where the device is a simulated one, another chip needs no other code.
constexpr const char *kSimulated =
    "; a simulated device becomes another chip by FOVEA_SIM_TARGET";

/// Names of a set of outputs, "dk and dv".
std::string namesOf(unsigned outputs) {
  std::string text;
  auto add = [&](const spec::GroupSpec &group) {
    for (const spec::TensorSpec &tensor : group.tensors)
      if (outputs & tensor.output)
        text += (text.empty() ? "" : " and ") + std::string(tensor.name);
  };
  for (const spec::OperationSpec &operation : spec::allOperations())
    add(operation.base);
  for (const spec::GroupSpec &group : spec::featureGroups())
    add(group);
  return text;
}

/// The first tensor of which that is so.
std::string whoLacksWords(const Problem &problem) {
  for (const TensorParam &tensor : problem.tensors)
    if (tensor.lacksWords)
      return std::string(tensor.name) + tensor.rowStride + " is " +
             std::to_string(tensor.strideSeq) + ", which is odd, for rows of " +
             std::to_string(tensor.rowElements) +
             " elements, an odd number below 8";
  return "";
}

std::string textOf(const Refusal &refusal, const Candidate &candidate,
                   const Problem &problem, const DeviceTraits &device) {
  const Kernel &kernel = *candidate.kernel;
  const KernelRecord &record = *kernel.record;
  const KernelLaunch &launch = kernel.launches[refusal.launch];
  const spec::LaunchSpec *kind = refusal.launch < spec::kMaxLaunches
                                     ? candidate.kinds[refusal.launch]
                                     : nullptr;
  const bool keys = kind && kind->ownsKeys;
  const Sizes &sizes = problem.sizes;
  switch (refusal.why) {
  case Refusal::None:
    return "";
  case Refusal::UnknownCaptures:
    return "its score program '" + record.score.name +
           "' captures what this version of libfovea does not know; update it";
  case Refusal::OtherProblem:
    return "it is for '" + kernel.problem + "'";
  case Refusal::ReadsWords:
    return "it reads rows in words, and " + whoLacksWords(problem) +
           "; such rows are read by kernels of at most " +
           std::to_string(kElementwiseColumns) +
           " columns (aot-compile --head-dim=" +
           std::to_string(kElementwiseColumns) +
           " --groups=head_dims), or give an even distance";
  case Refusal::OtherScore:
    return "it is for '" + kernel.problem + "'" +
           (record.problem.score
                ? ", with the score program '" + record.score.name +
                      "', which the call does not have"
                : std::string(", without the call's score program"));
  case Refusal::NotOnDemand:
    return "it is of a package, and FOVEA_COMPILE is always; name it by its "
           "id, "
           "or set FOVEA_COMPILE to auto";
  case Refusal::OtherKeys:
    return "it is for '" + kernel.problem + "', compiled for that mask; " +
           "aot-compile --mask=any compiles one for every mask and window";
  case Refusal::NoGroup:
    return "it is for '" + kernel.problem + "' without " +
           besides(problem.key.groups, record.problem.groups) +
           ", which the call has; aot-compile --groups compiles one that takes "
           "it";
  case Refusal::AbiVersion:
    return "its argument layout has version " +
           std::to_string(record.abiVersion) + ", this library's is " +
           std::to_string(abiVersionOf(record.problem.op)) +
           "; build the package again";
  case Refusal::Target:
    return checkTargetRunsOn(kernel.package->target(), device.target)
               .message() +
           kSimulated;
  case Refusal::UnknownLaunch:
    return "its kernel '" + launch.suffix +
           "' is unknown to this library; update libfovea";
  case Refusal::MixedAlgorithms:
    return std::string("its record mixes launches of '") +
           candidate.algorithm->name + "' and '" +
           spec::specOf(record.problem.op)
               .findLaunch(launch.suffix)
               .algorithm->name +
           "'; build the package again";
  case Refusal::NoAlgorithm:
    return "its record has no launch of an algorithm; build the package again";
  case Refusal::WritesUnwanted:
    return "one launch computes " + namesOf(kind->writes) + ", but " +
           namesOf(kind->writes & ~problem.wanted) +
           " is not wanted; ask for all or none of them";
  case Refusal::TooManyBlocks: {
    const int64_t rows = keys ? sizes.seqlenK : sizes.seqlenQ;
    const int32_t block = kind->rowsOf(launch.blockRows, spec::kMaxSplits);
    return std::string(keys ? "seqlen_k " : "seqlen_q ") +
           std::to_string(rows) + " makes " +
           std::to_string((rows + block - 1) / block) + " blocks of " +
           std::to_string(block) + " rows, more than 65535";
  }
  case Refusal::TooManyWorkItems:
    return (keys ? "heads_k " + std::to_string(sizes.headsK)
                 : "heads_q " + std::to_string(sizes.headsQ)) +
           " x " + std::to_string(launch.threads) +
           " work-items is more than 2^32 - 1";
  case Refusal::NotDeterministic:
    return std::string("its algorithm is '") + candidate.algorithm->name +
           "', which may give other bits in every run, and deterministic is 1; "
           "ask with 0, or compile one with aot-compile "
           "--algorithm=deterministic";
  case Refusal::SumsNarrowly:
    return std::string("its algorithm is '") + candidate.algorithm->name +
           "', which sums dq in 16 bits, and narrow_sums is 0; ask with 1, or "
           "compile one with aot-compile --algorithm=atomic";
  case Refusal::SumsWidely:
    return std::string("its algorithm is '") + candidate.algorithm->name +
           "', which sums dq in fp32, and narrow_sums is 1; ask with 0, or "
           "compile one with aot-compile --algorithm=atomic16";
  case Refusal::NoWriter:
    return "its record has no launch that writes " +
           namesOf(problem.wanted & ~candidate.writes) +
           "; build the package again";
  case Refusal::Unsplit:
    return "it does not split the keys, and splits is " +
           std::to_string(problem.splits) +
           "; compile one that does with aot-compile --algorithm=split";
  case Refusal::Splits:
    return "it splits the keys, and splits is 1; compile one that does not "
           "with aot-compile --algorithm=flash";
  case Refusal::OfOtherCalls:
    return "it splits the keys and was compiled on demand for other calls; "
           "shares are not expected to pay here, or there is no workspace for "
           "them";
  case Refusal::TooManyForShares:
    return "it splits the keys, and heads_q " +
           std::to_string(problem.sizes.headsQ) +
           " or the blocks of seqlen_k " +
           std::to_string(problem.sizes.seqlenK) + " are more than " +
           std::to_string(spec::kMostOfSplitLaunch) +
           "; compile one that does not with aot-compile --algorithm=flash";
  case Refusal::NoWorkspace: {
    const int32_t splits = splitsOf(candidate, problem, device);
    return "it splits the keys into " + std::to_string(splits) +
           " and needs a workspace of " +
           std::to_string(workspaceOf(candidate, problem, splits)) +
           " bytes, the call has " + std::to_string(problem.mostWorkspace) +
           "; give what fovea_forward_select tells";
  }
  case Refusal::NotLoaded:
    return "the stream is being captured, and it is not loaded on the device; "
           "call fovea_" +
           std::string(toString(problem.key.op)) +
           "_prepare with the same parameters before the capture begins";
  }
  return "it is refused for a reason without words";
}

/// What there is instead, for the message when a problem has no kernel at all.
std::string alternatives(const DeviceView &view, const ProblemKey &key) {
  const TargetId &device = view.device().target;
  std::set<std::pair<int32_t, int32_t>> dims;
  std::set<std::string> targets;
  size_t usable = 0;
  for (const std::shared_ptr<const Kernel> &kernel : view.catalog().kernels()) {
    targets.insert(kernel->target);
    if (!checkTargetRunsOn(kernel->package->target(), device).ok())
      continue;
    ++usable;
    ProblemKey other = kernel->record->problem.base();
    const std::pair own(other.headDim, other.dimOfV());
    other.setHeadDims(key.headDim, key.dimOfV());
    if (other == key.base())
      dims.insert(own);
  }
  if (view.catalog().openPackages().empty())
    return "no package is open; call fovea_package_open";
  const std::string remedy =
      "; compile one with aot-compile --target=" + device.arch;
  if (usable == 0) {
    std::string text = "the open packages have no kernel for the device at "
                       "all, but for";
    for (const std::string &target : targets)
      text += " " + target;
    return (targets.empty() ? "the open packages hold no kernels" : text) +
           remedy + (targets.empty() ? "" : kSimulated);
  }
  if (dims.empty())
    return "of the open packages it can run " + counted(usable, "kernel") +
           ", of another operation, type or score program" + remedy;
  std::string text = "the open packages have head_dim";
  for (const auto &[dim, dimOfV] : dims)
    text += " " + std::to_string(dim) +
            (dimOfV == dim ? "" : "/" + std::to_string(dimOfV));
  return text + " for this operation and type" + remedy;
}

/// "tuning row seqlen_q <= 512, batch * heads_q <= 16 of package 'path'".
std::string nameOf(const TuningEntry &tuning) {
  std::string limits;
  auto add = [&](const char *name, int64_t most) {
    if (most != TuningRow::kAny)
      limits += (limits.empty() ? "" : ", ") + std::string(name) +
                " <= " + std::to_string(most);
  };
  add("seqlen_q", tuning.row->maxSeqlenQ);
  add("seqlen_k", tuning.row->maxSeqlenK);
  add("batch * heads_q", tuning.row->maxBatchHeads);
  return "tuning row " + (limits.empty() ? "for all sizes" : limits) +
         " of package '" + tuning.package->path() + "'";
}

/// "; it was compiled on demand ...", or nothing of a package's kernel.
std::string originOf(const Kernel &kernel) {
  return kernel.origin.empty() ? "" : "; it was " + kernel.origin;
}

/// "; one that splits keys: it could not be compiled ...", where one that was
/// wanted could not, or nothing.
std::string otherNotMade(const DeviceView &view, const Query &query,
                         const Candidate &chosen) {
  const Problem &problem = query.problem;
  const bool splits = chosen.algorithm->splitsKeys();
  if (!problem.compiles || problem.splits > 1 ||
      (!splits && !query.wantsShares()))
    return "";
  const NotMade *failed = view.catalog().findNotMade(
      view.device().target.arch, compiledKeyOf(problem), !splits);
  return failed ? std::string("; one that ") +
                      (splits ? "does not split" : "splits") +
                      " keys: " + failed->why
                : "";
}

/// The candidates of a problem, as a choice has sorted them.
struct Sorted {
  const DeviceView &view;
  const Query &query;
  const Problem &problem = query.problem;
  int closest = -1; ///< best fit among the accepted ones
  double least = 0; ///< cost among those that are compared
  const Candidate *named = nullptr;        ///< by a tuning table
  const TuningEntry *row = nullptr;        ///< that names it
  std::vector<const Candidate *> accepted; ///< best first
  std::vector<const TuningEntry *> missed;

  Sorted(const DeviceView &view, const ProblemView &entry, const Query &query)
      : view(view), query(query) {
    for (const Candidate *candidate : entry.usable)
      if (!refusalFor(*candidate, query)) {
        accepted.push_back(candidate);
        closest = std::max(closest, candidate->fit);
      }
    auto takes = [&](const Candidate &candidate) {
      return !refusalOf(candidate, query) && candidate.fit == closest;
    };
    named = tuned(entry, problem, takes, [&](const TuningEntry &tuning) {
      missed.push_back(&tuning);
    });
    for (const TuningEntry &tuning : entry.tuning)
      if (named && !row && tuning.candidate == named &&
          holds(*tuning.row, problem.sizes))
        row = &tuning;
    least = std::numeric_limits<double>::max();
    for (const Candidate *candidate : accepted)
      if (candidate->fit == closest && competes(*candidate, named))
        least = std::min(least, cost(*candidate));
    std::sort(accepted.begin(), accepted.end(),
              [&](const Candidate *a, const Candidate *b) {
                if (a->fit != b->fit)
                  return a->fit > b->fit;
                if (competes(*a, named) != competes(*b, named))
                  return competes(*a, named);
                return rank(*a) < rank(*b);
              });
  }

  double cost(const Candidate &candidate) const {
    return costOf(candidate, problem, view.device());
  }
  Rank rank(const Candidate &candidate) const {
    return rankOf(candidate, problem, cost(candidate), least);
  }

  /// Why a tuning row's schedule is not taken.
  std::string whyMissed(const TuningEntry &tuning) const {
    std::string text = "it names the schedule '" + tuning.row->schedule + "'";
    if (!tuning.candidate)
      return text + ", which the package does not have for this problem; build "
                    "that kernel, or tune again";
    const Candidate &candidate = *tuning.candidate;
    text += ", which is that of kernel " + std::to_string(candidate.kernel->id);
    if (const Refusal refusal = refusalOf(candidate, query))
      return text + ": " + textOf(refusal, candidate, problem, view.device());
    return text + ", but another package is made more closely for the device";
  }

  /// Why the first of the accepted was chosen.
  std::string whyChosen() const {
    if (row && accepted.front() == named)
      return "chosen by the " + nameOf(*row);
    return "chosen by the rule: " + figures(*accepted.front()) +
           (accepted.size() == 1 ? ", the only one accepted" : "") +
           originOf(*accepted.front()->kernel) +
           otherNotMade(view, query, *accepted.front());
  }

  /// Why an accepted candidate comes after the chosen one.
  std::string whyAfter(const Candidate &candidate) const {
    const Candidate &chosen = *accepted.front();
    if (candidate.fit != closest)
      return "accepted, but kernel " + std::to_string(chosen.kernel->id) +
             " is made more closely for the device (" + chosen.kernel->target +
             " against " + candidate.kernel->target + ")";
    if (!competes(candidate, named) || &chosen == named)
      return "accepted, but the tuning table names another; " +
             figures(candidate);
    const Rank mine = rank(candidate), best = rank(chosen);
    const std::string taken = besides(candidate.kernel->record->problem.groups,
                                      chosen.kernel->record->problem.groups);
    const std::string why =
        mine.scratch != best.scratch ? "it uses scratch memory"
        : mine.costly != best.costly
            ? candidate.algorithm->splitsKeys()
                  ? "its cost is above the least"
                  : "its cost is more than an eighth above the least"
        : mine.launches != best.launches ? "it takes more launches"
        : mine.general != best.general
            ? "it takes its " + taken +
                  " at run time, the chosen one does without"
        : mine.filled != best.filled       ? "its blocks are smaller"
        : mine.waves != best.waves ? "it has fewer waves a SIMD"
        : mine.padding != best.padding ? "more of its blocks is empty"
        : mine.blockN != best.blockN       ? "its block_n is smaller"
                                           : "it was opened later";
    return "accepted, but " + why + "; " + figures(candidate);
  }

private:
  /// What the rule compares.
  std::string figures(const Candidate &candidate) const {
    const KernelRecord &record = *candidate.kernel->record;
    std::string shares;
    if (candidate.algorithm->splitsKeys()) {
      const int32_t splits = splitsOf(candidate, problem, view.device());
      shares = ", " + counted(size_t(splits), "share") + " of the keys" +
               (packsHeads(candidate, problem)
                    ? ", the heads of a group as rows"
                    : "");
    }
    return "cost " + std::to_string(int64_t(cost(candidate))) + " (least " +
           std::to_string(int64_t(least)) + "), block_m " +
           std::to_string(record.blockM) + ", block_n " +
           std::to_string(record.blockN) + ", " +
           std::to_string(record.resources.occupancy) + " waves a SIMD, " +
           std::to_string(record.resources.scratchBytes) +
           " bytes of scratch" + shares;
  }
};

/// What became of candidates.
struct Steps {
  const DeviceView &view;
  const Query &query;
  const Problem &problem = query.problem;
  std::vector<Step> all = {};

  void add(const Candidate &candidate, int32_t state, std::string reason) {
    all.push_back({candidate.kernel->id, state, candidate.kernel->name(),
                   std::move(reason)});
  }
  void refuse(const Candidate &candidate, const Refusal &refusal) {
    add(candidate, FOVEA_CANDIDATE_REFUSED,
        textOf(refusal, candidate, problem, view.device()));
    all.back().why = refusal.why;
  }
  /// Those of one head dimension.
  void explain(const ProblemView &entry) {
    const Sorted sorted(view, entry, query);
    if (!sorted.accepted.empty())
      for (const TuningEntry *tuning : sorted.missed)
        all.push_back({0, FOVEA_CANDIDATE_TUNING_MISSED, nameOf(*tuning),
                       sorted.whyMissed(*tuning)});
    for (const Candidate *candidate : sorted.accepted)
      if (candidate == sorted.accepted.front())
        add(*candidate, FOVEA_CANDIDATE_CHOSEN, sorted.whyChosen());
      else
        add(*candidate, FOVEA_CANDIDATE_ACCEPTED, sorted.whyAfter(*candidate));
    std::vector<const Candidate *> refused = entry.refused;
    for (const Candidate *candidate : entry.usable)
      if (refusalFor(*candidate, query))
        refused.push_back(candidate);
    std::sort(refused.begin(), refused.end(),
              [](const Candidate *a, const Candidate *b) {
                return a->kernel->id < b->kernel->id;
              });
    for (const Candidate *candidate : refused)
      if (holdsRows(candidate->kernel->record->problem, problem))
        refuse(*candidate, refusalOf(*candidate, query));
  }
};

} // namespace

Result whyNone(const DeviceView &view, const Query &query) {
  const Problem &problem = query.problem;
  const std::string device = view.device().target.str();
  if (problem.kernel && !view.find(problem.kernel))
    return invalid("kernel is " + std::to_string(problem.kernel) +
                   ", not an id of the " +
                   counted(view.catalog().kernels().size(), "kernel") +
                   " in the open packages, nor 0");
  const std::vector<Step> steps = explain(view, query);
  auto isAny = [&](Refusal::Why why) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step &step) { return step.why == why; });
  };
  std::string text;
  if (problem.kernel) {
    text = steps.front().name + " can't run " + describe(problem) + " on " +
           device + ": " + steps.front().reason;
  } else {
    text = "no kernel for " + describe(problem) + " on " + device;
    if (steps.empty())
      return Result(FOVEA_STATUS_NOT_FOUND,
                    text + ": " + alternatives(view, problem.key));
    text += "; candidates:";
    for (const Step &step : steps)
      text += "\n  " + step.name + ": " + step.reason;
  }
  const bool isOfCapture = isAny(Refusal::NotLoaded);
  return because(FOVEA_CAUSE_CAPTURED,
                 ofDeterminism({isOfCapture ? FOVEA_STATUS_INVALID_ARGUMENT
                                            : FOVEA_STATUS_NOT_FOUND,
                                std::move(text)},
                               isAny(Refusal::NotDeterministic)),
                 isOfCapture);
}

std::vector<Step> explain(const DeviceView &view, const Query &query) {
  const Problem &problem = query.problem;
  Steps steps{view, query};
  if (problem.kernel) {
    if (const Candidate *candidate = view.find(problem.kernel)) {
      if (const Refusal refusal = refusalOf(*candidate, query))
        steps.refuse(*candidate, refusal);
      else
        steps.add(*candidate, FOVEA_CANDIDATE_CHOSEN,
                  "named by the caller" + originOf(*candidate->kernel));
    }
    return steps.all;
  }
  // The head dimension that has a kernel for it; if none has, all.
  forEachView(view, problem, [&](const ProblemView &entry) {
    const bool isFound = std::any_of(entry.usable.begin(), entry.usable.end(),
                                     [&](const Candidate *candidate) {
                                       return !refusalFor(*candidate, query);
                                     });
    if (isFound)
      steps.all.clear();
    steps.explain(entry);
    return isFound;
  });
  return steps.all;
}

std::string describe(const DeviceView &view, const Query &query,
                     const Plan &plan) {
  const char *by = plan.chosenBy == FOVEA_CHOSEN_BY_CALLER ? "the caller"
                   : plan.chosenBy == FOVEA_CHOSEN_BY_TUNING
                       ? "the tuning table"
                       : "the rule";
  std::string text = plan.kernel().name() + ", chosen by " + by;
  for (uint32_t i = 0; i != plan.launchCount; ++i) {
    const PlannedLaunch &launch = plan.launches[i];
    const std::string &suffix = plan.launch(launch).suffix;
    text += ", ";
    if (!suffix.empty())
      text += suffix + " ";
    text += "grid " + std::to_string(launch.grid[0]) + "x" +
            std::to_string(launch.grid[1]) + "x" +
            std::to_string(launch.grid[2]) + " of " +
            std::to_string(launch.threads) + " work-items";
  }
  if (plan.candidate->algorithm->splitsKeys())
    text += ", " + counted(size_t(plan.splits), "share") + " of the keys";
  text += originOf(plan.kernel()) + otherNotMade(view, query, *plan.candidate);
  // Nobody should have to ask why a row of the table did not count.
  if (plan.chosenBy != FOVEA_CHOSEN_BY_CALLER)
    for (const Step &step : explain(view, query))
      if (step.state == FOVEA_CANDIDATE_TUNING_MISSED)
        text += "\n  " + step.name + " was missed: " + step.reason;
  return text;
}

} // namespace fovea::rt
