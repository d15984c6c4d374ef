//===- WriteFile.cpp - files that appear whole or not at all --------------===//

#include "fovea/Package/WriteFile.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace fovea {
namespace {

std::error_code lastError() {
  return std::error_code(errno, std::generic_category());
}

/// Writes all and closes. Some file systems say only then that there is no
/// room.
std::error_code fill(int file, std::string_view content) {
  std::error_code error;
  while (!error && !content.empty()) {
    const ssize_t wrote = ::write(file, content.data(), content.size());
    if (wrote >= 0)
      content.remove_prefix(size_t(wrote));
    else if (errno != EINTR)
      error = lastError();
  }
  if (::close(file) != 0 && !error)
    error = lastError();
  return error;
}

} // namespace

std::string temporaryBeside(const std::string &path) {
  static std::atomic<unsigned> count{0};
  const size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string::npos ? 0 : slash + 1) +
         ".fovea-" + std::to_string(::getpid()) + "-" +
         std::to_string(count++) + ".tmp";
}

std::error_code writeWhole(const std::string &given, std::string_view content) {
  // Of a link, the file that it names: a rename would take the link's place.
  const std::unique_ptr<char, void (*)(void *)> real(
      ::realpath(given.c_str(), nullptr), std::free);
  const std::string path = real ? real.get() : given;
  struct stat before;
  const bool isThere = ::stat(path.c_str(), &before) == 0;
  if (isThere && !S_ISREG(before.st_mode)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file < 0 ? lastError() : fill(file, content);
  }
  // A name that is taken is another process's, or what a killed one left.
  std::string name;
  int file;
  do {
    name = temporaryBeside(path);
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  if (file < 0)
    return lastError();
  if (isThere)
    (void)::fchmod(file, before.st_mode & 0777);
  std::error_code error = fill(file, content);
  if (!error && ::rename(name.c_str(), path.c_str()) != 0)
    error = lastError();
  if (error)
    (void)::unlink(name.c_str());
  return error;
}

} // namespace fovea
