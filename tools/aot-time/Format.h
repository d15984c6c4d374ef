//===- Format.h - printf into a string --------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTTIME_FORMAT_H
#define FOVEA_TOOLS_AOTTIME_FORMAT_H

#include <string>

namespace fovea::timing {

/// As printf; for figures and words, not for names, which may be longer than it
/// takes.
__attribute__((format(printf, 1, 2))) std::string format(const char *text, ...);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_FORMAT_H
