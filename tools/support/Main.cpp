//===- Main.cpp - what every tool's main has to see to --------------------===//

#include "Main.h"

#include "fovea/Package/WriteFile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/sysinfo.h>
#include <system_error>

using namespace fovea::tool;

OutOfMemory::OutOfMemory(const char *what, uint64_t bytes) noexcept {
  std::snprintf(text, sizeof(text), "%s: %llu bytes", what,
                static_cast<unsigned long long>(bytes));
}

bool fovea::tool::fitsMemory(const char *what, uint64_t bytes,
                             std::string &error) {
  struct sysinfo host;
  if (sysinfo(&host) != 0)
    return true;
  const uint64_t all =
      (uint64_t(host.totalram) + host.totalswap) * host.mem_unit;
  if (bytes > all)
    error = std::string("memory does not suffice for ") +
            OutOfMemory(what, bytes).what() + ", and this machine has " +
            std::to_string(all) + "; take a smaller problem";
  return bytes <= all;
}

int fovea::tool::run(const char *tool, int failure,
                     const std::function<int()> &body) {
  int code = failure;
  constexpr const char *kRemedy =
      "take a smaller problem, or free memory (ulimit -v: what a process may "
      "have)";
  // A file size limit is an error like others, of which there is a message.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  try {
    code = body();
  } catch (const OutOfMemory &error) {
    std::fprintf(stderr, "%s: memory does not suffice for %s; %s\n", tool,
                 error.what(), kRemedy);
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "%s: memory ran out; %s\n", tool, kRemedy);
  } catch (const std::system_error &error) { // threads take memory too
    std::fprintf(stderr, "%s: the system refused: %s; %s\n", tool, error.what(),
                 kRemedy);
  } catch (const std::exception &error) { // names that are no UTF-8, for one
    std::fprintf(stderr, "%s: %s\n", tool, error.what());
  }
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr,
                 "%s: output is lost: standard output can't be written%s%s\n",
                 tool, errno ? ": " : "", errno ? std::strerror(errno) : "");
    code = std::max(code, failure);
  }
  return code;
}

bool fovea::tool::readFile(const std::string &path, std::string &content,
                           std::string &error, size_t mostMiB) {
  Expected<std::string> read = fovea::readWhole(path, mostMiB);
  if (read)
    content = std::move(*read);
  else
    error = read.status().message();
  return bool(read);
}

bool fovea::tool::writeFile(const std::string &path, const std::string &content,
                            std::string &error) {
  const std::error_code code = fovea::writeWhole(path, content);
  if (code)
    error = "cannot write '" + path + "': " + code.message();
  return !code;
}
