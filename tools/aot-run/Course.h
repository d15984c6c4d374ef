//===- Course.h - from a case to its results --------------------*- C++ -*-===//
//
// The course that a pass of any operation takes: libfovea is asked for a
// kernel, tensors get memory, are filled (by the caller), copied, worked on,
// copied back and looked over. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_COURSE_H
#define FOVEA_TOOLS_AOTRUN_COURSE_H

#include "Sequences.h"
#include "SessionImpl.h"
#include "Tensors.h"

namespace fovea::run {

template <typename Params>
class Course {
public:
  /// What is given must outlive it; a failure is kept in `report`.
  Course(Session::Impl &session, const ForwardCase &problem,
         const RunOptions &options, RunReport &report)
      : tensors(Calls::op, problem), problem(problem), session(session),
        options(options), report(report) {
    fillSizes(problem, params, groups);
    params.kernel = options.kernel;
  }
  Course(const Course &) = delete;

  Tensors tensors;
  Params params = {}; ///< what no table has is the caller's to set

  /// Asks for a kernel and takes memory on the host; false: refused.
  bool choose() {
    // The library's limits come before any memory is taken.
    tensors.describe(&params, groups);
    plan.struct_size = sizeof(plan);
    if (Calls::select(session.context, &params, session.device, &plan)) {
      fail(report, Outcome::Refused, fovea_last_message());
      return false;
    }
    report.kernel = fovea_last_message();
    if (!session.fitsMemory(tensors.bytes(), report))
      return false;
    report.launched = plan.kernel != 0;
    tensors.allocate(session.guardBytes(options.guards), plan.workspace_bytes);
    for (const CaseGroup &group : problem.groups)
      if (!group.option->tensors.empty() &&
          specOf(*group.option).isOf(Calls::op))
        for (size_t part = 0; part != countParts(problem); ++part) {
          const std::vector<double> elements =
              elementsOf(partOf(problem, part), group);
          tensors.setVector(specOf(*group.option).tensors[0].name,
                            {elements.begin(), elements.end()}, part);
        }
    return true;
  }
  /// Of the kernel that was chosen; 0: there is nothing to compute.
  uint32_t kernel() const { return plan.kernel; }
  const auto &chosen() const { return plan; }

  /// Computes from the tensors what they hold afterwards; false: it failed.
  bool run() {
    if (!session.check("allocating and copying the tensors",
                       tensors.upload(session.hip), report))
      return false;
    tensors.setAddresses(&params, groups);
    params.workspace_bytes = plan.workspace_bytes;
    auto enqueue = [&] {
      return Calls::enqueue(session.context, &params, nullptr);
    };
    if (!session.launch(options, enqueue, report) ||
        !session.check("copying the results", tensors.download(), report))
      return false;
    for (const std::string &change : tensors.changes())
      fail(report, Outcome::Mismatch, change);
    return true;
  }

private:
  using Calls = params::Interface<Params>;
  const ForwardCase &problem;
  Session::Impl &session;
  const RunOptions &options;
  RunReport &report;
  CallGroups groups; ///< that params may point to
  typename Calls::Plan plan = {};
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_COURSE_H
