//===- FullGrids.h - what is run where there is time ------------*- C++ -*-===//

#ifndef FOVEA_TEST_SUPPORT_FULLGRIDS_H
#define FOVEA_TEST_SUPPORT_FULLGRIDS_H

#include <cstdlib>
#include <string_view>

namespace fovea::test {

/// Whether all is run (FOVEA_FULL_GRIDS=1), and not what CI has time for.
inline bool runsFullGrids() {
  const char *value = std::getenv("FOVEA_FULL_GRIDS");
  return value && *value && std::string_view(value) != "0";
}

} // namespace fovea::test

#endif // FOVEA_TEST_SUPPORT_FULLGRIDS_H
