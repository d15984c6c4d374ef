//===- UnifiedFormat.h - Buffer formats of GFX11 and GFX12 ------*- C++ -*-===//
//
// One number for what GFX9 calls data format and number format. Numbers and
// names: table of buffer formats in AMD's RDNA3 ISA document.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_UNIFIEDFORMAT_H
#define FOVEA_SIMULATOR_EXEC_UNIFIEDFORMAT_H

#include <cstdint>
#include <string_view>

namespace fovea::sim {

/// A run of formats with the components of one GFX9 data format: \p numbers are
/// those formats' number formats, in order.
struct UnifiedRun {
  std::string_view name; ///< "8_8" of BUF_FMT_8_8_UNORM
  uint8_t first;
  uint8_t dataFormat;
  std::string_view numbers; ///< a digit a format
};
// Number formats of GFX9: unorm, snorm, uscaled, sscaled, uint, sint, float
// = 7.
constexpr UnifiedRun kUnifiedRuns[] = {
    {"8", 1, 1, "012345"},           {"16", 7, 2, "0123457"},
    {"8_8", 14, 3, "012345"},        {"32", 20, 4, "457"},
    {"16_16", 23, 5, "0123457"},     {"10_11_11", 30, 6, "7"},
    {"11_11_10", 31, 7, "7"},        {"10_10_10_2", 32, 8, "0145"},
    {"2_10_10_10", 36, 9, "012345"}, {"8_8_8_8", 42, 10, "012345"},
    {"32_32", 48, 11, "457"},        {"16_16_16_16", 51, 12, "0123457"},
    {"32_32_32", 58, 13, "457"},     {"32_32_32_32", 61, 14, "457"},
};

/// Data format in bits 0 to 3 and number format in bits 4 to 6; 0 for numbers
/// that are no format.
constexpr uint32_t splitFormat(uint32_t unified) {
  for (const UnifiedRun &run : kUnifiedRuns)
    if (unified >= run.first && unified < run.first + run.numbers.size())
      return run.dataFormat |
             static_cast<uint32_t>(run.numbers[unified - run.first] - '0') << 4;
  return 0;
}

/// The same for a name as LLVM prints it, "[BUF_FMT_8_8_UNORM]"; 0 when it is
/// none.
constexpr uint32_t splitFormat(std::string_view name) {
  constexpr std::string_view prefix = "[BUF_FMT_";
  constexpr std::string_view numbers[] = {
      "UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "", "FLOAT"};
  if (name.substr(0, prefix.size()) != prefix || name.back() != ']')
    return 0;
  name = name.substr(prefix.size(), name.size() - prefix.size() - 1);
  size_t cut = name.rfind('_');
  if (cut == name.npos)
    return 0;
  for (const UnifiedRun &run : kUnifiedRuns)
    for (char digit : run.numbers)
      if (name.substr(0, cut) == run.name &&
          name.substr(cut + 1) == numbers[digit - '0'])
        return run.dataFormat | static_cast<uint32_t>(digit - '0') << 4;
  return 0;
}

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_UNIFIEDFORMAT_H
