//===- Session.cpp - the process's context and its devices ----------------===//

#include "Session.h"

#include "Fallback.h"

#include <fovea/aotriton.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::shim {

/// Of the HIP library that libfovea uses.
struct HipFunctions {
  hipError_t (*getDevice)(int *) = nullptr;
  hipError_t (*setDevice)(int) = nullptr;
  // Null where the library lacks them.
  hipError_t (*streamGetDevice)(hipStream_t, int *) = nullptr;
  hipError_t (*streamIsCapturing)(hipStream_t, int *) = nullptr;
  hipError_t (*mallocAsync)(void **, size_t, hipStream_t) = nullptr;
  hipError_t (*freeAsync)(void *, hipStream_t) = nullptr;
  hipError_t (*getLastError)() = nullptr;
  hipError_t (*memset2DAsync)(void *, size_t, int, size_t, size_t,
                              hipStream_t) = nullptr;
};

namespace {

/// Where the installation has its packages, seen from this library's folder:
/// under its own name, and under AOTriton's.
constexpr const char *kInstalledKernels[] = {FOVEA_AOTRITON_KERNELS,
                                             FOVEA_AOTRITON_KERNELS_OF_NAMED};

/// The folder beside AOTriton's library that holds its kernels; PyTorch's build
/// copies it along with the library. AOTriton's own has no packages.
constexpr const char *kKernelsBeside = "aotriton.images";
constexpr const char *kPackageSuffix = ".fovea";

/// Separates the files and folders of FOVEA_KERNELS.
constexpr char kSeparator = ':';

bool holdsPackages(const std::filesystem::path &folder) {
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder, none), end;
       !none && at != end; at.increment(none))
    if (at->path().extension() == kPackageSuffix)
      return true;
  return false;
}

/// The first place that has packages; if none has, the installation's.
std::string installedKernels() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&installedKernels), &info) ||
      !info.dli_fname)
    return kInstalledKernels[0];
  // The library may have been found by a link of another name elsewhere.
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::canonical(info.dli_fname, ignored).parent_path();
  for (const char *place :
       {kKernelsBeside, kInstalledKernels[0], kInstalledKernels[1]})
    if (holdsPackages(folder / place))
      return (folder / place).lexically_normal().string();
  return (folder / kInstalledKernels[0]).lexically_normal().string();
}

/// The HIP libraries that the process has loaded, as the addresses of one of
/// their functions.
std::set<void *> loadedHip() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *list) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string> *>(list)->push_back(
              info->dlpi_name);
        return 0;
      },
      &files);
  std::set<void *> found;
  for (const std::string &file : files) {
    void *handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
      continue; // the kernel's own, which is no file
    if (void *function = dlsym(handle, "hipGetDeviceCount"))
      found.insert(function);
    dlclose(handle);
  }
  return found;
}

std::string fileOf(const void *address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname
                                                  : "(unknown)";
}

/// A variable that has one of two values, of which the first is the default.
struct Switch {
  const char *variable, *off, *on;
};
/// Whether a process trains.
constexpr Switch kPasses = {"FOVEA_AOTRITON_PASSES", "both", "forward"};
/// Whose memory kernels work in.
constexpr Switch kWorkspace = {"FOVEA_AOTRITON_WORKSPACE", "client",
                               "allocate"};

Status readSwitch(const Switch &known, bool &isOn) {
  const char *text = std::getenv(known.variable);
  const std::string_view value = text ? text : "";
  isOn = value == known.on;
  if (value.empty() || value == known.off || isOn)
    return {};
  return fail(hipErrorInvalidValue,
              std::string(known.variable) + " is '" + std::string(value) +
                  "', which is none of " + known.off + ", " + known.on);
}

/// HIP's statuses that say most nearly what libfovea's say.
struct StatusRow {
  fovea_status_t status;
  hipError_t code;
};
constexpr StatusRow kStatusRows[] = {
    {FOVEA_STATUS_INVALID_ARGUMENT, hipErrorInvalidValue},
    {FOVEA_STATUS_NOT_FOUND, hipErrorNotSupported},
    {FOVEA_STATUS_INCOMPATIBLE, hipErrorNoBinaryForGpu},
    {FOVEA_STATUS_CORRUPT, hipErrorInvalidImage},
    {FOVEA_STATUS_IO, hipErrorFileNotFound},
    {FOVEA_STATUS_NO_DEVICE, hipErrorNoDevice},
    {FOVEA_STATUS_OUT_OF_MEMORY, hipErrorOutOfMemory},
};

