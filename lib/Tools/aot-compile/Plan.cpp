//===- Plan.cpp - from what was asked for to what is compiled -------------===//

#include "Plan.h"
#include "KernelCompiler.h"
#include "Shard.h"
#include "TuningFile.h"
#include "fovea/Package/Counted.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace fovea;
using namespace fovea::tools;

namespace {
/// Kernels that are impossible for one cause: the first's message, and how
/// many. Head dimensions and masks of a chip fail in long rows.
struct Cause {
  std::string text;
  std::string thing; ///< what is counted
  size_t count = 0;
};
using Causes = llvm::MapVector<std::string, Cause, llvm::StringMap<unsigned>>;
} // namespace

/// Kernels of a spec that fail alike, or else the kernel.
static std::string causeKey(const Job &job) {
  if (job.where.empty())
    return job.str();
  return job.where + "\n" + job.target->name.str() + "\n" +
         toString(job.problem.op) + "\n" + job.overrides.suffix();
}

static llvm::Error toError(const Causes &causes) {
  std::string text;
  for (const auto &[key, cause] : causes) {
    text += cause.text + "\n";
    if (cause.count > 1)
      text += "and so for " + std::to_string(cause.count - 1) +
              " more kernels of this operation and chip\n";
  }
  return llvm::createStringError(llvm::StringRef(text).rtrim());
}

/// The message of an error, and whether it is that of a value which belongs to
/// another operation: no chip could do that.
static std::pair<std::string, bool> textOf(llvm::Error error) {
  std::string text;
  bool isMisplaced = false;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    text = info.message();
    isMisplaced = info.convertToErrorCode() == std::errc::invalid_argument;
  });
  return {text, isMisplaced};
}

/// Whether the rows of a job mean the schedules that they were found with.
static bool areRowsCurrent(Job job, const Request &request) {
  const std::vector<TuningRow> rows = job.rows;
  llvm::Error error = planJob(job, request);
  const bool fails = bool(error);
  llvm::consumeError(std::move(error));
  return !fails && llvm::all_of(rows, [&](const TuningRow &row) {
    return row.schedule == job.schedule;
  });
}

/// Takes out the rows of problems of which one no longer means the schedule
/// that it was found with, and the kernels that they alone asked for: the
/// tables of this build are others, and may be better than the rows. Kernels
/// with feature groups that take the rows of the problem without may come to
/// other schedules, and are not told of while these rows are current there.
static std::vector<std::string> dropStaleRows(Request &request) {
  auto nameOf = [](const Job &job) {
    const bool isNarrow = sumsNarrowly(job.problem.op, job.overrides);
    return job.problem.str() + (isNarrow ? " by " : "") +
           (isNarrow ? job.overrides.algorithm : "") + " (" +
           job.target->name.str() + ")";
  };
  llvm::MapVector<std::string, bool, llvm::StringMap<unsigned>> stale;
  for (const Job &job : request.jobs) {
    if (job.rows.empty() || areRowsCurrent(job, request))
      continue;
    Job plain = job;
    plain.problem = withoutGroups(job.problem);
    bool &isTold = stale[nameOf(job)];
    isTold = isTold || !job.borrowsRows || !areRowsCurrent(plain, request);
  }
  llvm::erase_if(request.jobs, [&](const Job &job) {
    return job.isForRows && stale.contains(nameOf(job));
  });
  for (Job &job : request.jobs)
    if (!job.rows.empty() && stale.contains(nameOf(job)))
      job.rows.clear();
  std::vector<std::string> names;
  for (const auto &[name, isTold] : stale)
    if (isTold)
      names.push_back(name);
  return names;
}

llvm::Expected<Plan> fovea::tools::planJobs(Request &request) {
  Plan plan;
  plan.staleTuning = dropStaleRows(request);
  std::vector<Job> kept;
  kept.reserve(request.jobs.size()); // `seen` points into it
  Causes causes;
  llvm::StringMap<const Job *> seen;
  for (Job &job : request.jobs) {
    if (llvm::Error error = planJob(job, request)) {
      auto [reason, isMisplaced] = textOf(std::move(error));
      if (job.skipUnsupported && !isMisplaced) {
        plan.leftOut.push_back({std::move(job), std::move(reason)});
        continue;
      }
      Cause &cause = causes[causeKey(job)];
      if (cause.count++ != 0)
        continue;
      cause.text = job.where.empty() ? reason : job.where + ": " + reason;
      if (!job.where.empty() && !isMisplaced)
        cause.text += "; take it out of the spec, or leave out what a chip "
                      "cannot do with \"skip_unsupported\": true";
      continue;
    }
    for (const TuningRow &row : job.rows)
      request.tuningRows.push_back({job.target, row});
    // Two of one schedule are one kernel, and in a package one row.
    std::string key =
        job.target->name.str() + "\n" + job.problem.str() + "\n" + job.schedule;
    auto [at, isNew] = seen.try_emplace(key, nullptr);
    if (!isNew && !job.where.empty()) {
      ++plan.equalSchedules;
      continue;
    }
    if (!isNew && request.emit == Emit::Package) {
      Cause &cause = causes[job.str()];
      cause.count = 1;
      cause.text = at->second->str() + " and " + job.str() +
                   " have one problem and one schedule (" + job.schedule +
                   "); a package holds one of them";
      continue;
    }
    kept.push_back(std::move(job));
    at->second = &kept.back();
  }
  if (!causes.empty())
    return toError(causes);
  request.jobs = std::move(kept);
  if (request.jobs.empty())
    return llvm::createStringError(
        plan.leftOut.front().job.where + ": left out all that it asks for, " +
        counted(plan.leftOut.size(), "kernel") +
        " beyond what chips can do; the first: " + plan.leftOut.front().reason);
  if (request.shard)
    if (llvm::Error error = takeShard(request))
      return error;
  return plan;
}

std::string Plan::notes(const Request &request) const {
  Causes groups;
  for (const LeftOut &left : leftOut) {
    Cause &group = groups[causeKey(left.job)];
    if (group.count++ == 0)
      group.text = " for " + left.job.target->name.str() +
                   " that it cannot do; the first: " + left.reason;
    group.thing = std::string(toString(left.job.problem.op)) + " kernel";
  }
  std::string text;
  for (const auto &[key, group] : groups)
    text += "aot-compile: note: left out " + counted(group.count, group.thing) +
            group.text + "\n";
  if (!staleTuning.empty())
    text += "aot-compile: note: tuning rows of " +
            counted(staleTuning.size(), "problem") +
            " are left out, since they were found with other schedules than "
            "this build's; aot-tune finds new ones; the first: " +
            staleTuning.front() + "\n";
  if (request.repeated || equalSchedules)
    text += "aot-compile: note: compiled once, asked for again by the spec: " +
            counted(request.repeated, "kernel") +
            "; by a schedule that comes out as another of the problem: " +
            counted(equalSchedules, "kernel") + "\n";
  return text;
}
