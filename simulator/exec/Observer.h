//===- Observer.h - Watching a launch from outside --------------*- C++ -*-===//
//
// What checkers and the timing model see of a running kernel: every instruction
// before and after it executes, and the places that memory instructions touch.
// Launches without observers do not pay for them: waves are then run by another
// loop, and memory instructions test one pointer.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_OBSERVER_H
#define FOVEA_SIMULATOR_EXEC_OBSERVER_H

#include "exec/Wave.h"

#include <memory>

namespace fovea::sim {

/// One memory instruction's places, known and within bounds, before data moves.
struct MemoryAccess {
  enum Space : uint8_t { Global, Lds, Scratch };
  enum Kind : uint8_t { Load, Store, Atomic };
  Space space = Global;
  Kind kind = Load;
  bool scalar = false;   ///< one place for the whole wave (lane 0)
  uint32_t bytes = 0;    ///< of each lane
  uint64_t mask = 0;     ///< lanes that take part
  /// By lane: a device address, an offset in the workgroup's LDS, or an offset
  /// in the lane's own scratch.
  const uint64_t *address = nullptr;
};

/// Watches the workgroups that one host thread runs, one after the other.
/// Functions that take a Wave may end it with Wave::fail().
class Observer {
public:
  virtual ~Observer();
  /// \p waves: the \p count waves of the workgroup, set up and not started.
  virtual void beginGroup(Group &group, Wave *waves, unsigned count);
  /// All waves have ended. Not called for a group in which one failed.
  virtual void endGroup(Group &group);
  /// The instruction at dword \p index is about to execute.
  virtual void before(Wave &wave, const MicroOp &op, uint32_t index) = 0;
  /// It has executed, and the wave has not failed.
  virtual void after(Wave &wave, const MicroOp &op, uint32_t index);
  /// Between before() and after(), once for each access that the instruction
  /// makes: two for ds_read2 and for loads that go to LDS.
  virtual void access(Wave &wave, const MicroOp &op, const MemoryAccess &access);
  /// All live waves of the group have arrived at a barrier and go on.
  virtual void barrier(Group &group);
};

/// Tells the group's observer of an access by the lanes of \p mask to the host
/// addresses \p place, \p bytes each; they may lie in device memory, LDS and the
/// lanes' scratch (FLAT). True when the wave goes on.
bool observeAccess(Wave &wave, const MicroOp &op, MemoryAccess::Kind kind,
                   uint64_t mask, const uint64_t *place, uint32_t bytes);

/// The same for one access of the whole wave to device memory.
bool observeScalar(Wave &wave, const MicroOp &op, MemoryAccess::Kind kind,
                   uint64_t address, uint32_t bytes);

/// Makes one observer for each host thread of a launch; called by these threads.
class ObserverFactory {
public:
  virtual ~ObserverFactory();
  virtual std::unique_ptr<Observer> create() = 0;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_OBSERVER_H
