//===- FaultHip.h - a HIP library whose calls fail on request ---*- C++ -*-===//
//
// libfovea_faulthip exports the HIP functions that the runtime uses and hands
// each call on to another HIP library. It counts the calls, fails those that a
// test has asked to fail, and keeps account of the modules. This is what a test
// sees of it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_FAULTS_FAULTHIP_H
#define FOVEA_TEST_FAULTS_FAULTHIP_H

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fovea::test {

/// A call that goes wrong. It is not handed on.
struct HipFault {
  std::string function; ///< empty: any
  long nth = 1;         ///< which call of the function (or of all); 1: the next
  bool forEver = false; ///< and all that follow
  /// What it returns. With 0 it gives nonsense: null for a handle or a text,
  /// `value` for a number, nothing at all for a structure.
  int error = 0;
  int value = 0;
};

struct FaultHipState {
  std::mutex mutex;
  void *library = nullptr; ///< calls go here; to be set before the first

  std::vector<HipFault> faults;
  std::vector<std::string> calls;  ///< all, in order
  std::vector<std::string> failed; ///< those that went wrong

  /// Loaded and not yet unloaded, with the device. Who resets a device removes
  /// its modules here.
  std::map<void *, int> modules;
  std::set<void *> everLoaded;
  long badUnloads = 0; ///< of what never was a module

  /// Told when a call comes in (true) and before it returns (false), so that
  /// what the library underneath does is not taken for the runtime's doing.
  void (*inside)(bool) = nullptr;
};

/// Exported by the library as `fovea_fault_hip_state`.
using FaultHipStateFn = FaultHipState *(*)();

} // namespace fovea::test

#endif // FOVEA_TEST_FAULTS_FAULTHIP_H
