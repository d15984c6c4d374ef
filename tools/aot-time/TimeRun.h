//===- TimeRun.h - what to time, and predicting it --------------*- C++ -*-===//
//
// Subjects: kernels with the problems they can be given, from descriptions and
// from kernel packages. A subject at given variables is predicted on a device
// of its chip.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_TIMERUN_H
#define FOVEA_TOOLS_AOTTIME_TIMERUN_H

#include "Description.h"
#include "fovea/Simulator/Timing.h"

#include <memory>
#include <string>
#include <vector>

namespace fovea {
struct KernelRecord;
}

namespace fovea::timing {

/// A kernel, or a sequence of them, whose sizes are variables.
class Subject {
public:
  virtual ~Subject() = default;
  /// Short name, for tables.
  virtual std::string label() const = 0;
  /// The schedule's canonical text; empty where there is none.
  virtual std::string schedule() const { return ""; }
  /// The problem at the given variables. False with `error` set.
  virtual bool problem(const describe::Overrides &overrides,
                       describe::Problem &result, std::string &error) const = 0;
  /// What it computes, "forward, bf16, head dimension 128, mask none"; empty
  /// where nobody says.
  virtual std::string computed(const describe::Problem &problem) const = 0;
  /// The code object that a launch of the problem names.
  virtual bool image(const std::string &codeObject, std::string &bytes,
                     std::string &error) const = 0;
};

/// The descriptions at `path`, a file or a folder. False with `error` set when
/// there are none.
bool describedSubjects(const std::string &path,
                       std::vector<std::unique_ptr<Subject>> &subjects,
                       std::string &error);

/// Which kernels of a package, and how the tensors lie.
struct PackageQuery {
  std::string package;        ///< a file, or a folder of them
  std::string target;         ///< chip, "gfx942"; empty: all packages
  std::string op = "forward"; ///< "forward", "backward"
  std::string dtype = "bf16"; ///< "fp16", "bf16"
  int headDim = 128;
  int headDimV = 0; ///< of v and out; 0: headDim
  std::string mask = "none";   ///< or a window, as parseWindow() reads it
  /// A score program's name, or its digits; empty: kernels without one.
  std::string score;
  std::string layout = "bhsd"; ///< "bhsd", "bshd", "sbhd"
  /// A schedule's text or short name; empty: every kernel of the problem.
  std::string schedule;
};

/// The kernels of a package for one problem, a subject each. Where there are
/// several schedules, they are called s1, s2, ... in their order: their texts
/// are too long for tables. Their variables
/// are batch, heads, heads_k, seqlen, seqlen_q and seqlen_k, as is usual in
/// descriptions of attention kernels. False with `error` set.
bool packageSubjects(const PackageQuery &query,
                     std::vector<std::unique_ptr<Subject>> &subjects,
                     std::string &error);

/// Subject::computed() of attention.
std::string attentionText(const std::string &op, const std::string &dtype,
                          int64_t headDim, int64_t headDimV,
                          const std::string &mask);

/// One launch, predicted.
struct LaunchTime {
  describe::Launch launch;
  sim::KernelInfo kernel;
  sim::TimingReport report;
  double hostSeconds = 0; ///< that the prediction took
};

/// A subject at some variables, predicted.
struct SubjectTime {
  std::string label, schedule, computed;
  describe::Problem problem;
  std::string target;
  std::vector<LaunchTime> launches; ///< without those of an empty grid
  std::vector<std::string> notes;
  /// Not empty: there is no prediction, and why; lines.
  std::string error;
  bool deviceError = false; ///< the kernel failed, not the description

  double seconds() const; ///< of all launches, one after the other
  /// ... by the ensemble's members; empty unless they were asked for.
  std::vector<sim::MemberTime> members() const;
  double flops() const;   ///< that they are credited with
  double hostSeconds() const;
};

/// Predicts. What fails is told in the result's `error`.
SubjectTime predictSubject(const Subject &subject,
                           const describe::Overrides &overrides,
                           const sim::TimingOptions &options);

/// "1.5 GiB", "200 B".
std::string bytesText(double bytes);
/// "12.3 us", "4.56 ms".
std::string timeText(double seconds);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_TIMERUN_H
