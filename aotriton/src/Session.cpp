//===- Session.cpp - the process's context and its devices ----------------===//

#include "Session.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

namespace fovea::shim {

/// Of the HIP library that libfovea uses.
struct HipFunctions {
  hipError_t (*getDevice)(int *) = nullptr;
  hipError_t (*setDevice)(int) = nullptr;
  // Null where the library lacks them.
  hipError_t (*peekAtLastError)() = nullptr;
  hipError_t (*streamGetDevice)(hipStream_t, int *) = nullptr;
};

namespace {

/// Where the installation has its packages, seen from this library's folder.
constexpr const char *kInstalledKernels = FOVEA_AOTRITON_KERNELS;

/// Separates the files and folders of FOVEA_KERNELS.
constexpr char kSeparator = ':';

std::string installedKernels() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&installedKernels), &info) ||
      !info.dli_fname)
    return kInstalledKernels;
  // The library may have been found by a link of another name elsewhere.
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::canonical(info.dli_fname, ignored);
  return (file.parent_path() / kInstalledKernels).lexically_normal().string();
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

hipError_t codeOf(fovea_status_t status) {
  for (const StatusRow &row : kStatusRows)
    if (row.status == status)
      return row.code;
  return hipErrorUnknown;
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
  HipFunctions found;
  if (!resolve(context, "hipGetDevice", found.getDevice) ||
      !resolve(context, "hipSetDevice", found.setDevice))
    return refuse(hipErrorNoDevice, fovea_last_message());
  (void)resolve(context, "hipPeekAtLastError", found.peekAtLastError);
  (void)resolve(context, "hipStreamGetDevice", found.streamGetDevice);
  functions = found;
  ready.store(true, std::memory_order_release);
  return {};
}

Status openPackages(fovea_context_t *context) {
  const char *variable = std::getenv("FOVEA_KERNELS");
  const bool given = variable && *variable;
  const std::string paths = given ? variable : installedKernels();
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
    Status result = failure(context, status);
    if (status == FOVEA_STATUS_NOT_FOUND)
      result.code = hipErrorFileNotFound;
    result.message += given ? " (named by FOVEA_KERNELS)"
                            : "; FOVEA_KERNELS names other files or folders";
    return result;
  }
  return {};
}

struct Opened {
  fovea_context_t *context = nullptr;
  Status status;
};

Opened open() {
  Opened opened;
  fovea_status_t status = fovea_context_create(nullptr, &opened.context);
  opened.status = status == FOVEA_STATUS_OK ? openPackages(opened.context)
                                            : failure(nullptr, status);
  return opened;
}

/// A problem of one element, in as far as both passes describe it alike.
template <typename Params>
Params smallest(int32_t dtype, int32_t mask, int64_t dim) {
  Params params = {};
  params.struct_size = sizeof(params);
  params.dtype = dtype;
  params.mask = mask;
  params.scale = 1;
  params.batch = params.heads_q = params.heads_k = 1;
  params.seqlen_q = params.seqlen_k = 1;
  params.head_dim = dim;
  return params;
}

fovea_status_t selectEither(fovea_context_t *context, int32_t device,
                            int32_t dtype, int32_t mask, int64_t dim) {
  const auto forward = smallest<fovea_forward_params_t>(dtype, mask, dim);
  const fovea_status_t status =
      fovea_forward_select(context, &forward, device, nullptr);
  if (status != FOVEA_STATUS_NOT_FOUND)
    return status;
  auto backward = smallest<fovea_backward_params_t>(dtype, mask, dim);
  for (fovea_mutable_tensor_t *wanted :
       {&backward.dq, &backward.dk, &backward.dv})
    wanted->stride_seq = dim;
  return fovea_backward_select(context, &backward, device, nullptr);
}

/// Whether the device has a kernel for any problem.
fovea_status_t findKernel(fovea_context_t *context, int32_t device) {
  for (int64_t dim = 16; dim <= 512; dim += 8)
    for (int32_t dtype : {FOVEA_DTYPE_F16, FOVEA_DTYPE_BF16})
      for (int32_t mask : {FOVEA_MASK_NONE, FOVEA_MASK_CAUSAL_TOP_LEFT,
                           FOVEA_MASK_CAUSAL_BOTTOM_RIGHT})
        if (const fovea_status_t status =
                selectEither(context, device, dtype, mask, dim);
            status != FOVEA_STATUS_NOT_FOUND)
          return status;
  return FOVEA_STATUS_NOT_FOUND;
}

Status lookForKernels(fovea_context_t *context, int32_t device) {
  const fovea_status_t found = findKernel(context, device);
  if (found == FOVEA_STATUS_OK)
    return {};
  if (found != FOVEA_STATUS_NOT_FOUND)
    return failure(context, found);
  fovea_device_info_t info = {};
  info.struct_size = sizeof(info);
  const fovea_status_t status = fovea_device_info(context, device, &info);
  if (status != FOVEA_STATUS_OK)
    return failure(context, status);
  return refuse(hipErrorNoBinaryForGpu,
                "none of the " + std::to_string(fovea_kernel_count(context)) +
                    " kernels of the open packages runs on device " +
                    std::to_string(device) + ", " + info.arch +
                    "; compile a package for it and name it in FOVEA_KERNELS");
}

} // namespace

Status session(fovea_context_t *&context) {
  static const Opened opened = open();
  context = opened.context;
  return opened.status;
}

Status failure(fovea_context_t *context, fovea_status_t status) {
  Status result = refuse(codeOf(status), fovea_last_message());
  if (result.message.empty())
    result.message = fovea_status_name(status);
  // The message names HIP's status; the call that failed left it with HIP, too.
  const HipFunctions *hip = nullptr;
  if (status == FOVEA_STATUS_HIP_ERROR && context &&
      !hipFunctions(context, hip) && hip->peekAtLastError)
    if (const hipError_t last = hip->peekAtLastError(); last != hipSuccess)
      result.code = last;
  return result;
}

Status StreamDevice::enter(fovea_context_t *context, hipStream_t stream) {
  const HipFunctions *found = nullptr;
  if (Status bad = hipFunctions(context, found))
    return bad;
  int current = 0;
  if (const hipError_t error = found->getDevice(&current))
    return refuse(error, "hipGetDevice failed with status " +
                             std::to_string(int(error)));
  number = before = current;
  // HIP 5.2 cannot tell a stream's device; the caller must then have made it
  // the current one.
  if (!stream || !found->streamGetDevice)
    return {};
  int wanted = current;
  if (const hipError_t error = found->streamGetDevice(stream, &wanted))
    return refuse(error, "the stream is none of this HIP library's: "
                         "hipStreamGetDevice failed with status " +
                             std::to_string(int(error)));
  if (wanted == current)
    return {};
  if (const hipError_t error = found->setDevice(wanted))
    return refuse(error, "the stream's device, " + std::to_string(wanted) +
                             ", cannot be made the current one: hipSetDevice "
                             "failed with status " +
                             std::to_string(int(error)));
  number = wanted;
  hip = found;
  return {};
}

StreamDevice::~StreamDevice() {
  if (hip)
    (void)hip->setDevice(before);
}

Status deviceHasKernels(fovea_context_t *context, int32_t device) {
  static std::mutex mutex;
  static std::map<int32_t, Status> answers;
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto at = answers.find(device); at != answers.end())
    return at->second;
  Status answer = lookForKernels(context, device);
  // What HIP could not answer now it may answer later.
  if (!answer || answer.code == hipErrorNoBinaryForGpu)
    answers.emplace(device, answer);
  return answer;
}

} // namespace fovea::shim
