//===- BackendPasses.h - our passes among the backend's ---------*- C++ -*-===//

#ifndef FOVEA_LIB_TARGET_HSACO_BACKENDPASSES_H
#define FOVEA_LIB_TARGET_HSACO_BACKENDPASSES_H

#include "llvm/ADT/StringSet.h"

namespace fovea::hsaco {

/// While it lives, code that this thread sets up to be generated goes through
/// the machine passes of this library too.
class BackendPasses {
public:
  BackendPasses();
  ~BackendPasses();
  BackendPasses(const BackendPasses &) = delete;
  BackendPasses &operator=(const BackendPasses &) = delete;

  /// Functions that have a frame, and might have none if operands of WMMA began
  /// in any bank.
  const llvm::StringSet<> &framesForBanks() const { return hinted; }

private:
  llvm::StringSet<> hinted;
};

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_BACKENDPASSES_H
