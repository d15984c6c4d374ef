//===- Options.h - aot-compile's command line -------------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_OPTIONS_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_OPTIONS_H

#include "Axes.h"
#include "Request.h"
#include "llvm/Support/Error.h"

namespace fovea::tools {

/// What the command line asks for.
struct CommandLine {
  bool listTargets = false; ///< print the chips, nothing else
  bool listScores = false;  ///< print the score programs, nothing else
  Request request;
};

/// Reads and checks a command line, and the spec or input file that it names.
/// The error has a line for everything that is wrong. --help and --version
/// print and leave the process, as LLVM's tools do.
llvm::Expected<CommandLine> parseCommandLine(int argc, char **argv);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_OPTIONS_H
