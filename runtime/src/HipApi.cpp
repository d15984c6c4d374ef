//===- HipApi.cpp - finds and opens a HIP library -------------------------===//
//
// The order of search, the table of functions, and the two layouts of
// hipDeviceProp_t. docs/Runtime.md states the order.
//
//===----------------------------------------------------------------------===//

#include "HipApi.h"

#include <cstring>
#include <dlfcn.h>

namespace fovea::rt {
namespace {

/// ROCm's library, newest first. The unversioned name comes first because where
/// it exists (a development installation, a framework's own copy) it names the
/// one that is meant.
constexpr const char *kRocmNames[] = {"libamdhip64.so", "libamdhip64.so.7",
                                      "libamdhip64.so.6", "libamdhip64.so.5"};
/// Installations do not always tell the loader about themselves.
constexpr const char *kRocmFolder = "/opt/rocm/lib/";
constexpr const char *kSimName = "libfovea_hipsim.so";

/// The two layouts of hipDeviceProp_t: the symbol that fills it, and where
/// gcnArchName starts in it. The new one is asked for first: a library that has
/// both answers either, and the bare name means the old layout in both.
struct PropertiesLayout {
  const char *symbol;
  size_t archNameOffset;
};
constexpr PropertiesLayout kLayouts[] = {
    {"hipGetDevicePropertiesR0600", 1160}, // ROCm 6 on
    {"hipGetDeviceProperties", 396},       // ROCm 5
};
constexpr size_t kArchNameBytes = 256;
/// Larger than any version's structure (1472 bytes in ROCm 6), since a later
/// one may write more than the layouts above.
constexpr size_t kPropertiesBytes = 16384;

template <typename Function>
bool resolve(void *handle, const char *name, Function &function,
             std::string &missing) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (!function)
    missing += (missing.empty() ? "" : ", ") + std::string(name);
  return function != nullptr;
}

/// Fills the table; returns the names that the library lacks.
std::string resolveAll(HipApi &api) {
  std::string missing;
#define FOVEA_HIP_RESOLVE(name, parameters)                                    \
  resolve(api.handle, #name, api.name, missing);
  FOVEA_HIP_FUNCTIONS(FOVEA_HIP_RESOLVE)
#undef FOVEA_HIP_RESOLVE
  resolve(api.handle, "hipGetErrorName", api.hipGetErrorName, missing);
  resolve(api.handle, "hipGetErrorString", api.hipGetErrorString, missing);
  std::string ignored;
  resolve(api.handle, "hipThreadExchangeStreamCaptureMode",
          api.hipThreadExchangeStreamCaptureMode, ignored);
  for (const PropertiesLayout &layout : kLayouts) {
    if (resolve(api.handle, layout.symbol, api.getProperties, ignored)) {
      api.archNameOffset = layout.archNameOffset;
      break;
    }
  }
  if (!api.getProperties)
    missing +=
        (missing.empty() ? "" : ", ") + std::string("hipGetDeviceProperties");
  return missing;
}

std::string fileOf(const void *address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

/// The loader's last message; short for the usual case of a file that is absent.
std::string whyNotOpened(const std::string &name) {
  const char *message = dlerror();
  std::string text = message ? message : "cannot be opened";
  return text.find("No such file") == std::string::npos ? text
                                                        : "no " + name;
}

/// One attempt at a library; what went wrong is kept for the message.
class Search {
public:
  explicit Search(HipApi &api) : api(api) {}

  /// Opens `name`; false with a note when that fails.
  bool open(const std::string &name, int flags) {
    HipApi candidate;
    candidate.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    if (!candidate.handle) {
      if (!(flags & RTLD_NOLOAD))
        note(whyNotOpened(name));
      return false;
    }
    if (std::string missing = resolveAll(candidate); !missing.empty()) {
      note(name + " lacks " + missing);
      lacking = true;
      return false;
    }
    candidate.path =
        fileOf(reinterpret_cast<const void *>(candidate.hipGetDeviceCount));
    // No device is no reason to refuse here: a caller who names a library gets
    // it, and the message then says that it has none.
    if (HipError error = candidate.hipGetDeviceCount(&candidate.deviceCount)) {
      note(candidate.failure(candidate.path, "hipGetDeviceCount", error)
               .message);
      candidate.deviceCount = 0;
    }
    if (candidate.hipRuntimeGetVersion(&candidate.runtimeVersion) != 0)
      candidate.runtimeVersion = 0;
    api = candidate;
    return true;
  }

  /// A library that the process already holds comes first: two HIP runtimes
  /// in one process would not know each other's streams and memory.
  bool openRocm() {
    for (const char *name : kRocmNames)
      if (open(name, RTLD_NOLOAD))
        return true;
    for (const char *name : kRocmNames)
      if (open(name, 0))
        return true;
    for (const char *name : kRocmNames)
      if (open(kRocmFolder + std::string(name), 0))
        return true;
    return false;
  }

  bool openSim() {
    const std::string self = fileOf(reinterpret_cast<const void *>(&openHip));
    if (size_t slash = self.rfind('/'); slash != std::string::npos)
      if (open(self.substr(0, slash + 1) + kSimName, 0))
        return true;
    return open(kSimName, 0);
  }

  void note(const std::string &text) {
    notes += (notes.empty() ? "" : "; ") + text;
  }
  std::string tried() const {
    return notes.empty() ? std::string("none") : notes;
  }
  fovea_status_t failureCode() const {
    return lacking ? FOVEA_STATUS_INCOMPATIBLE : FOVEA_STATUS_NO_DEVICE;
  }

private:
  HipApi &api;
  std::string notes;
  bool lacking = false; ///< a library opened but lacks functions
};

} // namespace

Result HipApi::failure(const std::string &what, const char *call,
                       HipError error) const {
  const char *name = hipGetErrorName(error);
  const char *text = hipGetErrorString(error);
  return Result(FOVEA_STATUS_HIP_ERROR,
                what + ": " + call + " failed: " + (name ? name : "error") +
                    " (" + std::to_string(error) + ")" +
                    (text && *text ? ": " + std::string(text) : std::string()));
}

Result HipApi::readTarget(int device, TargetId &target) const {
  const std::string what = "device " + std::to_string(device);
  std::vector<char> properties(kPropertiesBytes, 0);
  if (HipError error = getProperties(properties.data(), device))
    return failure(what, "hipGetDeviceProperties", error);
  const char *name = properties.data() + archNameOffset;
  const std::string text(name, strnlen(name, kArchNameBytes));
  Expected<TargetId> parsed = TargetId::parse(text);
  if (!parsed)
    return Result(FOVEA_STATUS_INCOMPATIBLE,
                  what + ": the name of its chip can't be read from " + path +
                      " (" + parsed.status().message() + ")");
  target = *parsed;
  return Result();
}

Result openHip(const std::string &choice, HipApi &api) {
  Search search(api);
  if (choice == "rocm") {
    if (!search.openRocm())
      return Result(search.failureCode(),
                    "ROCm's HIP library was asked for and could not be opened; "
                    "install ROCm or set FOVEA_HIP_LIBRARY to its path. "
                    "Tried: " +
                        search.tried());
    api.kind = FOVEA_HIP_ROCM;
    api.reason = "ROCm's library was asked for";
    return Result();
  }
  if (choice == "sim") {
    if (!search.openSim())
      return Result(search.failureCode(),
                    "the simulated HIP library was asked for and could not be "
                    "opened; build it (FOVEA_BUILD_SIMULATOR) beside "
                    "libfovea.so or set FOVEA_HIP_LIBRARY to its path. "
                    "Tried: " +
                        search.tried());
    api.kind = FOVEA_HIP_SIM;
    api.reason = "the simulated library was asked for";
    return Result();
  }
  if (choice != "auto") {
    if (!search.open(choice, 0))
      return Result(
          search.failureCode(),
          "the HIP library '" + choice +
              "' was asked for and could not be opened: " + search.tried());
    api.kind = FOVEA_HIP_PATH;
    api.reason = "its path was given";
    return Result();
  }

  const bool rocm = search.openRocm();
  if (rocm && api.deviceCount > 0) {
    api.kind = FOVEA_HIP_ROCM;
    api.reason = "ROCm's library has " + std::to_string(api.deviceCount) +
                 " device" + (api.deviceCount == 1 ? "" : "s");
    return Result();
  }
  if (rocm)
    search.note(api.path + " has no device");
  if (search.openSim()) {
    api.kind = FOVEA_HIP_SIM;
    api.reason = "no ROCm library with a device (tried: " + search.tried() +
                 "), so the simulated one";
    return Result();
  }
  return Result(
      search.failureCode(),
      "no HIP library with a device was found; install ROCm, build the "
      "simulated device (FOVEA_BUILD_SIMULATOR), or set FOVEA_HIP_LIBRARY. "
      "Tried: " +
          search.tried());
}

} // namespace fovea::rt
