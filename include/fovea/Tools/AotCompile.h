//===- AotCompile.h - the aot-compile driver --------------------*- C++ -*-===//
//
// From a description of attention problems to code objects, any form on the way
// to them, kernel packages and reports. docs/AotCompile.md is its manual.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTCOMPILE_H
#define FOVEA_TOOLS_AOTCOMPILE_H

namespace fovea::tools {

/// Runs the driver on a command line.
/// \return 0: all done; 1: a kernel failed or could not be stored, the others
/// are kept; 2: the request is wrong or impossible, and nothing was compiled;
/// 128 + n: signal n, SIGINT or SIGTERM, ended it early, what was finished is
/// kept.
int runAotCompile(int argc, char **argv);

} // namespace fovea::tools

#endif // FOVEA_TOOLS_AOTCOMPILE_H
