//===- DryRun.h - what a build would do -------------------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_DRYRUN_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_DRYRUN_H

#include "Report.h"

namespace fovea::tools {

/// Kernels by chip and operation, how many are to be compiled, and what that
/// takes: processor time, time, memory and room.
/// \param outcomes  of each job, Current or Pending
std::string dryRunText(const Request &request,
                       llvm::ArrayRef<Outcome::Status> outcomes);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_DRYRUN_H
