//===- Choice.cpp - which kernels for a problem ---------------------------===//
//
// Each candidate is accepted or refused; of the accepted ones the tuning table
// picks, or else the rule, which docs/Runtime.md states.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace fovea::rt {
namespace {

/// Of so many candidates what one pass finds out is kept for the next; of more
/// it is worked out again.
constexpr size_t kKept = 16;

/// Division takes most of the time of a choice, and that of 32 bits less.
int64_t divideUp(int64_t value, int64_t by) {
  const int64_t sum = value + by - 1;
  if ((uint64_t(sum) | uint64_t(by)) >> 32 == 0)
    return int64_t(uint32_t(sum) / uint32_t(by));
  return sum / by;
}

struct Grid {
  int64_t extent[3]; ///< workgroups
  bool empty() const {
    return extent[0] == 0 || extent[1] == 0 || extent[2] == 0;
  }
  int64_t workgroups() const { return extent[0] * extent[1] * extent[2]; }
};

/// Whether it reads lists of blocks, and there are none.
bool readsNoLists(const Candidate &candidate, const Problem &problem) {
  static const int row = spec::findGroup("blocks");
  return row >= 0 && candidate.kernel->record->problem.groups[size_t(row)] &&
         !problem.key.groups[size_t(row)];
}

/// What shares of the keys and their cost depend on of a kernel's first launch.
struct ShareBlocks {
  int64_t rows, keys; ///< of a workgroup, and at a time
  int64_t threads;    ///< of a workgroup
  bool hasRoom;       ///< a unit takes two workgroups
  int32_t columns;    ///< of Q and K
  int64_t combinedAtOnce;
  bool hasScore; ///< a score program
};

ShareBlocks blocksOf(const Candidate &candidate) {
  const Kernel &kernel = *candidate.kernel;
  const KernelRecord &record = *kernel.record;
  const int32_t threads = kernel.launches[0].threads;
  return {kernel.launches[0].blockRows,
          record.blockN,
          threads,
          record.resources.occupancy * 256 / std::max(threads, 256) >= 2,
          record.problem.headDim,
          kernel.combinedAtOnce,
          record.problem.score != 0};
}

/// Of the kernel that costs are in terms of.
ShareBlocks referenceBlocks(const Problem &problem) {
  return {int64_t(kReferenceRows), int64_t(kReferenceKeys),
          kReferenceThreads,
          /*hasRoom=*/true,        problem.key.headDim,
          /*combinedAtOnce=*/64,   problem.score.program != nullptr};
}

bool packsHeads(const ShareBlocks &blocks, const Problem &problem) {
  // A score program knows the rows and heads that it is for.
  if (!problem.headsCanPack || blocks.hasScore)
    return false;
  const Sizes &sizes = problem.sizes;
  const int64_t group = sizes.headsQ / sizes.headsK;
  return sizes.seqlenQ <= blocks.rows &&
         divideUp(group * sizes.seqlenQ, blocks.rows) < group;
}

/// Of a launch with its number; without shares of the keys, of which there are
/// `shares`.
Grid gridOf(const Candidate &candidate, const Problem &problem, size_t number,
            int64_t shares) {
  const spec::LaunchSpec &kind = *candidate.kinds[number];
  const KernelLaunch &launch = candidate.kernel->launches[number];
  const int32_t rows = kind.rowsOf(launch.blockRows, shares);
  const Sizes sizes = kind.splitsKeys && packsHeads(candidate, problem)
                          ? packHeads(problem.sizes)
                          : problem.sizes;
  if (kind.ownsHeads)
    return {{sizes.of(kind.heads()), 1, 1}};
  // As Sequences::find() of the compiler counts them.
  if (problem.packsGrid(kind.rows()) && !candidate.algorithm->splitsKeys())
    return {{sizes.of(kind.heads()),
             sizes.packed(kind.rows()) / rows + sizes.batch, 1}};
  return {{sizes.of(kind.heads()), divideUp(sizes.of(kind.rows()), rows),
           sizes.batch}};
}

/// Workgroups of a share.
int64_t workgroupsOf(const ShareBlocks &blocks, const Problem &problem) {
  const Sizes sizes =
      packsHeads(blocks, problem) ? packHeads(problem.sizes) : problem.sizes;
  return sizes.batch * sizes.headsQ * divideUp(sizes.seqlenQ, blocks.rows);
}

/// Blocks of keys that a block of rows sees at most.
int64_t keyBlocksOf(const ShareBlocks &blocks, const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  const Band band = bandOf(problem.window, sizes.seqlenQ, sizes.seqlenK);
  const int64_t rows = std::min<int64_t>(sizes.seqlenQ, blocks.rows);
  return divideUp(
      std::clamp<int64_t>(band.end - band.first + rows - 1, 0, sizes.seqlenK),
      blocks.keys);
}

/// Keys in so many blocks, in those of kReferenceKeys.
double inReferenceBlocks(const ShareBlocks &blocks, int64_t count) {
  return double(count) * double(blocks.keys) / kReferenceKeys;
}

/// The estimate of splitsOf() for a number of shares, in the time of a
/// reference block.
double timeOfShares(const ShareBlocks &blocks, const Problem &problem,
                    const DeviceTraits &device, int64_t keyBlocks,
                    int64_t splits) {
  const int64_t units = std::max(device.computeUnits, 1);
  const ShareCosts &costs = device.shares;
  const Sizes &sizes = problem.sizes;
  const int64_t workgroups = workgroupsOf(blocks, problem);
  const int64_t rounds =
      divideUp(workgroups * splits, placesOf(units, int32_t(blocks.threads)));
  // Two that share a unit do more in a round than one, where it has room.
  const double turns =
      blocks.hasRoom ? double(rounds / 2) * costs.pair + double(rounds % 2)
                     : double(rounds);
  // Fewer waves take longer to bring a block.
  const double waves =
      1 + std::max(256.0 / double(blocks.threads) - 1, 0.0) / 2;
  const double block =
      inReferenceBlocks(blocks, 1) *
      std::max(costs.block * waves +
                   costs.rows * double(blocks.rows) / kReferenceRows,
               costs.least);
  // Heads of a group and blocks of rows find the keys in a cache, which has its
  // limit as well. Memory has them once, and some again where several read the
  // same.
  const double keys = inReferenceBlocks(blocks, keyBlocks) / double(units);
  const double heads = double(sizes.batch * sizes.headsK);
  const double again = kReadAgain * (double(workgroups) - heads);
  const double shares = double(divideUp(keyBlocks, splits));
  const double rows =
      double(sizes.batch) * double(sizes.headsQ) * double(sizes.seqlenQ);
  // Launches take their time whatever the columns; blocks, in whose time all
  // is, go with them.
  const double launches =
      kReferenceColumns / blocks.columns *
      (costs.begin * double(blocks.rows) / kReferenceRows +
       double(rounds - 1) * costs.round + costs.combine +
       costs.run * double(divideUp(splits, blocks.combinedAtOnce) - 1));
  return std::max({turns * shares * block,
                   (heads + again) * keys * costs.streamed,
                   double(workgroups) * keys * costs.cached}) +
         launches +
         rows * (std::max(costs.row, costs.read * double(splits)) +
                 costs.written * double(splits));
}

/// As many shares as a grid's third dimension, and a block of keys each, allow.
int64_t mostShares(int64_t keyBlocks, const Problem &problem) {
  return std::min({keyBlocks, int64_t(spec::kMaxSplits),
                   spec::kMaxGridYZ / problem.sizes.batch});
}

/// splitsOf() where any number is allowed.
int32_t bestShares(const ShareBlocks &blocks, const Problem &problem,
                   const DeviceTraits &device) {
  const int64_t keyBlocks = keyBlocksOf(blocks, problem);
  const int64_t most = mostShares(keyBlocks, problem);
  const int64_t workgroups = workgroupsOf(blocks, problem);
  if (workgroups == 0 || most < 2)
    return 1;
  const int64_t places =
      placesOf(std::max(device.computeUnits, 1), int32_t(blocks.threads));
  // A device that rows fill gains nothing.
  if (workgroups >= places)
    return 1;
  const int64_t fill = std::min(4 * places / workgroups, most);
  int64_t best = 1;
  double least = std::numeric_limits<double>::max();
  for (const int64_t wanted :
       {int64_t(1), fill / 8, fill / 4, fill / 2, 3 * fill / 4, fill,
        int64_t(16), int64_t(32), int64_t(64), int64_t(128)}) {
    if (wanted < 1 || wanted > fill)
      continue;
    // More of them would not make the largest smaller.
    const int64_t splits = divideUp(keyBlocks, divideUp(keyBlocks, wanted));
    const double cost =
        timeOfShares(blocks, problem, device, keyBlocks, splits);
    if (cost < least) {
      best = splits;
      least = cost;
    }
  }
  return int32_t(best);
}

/// What costOf() has of a launch that splits keys, over its products.
double costOfShares(const ShareBlocks &blocks, const Problem &problem,
                    const DeviceTraits &device, int32_t splits) {
  const int64_t keyBlocks = std::max<int64_t>(keyBlocksOf(blocks, problem), 1);
  return kShareMargin *
         timeOfShares(blocks, problem, device, keyBlocks, splits) /
         inReferenceBlocks(blocks, keyBlocks) * kReferenceRows *
         (splits == 1 ? kUnsharedCost : 1);
}

/// Whether shares cost less than a kernel that does not split, of so many rows
/// a block.
/// \param tolerance  what more that one may cost and still be taken
bool sharesPay(const ShareBlocks &blocks, const Problem &problem,
               const DeviceTraits &device, int64_t plainRows,
               double tolerance) {
  const Sizes &sizes = problem.sizes;
  const int64_t units = std::max(device.computeUnits, 1);
  const double plain = double(divideUp(sizes.batch * sizes.headsQ *
                                           divideUp(sizes.seqlenQ, plainRows),
                                       units)) *
                       double(plainRows);
  return costOfShares(blocks, problem, device,
                      bestShares(blocks, problem, device)) *
             tolerance <
         plain;
}

/// Why a candidate serves no problem like this one, whatever its sizes and what
/// is asked of results, if it serves none.
Refusal refusalOfKind(const Candidate &candidate, const Problem &problem) {
  const ProblemKey &key = candidate.kernel->record->problem;
  if (problem.onDemand && candidate.kernel->origin.empty())
    return {Refusal::NotOnDemand};
  if (!holdsRows(key, problem))
    return {Refusal::OtherProblem};
  if (!shows(key, problem))
    return {Refusal::OtherKeys};
  if (!hasGroups(key, problem))
    return {Refusal::NoGroup};
  if (!readsRows(key, problem))
    return {Refusal::ReadsWords};
  return {};
}

/// Whether a choice sees a kernel that serves the problem, whatever its sizes.
/// \param chosen  it is to be made at least as closely for the device as this
///   one, behind whose head dimensions a choice does not look; null: any
bool isThere(const DeviceView &view, const Problem &problem, bool splits,
             const Candidate *chosen) {
  const ProblemView *last = nullptr;
  if (chosen) {
    const ProblemKey &record = chosen->kernel->record->problem;
    ProblemKey key = problem.key;
    key.setHeadDims(record.headDim, record.dimOfV());
    last = view.find(key);
  }
  bool found = false;
  forEachView(view, problem, [&](const ProblemView &entry) {
    for (const Candidate *candidate : entry.usable)
      found |= candidate->algorithm->splitsKeys() == splits &&
               (!chosen || candidate->fit >= chosen->fit) &&
               !refusalOfKind(*candidate, problem);
    return found || &entry == last;
  });
  return found;
}

/// Whether a launch has something to do: what is wanted is its doing, or that
/// of a later one, and its grid is not empty.
bool isNeeded(const Problem &problem, const spec::LaunchSpec &kind,
              const Grid &grid) {
  return ((kind.writes | kind.feeds) & problem.wanted) != 0 && !grid.empty();
}

/// Number, kind, record and grid of each of a candidate's launches that has
/// something to do.
/// \param shares  of the keys, where they are split
template <typename Visit>
void forEachLaunch(const Candidate &candidate, const Problem &problem,
                   int64_t shares, Visit visit) {
  const std::vector<KernelLaunch> &launches = candidate.kernel->launches;
  for (size_t i = 0; i != launches.size(); ++i) {
    const spec::LaunchSpec &kind = *candidate.kinds[i];
    const Grid grid = gridOf(candidate, problem, i, shares);
    if (isNeeded(problem, kind, grid))
      visit(uint32_t(i), kind, launches[i], grid);
  }
}

/// The best candidate by the rule among those that `accepts`.
template <typename Accepts>
const Candidate *byRule(const ProblemView &entry, const Problem &problem,
                        const DeviceTraits &device, Accepts accepts) {
  double costs[kKept];
  double least = std::numeric_limits<double>::max();
  const Candidate *only = nullptr;
  size_t accepted = 0;
  for (size_t i = 0; i != entry.usable.size(); ++i) {
    if (!accepts(i))
      continue;
    only = entry.usable[i];
    ++accepted;
    const double cost = costOf(*only, problem, device);
    if (i < kKept)
      costs[i] = cost;
    least = std::min(least, cost);
  }
  if (accepted == 1)
    return only;
  const Candidate *best = nullptr;
  Rank bestRank{};
  for (size_t i = 0; i != entry.usable.size(); ++i) {
    if (!accepts(i))
      continue;
    const Candidate &candidate = *entry.usable[i];
    const double cost =
        i < kKept ? costs[i] : costOf(candidate, problem, device);
    const Rank rank = rankOf(candidate, problem, cost, least);
    if (!best || rank < bestRank) {
      best = &candidate;
      bestRank = rank;
    }
  }
  return best;
}

/// Chooses among a problem's candidates; null: all are refused.
const Candidate *chooseAmong(const ProblemView &entry, const Query &query,
                             int32_t &chosenBy) {
  const Problem &problem = query.problem;
  // Of the accepted candidates only those made most closely for the device
  // count: its chip's own, or where there are none those of its generic target.
  static_assert(kKept <= 64);
  uint64_t acceptedBits = 0; // of the first kKept
  int closest = -1;
  for (size_t i = 0; i != entry.usable.size(); ++i)
    if (!refusalFor(*entry.usable[i], query)) {
      closest = std::max(closest, entry.usable[i]->fit);
      if (i < kKept)
        acceptedBits |= uint64_t(1) << i;
    }
  if (closest < 0)
    return nullptr;
  auto takes = [&](const Candidate &candidate) {
    return !candidate.refusal && candidate.fit == closest &&
           !refusalFor(candidate, query);
  };
  const Candidate *named =
      tuned(entry, problem, takes, [](const TuningEntry &) {});
  const Candidate *chosen = byRule(entry, problem, query.device, [&](size_t i) {
    const Candidate &candidate = *entry.usable[i];
    return candidate.fit == closest && competes(candidate, named) &&
           (i < kKept ? (acceptedBits >> i & 1) != 0
                      : !refusalFor(candidate, query));
  });
  chosenBy =
      named && chosen == named ? FOVEA_CHOSEN_BY_TUNING : FOVEA_CHOSEN_BY_RULE;
  return chosen;
}

/// A choice of the thread's, with all that it depended on.
struct Remembered {
  uint64_t view = 0; ///< serial number; 0: nothing is remembered
  ProblemKey key;
  int64_t batch = 0, headsQ = 0, headsK = 0, seqlenQ = 0, seqlenK = 0,
          packedQ = -1, packedK = -1;
  bool packsGridQ = false, packsGridK = false;
  uint32_t kernel = 0;
  unsigned wanted = 0, masks = 0;
  bool deterministic = false, narrowSums = false;
  bool lacksWords = false, lacksWordsOfV = false;
  int32_t splits = 0;
  bool headsCanPack = false;
  uint64_t mostWorkspace = 0;
  Window window;
  Plan plan;

