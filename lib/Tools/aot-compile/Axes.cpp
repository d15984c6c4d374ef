//===- Axes.cpp - lists of values into kernels ----------------------------===//

#include "Axes.h"
#include "Targets.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace fovea;
using namespace fovea::tools;

namespace {
template <typename T>
struct Spelling {
  llvm::StringLiteral text;
  T value;
};
} // namespace

// The first spelling of a value is the one that messages name.
static constexpr Spelling<Operation> kOperations[] = {
    {"forward", Operation::Forward},
    {"backward", Operation::Backward},
};
static constexpr Spelling<DataType> kTypes[] = {
    {"fp16", DataType::F16},
    {"bf16", DataType::BF16},
    {"f16", DataType::F16},
};
static constexpr Spelling<MaskKind> kMasks[] = {
    {"none", MaskKind::None},
    {"causal-top-left", MaskKind::CausalTopLeft},
    {"causal-bottom-right", MaskKind::CausalBottomRight},
    {"causal_top_left", MaskKind::CausalTopLeft},
    {"causal_bottom_right", MaskKind::CausalBottomRight},
};

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

static std::vector<int32_t> parseHeadDims(const std::vector<Item> &items,
                                          Complaints &complaints) {
  std::vector<int32_t> values;
  for (const Item &item : items) {
    int32_t value = 0;
    if (llvm::StringRef(item.text).getAsInteger(10, value) ||
        value < kMinHeadDim || value > kMaxHeadDim || value % kHeadDimStep)
      complaints.add(item.where,
                     "head dimension '" + item.text +
                         "' is not possible; possible: multiples of " +
                         llvm::Twine(kHeadDimStep) + " from " +
                         llvm::Twine(kMinHeadDim) + " to " +
                         llvm::Twine(kMaxHeadDim));
    else
      addOnce(values, value, item, complaints);
  }
  return values;
}

void fovea::tools::addJobs(const Axes &axes, std::vector<Job> &jobs,
                           Complaints &complaints) {
  std::vector<Selected> targets = selectTargets(axes.targets, complaints);
  auto ops =
      parseAll<Operation>(axes.ops, kOperations, "operation", complaints);
  auto dtypes = parseAll<DataType>(axes.dtypes, kTypes, "type", complaints);
  auto masks = parseAll<MaskKind>(axes.masks, kMasks, "mask", complaints);
  std::vector<int32_t> headDims = parseHeadDims(axes.headDims, complaints);
  std::vector<ScheduleOverrides> schedules = axes.schedules;
  if (schedules.empty())
    schedules.emplace_back();
  // A slip of a spec with many schedules should cost a message, not memory.
  constexpr size_t kMost = 100000;
  const size_t count = targets.size() * ops.size() * dtypes.size() *
                       headDims.size() * masks.size() * schedules.size();
  if (jobs.size() + count > kMost)
    return complaints.add(axes.where, "asks for " +
                                          llvm::Twine(jobs.size() + count) +
                                          " kernels together with what is "
                                          "before it; at most " +
                                          llvm::Twine(kMost) + " are possible");
  for (const Selected &selected : targets)
    for (Operation op : ops)
      for (DataType dtype : dtypes)
        for (int32_t headDim : headDims)
          for (MaskKind mask : masks)
            for (const ScheduleOverrides &overrides : schedules) {
              Job &job = jobs.emplace_back();
              job.target = selected.target;
              job.where = axes.where;
              job.skipUnsupported = axes.skipUnsupported;
              job.problem = {op, dtype, headDim, mask};
              job.overrides = overrides;
              job.symbol = kernelSymbol(job.problem, overrides);
            }
}

size_t fovea::tools::dropRepeats(std::vector<Job> &jobs) {
  llvm::StringMap<size_t> seen; // and their places
  std::vector<Job> kept;
  kept.reserve(jobs.size());
  for (Job &job : jobs) {
    auto [at, isNew] = seen.try_emplace(job.str(), kept.size());
    if (isNew)
      kept.push_back(std::move(job));
    else if (Job &first = kept[at->second];
             first.skipUnsupported && !job.skipUnsupported) {
      first.skipUnsupported = false;
      first.where = job.where;
    }
  }
  const size_t repeated = jobs.size() - kept.size();
  jobs = std::move(kept);
  return repeated;
}
