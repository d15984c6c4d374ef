//===- Log.h - the runtime's log --------------------------------*- C++ -*-===//

#ifndef FOVEA_RUNTIME_SRC_LOG_H
#define FOVEA_RUNTIME_SRC_LOG_H

#include "fovea/fovea.h"

#include <cstdio>
#include <string>

namespace fovea::rt {

enum class LogLevel { Off, Info, Dispatch };

/// Where lines go, and which are wanted.
struct Log {
  LogLevel level = LogLevel::Off;
  fovea_log_fn function = nullptr;
  void *user = nullptr;

  bool wants(LogLevel wanted) const {
    return static_cast<int>(level) >= static_cast<int>(wanted);
  }
  void line(LogLevel wanted, const std::string &text) const {
    if (!wants(wanted))
      return;
    const std::string whole = "fovea: " + text;
    if (function)
      function(user, whole.c_str());
    else
      std::fprintf(stderr, "%s\n", whole.c_str());
  }
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_LOG_H
