//===- CodeObject.h - the ELF header of a code object -----------*- C++ -*-===//
//
// Reads what must be known of an AMDGPU code object before a HIP runtime sees
// it: that it is one, complete, and which chip and code features it is for.
// Source of the numbers: LLVM, "User Guide for AMDGPU Backend", ELF Code
// Object.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_CODEOBJECT_H
#define FOVEA_PACKAGE_CODEOBJECT_H

#include "fovea/Package/Keys.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fovea {

/// Largest image, in bytes, that a package may hold.
inline constexpr uint64_t kMaxImageBytes = uint64_t(256) << 20;

/// What the header of a code object says.
struct CodeObjectInfo {
  TargetId target;           ///< chip and features it was compiled for
  int32_t codeObjectVersion; ///< 4, 5 or 6
  /// Of a generic target's code, 1 or more; 0 of a chip's.
  int32_t genericVersion = 0;
};

/// Checks magic, class, byte order, OS ABI, machine, type, chip, and that the
/// header tables and every segment lie inside the image. Corrupt when it is no
/// code object or is cut off; Incompatible when its version or chip is not
/// known, or when it is for a generic target without being of version 6 and
/// having a generic version.
Expected<CodeObjectInfo> inspectCodeObject(const void *image, size_t size);

/// The kernels of an image that inspectCodeObject() accepts, by its dynamic
/// symbols: those of descriptors ("name.kd") without their endings. Corrupt
/// when the symbols don't lie inside the image.
Expected<std::vector<std::string>> kernelsOf(const void *image, size_t size);

} // namespace fovea

#endif // FOVEA_PACKAGE_CODEOBJECT_H
