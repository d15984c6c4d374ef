//===- Abi.cpp - versions of kernel arguments -----------------------------===//

#include "fovea/Package/BackwardAbi.h"
#include "fovea/Package/Package.h"

int32_t fovea::abiVersionOf(Operation op) {
  return op == Operation::Forward ? abi::kForwardAbiVersion
                                  : abi::kBackwardAbiVersion;
}
