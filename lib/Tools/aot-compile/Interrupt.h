//===- Interrupt.h - SIGINT and SIGTERM of a build --------------*- C++ -*-===//
//
// A build that is told to stop finishes the kernels that it is at, a second or
// so, and says how to go on. Told once more, it ends at once; nothing is lost
// then but these kernels.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_INTERRUPT_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_INTERRUPT_H

namespace fovea::tools {

/// Watches for the signals as long as it lives; one at a time. Files that grow
/// past a limit are errors of their writes meanwhile, as a full disk's are, and
/// not SIGXFSZ.
class Interrupt {
public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt &) = delete;
  Interrupt &operator=(const Interrupt &) = delete;

  /// The signal that came, or 0.
  int signal() const;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_INTERRUPT_H
