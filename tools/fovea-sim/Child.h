//===- Child.h - the program that is run --------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_FOVEASIM_CHILD_H
#define FOVEA_TOOLS_FOVEASIM_CHILD_H

#include <string>
#include <vector>

namespace fovea::foveasim {

/// How a program ended.
struct Ending {
  int status = 0; ///< its exit status
  int signal = 0; ///< not 0: what ended it
  /// As a shell says it: the status, or 128 and the signal.
  int shellStatus() const { return signal ? 128 + signal : status; }
};

/// From here on signals that ask this process to end wait for runProgram(). To be
/// called while there is one thread: others inherit this, and leave them to it.
void holdSignals();

/// Runs the file `path` with this process's environment and these arguments, the
/// first of which is its name, and waits for it. Signals that ask this process to
/// end go to the program. False, with `error`: it could not be started.
bool runProgram(const std::string &path,
                const std::vector<std::string> &arguments, Ending &ending,
                std::string &error);

} // namespace fovea::foveasim

#endif // FOVEA_TOOLS_FOVEASIM_CHILD_H