/// \pre libfovea just gave the status in this thread
hipError_t codeOf(fovea_status_t status) {
  if (status == FOVEA_STATUS_HIP_ERROR)
    if (const int32_t error = fovea_last_hip_error())
      return hipError_t(error);
  for (const StatusRow &row : kStatusRows)
    if (row.status == status)
      return row.code;
  return hipErrorUnknown;
}

struct Opened {
  fovea_context_t *context = nullptr;
  Status status;
  bool forwardOnly = false;
  bool mayAllocate = false;
};

const Opened &opened();

/// Tensors and streams of one HIP library are nothing to another.
Status checkHip(fovea_context_t *context, const void *function) {
  const std::set<void *> &loaded = hipOfProcess();
  if (loaded.empty() || loaded.count(const_cast<void *>(function)))
    return {};
  fovea_hip_library_info_t info = {};
  info.struct_size = sizeof(info);
  (void)fovea_hip_library_info(context, &info);
  return fail(hipErrorNoDevice,
              "the process uses " + fileOf(*loaded.begin()) +
                  ", whose tensors mean nothing to the HIP library chosen, " +
                  fileOf(function) + " (" + (info.reason ? info.reason : "") +
                  "); see that the process's has a device, or name it in "
                  "FOVEA_HIP_LIBRARY");
}

/// HIP's function `call` returned an error.
Status failureOfHip(const std::string &call, hipError_t error) {
  return fail(error,
              call + " failed with status " + std::to_string(int(error)));
}

template <typename Function>
bool resolve(fovea_context_t *context, const char *name, Function &function) {
  function = reinterpret_cast<Function>(fovea_hip_symbol(context, name));
  return function != nullptr;
}

/// The functions, looked up once; a failure is none for ever.
Status hipFunctions(fovea_context_t *context, const HipFunctions *&result) {
  static std::mutex mutex;
  static HipFunctions functions;
  static std::atomic<bool> ready{false};
  result = &functions;
  if (ready.load(std::memory_order_acquire))
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  if (ready.load(std::memory_order_relaxed))
    return {};
  fovea_hip_library_info_t info = {};
  info.struct_size = sizeof(info);
  if (const fovea_status_t status = fovea_hip_library_info(context, &info);
      status != FOVEA_STATUS_OK) {
    Status result = failure(status);
    // A library that is no HIP library of ours is none, as far as calls go.
    if (status == FOVEA_STATUS_INCOMPATIBLE)
      result.code = hipErrorNoDevice;
    return result;
  }
  HipFunctions found;
  void *count = nullptr;
  if (!resolve(context, "hipGetDeviceCount", count) ||
      !resolve(context, "hipGetDevice", found.getDevice) ||
      !resolve(context, "hipSetDevice", found.setDevice))
    return fail(hipErrorNoDevice, fovea_last_message());
  if (Status bad = checkHip(context, count))
    return bad;
  (void)resolve(context, "hipStreamGetDevice", found.streamGetDevice);
  (void)resolve(context, "hipStreamIsCapturing", found.streamIsCapturing);
  (void)resolve(context, "hipMallocAsync", found.mallocAsync);
  (void)resolve(context, "hipFreeAsync", found.freeAsync);
  (void)resolve(context, "hipGetLastError", found.getLastError);
  (void)resolve(context, "hipMemset2DAsync", found.memset2DAsync);
  functions = found;
  ready.store(true, std::memory_order_release);
  return {};
}

