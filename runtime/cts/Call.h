//===- Call.h - a problem as a call of the C interface ----------*- C++ -*-===//
//
// Memory and parameters of a call, by the tables of its operation, so that
// cases can be made of every row of them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_CTS_CALL_H
#define FOVEA_RUNTIME_CTS_CALL_H

#include "Buffer.h"

#include <memory>
#include <variant>

namespace fovea::cts {

class Call {
public:
  /// Takes memory for all tensors and fills it in. A tensor of the table
  /// without a field is GoogleTest's failure. The problem must outlive it.
  explicit Call(const Problem &problem);
  Call(const Call &) = delete;

  /// The operation's structure, which may be changed.
  std::variant<fovea_forward_params_t, fovea_backward_params_t> parameters;
  void *params() {
    return std::visit([](auto &p) -> void * { return &p; }, parameters);
  }

  /// Asks for a kernel.
  fovea_status_t select();
  /// Takes the workspace that the last select() has told.
  void allocateWorkspace();
  fovea_status_t enqueue();

  /// Waits for the end, and checks what may not have changed.
  Results finish();

private:
  const Problem &problem;
  std::vector<std::unique_ptr<Buffer>> buffers;
  uint64_t workspaceBytes = 0;
  std::optional<Guarded> workspace;
  std::vector<std::vector<unsigned char>> groups; ///< linked copies
};

} // namespace fovea::cts

#endif // FOVEA_RUNTIME_CTS_CALL_H