  bool isFor(const DeviceView &given, const Problem &problem) const {
    const Sizes &sizes = problem.sizes;
    return view == given.serial() && seqlenQ == sizes.seqlenQ &&
           seqlenK == sizes.seqlenK && batch == sizes.batch &&
           packedQ == sizes.packedQ && packedK == sizes.packedK &&
           packsGridQ == problem.packsGridQ &&
           packsGridK == problem.packsGridK && headsQ == sizes.headsQ &&
           headsK == sizes.headsK && kernel == problem.kernel &&
           wanted == problem.wanted && masks == problem.masks &&
           deterministic == problem.deterministic &&
           narrowSums == problem.narrowSums &&
           lacksWords == problem.lacksWords &&
           lacksWordsOfV == problem.lacksWordsOfV && splits == problem.splits &&
           window == problem.window && headsCanPack == problem.headsCanPack &&
           mostWorkspace == problem.mostWorkspace && key == problem.key;
  }
  void set(const DeviceView &given, const Problem &problem,
           const Plan &chosen) {
    const Sizes &sizes = problem.sizes;
    view = given.serial();
    key = problem.key;
    batch = sizes.batch;
    headsQ = sizes.headsQ;
    headsK = sizes.headsK;
    seqlenQ = sizes.seqlenQ;
    seqlenK = sizes.seqlenK;
    packedQ = sizes.packedQ;
    packedK = sizes.packedK;
    packsGridQ = problem.packsGridQ;
    packsGridK = problem.packsGridK;
    kernel = problem.kernel;
    wanted = problem.wanted;
    masks = problem.masks;
    deterministic = problem.deterministic;
    narrowSums = problem.narrowSums;
    lacksWords = problem.lacksWords;
    lacksWordsOfV = problem.lacksWordsOfV;
    splits = problem.splits;
    mostWorkspace = problem.mostWorkspace;
    window = problem.window;
    headsCanPack = problem.headsCanPack;
    plan = chosen;
  }
};

/// Each problem has its place, which it shares with others.
constexpr unsigned kRememberedBits = 4;
thread_local Remembered remembered[1 << kRememberedBits];

size_t placeOf(const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  uint64_t sum = ProblemHash()(problem.key);
  for (const int64_t size : {sizes.seqlenQ, sizes.seqlenK, sizes.headsQ})
    sum = (sum ^ uint64_t(size)) * 0x9e3779b97f4a7c15u;
  return sum >> (64 - kRememberedBits);
}

} // namespace

