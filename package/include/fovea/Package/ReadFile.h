//===- ReadFile.h - files that are read whole -------------------*- C++ -*-===//
//
// How every program of the project reads a file that a person named. Needs
// nothing else of the package library but Status.h.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_READFILE_H
#define FOVEA_PACKAGE_READFILE_H

#include "fovea/Package/Status.h"

#include <cstddef>
#include <string>

namespace fovea {

/// Of texts. Specs, descriptions and reports are some KB, IR with kernels some
/// MB.
inline constexpr size_t kMostTextMiB = 64;
/// Of code objects; the largest are libraries of thousands of kernels.
inline constexpr size_t kMostImageMiB = 1024;

/// The bytes of a file or a pipe. A message reads "cannot read 'PATH': WHY".
/// NotFound: there is no such file. InvalidArgument: it has more than `mostMiB`
/// MiB, as what never ends has (/dev/zero), and these were all that was read.
/// Io: whatever else, such as that it is a folder.
Expected<std::string> readWhole(const std::string &path,
                                size_t mostMiB = kMostTextMiB);

/// Likewise, where the path "-" stands for standard input.
Expected<std::string> readFileOrStdin(const std::string &path,
                                      size_t mostMiB = kMostTextMiB);

} // namespace fovea

#endif // FOVEA_PACKAGE_READFILE_H
