//===- Report.h - the figures of compiled kernels ---------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_REPORT_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_REPORT_H

#include "KernelCompiler.h"
#include "Plan.h"

namespace fovea::tools {

/// How a job ended.
struct Outcome {
  enum Status { Pending, Compiled, Current, Failed } status = Pending;
  /// Figures, without artifact and image. Those of a current kernel are the
  /// package's, which knows neither spills nor the number of instructions.
  CompiledKernel kernel;
  std::string error; ///< of a failed one
};

/// A table for people: a row a job, and below it, if it is several launches, a
/// row for each.
std::string reportText(llvm::ArrayRef<Job> jobs,
                       llvm::ArrayRef<Outcome> outcomes);

/// The same as JSON; docs/AotCompile.md lists the keys.
std::string reportJson(llvm::ArrayRef<Job> jobs,
                       llvm::ArrayRef<Outcome> outcomes,
                       llvm::ArrayRef<LeftOut> leftOut);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_REPORT_H
