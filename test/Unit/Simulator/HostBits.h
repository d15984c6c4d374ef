//===- HostBits.h - Values and their bits on the host -----------*- C++ -*-===//
//
// What registers hold, and what the host calls it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_HOSTBITS_H
#define FOVEA_TEST_UNIT_SIMULATOR_HOSTBITS_H

#include <cstdint>
#include <cstring>

namespace fovea::sim::test {

/// The bits of \p x as another type of its size.
template <class To, class From>
To as(From x) {
  static_assert(sizeof(To) == sizeof(From), "all bits, and no others");
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
inline float asFloat(uint32_t word) { return as<float>(word); }
inline uint32_t asWord(float x) { return as<uint32_t>(x); }
/// fp16 in the lower half of a word.
inline uint32_t toHalf(double x) {
  return as<uint16_t>(static_cast<_Float16>(x));
}
inline float fromHalf(uint32_t word) {
  return static_cast<float>(as<_Float16>(static_cast<uint16_t>(word)));
}

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_HOSTBITS_H
