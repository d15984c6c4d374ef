//===- Packages.h - packages that are named, or installed -------*- C++ -*-===//

#ifndef FOVEA_TOOLS_CLI_PACKAGES_H
#define FOVEA_TOOLS_CLI_PACKAGES_H

#include <string>
#include <vector>

namespace fovea::cli {

/// The packages at `path`: the file itself, or those of a folder, sorted. False
/// with `error` set when there are none.
bool packageFiles(const std::string &path, std::vector<std::string> &files,
                  std::string &error);

/// Where the installation that this program is of has its packages.
std::string installedPackages();

/// What to take where no package is named: what FOVEA_PACKAGE says, or else the
/// folder of the installed packages. False with `error` set, which says where
/// was looked, when there is nothing.
bool findPackages(std::string &path, std::string &error);

} // namespace fovea::cli

#endif // FOVEA_TOOLS_CLI_PACKAGES_H