Status openPackages(fovea_context_t *context) {
  const char *variable = std::getenv("FOVEA_KERNELS");
  const bool given = variable && *variable;
  const std::string paths = given ? variable : installedKernels();
  // What is compiled as it is asked for needs no packages, but those that are
  // named are wanted.
  if (!given && compilesOnDemand() && !holdsPackages(paths))
    return {};
  std::string_view rest = paths;
  while (!rest.empty()) {
    const size_t end = given ? rest.find(kSeparator) : rest.npos;
    const std::string path(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (path.empty())
      continue;
    const fovea_status_t status = fovea_package_open(context, path.c_str());
    if (status == FOVEA_STATUS_OK)
      continue;
    Status result = failure(status);
    result.broken = true;
    if (status == FOVEA_STATUS_NOT_FOUND)
      result.code = hipErrorFileNotFound;
    result.message += given ? " (named by FOVEA_KERNELS)"
                            : "; FOVEA_KERNELS names other files or folders, "
                              "FOVEA_COMPILE=auto needs none";
    return result;
  }
  return {};
}

Opened open() {
  Opened opened;
  (void)hipOfProcess(); // before libfovea looks for one
  fovea_status_t status = fovea_context_create(nullptr, &opened.context);
  opened.status = status == FOVEA_STATUS_OK ? openPackages(opened.context)
                                            : failure(status);
  opened.status.broken = true;
  for (Status next :
       {readSwitch(kPasses, opened.forwardOnly),
        readSwitch(kWorkspace, opened.mayAllocate), openFallback()})
    if (!opened.status)
      opened.status = next;
  return opened;
}

const Opened &opened() {
  static const Opened &result = *new Opened(open());
  return result;
}

/// A problem of one element, in as far as both passes describe it alike.
template <typename Params>
Params smallest(int32_t dtype, int64_t dim) {
  Params params = {};
  params.struct_size = sizeof(params);
  params.dtype = dtype;
  params.scale = 1;
  params.batch = params.heads_q = params.heads_k = 1;
  params.seqlen_q = params.seqlen_k = 1;
  params.head_dim = dim;
  return params;
}

fovea_status_t selectForward(fovea_context_t *context, int32_t device,
                             int32_t dtype, int64_t dim) {
  const auto forward = smallest<fovea_forward_params_t>(dtype, dim);
  return fovea_forward_select(context, &forward, device, nullptr);
}

fovea_status_t selectBackward(fovea_context_t *context, int32_t device,
                              int32_t dtype, int64_t dim, bool deterministic) {
  auto backward = smallest<fovea_backward_params_t>(dtype, dim);
  backward.deterministic = deterministic;
  for (fovea_mutable_tensor_t *wanted :
       {&backward.dq, &backward.dk, &backward.dv})
    wanted->stride_seq = dim;
  return fovea_backward_select(context, &backward, device, nullptr);
}

/// What the open packages have for a device.
struct Found {
  bool forward = false;  ///< for some problem
  bool backward = false; ///< the same, of any algorithm
  /// Of one problem, the backward pass by the deterministic algorithm, where
  /// there is only what clients bring as a workspace, which the other lacks.
  bool both = false;
  fovea_status_t status = FOVEA_STATUS_OK; ///< a failure to find that out

  /// Looks at a problem; false when there is no need to look further.
  bool look(fovea_context_t *context, int32_t device, int32_t dtype,
            int64_t dim) {
    bool has[] = {false, false, false};
    for (int i : {0, 1, 2}) {
      if (i == 2 && !(has[0] && has[1]))
        break;
      status = i == 0 ? selectForward(context, device, dtype, dim)
                      : selectBackward(context, device, dtype, dim,
                                       i == 2 && !mayAllocate());
      has[i] = status == FOVEA_STATUS_OK;
      if (status == FOVEA_STATUS_NOT_FOUND)
        status = FOVEA_STATUS_OK;
      if (status != FOVEA_STATUS_OK)
        return false;
    }
    forward |= has[0];
    backward |= has[1];
    both |= has[2];
    return !both;
  }
};

Found findKernels(fovea_context_t *context, int32_t device) {
  Found found;
  for (int64_t dim = 16; dim <= 512; dim += 8)
    for (int32_t dtype : {FOVEA_DTYPE_F16, FOVEA_DTYPE_BF16, FOVEA_DTYPE_F32})
      // Of one query and one key: kernels of all masks serve it.
      if (!found.look(context, device, dtype, dim))
        return found;
  return found;
}

/// The answers about a device.
struct Answers {
  Status any;    ///< is there a kernel at all?
  Status serves; ///< both passes, or as FOVEA_AOTRITON_PASSES says?
};

Answers lookForKernels(fovea_context_t *context, int32_t device) {
  const Found found = findKernels(context, device);
  fovea_device_info_t info = {};
  info.struct_size = sizeof(info);
  fovea_status_t status = found.status;
  if (status == FOVEA_STATUS_OK)
    status = fovea_device_info(context, device, &info);
  if (status != FOVEA_STATUS_OK) {
    const Status bad = failure(status);
    return {bad, bad};
  }
  const std::string where =
      "device " + std::to_string(device) + ", " + info.arch;
  auto none = [](std::string message) {
    return refuse(hipErrorNoBinaryForGpu, std::move(message));
  };
  if (!found.forward && !found.backward) {
    const Status no =
        none("none of the " + std::to_string(fovea_kernel_count(context)) +
             " kernels of the open packages runs on " + where +
             "; compile a package for it and name it in FOVEA_KERNELS");
    return {no, no};
  }
  Answers answers;
  if (!found.forward)
    answers.serves =
        none("the open packages have backward kernels for " + where +
             ", but no forward ones; name a package that "
             "has them in FOVEA_KERNELS as well");
  else if (!found.both && !opened().forwardOnly)
    answers.serves =
        none("the open packages have forward kernels for " + where +
             ", but for none of their problems deterministic backward ones, "
             "which clients bring the workspace for; name a package that has "
             "them in FOVEA_KERNELS as well, or set FOVEA_AOTRITON_PASSES to "
             "forward where nothing is trained");
  return answers;
}

/// Asks once for each device.
Answers answersOf(fovea_context_t *context, int32_t device) {
  static std::mutex mutex;
  static auto &all = *new std::map<int32_t, Answers>;
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto at = all.find(device); at != all.end())
    return at->second;
  const Answers answers = lookForKernels(context, device);
  // What HIP could not answer now it may answer later.
  if (!answers.any.broken)
    all.emplace(device, answers);
  return answers;
}

} // namespace

