//===- Main.h - what every tool's main has to see to ------------*- C++ -*-===//
//
// How a tool ends where memory runs out or its output is lost: with a message
// and one of its exit codes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_SUPPORT_MAIN_H
#define FOVEA_TOOLS_SUPPORT_MAIN_H

#include "fovea/Package/ReadFile.h"

#include <cstdint>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace fovea::tool {

/// Memory ran out for something that has a name and a size. Takes none itself.
class OutOfMemory : public std::bad_alloc {
public:
  OutOfMemory(const char *what, uint64_t bytes) noexcept;
  const char *what() const noexcept override { return text; }

private:
  char text[256];
};

/// Calls `body`. Memory that runs out in it is said to have been wanted for
/// `what`, which takes `bytes` at least.
template <typename Body>
auto allocating(const char *what, uint64_t bytes, Body body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const OutOfMemory &) {
    throw; // of a part, which says more
  } catch (const std::bad_alloc &) {
    throw OutOfMemory(what, bytes);
  } catch (const std::length_error &) { // more than a vector counts
    throw OutOfMemory(what, bytes);
  }
}

/// Whether this machine's memory and swap space hold `what` of `bytes`; else
/// `error` says so. The system would grant it piece by piece, and end the
/// process when it is used.
bool fitsMemory(const char *what, uint64_t bytes, std::string &error);

/// Runs a tool and returns its exit code. Where memory runs out, or standard
/// output does not take all that was printed, that is `failure` or, if larger,
/// what `body` returned.
int run(const char *tool, int failure, const std::function<int()> &body);

/// readWhole() (fovea/Package/ReadFile.h) with an error in words.
bool readFile(const std::string &path, std::string &content, std::string &error,
              size_t mostMiB = kMostTextMiB);

/// writeWhole() (fovea/Package/WriteFile.h) with an error in words.
bool writeFile(const std::string &path, const std::string &content,
               std::string &error);

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_MAIN_H
