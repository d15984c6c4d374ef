//===- CodeObjectImpl.h - What a loaded code object holds -------*- C++ -*-===//
//
// The simulator's own view of a code object: where its segments lie in device
// memory, and its decoded program.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_CODEOBJECTIMPL_H
#define FOVEA_SIMULATOR_DECODE_CODEOBJECTIMPL_H

#include "decode/Program.h"
#include "fovea/Simulator/CodeObject.h"

namespace fovea::sim {

struct CodeObject::Impl {
  std::shared_ptr<Device> Dev;
  uint64_t Base = 0, Span = 0; ///< all segments, in device memory
  uint64_t TextBegin = 0, TextEnd = 0;
  std::string Target;
  std::vector<KernelInfo> Kernels;
  std::vector<GlobalVariable> Globals;
  std::vector<std::unique_ptr<Program>> Programs; ///< one for each wave size

  Status createProgram();
  /// The code as kernels with waves of \p waveSize lanes execute it.
  Program &program(unsigned waveSize) const;
  ~Impl();
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_CODEOBJECTIMPL_H
