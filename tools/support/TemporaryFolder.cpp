//===- TemporaryFolder.cpp - a folder for the time of a scope -------------===//

#include "TemporaryFolder.h"
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

using namespace fovea::tool;

TemporaryFolder::TemporaryFolder(const std::string &prefix) {
  std::error_code code;
  const std::filesystem::path base =
      std::filesystem::temp_directory_path(code);
  std::string pattern = (base / (prefix + "-XXXXXX")).string();
  if (!code && ::mkdtemp(pattern.data())) {
    folder = pattern;
    return;
  }
  if (!code)
    code.assign(errno, std::generic_category());
  message = "no temporary folder can be made" +
            (base.empty() ? "" : " in '" + base.string() + "'") + ": " +
            code.message() +
            "; let the environment variable TMPDIR name a folder that takes "
            "files";
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder.empty())
    std::filesystem::remove_all(folder, ignored);
}
