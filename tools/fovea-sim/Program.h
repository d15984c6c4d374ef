//===- Program.h - the file of a program -------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_FOVEASIM_PROGRAM_H
#define FOVEA_TOOLS_FOVEASIM_PROGRAM_H

#include <string>

namespace fovea::foveasim {

/// Whether a program's file was found and can be run on the simulated device.
enum class ProgramState { Good, NotFound, Unusable };

/// Finds `name` as a shell would and looks at the file. When the result is not
/// Good, `text` says what is wrong and what to do; else it is the file's path.
ProgramState findProgram(const std::string &name, std::string &text);

/// A symbol's name as its source has it.
std::string demangled(const std::string &symbol);

} // namespace fovea::foveasim

#endif // FOVEA_TOOLS_FOVEASIM_PROGRAM_H
