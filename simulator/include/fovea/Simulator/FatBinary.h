//===- FatBinary.h - Code objects inside other files ------------*- C++ -*-===//
//
// Finds the code object that suits a device in what programs hand over: the ELF
// file itself, or clang's offload bundle of code objects for several targets,
// plain ("__CLANG_OFFLOAD_BUNDLE__") or compressed ("CCOB", with zlib or zstd).
// Nothing in an image is trusted. Formats: LLVM's clang-offload-bundler page.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_FATBINARY_H
#define FOVEA_SIMULATOR_FATBINARY_H

#include "fovea/Simulator/Chip.h"
#include "fovea/Simulator/Status.h"

#include <cstdint>
#include <vector>

namespace fovea::sim {

/// An image somewhere in this process's memory, read with checks only.
class ImageBytes {
public:
  /// The \p size bytes at \p data.
  static ImageBytes sized(const void *data, uint64_t size) {
    return {static_cast<const uint8_t *>(data), size, false};
  }
  /// An image whose size its owner does not say (hipModuleLoadData): the kernel
  /// of the host's system copies it, so that a wrong size in a header ends in a
  /// failed read and not in a signal.
  static ImageBytes unsized(const void *data) {
    return {static_cast<const uint8_t *>(data), UINT64_MAX, true};
  }

  /// Copies \p bytes at \p offset; false when the image does not reach so far.
  bool read(uint64_t offset, void *to, uint64_t bytes) const;
  /// The size, or UINT64_MAX when nobody said it.
  uint64_t size() const { return Size; }

private:
  ImageBytes(const uint8_t *data, uint64_t size, bool probe)
      : Data(data), Size(size), Probe(probe) {}
  const uint8_t *Data;
  uint64_t Size;
  bool Probe;
};

/// Copies the code object that suits \p chip best out of \p image. An ELF file
/// is taken as it is: CodeObject::load() checks its target.
/// Errors: InvalidImage; TargetMismatch, naming what the bundle has.
Status extractCodeObject(const ImageBytes &image, const ChipInfo &chip,
                         std::vector<uint8_t> &elf);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_FATBINARY_H
