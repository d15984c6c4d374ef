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

/// The layouts of hipDeviceProp_t, newest first: a library that has both
/// answers either, and the bare name means the old layout in all of them. Later
/// releases than 7 that change it again will have to name it anew, as HIP 6
/// did, and keep the old names for programs that are compiled. Offsets: HIP's
/// public headers of 5.0 to 5.7 (hip_runtime_api.h) and of 6.0 to 7.12, where
/// the old layout is in hip_deprecated.h.
constexpr PropertiesLayout kLayouts[] = {
    {"hipGetDevicePropertiesR0600", 1160, 388}, // HIP 6 and 7
    {"hipGetDeviceProperties", 396, 336},       // HIP 5
};
constexpr size_t kArchNameBytes = 256;
/// More than any machine has: a count beyond it was never written.
constexpr int32_t kMostDevices = 4096;
/// Larger than any version's structure (792 bytes in HIP 5, 1472 in HIP 6 and
/// 7), since a later one may write more than the layouts above.
constexpr size_t kPropertiesBytes = 16384;

/// The releases that the table of functions and the numbers in HipApi.h are
/// those of. hipRuntimeGetVersion: major * 10^7 + minor * 10^5 + patch, in HIP
/// 5 and later; before, smaller numbers of several kinds.
constexpr int32_t kVersionsAMajor = 10000000, kVersionsAMinor = 100000;
constexpr int32_t kOldestMajor = 5, kNewestMajor = 7;

/// What to do about an error. The codes are the same in HIP 5, 6 and 7
/// (hipError_t in hip_runtime_api.h).
struct Remedy {
  HipError first, last;
  const char *text;
};
constexpr const char *kLostDevice =
    "an earlier kernel of this process failed on the device, which does "
    "nothing "
    "more until hipDeviceReset or the end of the process";
constexpr const char *kOtherCode =
    "this HIP can't load the code: update ROCm, or compile the package again "
    "for this device";
constexpr const char *kEndedStream =
    "pass a stream of this device that has not been destroyed";
constexpr Remedy kRemedies[] = {
    {2, 2, "free memory of the device, and call again"}, // OutOfMemory
    {3, 4,
     "HIP is not up, is ending, or was begun with before this process was "
     "forked; call before the process exits, and first in the one that goes "
     "on"},
    {35, 35, "update the amdgpu driver, it is too old for this ROCm"},
    {98, 98, kOtherCode}, // InvalidDeviceFunction
    {100, 100,            // NoDevice
     "see that /dev/kfd and /dev/dri exist and may be opened (groups render "
     "and video) and that HIP_VISIBLE_DEVICES names a device; or set "
     "FOVEA_HIP_LIBRARY to sim to use the simulated device"},
    {101, 101, "name a device with hipSetDevice that HIP_VISIBLE_DEVICES has"},
    {200, 200, kOtherCode}, // InvalidImage
    {209, 209, kOtherCode}, // NoBinaryForGpu
    {300, 302, kOtherCode}, // InvalidSource and the like
    {400, 400, kEndedStream},
    {500, 500, "the image lacks it; compile the package again"}, // NotFound
    {700, 700, kLostDevice}, // IllegalAddress
    {701, 701,
     "the device has too few resources for it; choose another kernel"},
    {702, 702, kLostDevice}, // LaunchTimeOut
    {709, 709, kEndedStream},
    {710, 719, kLostDevice}, // Assert, LaunchFailure
    {801, 801, "this HIP can't do it; update ROCm"},
    {900, 908, "end the capture of the stream first, or load before it begins"},
};

