//===- Module.h - loaded code objects and their kernels ---------*- C++ -*-===//
//
// What module and function handles stand for.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_MODULE_H
#define FOVEA_HIPSIM_MODULE_H

#include "Runtime.h"

#include "fovea/Simulator/CodeObject.h"

namespace fovea::hipsim {

/// One kernel of a module; its address is the hipFunction_t.
struct Function {
  std::shared_ptr<sim::CodeObject> code;
  const sim::KernelInfo *kernel = nullptr;
  int device = 0;
  /// Set by hipFuncSetAttribute; at most the chip's LDS.
  int maxDynamicLds = 0;
};

/// The function of a live handle.
Result findFunction(hipFunction_t handle, std::shared_ptr<Function> &function);

/// "forward_kernel of device 0".
std::string describe(const Function &function);

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_MODULE_H
