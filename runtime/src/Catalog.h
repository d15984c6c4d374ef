//===- Catalog.h - the kernels of the open packages -------------*- C++ -*-===//
//
// An immutable list of all open packages and their kernels. Opening a package
// makes the next catalog from the last; DeviceView.h has what a launch looks
// up.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_CATALOG_H
#define FOVEA_RUNTIME_SRC_CATALOG_H

#include "fovea/Package/PackageReader.h"

#include "Result.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fovea::rt {

/// A kernel to launch.
struct KernelLaunch {
  std::string suffix; ///< as in the package's record; empty: the only launch
  std::string symbol; ///< name in the code object
  int32_t blockRows;  ///< rows of a block (LaunchSpec::rowsOf)
  int32_t threads;    ///< work-items of a workgroup
};

/// A kernel of an open package, with the texts that the C interface hands out;
/// of an operation of several launches all its kernels.
struct Kernel {
  uint32_t id; ///< 1 and up, in the order of opening
  std::shared_ptr<const PackageReader> package;
  const KernelRecord *record; ///< owned by the package
  std::string problem, target;
  std::vector<KernelLaunch> launches; ///< at least one, in their order
  /// Of a kernel that splits keys: how many of a row's shares its last launch
  /// adds up at once, as costs count them.
  int64_t combinedAtOnce = 64;
  /// Of a kernel that was compiled on demand, how; else empty.
  std::string origin;

  /// For messages: "kernel 3 'symbol' (schedule) of package".
  std::string name() const;
};

struct ProblemHash {
  size_t operator()(const ProblemKey &key) const {
    size_t sum = (size_t(key.op) * 31 + size_t(key.dtype)) * 31;
    sum += size_t(key.mask);
    for (int32_t version : key.groups)
      sum = sum * 3 + size_t(version);
    sum = sum * 512 + size_t(key.headDim);
    return (sum * 31 + size_t(key.headDimV)) ^ size_t(key.score);
  }
};

/// Why a kernel could not be compiled, where another serves. What may pass is
/// tried again when as many calls have done without it as are told here: each
/// time twice as many, up to kMostCalls.
class NotMade {
public:
  static constexpr uint32_t kMostCalls = 1 << 16;

  NotMade(const std::string &chip, const ProblemKey &problem, bool split,
          const std::string &why, bool passes)
      : chip(chip), problem(problem), split(split), why(why), passes(passes) {
    putOff();
  }

  const std::string chip;
  const ProblemKey problem;
  const bool split; ///< it was to split keys
  const std::string why;
  const bool passes; ///< it may be made another time

  bool isOf(const std::string &ofChip, const ProblemKey &ofProblem,
            bool splits) const {
    return split == splits && problem == ofProblem && chip == ofChip;
  }
  /// Whether this call is to try again. Takes no lock, since launches ask.
  bool isDue() const {
    uint32_t left = calls.load(std::memory_order_relaxed);
    while (left != 0)
      if (calls.compare_exchange_weak(left, left - 1,
                                      std::memory_order_relaxed))
        return false;
    return passes;
  }
  /// It has been tried in vain, perhaps by several threads at once.
  void putOff() const {
    const uint32_t next = wait.load(std::memory_order_relaxed);
    if (uint32_t due = 0; calls.compare_exchange_strong(due, next))
      wait.store(std::min(2 * next, kMostCalls), std::memory_order_relaxed);
  }

private:
  mutable std::atomic<uint32_t> calls{0}, wait{1};
};

class Catalog {
public:
  /// This catalog and the kernels of more packages, in their order.
  /// \param origin  of these kernels
  std::shared_ptr<const Catalog>
  with(std::vector<std::shared_ptr<const PackageReader>> more,
       const std::string &origin = "") const;

  /// This catalog, which knows of a kernel that could not be compiled, and has
  /// not known that it is so for good.
  std::shared_ptr<const Catalog>
  without(std::shared_ptr<const NotMade> kernel) const;
  /// This catalog, which knows that there is no compiler, until a kernel is
  /// compiled all the same.
  std::shared_ptr<const Catalog> withoutCompiler(const std::string &why) const;
  /// Why a kernel could not be compiled; null: nothing is known of that. As
  /// long as the context.
  const NotMade *findNotMade(const std::string &chip, const ProblemKey &problem,
                             bool split) const;

  const std::vector<std::shared_ptr<const Kernel>> &kernels() const {
    return all;
  }
  const std::vector<std::shared_ptr<const PackageReader>> &
  openPackages() const {
    return packages;
  }

  /// The kernel of an id; null when there is none.
  const Kernel *find(uint32_t id) const {
    return id == 0 || id > all.size() ? nullptr : all[id - 1].get();
  }

private:
  std::vector<std::shared_ptr<const PackageReader>> packages;
  std::vector<std::shared_ptr<const Kernel>> all;
  std::vector<std::shared_ptr<const NotMade>> notMade;
  std::shared_ptr<const NotMade> noCompiler; ///< of any kernel, or null
};

/// Opens a file, or all `*.fovea` of a folder in the order of their names.
Result openPackages(const std::string &path,
                    std::vector<std::shared_ptr<const PackageReader>> &opened);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_CATALOG_H
