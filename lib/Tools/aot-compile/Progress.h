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

/// Safe from any thread.
class Progress {
public:
  /// \param total  kernels to compile
  /// \param quiet  say nothing but messages
  Progress(size_t total, bool quiet);
  ~Progress();

  /// A kernel is finished. \param line  about it, for where there is no bar
  void step(llvm::StringRef line);
  /// Text of its own lines that is always shown.
  void message(llvm::StringRef text);

private:
  void draw();
  void erase();

  size_t total, finished = 0;
  bool quiet, isTerminal;
  std::chrono::steady_clock::time_point start;
  std::mutex mutex;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_PROGRESS_H
