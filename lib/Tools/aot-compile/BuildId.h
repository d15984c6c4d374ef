//===- BuildId.h - which compiler this is -----------------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H

#include "fovea/Tools/BuildKernel.h" // compilerBuildId()
#include <string>

namespace fovea::tools {

/// Name and version of the program, e.g. "aot-compile 0.2.0".
std::string compilerName();

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_BUILDID_H
