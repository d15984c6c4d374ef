//===- Axes.h - lists of values into kernels --------------------*- C++ -*-===//
//
// Options and spec files both give lists of targets, types, head dimensions,
// masks and feature groups; the kernels are their product. One place checks the
// values and says what is possible.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_AXES_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_AXES_H

#include "Request.h"
#include <set>

namespace fovea::tools {

/// The mask of a kernel that takes any mask and window at run time, which is
/// what is compiled unless another is asked for.
inline constexpr llvm::StringLiteral kAnyMask = "any";
/// Feature groups besides: none.
inline constexpr llvm::StringLiteral kNoGroups = "none";

/// A value as it was written, and where: "--dtype", "spec.json:4: dtypes[1]".
struct Item {
  std::string text, where;
};

/// A wrong value each line; nothing is compiled if there is one.
class Complaints {
public:
  /// Once, also of what several objects of a spec share.
  void add(llvm::StringRef where, const llvm::Twine &message) {
    std::string line = (where + ": " + message + "\n").str();
    if (said.insert(line).second)
      text += line;
  }
  bool any() const { return !text.empty(); }
  const std::string &str() const { return text; }

private:
  std::string text;
  std::set<std::string> said;
};

/// The lists. Each needs a value, but schedules: none is "as chosen", and head
/// dimensions where no operation is of attention.
struct Axes {
  std::vector<Item> targets, ops, dtypes, headDims, masks, groups;
  std::vector<Item> headDimsV; ///< none: each is as the other
  std::vector<Item> onlyTargets; ///< others of `targets` are left out; none: all
  Item noHeadDims; ///< the complaint where there have to be some and are none
  std::vector<ScheduleOverrides> schedules;
  std::string where;            ///< for Job::where
  bool skipUnsupported = false; ///< for Job::skipUnsupported
  std::string tuning;           ///< for Job::tuning
  std::shared_ptr<const ScoreChoice> scores; ///< for Job::scores
  /// Of which captures backward kernels give the gradients; empty: none.
  Item scoreGradients;
  Item storedGradients; ///< likewise, stored and not added up
};

/// Appends the product of the lists, targets outermost. A value that a list has
/// twice, in whatever spelling, is a mistake; chips of two families are not.
void addJobs(const Axes &axes, std::vector<Job> &jobs, Complaints &complaints);

/// Drops kernels that are in the list already: objects of a spec may meet.
/// What one of them does not let be left out is not left out.
/// \return how many there were
size_t dropRepeats(std::vector<Job> &jobs);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_AXES_H