const std::set<void *> &hipOfProcess() {
  static const auto &loaded = *new std::set<void *>(loadedHip());
  return loaded;
}

Status session(fovea_context_t *&context) {
  context = opened().context;
  return opened().status;
}

Status failure(fovea_status_t status) {
  Status result = refuse(codeOf(status), fovea_last_message());
  result.broken = status != FOVEA_STATUS_INVALID_ARGUMENT &&
                  status != FOVEA_STATUS_NOT_FOUND;
  if (result.message.empty())
    result.message = fovea_status_name(status);
  return result;
}

Status StreamDevice::enter(fovea_context_t *context, hipStream_t stream) {
  const HipFunctions *found = nullptr;
  if (Status bad = hipFunctions(context, found))
    return bad;
  int current = 0;
  if (const hipError_t error = found->getDevice(&current))
    return failureOfHip("hipGetDevice", error);
  number = before = current;
  // HIP 5.2 cannot tell a stream's device; the caller must then have made it
  // the current one.
  if (!stream || !found->streamGetDevice)
    return {};
  int wanted = current;
  if (const hipError_t error = found->streamGetDevice(stream, &wanted))
    return failureOfHip(
        "the stream is none of this HIP library's: hipStreamGetDevice", error);
  if (wanted == current)
    return {};
  if (const hipError_t error = found->setDevice(wanted))
    return failureOfHip("the stream's device, " + std::to_string(wanted) +
                            ", cannot be made the current one: hipSetDevice",
                        error);
  number = wanted;
  hip = found;
  return {};
}

Status StreamDevice::leave() {
  const HipFunctions *entered = std::exchange(hip, nullptr);
  if (!entered)
    return {};
  if (const hipError_t error = entered->setDevice(before))
    return failureOfHip("device " + std::to_string(before) +
                            ", the current one before, cannot be made it "
                            "again: hipSetDevice",
                        error);
  return {};
}

Status isCaptured(fovea_context_t *context, hipStream_t stream,
                  bool &captured) {
  captured = false;
  const HipFunctions *found = nullptr;
  if (Status bad = hipFunctions(context, found))
    return bad;
  int status = 0;
  if (found->streamIsCapturing)
    if (const hipError_t error = found->streamIsCapturing(stream, &status))
      return failureOfHip("hipStreamIsCapturing", error);
  captured = status != 0;
  return {};
}

