//===- Choice.h - which kernels for a problem -------------------*- C++ -*-===//
//
// Chooses the kernels for a problem on a device and plans their launches. Every
// launch comes through here, so nothing of it allocates, locks or makes text;
// Explain.h says in words what was decided. Knows nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_CHOICE_H
#define FOVEA_RUNTIME_SRC_CHOICE_H

#include "DeviceView.h"
#include "Problem.h"

#include <algorithm>
#include <optional>

namespace fovea::rt {

/// One of a plan's launches.
struct PlannedLaunch {
  uint32_t number;  ///< of the kernel's launches
  uint32_t grid[3]; ///< workgroups, none of them 0
  uint32_t threads; ///< work-items of a workgroup
};

/// A kernel to compile for a problem.
enum class Missing : uint8_t {
  Nothing,
  Plain, ///< of the default algorithm, or what the problem asks for
  Split, ///< one that splits keys
};

/// What to launch for a problem, in this order.
struct Plan {
  const Candidate *candidate = nullptr; ///< owned by the device's view
  int32_t chosenBy = 0;                 ///< FOVEA_CHOSEN_BY_...
  uint32_t launchCount = 0;
  PlannedLaunch launches[spec::kMaxLaunches] = {};
  uint64_t workspaceBytes = 0;
  int32_t splits = 1;      ///< shares of the keys
  bool packsHeads = false; ///< grids that split keys are of packHeads()
  Missing missing = Missing::Nothing; ///< missingOf(); launched without it, a
                                      ///< better choice may be passed over
  bool provisional = false;           ///< of Query::onlyLoaded

  const Kernel &kernel() const { return *candidate->kernel; }
  const KernelLaunch &launch(const PlannedLaunch &planned) const {
    return kernel().launches[planned.number];
  }
};

/// Whether a kernel that splits keys is compiled for a problem where there is
/// none: shares are asked for, or are expected to pay, by a kernel of the
/// blocks that costs are in terms of. Does not depend on which kernels there
/// are.
bool wantsShares(const Problem &problem, const DeviceTraits &device);

/// A problem for which a device's kernels are chosen, and what holds for all of
/// its candidates.
class Query {
public:
  Query(const Problem &problem, const DeviceTraits &device)
      : problem(problem), device(device) {}
  Query(const Query &) = delete;

  const Problem &problem;
  const DeviceTraits &device;
  /// Only kernels that are loaded: the stream is being captured.
  bool onlyLoaded = false;

