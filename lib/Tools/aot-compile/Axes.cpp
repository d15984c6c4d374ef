//===- Axes.cpp - lists of values into kernels ----------------------------===//

#include "Axes.h"
#include "Problem.h"
#include "Scores.h"
#include "Targets.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <map>

using namespace fovea;
using namespace fovea::tools;

namespace {
template <typename T>
struct Spelling {
  llvm::StringRef text;
  T value;
};

/// The part of a key that says what a kernel sees.
struct Visible {
  MaskKind mask;
  bool window;
  friend bool operator==(const Visible &a, const Visible &b) {
    return a.mask == b.mask && a.window == b.window;
  }
};
} // namespace

// The first spelling of a value is the one that messages name.
template <typename T>
using Spellings = llvm::SmallVector<Spelling<T>>;

static Spellings<OpKind> operations() {
  Spellings<OpKind> all;
  for (const spec::OperationSpec &spec : spec::allOperations())
    all.push_back({spec.name, spec.op});
  return all;
}

static Spellings<DataType> dataTypes() {
  Spellings<DataType> all;
  for (const DataTypeInfo &info : kDataTypes) {
    all.push_back({info.name, info.type});
    if (info.otherName)
      all.push_back({info.otherName, info.type});
  }
  return all;
}

/// What a kernel can see: any window, as its arguments say, or one mask.
static Spellings<Visible> masks() {
  Spellings<Visible> all = {{kAnyMask, {MaskKind::None, true}}};
  for (const MaskInfo &info : kMasks) {
    all.push_back({info.option, {info.kind, false}});
    if (llvm::StringRef(info.option) != info.name)
      all.push_back({info.name, {info.kind, false}});
  }
  return all;
}

template <typename T>
static std::string names(llvm::ArrayRef<Spelling<T>> table) {
  std::string text;
  llvm::SmallVector<T> seen;
  for (const Spelling<T> &row : table) {
    if (llvm::is_contained(seen, row.value))
      continue;
    seen.push_back(row.value);
    text += (text.empty() ? "" : ", ") + row.text.str();
  }
  return text;
}

/// Appends a value that the list does not have yet.
template <typename T>
static void addOnce(std::vector<T> &values, T value, const Item &item,
                    Complaints &complaints) {
  if (llvm::is_contained(values, value))
    complaints.add(item.where, "'" + item.text + "' is in the list twice");
  else
    values.push_back(value);
}

/// The values of a list; complains about what no table row spells.
template <typename T>
static std::vector<T> parseAll(const std::vector<Item> &items,
                               llvm::ArrayRef<Spelling<T>> table,
                               llvm::StringRef what, Complaints &complaints) {
  std::vector<T> values;
  for (const Item &item : items) {
    auto row = llvm::find_if(table, [&](const Spelling<T> &spelling) {
      return spelling.text == item.text;
    });
    if (row == table.end())
      complaints.add(item.where, "unknown " + what + " '" + item.text +
                                     "'; known: " + names(table));
    else
      addOnce(values, row->value, item, complaints);
  }
  return values;
}

/// "none", or names of feature groups that are joined by '+'; but for windows,
/// which are masks here.
static std::vector<GroupVersions> parseGroups(const std::vector<Item> &items,
                                              llvm::ArrayRef<OpKind> ops,
                                              Complaints &complaints) {
  std::string known = kNoGroups.str();
  for (const spec::GroupSpec &group : spec::featureGroups())
    if (&group != &spec::featureGroups()[kWindowGroup])
      known += std::string(", ") + group.name;
  std::vector<GroupVersions> values;
  for (const Item &item : items) {
    GroupVersions versions{};
    llvm::SmallVector<llvm::StringRef> names;
    if (item.text != kNoGroups)
      llvm::StringRef(item.text).split(names, '+');
    bool isKnown = true;
    for (llvm::StringRef name : names) {
      const int row = spec::findGroup(name);
      isKnown &= row > int(kWindowGroup) && !versions[row];
      if (isKnown)
        versions[row] = spec::featureGroups()[row].version;
    }
    const spec::GroupSpec *foreign = nullptr;
    if (llvm::none_of(ops,
                      [&](OpKind op) {
                        const spec::GroupSpec *group =
                            spec::foreignGroup(op, versions);
                        foreign = group ? group : foreign;
                        return !group;
                      }) &&
        foreign && isKnown)
      complaints.add(item.where,
                     "feature groups '" + item.text + "': " + foreign->name +
                         " is of " + spec::operationsOf(*foreign) +
                         ", and no operation that is asked for has all of "
                         "them");
    else if (isKnown)
      addOnce(values, versions, item, complaints);
    else
      complaints.add(item.where, "unknown feature groups '" + item.text +
                                     "'; known: " + known +
                                     "; several of them joined by '+'");
  }
  return values;
}