bool packsHeads(const Candidate &candidate, const Problem &problem) {
  return candidate.algorithm->splitsKeys() &&
         packsHeads(blocksOf(candidate), problem);
}

bool wantsShares(const Problem &problem, const DeviceTraits &device) {
  const auto algorithms = spec::specOf(problem.key.op).algorithms;
  if (std::none_of(algorithms.begin(), algorithms.end(),
                   [](const auto &each) { return each.splitsKeys(); }))
    return false;
  if (problem.splits != 0)
    return problem.splits > 1;
  return problem.mostWorkspace > 0 &&
         sharesPay(referenceBlocks(problem), problem, device,
                   device.shares.plainRows, /*tolerance=*/1);
}

Refusal refusalFor(const Candidate &candidate, const Query &query) {
  const Problem &problem = query.problem;
  if (Refusal refusal = refusalOfKind(candidate, problem))
    return refusal;
  Refusal refusal;
  // Of many shares grids are largest.
  forEachLaunch(candidate, problem, spec::kMaxSplits,
                [&](uint32_t number, const spec::LaunchSpec &kind,
                    const KernelLaunch &launch, const Grid &grid) {
                  if (refusal)
                    return;
                  if (kind.writes & ~problem.wanted)
                    refusal = {Refusal::WritesUnwanted, uint8_t(number)};
                  else if (grid.extent[1] > spec::kMaxGridYZ)
                    refusal = {Refusal::TooManyBlocks, uint8_t(number)};
                  // HIP counts work-items of a dimension in 32 bits.
                  else if (grid.extent[0] * launch.threads >
                           int64_t(std::numeric_limits<uint32_t>::max()))
                    refusal = {Refusal::TooManyWorkItems, uint8_t(number)};
                });
  if (refusal)
    return refusal;
  if (problem.deterministic && !candidate.algorithm->deterministic)
    return {Refusal::NotDeterministic};
  // Less accurate than any other, so that it is never a choice among them.
  if (problem.narrowSums != candidate.algorithm->sumsNarrowly())
    return {problem.narrowSums ? Refusal::SumsWidely : Refusal::SumsNarrowly};
  if (problem.wanted & ~candidate.writes)
    return {Refusal::NoWriter};
  const bool splits = candidate.algorithm->splitsKeys();
  if (problem.splits > 1 && !splits)
    return {Refusal::Unsplit};
  if (problem.splits == 1 && splits)
    return {Refusal::Splits};
  // What was compiled for other calls must not decide.
  if (problem.compiles && splits && !candidate.kernel->origin.empty() &&
      !query.wantsShares())
    return {Refusal::OfOtherCalls};
  if (splits && std::max(problem.sizes.headsQ,
                         keyBlocksOf(blocksOf(candidate), problem)) >
                    spec::kMostOfSplitLaunch)
    return {Refusal::TooManyForShares};
  if (splits && workspaceOf(candidate, problem,
                            splitsOf(candidate, problem, query.device)) >
                    problem.mostWorkspace)
    return {Refusal::NoWorkspace};
  if (query.onlyLoaded && !candidate.isLoaded())
    return {Refusal::NotLoaded};
  return {};
}

