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

  /// Functions of which operands of WMMA were put into banks of their own.
  const llvm::StringSet<> &hintedFunctions() const { return hinted; }

private:
  llvm::StringSet<> hinted;
};

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_BACKENDPASSES_H