static std::vector<int32_t> parseHeadDims(const std::vector<Item> &items,
                                          int32_t most,
                                          Complaints &complaints) {
  std::vector<int32_t> values;
  for (const Item &item : items) {
    int32_t value = 0;
    if (llvm::StringRef(item.text).getAsInteger(10, value) ||
        value < kMinHeadDim || value > most || value % kHeadDimStep)
      complaints.add(item.where,
                     "head dimension '" + item.text +
                         "' is not possible; possible: multiples of " +
                         llvm::Twine(kHeadDimStep) + " from " +
                         llvm::Twine(kMinHeadDim) + " to " +
                         llvm::Twine(most));
    else
      addOnce(values, value, item, complaints);
  }
  return values;
}

void fovea::tools::addJobs(const Axes &axes, std::vector<Job> &jobs,
                           Complaints &complaints) {
  std::vector<Selected> targets = selectTargets(axes.targets, complaints);
  if (!axes.onlyTargets.empty()) {
    const std::vector<Selected> only =
        selectTargets(axes.onlyTargets, complaints);
    llvm::erase_if(targets, [&](const Selected &selected) {
      return llvm::none_of(only, [&](const Selected &one) {
        return one.target == selected.target;
      });
    });
  }
  auto ops = parseAll<OpKind>(axes.ops, operations(), "operation", complaints);
  auto dtypes =
      parseAll<DataType>(axes.dtypes, dataTypes(), "type", complaints);
  auto visible = parseAll<Visible>(axes.masks, masks(), "mask", complaints);
  std::vector<GroupVersions> groups = parseGroups(axes.groups, ops, complaints);
  std::vector<int32_t> headDims = parseHeadDims(
                           axes.headDims,
                           axes.headDimsV.empty() ? kMaxHeadDimV : kMaxHeadDim,
                           complaints),
                       headDimsV = parseHeadDims(axes.headDimsV, kMaxHeadDimV,
                                                 complaints);
  if (axes.headDimsV.empty())
    headDimsV.push_back(0); // as that of Q
  const bool isOfAttention = ops.empty() || llvm::any_of(ops, [](OpKind op) {
                               return spec::specOf(op).isAttention;
                             });
  // Without a text, what was given is complained of already.
  if (axes.headDims.empty() && isOfAttention && !axes.noHeadDims.text.empty())
    complaints.add(axes.noHeadDims.where, axes.noHeadDims.text);
  if (!isOfAttention) {
    for (const auto *items :
         {&axes.headDims, &axes.headDimsV, &axes.masks, &axes.groups})
      for (const Item &item : *items)
        if (item.text != kAnyMask && item.text != kNoGroups)
          complaints.add(item.where, "'" + item.text + "' is not of " +
                                         toString(ops.front()) +
                                         "; leave it out");
    if (axes.scores)
      complaints.add(axes.where, std::string("a score program is not of ") +
                                     toString(ops.front()) + "; leave it out");
  }
  std::vector<ScheduleOverrides> schedules = axes.schedules;
  if (schedules.empty())
    schedules.emplace_back();
  // A slip of a spec with many schedules should cost a message, not memory.
  constexpr size_t kMost = 100000;
  const size_t count = targets.size() * ops.size() * dtypes.size() *
                       std::max<size_t>(headDims.size(), 1) *
                       std::max<size_t>(headDimsV.size(), 1) * visible.size() *
                       groups.size() * schedules.size();
  if (jobs.size() + count > kMost)
    return complaints.add(axes.where, "asks for " +
                                          llvm::Twine(jobs.size() + count) +
                                          " kernels together with what is "
                                          "before it; at most " +
                                          llvm::Twine(kMost) + " are possible");
  std::map<DataType, NamedScore> scores;
  for (const Item &gradients : {axes.scoreGradients, axes.storedGradients}) {
    if (gradients.text.empty())
      continue;
    if (!axes.scores)
      return complaints.add(gradients.where,
                            "gradients are of what a score program captures, "
                            "and none is named");
    if (!llvm::is_contained(ops, OpKind::Backward))
      return complaints.add(gradients.where,
                            "backward kernels give gradients, and none is "
                            "asked for");
  }
  if (axes.scores)
    for (DataType dtype : dtypes) {
      llvm::Expected<NamedScore> named =
          nameScore(*axes.scores, dtype, axes.scoreGradients,
                    axes.storedGradients, complaints);
      if (!named)
        return complaints.add(axes.where, llvm::toString(named.takeError()));
      scores.emplace(dtype, std::move(*named));
    }
  if (complaints.any())
    return;
  auto jobFor = [&](const Selected &selected) -> Job & {
    Job &job = jobs.emplace_back();
    job.target = selected.target;
    job.where = axes.where;
    job.skipUnsupported = axes.skipUnsupported;
    job.tuning = axes.tuning;
    return job;
  };
  for (const Selected &selected : targets)
    for (OpKind op : ops)
      for (DataType dtype : dtypes) {
        if (!spec::specOf(op).isAttention) {
          Job &job = jobFor(selected);
          job.problem = {op, dtype};
          job.problem.groups = spec::neededGroups(op);
          job.overrides = schedules.front();
          job.symbol = kernelSymbol(job.problem, job.overrides);
          continue;
        }
        for (int32_t headDim : headDims)
          for (int32_t headDimV : headDimsV)
            for (const Visible &seen : visible)
              for (const GroupVersions &versions : groups)
                for (const ScheduleOverrides &overrides : schedules) {
                  // Among several operations each has those that are its own.
                  if (spec::foreignGroup(op, versions))
                    continue;
                  Job &job = jobFor(selected);
                  job.problem.op = op;
                  job.problem.dtype = dtype;
                  job.problem.setHeadDims(headDim,
                                          headDimV ? headDimV : headDim);
                  job.problem.mask = seen.mask;
                  job.problem.groups = versions;
                  if (seen.window)
                    job.problem.groups[kWindowGroup] = kWindowVersion;
                  job.overrides = overrides;
                  if (axes.scores) {
                    job.scores = axes.scores;
                    job.problem.score = scores[dtype].digest;
                    job.score = scores[dtype].record;
                    job.captures = scores[dtype].captures;
                    if (op == OpKind::Backward) {
                      job.problem.scoreGradients = scores[dtype].gradients;
                      job.problem.storedGradients = scores[dtype].stored;
                    }
                  }
                  job.symbol =
                      kernelSymbol(job.problem, overrides, job.score.name);
                }
      }
}

size_t fovea::tools::dropRepeats(std::vector<Job> &jobs) {
  llvm::StringMap<size_t> seen; // and their places
  std::vector<Job> kept;
  kept.reserve(jobs.size());
  for (Job &job : jobs) {
    // Programs of two files may have one name.
    auto [at, isNew] = seen.try_emplace(
        job.str() + scoreDigits(job.problem.score), kept.size());
    if (isNew) {
      kept.push_back(std::move(job));
      continue;
    }
    Job &first = kept[at->second];
    if (first.skipUnsupported && !job.skipUnsupported) {
      first.skipUnsupported = false;
      first.where = job.where;
    }
    if (first.tuning.empty())
      first.tuning = job.tuning;
  }
  const size_t repeated = jobs.size() - kept.size();
  jobs = std::move(kept);
  return repeated;
}