Refusal refusalOf(const Candidate &candidate, const Query &query) {
  const Problem &problem = query.problem;
  ProblemKey key = candidate.kernel->record->problem.base();
  const bool otherScore = key.score != problem.key.score;
  key.score = problem.key.score;
  if (holdsRows(candidate.kernel->record->problem, problem))
    key.setHeadDims(problem.key.headDim, problem.key.dimOfV());
  if (key != problem.key.base())
    return {Refusal::OtherProblem};
  if (otherScore)
    return {Refusal::OtherScore};
  return candidate.refusal ? candidate.refusal : refusalFor(candidate, query);
}

int32_t splitsOf(const Candidate &candidate, const Problem &problem,
                 const DeviceTraits &device) {
  if (!candidate.algorithm->splitsKeys() || problem.sizes.batch == 0)
    return 1;
  const ShareBlocks blocks = blocksOf(candidate);
  if (problem.splits == 0)
    return bestShares(blocks, problem, device);
  const int64_t most = mostShares(keyBlocksOf(blocks, problem), problem);
  return int32_t(std::clamp<int64_t>(problem.splits, 1, most < 1 ? 1 : most));
}

uint64_t workspaceOf(const Candidate &candidate, const Problem &problem,
                     int32_t splits) {
  const Sizes &sizes = problem.sizes;
  const spec::WorkspaceSpec &workspace = candidate.algorithm->workspace;
  const int64_t dim = workspace.dimOf(candidate.kernel->record->problem);
  // More rows than this no workspace holds, and their bytes no integer.
  const double rowsOfHead = std::max(
      double(sizes.batch) * double(sizes.seqlenQ), double(sizes.packedQ));
  if (rowsOfHead * double(sizes.headsQ) * splits > 0x1p50)
    return std::numeric_limits<uint64_t>::max();
  // Of packed sequences all rows are those of one; shares of the keys are of
  // batches all the same, and so are pairs of rows, which two sequences would
  // share.
  if (sizes.packedQ >= 0 && !candidate.algorithm->splitsKeys() &&
      !candidate.algorithm->sumsNarrowly())
    return uint64_t(workspace.bytes(std::min<int64_t>(sizes.batch, 1),
                                    sizes.headsQ, sizes.packedQ, dim, splits));
  return uint64_t(
      workspace.bytes(sizes.batch, sizes.headsQ, sizes.seqlenQ, dim, splits));
}

