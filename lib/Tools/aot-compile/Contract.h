//===- Contract.h - the launch contract of a kernel -------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_CONTRACT_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_CONTRACT_H

#include "KernelCompiler.h"

namespace fovea::tools {

/// What anyone needs to launch a job's kernels without our runtime, as JSON:
/// symbols, grids, workgroups, LDS, every argument, and the conditions of a
/// launch. Sizes are those of the code object. docs/AotCompile.md lists the
/// keys.
std::string contractJson(const Job &job, const CompiledKernel &kernel);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_CONTRACT_H
