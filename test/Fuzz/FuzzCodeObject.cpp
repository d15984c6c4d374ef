//===- FuzzCodeObject.cpp - any bytes as a code object --------------------===//
//
// Loading must end in a Status; what it accepts must answer every question and
// decode from end to end, and leave no memory behind.
//
//===----------------------------------------------------------------------===//

#include "FuzzChips.h"
#include "fovea/Simulator/CodeObject.h"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (const auto &device : test::fuzzDevices()) {
    std::shared_ptr<sim::CodeObject> code;
    const sim::Status status = sim::CodeObject::load(device, data, size, code);
    if (status.ok() != (code != nullptr) ||
        (!status && status.message().empty()))
      __builtin_trap();
    if (code) {
      for (const sim::KernelInfo &kernel : code->kernels())
        if (kernel.explicitKernargSize() > kernel.kernargSize ||
            code->findKernel(kernel.name) == nullptr)
          __builtin_trap();
      // The host copies to and from variables: they must be memory.
      for (const sim::GlobalVariable &variable : code->globals()) {
        sim::Allocation found;
        if (variable.size != 0 &&
            (!device->memory().find(variable.address, found) ||
             !found.contains(variable.address, variable.size)))
          __builtin_trap();
      }
      (void)code->unsupportedInstructions();
    }
    code.reset();
    if (device->memory().used() != 0)
      __builtin_trap();
  }
  return 0;
}
