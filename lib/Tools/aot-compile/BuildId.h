//===- BuildId.h - which compiler this is -----------------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H

#include <string>

namespace fovea::tools {

/// Name and version of the program, e.g. "aot-compile 0.2.0".
std::string compilerName();

/// Names everything that decides what a kernel's code is, other than the job:
/// the code of our passes, and which builds of LLVM and MLIR are loaded. Equal
/// texts, equal kernels.
std::string compilerBuildId();

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H
