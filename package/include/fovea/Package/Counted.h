//===- Counted.h - numbers of things in messages ----------------*- C++ -*-===//

#ifndef FOVEA_PACKAGE_COUNTED_H
#define FOVEA_PACKAGE_COUNTED_H

#include <cstdint>
#include <string>

namespace fovea {

/// "1 kernel", "2 kernels", for things whose plural ends in s.
inline std::string counted(uint64_t count, const std::string &thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

} // namespace fovea

#endif // FOVEA_PACKAGE_COUNTED_H
