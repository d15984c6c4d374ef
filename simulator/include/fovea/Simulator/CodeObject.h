//===- CodeObject.h - A loaded HSACO ----------------------------*- C++ -*-===//
//
// An AMD GPU code object (ELF, HSA code object version 4 to 6) in the simulated
// device's memory: its kernels with their resources and arguments, and its
// global variables. Loading checks everything that later code relies on; a file
// that does not hold up is refused with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CODEOBJECT_H
#define FOVEA_SIMULATOR_CODEOBJECT_H

#include "fovea/Simulator/Status.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::sim {

class Device;

/// One entry of a kernel's `.args` metadata.
struct KernelArg {
  std::string name;      ///< may be empty
  std::string kind;      ///< "by_value", "global_buffer", "hidden_block_count_x"
  std::string addressSpace; ///< "global", "local"..., may be empty
  uint32_t offset = 0;   ///< bytes from the start of the kernarg segment
  uint32_t size = 0;     ///< bytes
  bool hidden() const { return kind.compare(0, 7, "hidden_") == 0; }
};

/// What the metadata and the kernel descriptor say about one kernel.
struct KernelInfo {
  std::string name;             ///< without ".kd"
  uint64_t descriptorAddress = 0;
  uint64_t entryAddress = 0;
  uint32_t kernargSize = 0;     ///< bytes
  uint32_t kernargAlign = 8;
  uint32_t staticLdsBytes = 0;
  uint32_t privateBytes = 0;    ///< scratch of one lane
  bool usesDynamicStack = false;
  uint32_t vgprs = 0, agprs = 0, sgprs = 0;
  uint32_t waveSize = 64;
  uint32_t maxWorkgroupSize = 1024; ///< work-items
  std::array<uint32_t, 3> requiredWorkgroupSize{0, 0, 0}; ///< 0: any
  std::vector<KernelArg> args;  ///< explicit and hidden ones, by offset

  // Fields of the kernel descriptor that set up a wave.
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t codeProperties = 0;
  uint16_t kernargPreload = 0;

  /// Bytes that the caller passes: the end of the last explicit argument.
  uint32_t explicitKernargSize() const;
};

/// A variable with a symbol, in device memory.
struct GlobalVariable {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
};

/// A code object of one device. Immutable after loading; its memory is freed
/// with the last reference.
class CodeObject {
public:
  /// Loads \p bytes of ELF at \p data into the memory of \p device.
  /// Errors: InvalidImage, TargetMismatch, OutOfMemory.
  static Status load(const std::shared_ptr<Device> &device, const void *data,
                     size_t bytes, std::shared_ptr<CodeObject> &result);
  ~CodeObject();
  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;

  const std::vector<KernelInfo> &kernels() const;
  const std::vector<GlobalVariable> &globals() const;
  const KernelInfo *findKernel(std::string_view name) const;
  const GlobalVariable *findGlobal(std::string_view name) const;
  /// As the metadata states it: "amdgcn-amd-amdhsa--gfx942".
  const std::string &targetId() const;
  const std::shared_ptr<Device> &device() const;

  /// Instructions in the code that the simulator cannot execute, as mnemonics,
  /// each once. Looks at all code in order, also at what no kernel reaches.
  std::vector<std::string> unsupportedInstructions() const;

  struct Impl;
  Impl &impl() const { return *Self; } ///< for the simulator itself

private:
  CodeObject();
  std::unique_ptr<Impl> Self;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CODEOBJECT_H