int32_t additionCostOf(std::string_view chip) {
  struct Row {
    std::string_view chip;
    int32_t cost;
  };
  // As many rows times products as the deterministic kernels do meanwhile, by
  // predictions of aot-time (docs/Runtime.md).
  static constexpr Row kRows[] = {{"gfx942", 1120}, {"gfx950", 1540}};
  for (const Row &row : kRows)
    if (row.chip == chip)
      return row.cost;
  return 0;
}

ShareCosts shareCostsOf(std::string_view chip) {
  struct Row {
    std::string_view chip; ///< how its name begins; the first row that fits
    ShareCosts costs;
  };
  static constexpr Row kRows[] = {
      {"gfx942", {}},
      // As that, but for its kernels of 192 columns.
      {"gfx90a",
       [] {
         ShareCosts costs;
         costs.plainRows = 256;
         return costs;
       }()},
      {"gfx950",
       {/*block=*/1.67, /*rows=*/0.613, /*least=*/0.034, /*pair=*/1.64,
        /*round=*/3.55, /*streamed=*/0.867, /*cached=*/0.0354,
        /*combine=*/6.5, /*run=*/6.1, /*row=*/1.0 / 1383, /*read=*/1.0 / 3968,
        /*written=*/1.0 / 2242, /*begin=*/0, /*plainRows=*/256}},
      // Others of RDNA 3 have about as much of memory's bandwidth a unit as
      // gfx1100, gfx1151 less.
      {"gfx1151",
       {/*block=*/0.245, /*rows=*/0.298, /*least=*/0.18, /*pair=*/1.99,
        /*round=*/6.45, /*streamed=*/1.24, /*cached=*/0.49, /*combine=*/1.97,
        /*run=*/0, /*row=*/1.0 / 7634, /*read=*/1.0 / 1098,
        /*written=*/1.0 / 2457, /*begin=*/0}},
      {"gfx11",
       {/*block=*/0.129, /*rows=*/0.545, /*least=*/0, /*pair=*/1.13,
        /*round=*/0.0536, /*streamed=*/0.65, /*cached=*/0.457,
        /*combine=*/2.26, /*run=*/0.39, /*row=*/1.0 / 1420, /*read=*/1.0 / 3922,
        /*written=*/1.0 / 3968, /*begin=*/0}},
      {"gfx120",
       {/*block=*/0.359, /*rows=*/0.509, /*least=*/0.0949, /*pair=*/1.75,
        /*round=*/0.0398, /*streamed=*/1.36, /*cached=*/0.302,
        /*combine=*/3.93, /*run=*/2.72, /*row=*/1.0 / 690, /*read=*/1.0 / 901,
        /*written=*/1.0 / 503, /*begin=*/0, /*plainRows=*/256}}};
  for (const Row &row : kRows)
    if (chip.substr(0, row.chip.size()) == row.chip)
      return row.costs;
  return {};
}

