//===- Progress.h - how far a build is --------------------------*- C++ -*-===//
//
// A bar that is drawn over on a terminal, plain lines elsewhere; both on
// standard error, so that standard output is the result alone.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_PROGRESS_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <mutex>
#include <string>

namespace fovea::tools {

/// "47 s", "5 min 10 s", "2 h 5 min".
std::string durationText(double seconds);

/// Safe from any thread.
class Progress {
public:
  /// \param total  kernels to compile
  /// \param cost   of all of them, in the unit of step()
  /// \param quiet  say nothing but messages
  Progress(size_t total, double cost, bool quiet);
  ~Progress();

  /// A kernel is finished, or has failed. \param cost  what it was expected to
  /// take. \param line  about it, for where there is no bar
  void step(double cost, bool failed, llvm::StringRef line);
  /// Text of its own lines that is always shown.
  void message(llvm::StringRef text);

private:
  std::string rate();
  void draw();
  void erase();

  size_t total, finished = 0, failures = 0;
  /// The time that remains is the time so far, by the cost of what is done and
  /// what is not: the estimates need to be right among themselves alone.
  double cost, finishedCost = 0;
  bool quiet, isTerminal;
  std::chrono::steady_clock::time_point start, lastRate;
  std::mutex mutex;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_PROGRESS_H
