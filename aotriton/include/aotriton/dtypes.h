//===- dtypes.h - element types of tensors ----------------------*- C++ -*-===//
//
// The numbers by which clients name element types. All are declared; attention
// is served for kFloat32, kFloat16 and kBFloat16.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_DTYPES_H
#define FOVEA_AOTRITON_DTYPES_H

#include <aotriton/config.h>
#include <cstdint>

namespace AOTRITON_NS {

enum AOTRITON_API DType : int32_t {
  kUnknown = 0,
  // Floating point.
  kFloat32 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  // Integers with a sign.
  kInt8 = 10,
  kInt16 = 11,
  kInt32 = 12,
  kInt64 = 13,
  // Integers without.
  kUInt8 = 20,
  kUInt16 = 21,
  kUInt32 = 22,
  kUInt64 = 23,
};

} // namespace AOTRITON_NS

#endif // FOVEA_AOTRITON_DTYPES_H