double costOf(const Candidate &candidate, const Problem &problem,
              const DeviceTraits &device) {
  const int64_t units = std::max(device.computeUnits, 1);
  const int32_t splits = splitsOf(candidate, problem, device);
  double sum = 0;
  forEachLaunch(
      candidate, problem, splits,
      [&](uint32_t, const spec::LaunchSpec &kind, const KernelLaunch &launch,
          const Grid &grid) {
        if (kind.splitsKeys) {
          sum += costOfShares(blocksOf(candidate), problem, device, splits) *
                 kind.products;
          return;
        }
        int64_t block = int64_t(launch.blockRows) * kind.products;
        // Products of which others make something are added up in memory. How
        // long that takes tells algorithms apart; narrow sums, whose pace it is
        // not, compete with none but each other.
        if (kind.products > 0 && kind.feeds != 0 &&
            !candidate.algorithm->sumsNarrowly())
          block = std::max<int64_t>(block, device.additionCost);
        sum += double(divideUp(grid.workgroups(), units)) * double(block);
      });
  return readsNoLists(candidate, problem) ? sum * kUnlistedCost : sum;
}

Rank rankOf(const Candidate &candidate, const Problem &problem, double cost,
            double least) {
  const KernelRecord &record = *candidate.kernel->record;
  // Of a block that rows do not fill, the rest reads nothing less often. Where
  // keys are split, a unit has one workgroup at a time.
  const bool splits = candidate.algorithm->splitsKeys();
  const int64_t rows = packsHeads(candidate, problem)
                           ? packHeads(problem.sizes).seqlenQ
                           : problem.sizes.seqlenQ;
  const int64_t filled =
      splits ? std::min<int64_t>(record.blockM, rows) : record.blockM;
  const int32_t waves =
      splits ? std::min(candidate.kernel->launches[0].threads, 256)
             : record.resources.occupancy;
  const auto &groups = record.problem.groups;
  return {record.resources.scratchBytes > 0,
          cost > least * (splits ? kShareTolerance : kCostTolerance),
          candidate.kernel->launches.size(),
          int32_t(std::count_if(groups.begin(), groups.end(),
                                [](int32_t version) { return version != 0; })),
          -int32_t(filled),
          -waves,
          record.blockM - int32_t(filled),
          -record.blockN,
          candidate.kernel->id};
}

