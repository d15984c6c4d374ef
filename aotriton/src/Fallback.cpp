//===- Fallback.cpp - the library that takes what is refused --------------===//

#include "Fallback.h"

#include "Session.h"

#include <aotriton/flash.h>
#include <cstdlib>
#include <dlfcn.h>

namespace fovea::shim {
namespace {

constexpr const char *kVariable = "FOVEA_AOTRITON_FALLBACK";
/// Exported by this library under each of its names, and by no other.
constexpr const char *kOwnSymbol = "fovea_aotriton_last_message";

struct OpenedLibrary {
  void *handle = nullptr;
  std::string path;
  Status status;
};

/// The exported name of a function, without its version.
const char *nameOf(void *own) {
  Dl_info info;
  return dladdr(own, &info) && info.dli_saddr == own ? info.dli_sname : nullptr;
}

const void *libraryOf(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

OpenedLibrary openLibrary() {
  OpenedLibrary opened;
  const char *path = std::getenv(kVariable);
  if (!path || !*path)
    return opened;
  const std::string named = std::string(kVariable) + " names '" + path + "', ";
  auto give = [&](const std::string &why) {
    opened.status = fail(hipErrorFileNotFound,
                         named + why + "; name AOTriton's libaotriton_v2.so");
    return opened;
  };
  // A backward pass there would take what a forward pass here left for another
  // number, and the reverse.
  if (AOTRITON_VERSION_MINOR < 11) {
    opened.status =
        fail(hipErrorFileNotFound,
             named + "and no call can be handed on to AOTriton 0.10: its "
                     "log-sum-exps have base 2, those of this library are "
                     "natural; unset the variable");
    return opened;
  }
  (void)hipOfProcess(); // it brings one
  // Never closed: calls may be under way until the process ends.
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!handle) {
    const char *reason = dlerror();
    return give(std::string("which cannot be opened: ") +
                (reason ? reason : "the loader gives no reason"));
  }
  if (dlsym(handle, kOwnSymbol))
    return give("which is Fovea's own and would hand calls to itself");
  // In all versions.
  auto *known = reinterpret_cast<void *>(&aotriton::v2::flash::check_gpu);
  const char *name = nameOf(known);
  if (!name || !dlsym(handle, name))
    return give(std::string("which is no library of AOTriton's: it lacks ") +
                (name ? name : "check_gpu"));
  opened.handle = handle;
  opened.path = path;
  return opened;
}

const OpenedLibrary &openedLibrary() {
  static const OpenedLibrary &result = *new OpenedLibrary(openLibrary());
  return result;
}

} // namespace

Status openFallback() { return openedLibrary().status; }

const std::string &fallbackPath() { return openedLibrary().path; }

FallbackSymbol findInFallback(void *own) {
  FallbackSymbol found;
  const OpenedLibrary &library = openedLibrary();
  if (!library.handle)
    return found;
  const char *name = nameOf(own);
  void *address = name ? dlsym(library.handle, name) : nullptr;
  const std::string what = "and " + library.path + " (" + kVariable + ") ";
  if (!address)
    found.status = refuse(hipErrorNotSupported,
                          what + "lacks " + (name ? name : "the function") +
                              ": it is of another version");
  else if (libraryOf(address) == libraryOf(own))
    found.status = refuse(hipErrorNotSupported,
                          what + "leads back to this library for " + name);
  else
    found.address = address;
  return found;
}

bool &HandedOn::current() {
  thread_local bool value = false;
  return value;
}

} // namespace fovea::shim
