//===- Checksum.h - of a row of a package -----------------------*- C++ -*-===//

#ifndef FOVEA_PACKAGE_SRC_CHECKSUM_H
#define FOVEA_PACKAGE_SRC_CHECKSUM_H

#include "fovea/Package/Package.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fovea::db {

/// XXH3-64 over values with their sizes, so that no two rows that differ
/// present the same bytes.
class Checksum {
public:
  Checksum() { XXH3_64bits_reset(&state); }
  Checksum &add(int64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i != 8; ++i)
      bytes[i] = uint8_t(uint64_t(value) >> (8 * i));
    XXH3_64bits_update(&state, bytes, sizeof(bytes));
    return *this;
  }
  Checksum &add(double value) {
    int64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return add(bits);
  }
  Checksum &add(const std::string &value) {
    add(int64_t(value.size()));
    XXH3_64bits_update(&state, value.data(), value.size());
    return *this;
  }
  Checksum &add(const ImageHash &hash) {
    XXH3_64bits_update(&state, hash.data(), hash.size());
    return *this;
  }
  int64_t value() const { return int64_t(XXH3_64bits_digest(&state)); }

private:
  XXH3_state_t state;
};

} // namespace fovea::db

#endif // FOVEA_PACKAGE_SRC_CHECKSUM_H