bool operator<(const Rank &a, const Rank &b) {
  auto tie = [](const Rank &rank) {
    return std::tie(rank.scratch, rank.costly, rank.launches, rank.general,
                    rank.filled, rank.waves, rank.padding, rank.blockN,
                    rank.id);
  };
  return tie(a) < tie(b);
}

bool holds(const TuningRow &row, const Sizes &sizes) {
  return sizes.seqlenQ <= row.maxSeqlenQ && sizes.seqlenK <= row.maxSeqlenK &&
         sizes.batch * sizes.headsQ <= row.maxBatchHeads;
}

bool sumsNarrowly(const TuningRow &row) {
  const std::string_view schedule = row.schedule;
  return spec::specOf(row.problem.op)
      .sumsNarrowly(schedule.substr(0, schedule.find(';')));
}

bool choose(const DeviceView &view, const Query &query, Plan &plan) {
  const Problem &problem = query.problem;
  if (problem.kernel) {
    plan.candidate = view.find(problem.kernel);
    plan.chosenBy = FOVEA_CHOSEN_BY_CALLER;
    if (!plan.candidate || refusalOf(*plan.candidate, query))
      return false;
  } else {
    plan.candidate = nullptr;
    forEachView(view, problem, [&](const ProblemView &entry) {
      plan.candidate = chooseAmong(entry, query, plan.chosenBy);
      return plan.candidate != nullptr;
    });
    if (!plan.candidate)
      return false;
  }
  const Candidate &candidate = *plan.candidate;
  plan.launchCount = 0;
  plan.provisional = query.onlyLoaded;
  plan.splits = splitsOf(candidate, problem, query.device);
  plan.packsHeads = packsHeads(candidate, problem);
  forEachLaunch(candidate, problem, plan.splits,
                [&](uint32_t number, const spec::LaunchSpec &kind,
                    const KernelLaunch &launch, const Grid &grid) {
                  const int64_t shares = kind.splitsKeys ? plan.splits : 1;
                  plan.launches[plan.launchCount++] = {
                      number,
                      {uint32_t(grid.extent[0]), uint32_t(grid.extent[1]),
                       uint32_t(grid.extent[2] * shares)},
                      uint32_t(launch.threads)};
                });
  plan.workspaceBytes = workspaceOf(candidate, problem, plan.splits);
  plan.missing = missingOf(view, query, &plan, /*tried=*/0);
  return true;
}

