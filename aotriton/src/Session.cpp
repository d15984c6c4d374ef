//===- Session.cpp - the process's context and its devices ----------------===//

#include "Session.h"

#include "Fallback.h"

#include <fovea/aotriton.h>

#include <algorithm>
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
  if (fovea_last_cause() == FOVEA_CAUSE_CAPTURED)
    return hipErrorStreamCaptureUnsupported;
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

/// Whether kernels of packages are none for libfovea.
bool compilesAlways() {
  const char *value = std::getenv("FOVEA_COMPILE");
  return value && std::strcmp(value, "always") == 0;
}

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
                             int32_t dtype, int64_t dim, uint32_t kernel) {
  auto forward = smallest<fovea_forward_params_t>(dtype, dim);
  forward.kernel = kernel;
  return fovea_forward_select(context, &forward, device, nullptr);
}

fovea_status_t selectBackward(fovea_context_t *context, int32_t device,
                              int32_t dtype, int64_t dim, bool deterministic,
                              uint32_t kernel) {
  auto backward = smallest<fovea_backward_params_t>(dtype, dim);
  backward.deterministic = deterministic;
  backward.kernel = kernel;
  for (fovea_mutable_tensor_t *wanted :
       {&backward.dq, &backward.dk, &backward.dv})
    wanted->stride_seq = dim;
  return fovea_backward_select(context, &backward, device, nullptr);
}

/// The passes of clients, of which the last is what they bring a workspace for.
enum Pass : unsigned { Forward, Backward, OwnBackward };

/// \param kernel  0: any, which may be compiled
fovea_status_t selectPass(fovea_context_t *context, int32_t device,
                          int32_t dtype, int64_t dim, unsigned pass,
                          uint32_t kernel = 0) {
  return pass == Forward
             ? selectForward(context, device, dtype, dim, kernel)
             : selectBackward(context, device, dtype, dim,
                              pass == OwnBackward && !mayAllocate(), kernel);
}

/// What kernels are for, as libfovea describes it:
/// "forward;dtype=bf16;head_dim=128".
class ProblemText {
public:
  explicit ProblemText(const char *problem) : text(problem) {}
  std::string_view op() const { return text.substr(0, text.find(';')); }
  /// FOVEA_DTYPE_..., or 0.
  int32_t dtype() const {
    const std::string_view name = value(";dtype=");
    return name == "fp16"   ? FOVEA_DTYPE_F16
           : name == "bf16" ? FOVEA_DTYPE_BF16
           : name == "fp32" ? FOVEA_DTYPE_F32
                            : 0;
  }
  /// 0: it has none.
  int64_t number(std::string_view key) const {
    return std::atoll(std::string(value(key)).c_str());
  }

private:
  std::string_view value(std::string_view key) const {
    const size_t at = text.find(key);
    if (at == text.npos)
      return {};
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find(';'));
  }
  std::string_view text;
};

/// What the open packages have for a device.
struct Found {
  bool forward = false;  ///< for some problem
  bool backward = false; ///< the same, of any algorithm
  /// Of one problem, the backward pass by the deterministic algorithm, where
  /// there is only what clients bring as a workspace, which the other lacks.
  bool both = false;
  Status failure;       ///< to find that out
  bool mayPass = false; ///< it is one to compile, which another time succeeds

  /// Looks at a problem; false when there is no need to look further.
  bool look(fovea_context_t *context, int32_t device, int32_t dtype,
            int64_t dim) {
    bool has[] = {false, false, false};
    for (unsigned pass : {Forward, Backward, OwnBackward}) {
      if (pass == OwnBackward && !(has[Forward] && has[Backward]))
        break;
      const fovea_status_t status =
          selectPass(context, device, dtype, dim, pass);
      has[pass] = status == FOVEA_STATUS_OK;
      // Where kernels with atomic sums are there, the cause is those, whatever
      // the compiler said. Another problem tells.
      mayPass = fovea_last_cause() == FOVEA_CAUSE_NOT_COMPILED;
      if (status == FOVEA_STATUS_OK ||
          (status == FOVEA_STATUS_NOT_FOUND && !mayPass))
        continue;
      failure = shim::failure(status);
      break;
    }
    forward |= has[Forward];
    backward |= has[Backward];
    both |= has[OwnBackward];
    return !both && !failure;
  }

  /// What packages have: bits of passes by type and head dimension.
  std::map<std::pair<int32_t, int64_t>, unsigned> passes;

