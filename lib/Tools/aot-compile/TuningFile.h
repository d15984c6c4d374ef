//===- TuningFile.h - tuning rows that a spec takes along -------*- C++ -*-===//
//
// A spec may name a folder with a file of tuning rows for each chip, as
// aot-tune writes them. The kernels that the rows take are compiled with the
// others, and the rows go into the package.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_TUNINGFILE_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_TUNINGFILE_H

#include "Axes.h"

namespace fovea::tools {

/// Reads `<folder>/<chip>.json` for the jobs that name a folder, gives each the
/// rows that take it, and appends the kernels that rows take and nothing asks
/// for. A chip without a file takes that of the chip that it is tuned as.
/// Kernels with feature groups take the rows of the problem without, if there
/// are none of their own. Rows of problems that nothing asks for are left
/// alone, as are chips that the folder has no file for.
void addTuningRows(std::vector<Job> &jobs, Complaints &complaints);

/// The problem of the kernel that has no data of feature groups.
ProblemKey withoutGroups(ProblemKey key);

/// Whether kernels have narrow sums: they and others choose among their own
/// rows.
bool sumsNarrowly(OpKind op, const ScheduleOverrides &overrides);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_TUNINGFILE_H
