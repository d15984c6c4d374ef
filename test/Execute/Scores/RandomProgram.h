//===- RandomProgram.h - score programs by chance ---------------*- C++ -*-===//

#ifndef FOVEA_TEST_RANDOMPROGRAM_H
#define FOVEA_TEST_RANDOMPROGRAM_H

#include <cstdint>
#include <string>

namespace fovea::test {

/// The text of a program of 1 to 12 ops, besides constants and conversions,
/// that ends with %s. Values stay small, and conditions are on indices: a step
/// that a rounding of the product could take the other way would be no error.
std::string randomProgram(uint64_t seed);

} // namespace fovea::test

#endif // FOVEA_TEST_RANDOMPROGRAM_H