  /// Looks at what is there, kernel by kernel: nothing is compiled.
  void lookAtPackages(fovea_context_t *context, int32_t device) {
    const auto count = uint32_t(fovea_kernel_count(context));
    for (uint32_t id = 1; id <= count; ++id) {
      fovea_kernel_info_t info = {};
      info.struct_size = sizeof(info);
      if (fovea_kernel_info(context, id, &info) != FOVEA_STATUS_OK)
        continue;
      const ProblemText problem(info.problem);
      const bool isForward = problem.op() == "forward";
      if (!problem.dtype() || (!isForward && problem.op() != "backward"))
        continue;
      // One for smaller dimensions, too, serves those of its values.
      for (int64_t dim :
           {problem.number(";head_dim="), problem.number(";head_dim_v=")})
        for (unsigned pass = isForward ? Forward : Backward;
             dim != 0 && pass <= (isForward ? Forward : OwnBackward); ++pass)
          if (selectPass(context, device, problem.dtype(), dim, pass, id) ==
              FOVEA_STATUS_OK)
            passes[{problem.dtype(), dim}] |= 1u << pass;
    }
    for (const auto &[problem, bits] : passes) {
      forward |= bits >> Forward & 1;
      backward |= bits >> Backward & 1;
      both |= (bits >> Forward & 1) && (bits >> OwnBackward & 1);
    }
  }
};

Found findKernels(fovea_context_t *context, int32_t device) {
  Found found;
  // Who has packages need not wait for a compiler, nor have one that works.
  if (compilesOnDemand() && !compilesAlways())
    found.lookAtPackages(context, device);
  if (found.both || (found.forward && opened().forwardOnly))
    return found;
  // What is compiled then is the other pass of what clients have packages for.
  for (const auto &[problem, bits] : found.passes)
    if (!found.look(context, device, problem.first, problem.second))
      return found;
  for (int64_t dim = 16; dim <= 512; dim += 8)
    for (int32_t dtype : {FOVEA_DTYPE_F16, FOVEA_DTYPE_BF16, FOVEA_DTYPE_F32})
      // Of one query and one key: kernels of all masks serve it.
      if (!found.look(context, device, dtype, dim))
        return found;
  return found;
}

/// How long answers are kept.
enum class Kept : uint8_t {
  Always,
  ForCalls, ///< for some: a compiler may later make what it has not made
  Never     ///< HIP may later tell
};

/// The answers about a device.
struct Answers {
  Status any;    ///< is there a kernel at all, as far as is known?
  Status serves; ///< both passes, or as FOVEA_AOTRITON_PASSES says?
  Kept kept = Kept::Always;
};

/// What libfovea says of compiling, which it says last. What comes before are
/// remedies of its interface.
std::string saidOfCompiling(const std::string &message) {
  const size_t at = message.find("it could not be compiled on demand");
  return at == message.npos ? message : message.substr(at);
}

Answers lookForKernels(fovea_context_t *context, int32_t device) {
  const Found found = findKernels(context, device);
  fovea_device_info_t info = {};
  info.struct_size = sizeof(info);
  Status bad = found.mayPass ? Status() : found.failure;
  if (!bad)
    if (const fovea_status_t status = fovea_device_info(context, device, &info);
        status != FOVEA_STATUS_OK)
      bad = failure(status);
  if (bad)
    return {bad, bad, Kept::Never};
  const std::string where =
      "device " + std::to_string(device) + ", " + info.arch;
  auto none = [](std::string message) {
    return refuse(hipErrorNoBinaryForGpu, std::move(message));
  };
  if (found.failure) // a call tells its own
    return {
        Status(),
        found.forward && opened().forwardOnly
            ? Status()
            : none("the open packages have not what serves " + where +
                   "; name one that has it in FOVEA_KERNELS, or see that the "
                   "compiler works: " +
                   saidOfCompiling(found.failure.message)),
        Kept::ForCalls};
  if (!found.forward && !found.backward) {
    const Status no =
        none("none of the " + std::to_string(fovea_kernel_count(context)) +
             " kernels of the open packages runs on " + where +
             "; compile a package for it and name it in FOVEA_KERNELS");
    return {no, no, Kept::Always};
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

/// Answers that were given.
struct Known {
  Answers answers;
  uint64_t kernels; ///< that there were then
  // As libfovea tries again where another kernel serves.
  static constexpr uint32_t kMostCalls = 1 << 16;
  uint32_t calls; ///< which they are given to yet, if not to all
  uint32_t wait;  ///< as many as are next

  /// Whether this call looks anew; a kernel made meanwhile speaks for it.
  bool isDue(uint64_t kernelsNow) {
    if (answers.kept != Kept::ForCalls)
      return false;
    if (kernels != kernelsNow || calls == 0)
      return true;
    --calls;
    return false;
  }
};

/// Asks once for each device, but where a compiler failed: that takes long, and
/// clients ask before each call.
Answers answersOf(fovea_context_t *context, int32_t device) {
  static std::mutex mutex;
  static auto &all = *new std::map<int32_t, Known>;
  std::lock_guard<std::mutex> lock(mutex);
  const auto known = all.find(device);
  const uint64_t before = fovea_kernel_count(context);
  if (known != all.end() && !known->second.isDue(before))
    return known->second.answers;
  uint32_t calls = 1;
  if (known != all.end()) {
    if (known->second.kernels == before)
      calls = known->second.wait;
    all.erase(known);
  }
  const Answers answers = lookForKernels(context, device);
  if (answers.kept != Kept::Never)
    all.emplace(device, Known{answers, fovea_kernel_count(context), calls,
                              std::min(2 * calls, Known::kMostCalls)});
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