bool compilesOnDemand() {
  const char *value = std::getenv("FOVEA_COMPILE");
  return value && *value && std::strcmp(value, "never") != 0;
}

bool mayAllocate() { return opened().mayAllocate; }

std::string settingToAllocate() {
  return std::string(kWorkspace.variable) + "=" + kWorkspace.on;
}

Status StreamMemory::canTake(fovea_context_t *context, hipStream_t of) {
  if (!mayAllocate())
    return refuse(hipErrorNotSupported,
                  settingToAllocate() + " lets HIP give it");
  const HipFunctions *found = nullptr;
  if (Status bad = hipFunctions(context, found))
    return bad;
  if (!found->mallocAsync || !found->freeAsync)
    return refuse(hipErrorNotSupported,
                  settingToAllocate() +
                      " takes it by hipMallocAsync, which this HIP "
                      "library lacks");
  // A graph would have to take and give it back at each of its launches.
  bool captured = false;
  if (Status bad = isCaptured(context, of, captured))
    return bad;
  if (captured)
    return refuse(hipErrorNotSupported,
                  settingToAllocate() +
                      " takes none while the stream is being captured");
  hip = found;
  return {};
}

Status StreamMemory::take(fovea_context_t *context, hipStream_t of,
                          uint64_t bytes) {
  if (Status bad = canTake(context, of))
    return bad;
  return allocate(of, bytes);
}

Status StreamMemory::allocate(hipStream_t of, uint64_t bytes) {
  if (const hipError_t error = hip->mallocAsync(&memory, bytes, of)) {
    memory = nullptr;
    return failureOfHip("hipMallocAsync of " + std::to_string(bytes) + " bytes",
                        error);
  }
  stream = of;
  return {};
}

Status StreamMemory::takeIfAny(hipStream_t of, uint64_t bytes) {
  Status taken = allocate(of, bytes);
  // The latter of devices that have no pools of memory.
  if (taken.code != hipErrorOutOfMemory && taken.code != hipErrorNotSupported)
    return taken;
  if (hip->getLastError)
    (void)hip->getLastError();
  return {};
}

Status StreamMemory::giveBack() {
  void *taken = std::exchange(memory, nullptr);
  if (!taken)
    return {};
  if (const hipError_t error = hip->freeAsync(taken, stream))
    return failureOfHip("hipFreeAsync", error);
  return {};
}

Status clearRows(fovea_context_t *context, hipStream_t stream, void *rows,
                 uint64_t pitch, uint64_t bytes, uint64_t count) {
  const HipFunctions *found = nullptr;
  if (Status bad = hipFunctions(context, found))
    return bad;
  if (!found->memset2DAsync)
    return refuse(hipErrorNotSupported,
                  "this HIP library has no hipMemset2DAsync");
  if (const hipError_t error =
          found->memset2DAsync(rows, pitch, 0, bytes, count, stream))
    return failureOfHip("hipMemset2DAsync", error);
  return {};
}

Status deviceHasKernels(fovea_context_t *context, int32_t device) {
  return answersOf(context, device).any;
}

Status hipSymbol(const char *name, void *&address) {
  fovea_context_t *context = nullptr;
  // HIP is there without packages, too.
  if (Status bad = session(context); bad && !context)
    return bad;
  const HipFunctions *hip = nullptr;
  if (Status bad = hipFunctions(context, hip))
    return bad;
  if (!resolve(context, name, address))
    return fail(hipErrorSharedObjectSymbolNotFound, fovea_last_message());
  return {};
}

Status streamIsServed(hipStream_t stream) {
  fovea_context_t *context = nullptr;
  if (Status bad = session(context))
    return bad;
  return onDeviceOf(context, stream, [&](int32_t device) {
    return answersOf(context, device).serves;
  });
}

} // namespace fovea::shim

void *fovea_aotriton_hip_symbol(const char *name) {
  using namespace fovea::shim;
  void *address = nullptr;
  const Status status =
      attempt([&] { return hipSymbol(name ? name : "", address); });
  // What is asked between calls leaves the last one's reason.
  if (status)
    (void)finish("fovea_aotriton_hip_symbol", status, CallKind::Asks);
  return address;
}