  /// rt::wantsShares(), worked out when it is first asked for.
  bool wantsShares() const {
    if (!wants)
      wants = rt::wantsShares(problem, device);
    return *wants;
  }

private:
  mutable std::optional<bool> wants;
};

/// Chooses for a problem that is not empty. False: there is no kernel to take;
/// whyNone() in Explain.h says why.
bool choose(const DeviceView &view, const Query &query, Plan &plan);

/// Why a kernel that is missing could not be compiled; null: nothing is known
/// of that.
const NotMade *notMadeOf(const DeviceView &view, const Query &query,
                         Missing missing);

/// What is to be compiled before a problem is launched (CompileOnDemand.md).
/// \param chosen  what would be launched; null: there is none
/// \param tried  bits by Missing of what this call has tried to compile
Missing missingOf(const DeviceView &view, const Query &query,
                  const Plan *chosen, unsigned tried);

/// The same for launches: few shapes are launched many times, and a choice
/// takes divisions for every candidate, so the thread remembers some of its
/// latest. Null: there is no kernel to take. Else valid until the thread calls
/// it again.
const Plan *chooseAgain(const DeviceView &view, const Query &query);

/// Calls `visit` with what is known about kernels of the problem's head
/// dimensions, then of larger ones that serve it too, from those with the
/// fewest columns on, until it returns true.
template <typename Visit>
void forEachView(const DeviceView &view, const Problem &problem, Visit visit) {
  if (const ProblemView *entry = view.find(problem.key))
    if (visit(*entry))
      return;
  ProblemKey key = problem.key;
  for (const auto &[dim, dimOfV] : view.cutDims()) {
    if (dim < problem.key.headDim || dimOfV < problem.key.dimOfV())
      continue;
    key.setHeadDims(dim, dimOfV);
    if (key == problem.key)
      continue;
    if (const ProblemView *entry = view.find(key))
      if (visit(*entry))
        return;
  }
}

//===----------------------------------------------------------------------===//
// The steps of a choice
//===----------------------------------------------------------------------===//

/// Why a candidate that is not refused for every problem can't run this one of
/// its key, if it can't.
Refusal refusalFor(const Candidate &candidate, const Query &query);

/// The same of any candidate and any problem.
Refusal refusalOf(const Candidate &candidate, const Query &query);

/// Whether its launches that split keys take the rows of the heads of a group
/// as those of one: where fewer workgroups hold them all. Devices do not
/// matter, so that the same shares have the same bits.
bool packsHeads(const Candidate &candidate, const Problem &problem);

/// Into how many shares a candidate's kernels divide the keys of a block of
/// rows: as many as are asked for, else as many as fill the device where the
/// estimate below says that this pays; 1 if its algorithm does not split them.
/// At most one for each block of keys that a block of rows may see.
int32_t splitsOf(const Candidate &candidate, const Problem &problem,
                 const DeviceTraits &device);
/// What the kernels need of workspace.
uint64_t workspaceOf(const Candidate &candidate, const Problem &problem,
                     int32_t splits);

/// The rule's estimate of what a kernel takes: the time of a launch goes with
/// the rounds that its workgroups take on the chip, with the rows of each and
/// with the matrix products of a pair of blocks, so it is their product, added
/// up over the launches. It sees idle compute units in small launches, padding
/// in short ones, and what an algorithm computes twice. Where keys are split,
/// the rounds are those of shares, with what the constants below say.
double costOf(const Candidate &candidate, const Problem &problem,
              const DeviceTraits &device);

/// What a block of rows costs at least, in rows times products, if each visit
/// of it adds a row of its own in memory: L2 adds up only so many a second for
/// each compute unit, however few keys or queries a block has. 0 of chips of
/// which nothing is known.
int32_t additionCostOf(std::string_view chip);

/// What splitting keys costs there.
ShareCosts shareCostsOf(std::string_view chip);

/// Costs up to this factor of the least count as equal: within it the largest
/// block wins, since it reads the keys the fewest times.
inline constexpr double kCostTolerance = 1.125;
/// The same of kernels that split keys, whose cost knows of that, and is fitted
/// so that the least is the best guess: what is left is rounding.
inline constexpr double kShareTolerance = 1.0001;

/// What a kernel that reads lists of blocks costs without any: it masks every
/// block.
inline constexpr double kUnlistedCost = 1.5;

// ShareCosts are in terms of these. They are fitted to predictions of aot-time
// for head dimension 128, by chip, and held to those of others
// (docs/SplitKeys.md).
inline constexpr double kReferenceRows = 128, kReferenceKeys = 32,
                        kReferenceColumns = 128;
inline constexpr int32_t kReferenceThreads = 256;
/// By which keys are split only where it pays all the same: blocks take longer
/// when all units work.
inline constexpr double kShareMargin = 1.1;
/// What a kernel that splits keys costs more where one share is best: one that
/// does not does the same, without a launch that combines.
inline constexpr double kUnsharedCost = 4;
/// Part of the keys that memory reads once more for each further workgroup of
/// the same share.
inline constexpr double kReadAgain = 0.02;
/// Workgroups that run at once without sharing SIMDs. They are dealt to shader
/// engines in turn, and not all of these have as many units where a die has 38,
/// as MI300's have: of the last ones some would share one while others idle.
constexpr int64_t placesOf(int64_t units, int32_t threads) {
  const int64_t even = units % 38 == 0 ? units / 38 * 36 : units;
  return even * std::max<int64_t>(256 / threads, 1);
}

/// What the rule compares, in this order; the least is taken.
struct Rank {
  bool scratch;
  bool costly; ///< beyond the tolerance
  size_t launches;
  /// Feature groups that it has.
  int32_t general;
  int32_t filled;  ///< rows of a block, of those that there may be
  int32_t waves;   ///< a SIMD has
  int32_t padding; ///< rows of a block that there may not be
  int32_t blockN;
  uint32_t id;
};
Rank rankOf(const Candidate &candidate, const Problem &problem, double cost,
            double least);
bool operator<(const Rank &a, const Rank &b);

/// Whether a row of a tuning table holds a problem of its key.
bool holds(const TuningRow &row, const Sizes &sizes);

/// Whether the schedule that a row names is of an algorithm with narrow sums,
/// of which it begins with the name.
bool sumsNarrowly(const TuningRow &row);

/// The candidate that the tuning tables name: of each package in turn the first
/// row that holds the problem, if `takes` its candidate (which may be null).
/// Kernels with narrow sums and others have rows of their own.
/// \param missed  is told of each such row whose candidate is not taken
template <typename Takes, typename Missed>
const Candidate *tuned(const ProblemView &entry, const Problem &problem,
                       Takes takes, Missed missed) {
  const PackageReader *done = nullptr; // its row has been found
  for (const TuningEntry &tuning : entry.tuning) {
    if (tuning.package == done || !shows(tuning.row->problem, problem) ||
        !hasGroups(tuning.row->problem, problem) ||
        !holds(*tuning.row, problem.sizes) ||
        sumsNarrowly(*tuning.row) != problem.narrowSums)
      continue;
    if (tuning.candidate && takes(*tuning.candidate))
      return tuning.candidate;
    missed(tuning);
    done = tuning.package;
  }
  return nullptr;
}

/// Whether the rule still compares a candidate where a tuning row names
/// `named`, null: none does. Rows are found among kernels that do not split
/// keys, for as many keys as rows: those that do stand against the one that is
/// named.
inline bool competes(const Candidate &candidate, const Candidate *named) {
  return !named || &candidate == named ||
         (candidate.algorithm->splitsKeys() && !named->algorithm->splitsKeys());
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_CHOICE_H
