//===- WriteFile.h - files that appear whole or not at all ------*- C++ -*-===//
//
// How every program of the project writes a file. Needs nothing else of the
// package library.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_WRITEFILE_H
#define FOVEA_PACKAGE_WRITEFILE_H

#include <string>
#include <string_view>
#include <system_error>

namespace fovea {

/// A new name in the folder of `path`, for what becomes `path` when it is
/// whole. It does not grow with the file's name: a name may have 255 bytes, so
/// that one of 250 takes no suffix.
std::string temporaryBeside(const std::string &path);

/// Writes a file whole or not at all: under a temporary name, which is then
/// changed. Where that fails, a file that was there before is as it was. A
/// device or a pipe takes the bytes as they come.
std::error_code writeWhole(const std::string &path, std::string_view content);

} // namespace fovea

#endif // FOVEA_PACKAGE_WRITEFILE_H
