//===- DataTypes.h - types of elements --------------------------*- C++ -*-===//
//
// The one table of the types that kernels have. Keys, front ends, reference and
// tools ask it for names, sizes and formats.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_DATATYPES_H
#define FOVEA_PACKAGE_DATATYPES_H

#include <cstdint>
#include <string_view>

namespace fovea {

enum class DataType { F16, BF16, F32 };

/// A type of elements: a sign, an exponent and a fraction, as IEEE 754 has
/// them.
struct DataTypeInfo {
  DataType type;
  const char *name;      ///< in keys and on command lines: "fp16"
  const char *otherName; ///< understood too; null: none
  const char *ir;        ///< in IR and in kernel descriptions: "f16"
  int32_t bits, exponentBits, fractionBits;
  int32_t number;     ///< FOVEA_DTYPE_... of fovea.h
  const char *symbol; ///< and its name
};
/// In the order of DataType.
inline constexpr DataTypeInfo kDataTypes[] = {
    {DataType::F16, "fp16", "f16", "f16", 16, 5, 10, 1, "FOVEA_DTYPE_F16"},
    {DataType::BF16, "bf16", nullptr, "bf16", 16, 8, 7, 2, "FOVEA_DTYPE_BF16"},
    {DataType::F32, "fp32", "f32", "f32", 32, 8, 23, 3, "FOVEA_DTYPE_F32"},
};
inline constexpr const DataTypeInfo &dataTypeInfo(DataType type) {
  return kDataTypes[static_cast<int>(type)];
}
/// By either name; null: none.
inline constexpr const DataTypeInfo *findDataType(std::string_view name) {
  for (const DataTypeInfo &info : kDataTypes)
    if (name == info.name || (info.otherName && name == info.otherName))
      return &info;
  return nullptr;
}
/// FOVEA_DTYPE_... of a type; -1, which the library refuses, for a value that
/// is none.
inline constexpr int32_t dataTypeNumber(DataType type) {
  for (const DataTypeInfo &info : kDataTypes)
    if (info.type == type)
      return info.number;
  return -1;
}

/// Size of an element in bytes.
inline constexpr int64_t elementSize(DataType type) {
  return dataTypeInfo(type).bits / 8;
}

} // namespace fovea

#endif // FOVEA_PACKAGE_DATATYPES_H
