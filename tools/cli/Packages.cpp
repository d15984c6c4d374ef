//===- Packages.cpp - packages that are named, or installed ---------------===//

#include "Packages.h"

#include "fovea/Package/Package.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

using namespace fovea;

bool cli::packageFiles(const std::string &path, std::vector<std::string> &files,
                       std::string &error) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) {
    files.push_back(path);
    return true;
  }
  const size_t before = files.size();
  for (std::filesystem::directory_iterator entry(path, code), end;
       !code && entry != end; entry.increment(code))
    if (entry->path().extension() == kPackageExtension)
      files.push_back(entry->path().string());
  std::sort(files.begin() + ptrdiff_t(before), files.end());
  if (files.size() == before)
    error = "folder '" + path + "' holds no package (*" + kPackageExtension +
            "); make one with aot-compile --emit=package";
  return files.size() != before;
}

std::string cli::installedPackages() {
  std::error_code ignored;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path() / FOVEA_INSTALLED_KERNELS)
      .lexically_normal()
      .string();
}

bool cli::findPackages(std::string &path, std::string &error) {
  if (const char *named = std::getenv("FOVEA_PACKAGE"); named && *named) {
    path = named;
    return true;
  }
  const std::string installed = installedPackages();
  std::vector<std::string> files;
  std::string none;
  std::error_code code;
  if (std::filesystem::is_directory(installed, code) &&
      packageFiles(installed, files, none)) {
    path = installed;
    return true;
  }
  error = "no package is named, here or by FOVEA_PACKAGE, and none is in '" +
          installed +
          "', where an installation has them; aot-compile "
          "--emit=package makes one";
  return false;
}
