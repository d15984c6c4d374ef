//===- Npy.h - arrays in NumPy's file format --------------------*- C++ -*-===//
//
// Reads and writes .npy files, version 1 to 3. Source: NumPy's description of
// the format (numpy.lib.format).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_NPY_H
#define FOVEA_TOOLS_DESCRIBE_NPY_H

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::run {

/// An array in C order.
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// Reads float16, float32, float64 ('<f2', '<f4', '<f8'), and bfloat16 as raw
/// 16-bit words ('<u2', '<V2', '|V2', as ml_dtypes saves them). False with
/// `error` set when the file is damaged or holds something else.
bool readNpy(const std::string &path, NpyArray &array, std::string &error);

/// Writes float32. False with `error` set when the file can't be written.
bool writeNpy(const std::string &path, const std::vector<int64_t> &shape,
              const std::vector<float> &values, std::string &error);

} // namespace fovea::run

#endif // FOVEA_TOOLS_DESCRIBE_NPY_H
