//===- DeviceView.h - the catalog as one device sees it ---------*- C++ -*-===//
//
// An immutable view of the open packages for one device, made once for each
// state of the catalog: which kernels it can run, what a choice needs to know
// of them, tuning rows with the kernels that they name, and where to find the
// functions of what is loaded. Threads read it without a lock; it lives as long
// as its context.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_DEVICEVIEW_H
#define FOVEA_RUNTIME_SRC_DEVICEVIEW_H

#include "Catalog.h"

#include "Params.h"

#include <atomic>
#include <deque>

namespace fovea::rt {

/// What splitting keys costs on a chip, in the time that a workgroup of the
/// kernel that does not split takes for kReferenceKeys keys, divided by its
/// rows in kReferenceRows (Choice.h). Of a chip of which nothing is known as of
/// gfx942.
struct ShareCosts {
  /// A block of kReferenceKeys keys: of itself, of kReferenceRows rows, and at
  /// least, however few rows it has.
  double block = 0.365, rows = 0.481, least = 0.489;
  /// What two rounds take at once, on units that have room for two workgroups.
  double pair = 1.78;
  /// Before and behind the blocks of a further round.
  double round = 1.66;
  /// The same keys from memory and from the caches behind L2, by one unit.
  double streamed = 0.907, cached = 0.517;
  /// The launch that combines, and each run of shares behind its first.
  double combine = 3.34, run = 1.5;
  /// A row: combined, at least, and each share of it read and written.
  double row = 1.0 / 3534, read = 1.0 / 24096, written = 1.0 / 9901;
  /// Before and behind the blocks of the first round, of kReferenceRows rows.
  double begin = 1.03;
  /// Rows of a block of the compiler's largest kernel that does not split, of
  /// any head dimension, for where none is there to ask.
  int64_t plainRows = 128;
};

/// What a choice depends on of a device.
struct DeviceTraits {
  TargetId target;
  int32_t computeUnits = 0;
  /// additionCostOf() its chip.
  int32_t additionCost = 0;
  ShareCosts shares; ///< shareCostsOf() its chip
};

/// A kernel's functions on a device (Context.h).
struct LoadedKernel;

/// Where launches find a kernel's functions; null: not loaded. One for each
/// kernel and device, at the same place as long as the context lives.
struct FunctionSlot {
  std::atomic<const LoadedKernel *> loaded{nullptr};
};

/// Why a kernel can't run a problem; textOf() in Explain.h says it in words.
struct Refusal {
  enum Why : uint8_t {
    None,
    // Of the kernel and the device alone.
    AbiVersion,
    Target,
    UnknownLaunch,
    MixedAlgorithms,
    NoAlgorithm,
    UnknownCaptures,
    // Of the problem too.
    OtherProblem,
    OtherScore,
    NotOnDemand,
    OtherKeys,
    NoGroup,
    ReadsWords,
    WritesUnwanted,
    TooManyBlocks,
    TooManyWorkItems,
    NotDeterministic,
    SumsNarrowly,
    SumsWidely,
    NoWriter,
    Unsplit,
    Splits,
    OfOtherCalls,
    TooManyForShares,
    NoWorkspace,
    // And of what is loaded.
    NotLoaded,
  };
  Why why = None;
  uint8_t launch = 0; ///< number of the kernel's launch that it is about

  explicit operator bool() const { return why != None; }
};

/// A kernel as a choice for a device sees it.
struct Candidate {
  const Kernel *kernel = nullptr;
  FunctionSlot *slot = nullptr;
  Refusal refusal; ///< holds for every problem
  int fit = 0;     ///< how closely it is made for the device (targetFit)
  // Only of those that are not refused:
  /// What is known of each of the kernel's launches.
  const spec::LaunchSpec *kinds[spec::kMaxLaunches] = {};
  const spec::AlgorithmSpec *algorithm = nullptr;
  /// What its kernels are passed.
  std::vector<ArgumentFill> arguments;
  uint32_t argumentBytes = 0;
  std::vector<spec::CaptureSpec> captures; ///< of the score program
  unsigned writes = 0; ///< outputs of all launches

  bool isLoaded() const {
    return slot->loaded.load(std::memory_order_acquire) != nullptr;
  }
};

/// A row of a package's tuning table.
struct TuningEntry {
  const PackageReader *package;
  const TuningRow *row;
  /// The package's kernel of that schedule; null when it has none.
  const Candidate *candidate;
};

/// What is known about problems that differ in what they see alone.
struct ProblemView {
  std::vector<const Candidate *> usable;  ///< not refused, by id
  std::vector<const Candidate *> refused; ///< whatever the sizes, by id
  /// Packages in the order of opening, the rows of each smallest bucket first.
  std::vector<TuningEntry> tuning;
};

class DeviceView {
public:
  /// \param slots  one a kernel of the catalog at least, in the order of ids
  DeviceView(std::shared_ptr<const Catalog> catalog, uint64_t generation,
             const DeviceTraits &device, std::deque<FunctionSlot> &slots);

  const Catalog &catalog() const { return *kernels; }
  /// Number of the catalog's state that this is a view of.
  uint64_t generation() const { return number; }
  const DeviceTraits &device() const { return traits; }
  /// Of all views of all contexts that ever are; never 0.
  uint64_t serial() const { return serialNumber; }

  /// The candidate of a kernel's id; null when there is no such kernel.
  const Candidate *find(uint32_t id) const {
    return id == 0 || id > candidates.size() ? nullptr : &candidates[id - 1];
  }
  /// What is known about a problem and those that differ in what they see
  /// alone; null: no package has a kernel for any.
  const ProblemView *find(const ProblemKey &problem) const {
    auto found = problems.find(problem.base());
    return found == problems.end() ? nullptr : &found->second;
  }

  /// Head dimensions, and V's, of kernels that serve smaller ones too: those
  /// with fewer columns first.
  using HeadDims = std::pair<int32_t, int32_t>;
  const std::vector<HeadDims> &cutDims() const { return dims; }

  /// The kernels, not refused, with a score program of that name or with those
  /// digits in their key.
  const std::vector<const Candidate *> &withScore(const char *program) const {
    static const auto &none = *new std::vector<const Candidate *>;
    auto found = programs.find(program);
    return found == programs.end() ? none : found->second;
  }

private:
  std::shared_ptr<const Catalog> kernels;
  uint64_t number, serialNumber;
  const DeviceTraits &traits;
  std::vector<Candidate> candidates; ///< by id
  std::unordered_map<ProblemKey, ProblemView, ProblemHash> problems;
  std::unordered_map<std::string, std::vector<const Candidate *>> programs;
  std::vector<HeadDims> dims;
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_DEVICEVIEW_H