const NotMade *notMadeOf(const DeviceView &view, const Query &query,
                         Missing missing) {
  return view.catalog().findNotMade(query.device.target.arch,
                                    compiledKeyOf(query.problem),
                                    missing == Missing::Split);
}

Missing missingOf(const DeviceView &view, const Query &query,
                  const Plan *chosen, unsigned tried) {
  const Problem &problem = query.problem;
  const DeviceTraits &device = query.device;
  if (!problem.compiles)
    return Missing::Nothing;
  auto untried = [&](Missing missing) {
    return tried >> int(missing) & 1 ? Missing::Nothing : missing;
  };
  auto unless = [&](Missing missing) {
    const NotMade *failed = notMadeOf(view, query, missing);
    return failed && !failed->passes ? Missing::Nothing : untried(missing);
  };
  if (!chosen) {
    Missing missing = Missing::Nothing;
    if (query.wantsShares() &&
        (problem.splits > 1 ||
         !isThere(view, problem, /*splits=*/true, nullptr)))
      missing = untried(Missing::Split);
    return missing != Missing::Nothing || problem.splits > 1
               ? missing
               : untried(Missing::Plain);
  }
  if (problem.splits != 0)
    return Missing::Nothing;
  const Candidate &candidate = *chosen->candidate;
  if (!candidate.algorithm->splitsKeys())
    return query.wantsShares() &&
                   !isThere(view, problem, /*splits=*/true, &candidate)
               ? unless(Missing::Split)
               : Missing::Nothing;
  // The rule takes it without comparing it with anything. Kernels that do not
  // split have as many rows a block as it has, or a multiple, which costs no
  // less.
  const ShareBlocks blocks = blocksOf(candidate);
  return (candidate.kernel->record->resources.scratchBytes > 0 ||
          !sharesPay(blocks, problem, device, blocks.rows, kCostTolerance)) &&
                 !isThere(view, problem, /*splits=*/false, &candidate)
             ? unless(Missing::Plain)
             : Missing::Nothing;
}

const Plan *chooseAgain(const DeviceView &view, const Query &query) {
  const Problem &problem = query.problem;
  Remembered &place = remembered[placeOf(problem)];
  if (!place.isFor(view, problem)) {
    Plan plan;
    if (!choose(view, query, plan))
      return nullptr;
    place.set(view, problem, plan);
  }
  return &place.plan;
}

} // namespace fovea::rt
