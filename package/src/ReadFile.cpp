//===- ReadFile.cpp - files that are read whole ---------------------------===//

#include "fovea/Package/ReadFile.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace fovea {
namespace {

Status refuse(StatusCode code, const std::string &path,
              const std::string &why) {
  return Status(code, "cannot read '" + path + "': " + why);
}

Status refuseLast(const std::string &path) {
  const bool isMissing = errno == ENOENT || errno == ENOTDIR;
  return refuse(isMissing ? StatusCode::NotFound : StatusCode::Io, path,
                std::error_code(errno, std::generic_category()).message());
}

Expected<std::string> readAll(int file, const std::string &path,
                              size_t mostMiB) {
  const size_t most = mostMiB << 20;
  constexpr size_t kChunk = size_t(1) << 16;
  std::string bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(std::min(before + kChunk, most + 1));
    const ssize_t read = ::read(file, &bytes[before], bytes.size() - before);
    if (read < 0 && errno != EINTR)
      return refuseLast(path);
    bytes.resize(before + size_t(std::max<ssize_t>(read, 0)));
    if (read == 0)
      return bytes;
    if (bytes.size() > most)
      return refuse(StatusCode::InvalidArgument, path,
                    "it is longer than " + std::to_string(mostMiB) +
                        " MiB, which no such file is; name one that ends");
  }
}

} // namespace

Expected<std::string> readWhole(const std::string &path, size_t mostMiB) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return refuseLast(path);
  Expected<std::string> bytes = readAll(file, path, mostMiB);
  (void)::close(file);
  return bytes;
}

Expected<std::string> readFileOrStdin(const std::string &path, size_t mostMiB) {
  return path == "-" ? readAll(STDIN_FILENO, path, mostMiB)
                     : readWhole(path, mostMiB);
}

} // namespace fovea
