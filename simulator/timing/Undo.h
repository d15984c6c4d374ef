//===- Undo.h - Taking back what workgroups wrote ---------------*- C++ -*-===//
//
// Keeps what was in memory before the workgroups that are watched write to it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_TIMING_UNDO_H
#define FOVEA_SIMULATOR_TIMING_UNDO_H

#include "exec/Observer.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace fovea::sim {

/// Watches launches, behind the observers of others where there are some. What
/// is kept is one line of memory for each that is written, whatever the number
/// of writes.
class UndoLog : public ObserverFactory {
public:
  /// Who watches the next launch beside this; may be null.
  void beside(ObserverFactory *others) { Others = others; }
  std::unique_ptr<Observer> create() override;

  /// Keeps \p bytes at the device address \p address, where they are not kept
  /// yet. Called before they are written; thread safe.
  void keep(uint64_t address, uint32_t bytes);
  /// Puts back all that was kept.
  void restore();

private:
  static constexpr uint64_t kLineBytes = 64;
  struct Line {
    uint64_t kept = 0; ///< a bit for each byte
    std::array<uint8_t, kLineBytes> bytes;
  };
  ObserverFactory *Others = nullptr;
  std::mutex Mutex;
  std::unordered_map<uint64_t, Line> Lines;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_TIMING_UNDO_H