const char *remedyFor(HipError error) {
  for (const Remedy &remedy : kRemedies)
    if (error >= remedy.first && error <= remedy.last)
      return remedy.text;
  return "call again; AMD_LOG_LEVEL=3 prints what HIP does";
}

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
  resolve(api.handle, "fovea_sim_describe", api.fovea_sim_describe, ignored);
  for (const PropertiesLayout &layout : kLayouts) {
    if (resolve(api.handle, layout.symbol, api.getProperties, ignored)) {
      api.layout = &layout;
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

/// The loader's last message; short for the usual case of a file that is
/// absent.
std::string whyNotOpened(const std::string &name) {
  const char *message = dlerror();
  std::string text = message ? message : "cannot be opened";
  return text.find("No such file") == std::string::npos ? text : "no " + name;
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
    if (candidate.hipRuntimeGetVersion(&candidate.runtimeVersion) != 0 ||
        candidate.runtimeVersion < 0)
      candidate.runtimeVersion = 0;
    if (candidate.runtimeVersion != 0 &&
        candidate.runtimeVersion / kVersionsAMajor < kOldestMajor) {
      note(candidate.name() + " is older than HIP " +
           std::to_string(kOldestMajor) + "; update ROCm");
      lacking = true;
      return false;
    }
    // No device is no reason to refuse here: a caller who names a library gets
    // it, and the message then says that it has none. That they can't be
    // counted may pass.
    const HipError error = candidate.hipGetDeviceCount(&candidate.deviceCount);
    if (error != 0 || candidate.deviceCount <= 0 ||
        candidate.deviceCount > kMostDevices) {
      const std::string what = candidate.name() + " has no device";
      candidate.whyNoDevice =
          (error ? candidate.failure(what, "hipGetDeviceCount", error)
                 : candidate.nonsense(what, "hipGetDeviceCount",
                                      std::to_string(candidate.deviceCount) +
                                          " devices"))
              .message;
      candidate.deviceCount = 0;
      if (error != 0 && error != kHipErrorNoDevice) {
        note(candidate.whyNoDevice);
        uncounted = error;
        return false;
      }
    }
    api = candidate;
    return true;
  }

  /// A library that the process already holds comes first: two HIP runtimes
  /// in one process would not know each other's streams and memory.
  bool openRocm() {
    const std::pair<const char *, int> places[] = {
        {"", RTLD_NOLOAD}, {"", 0}, {kRocmFolder, 0}};
    for (const auto &[folder, flags] : places)
      for (const char *name : kRocmNames) {
        if (open(std::string(folder) + name, flags))
          return true;
        if (uncounted != 0) // it is the one, and in trouble
          return false;
      }
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
  Result failure(const std::string &what) const {
    return Result(uncounted ? FOVEA_STATUS_HIP_ERROR
                  : lacking ? FOVEA_STATUS_INCOMPATIBLE
                            : FOVEA_STATUS_NO_DEVICE,
                  what + tried(), uncounted);
  }

private:
  HipApi &api;
  std::string notes;
  bool lacking = false;   ///< a library opened but lacks functions, or is old
  HipError uncounted = 0; ///< why a library could not tell its devices
};

/// Says of the opened library why it is this one, and what its version means.
Result chosen(HipApi &api, int32_t kind, const std::string &reason) {
  api.kind = kind;
  api.reason = reason;
  if (api.runtimeVersion == 0)
    api.reason += "; it does not tell its version and is read by the functions "
                  "that it has";
  else if (api.runtimeVersion / kVersionsAMajor > kNewestMajor)
    api.reason += "; " + hipVersionText(api.runtimeVersion) +
                  " is newer than this library, which takes it for HIP " +
                  std::to_string(kNewestMajor);
  return Result();
}

} // namespace

std::string hipVersionText(int32_t version) {
  if (version <= 0)
    return "HIP of unknown version";
  // HIP 4 and older count otherwise: their number as it is.
  if (version < kVersionsAMajor)
    return "HIP version " + std::to_string(version);
  return "HIP " + std::to_string(version / kVersionsAMajor) + "." +
         std::to_string(version % kVersionsAMajor / kVersionsAMinor) + "." +
         std::to_string(version % kVersionsAMinor);
}

std::string HipApi::name() const {
  return path + " (" + hipVersionText(runtimeVersion) + ")";
}

Result HipApi::failure(const std::string &what, const char *call,
                       HipError error) const {
  const char *given = hipGetErrorName(error);
  const char *text = hipGetErrorString(error);
  const std::string name = given ? given : "error";
  std::string message = what + ": " + call + " failed: " + name + " (" +
                        std::to_string(error) + ")";
  if (text && *text && text != name) // HIP 5 has no texts but the names
    message += std::string(": ") + text;
  // No driver is of use to a simulated device: a setting of it is wrong.
  const char *remedy = error == kHipErrorNoDevice && fovea_sim_describe
                           ? fovea_sim_describe()
                           : remedyFor(error);
  return Result(FOVEA_STATUS_HIP_ERROR, message + "; " + remedy, error);
}

Result HipApi::nonsense(const std::string &what, const char *call,
                        const std::string &gave) const {
  return Result(FOVEA_STATUS_HIP_ERROR,
                what + ": " + call + " returned hipSuccess and " + gave +
                    "; the HIP library " + name() +
                    " does not work, update ROCm or set FOVEA_HIP_LIBRARY to "
                    "another");
}

Result HipApi::currentDevice(int32_t &number) const {
  number = -1;
  const HipError error = hipGetDevice(&number);
  return checkCurrent(error, number);
}

Result HipApi::checkCurrent(HipError error, int32_t number) const {
  const char *what = "the current device";
  if (error)
    return failure(what, "hipGetDevice", error);
  if (number < 0 || number >= deviceCount)
    return nonsense(what, "hipGetDevice",
                    "device " + std::to_string(number) + " of " +
                        std::to_string(deviceCount));
  return Result();
}

/// What the names of RDNA's chips begin with.
static constexpr const char *kRdna = "gfx1";

Result HipApi::readDevice(int device, TargetId &target,
                          int &computeUnits) const {
  const std::string what = "device " + std::to_string(device);
  std::vector<char> properties(kPropertiesBytes, 0);
  if (HipError error = getProperties(properties.data(), device))
    return failure(what, layout->symbol, error);
  computeUnits = 0;
  if (HipError error = hipDeviceGetAttribute(
          &computeUnits, kHipAttributeMultiprocessorCount, device))
    return failure(what, "hipDeviceGetAttribute", error);

  // Both say how many compute units there are. Where they differ, structure or
  // attributes are not those of a known version, and nothing else in them can
  // be trusted.
  int counted;
  std::memcpy(&counted, properties.data() + layout->multiProcessorCount,
              sizeof(counted));
  const char *text = properties.data() + layout->archName;
  const std::string arch(text, strnlen(text, kArchNameBytes));
  Expected<TargetId> parsed = TargetId::parse(arch);
  if (!parsed || counted != computeUnits || computeUnits <= 0)
    return Result(FOVEA_STATUS_INCOMPATIBLE,
                  what + ": " + layout->symbol + " of " + name() +
                      " does not give a hipDeviceProp_t of HIP " +
                      std::to_string(kOldestMajor) + " to " +
                      std::to_string(kNewestMajor) + ": " +
                      (parsed ? "its compute units are " +
                                    std::to_string(counted) +
                                    ", by hipDeviceGetAttribute " +
                                    std::to_string(computeUnits)
                              : "the name of its chip can't be read (" +
                                    parsed.status().message() + ")") +
                      "; use a ROCm of these versions, or a later Fovea");
  target = *parsed;
  if (target.arch.rfind(kRdna, 0) != 0)
    return Result();
  // On RDNA ROCm counts pairs of compute units, by which programs run that are
  // not compiled for units alone, as kernels here are. Old versions do not know
  // the attribute.
  int physical = 0;
  const HipError error = hipDeviceGetAttribute(
      &physical, kHipAttributePhysicalMultiProcessorCount, device);
  if (error && error != kHipErrorInvalidValue)
    return failure(what, "hipDeviceGetAttribute", error);
  if (!error && physical == 2 * computeUnits)
    computeUnits = physical;
  return Result();
}

Result openHip(const std::string &choice, HipApi &api) {
  Search search(api);
  if (choice == "rocm") {
    if (!search.openRocm())
      return search.failure(
          "ROCm's HIP library was asked for and could not be opened; install "
          "ROCm or set FOVEA_HIP_LIBRARY to its path. Tried: ");
    return chosen(api, FOVEA_HIP_ROCM, "ROCm's library was asked for");
  }
  if (choice == "sim") {
    if (!search.openSim())
      return search.failure(
          "the simulated HIP library was asked for and could not be opened; "
          "build it (FOVEA_BUILD_SIMULATOR) beside libfovea.so, install the "
          "wheel fovea-compiler, or set FOVEA_HIP_LIBRARY to its path. Tried: ");
    return chosen(api, FOVEA_HIP_SIM, "the simulated library was asked for");
  }
  if (choice != "auto") {
    if (!search.open(choice, 0))
      return search.failure("the HIP library '" + choice +
                            "' was asked for and could not be opened: ");
    return chosen(api, FOVEA_HIP_PATH, "its path was given");
  }

  const bool rocm = search.openRocm();
  if (rocm && api.deviceCount > 0)
    return chosen(api, FOVEA_HIP_ROCM,
                  "ROCm's library has " + std::to_string(api.deviceCount) +
                      " device" + (api.deviceCount == 1 ? "" : "s"));
  if (rocm)
    search.note(api.whyNoDevice);
  if (search.openSim())
    return chosen(api, FOVEA_HIP_SIM,
                  "no ROCm library with a device (tried: " + search.tried() +
                      "), so the simulated one");
  return search.failure(
      "no HIP library with a device was found; install ROCm, build the "
      "simulated device (FOVEA_BUILD_SIMULATOR) or install the wheel "
      "fovea-compiler, which has it, or set FOVEA_HIP_LIBRARY. Tried: ");
}

} // namespace fovea::rt
