//===- Session.h - the process's context and its devices --------*- C++ -*-===//
//
// What all calls share: one context of libfovea, opened at the first call with
// the packages of FOVEA_KERNELS or of the installation, and never closed, since
// work may be under way until the process ends.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_SESSION_H
#define FOVEA_AOTRITON_SESSION_H

#include "Status.h"

#include <fovea/fovea.h>
#include <set>

namespace fovea::shim {

/// The HIP libraries that the process had loaded when this was first called, as
/// the addresses of one of their functions. To be called before something of
/// this library's may load one.
const std::set<void *> &hipOfProcess();

/// The context, or why there is none.
Status session(fovea_context_t *&context);

/// The failure that libfovea just reported in this thread; of one of HIP's, the
/// status that HIP gave.
Status failure(fovea_status_t status);

/// Makes the stream's device the calling thread's current one, which launches
/// go to, until the end of its life.
class StreamDevice {
public:
  StreamDevice() = default;
  ~StreamDevice() { (void)leave(); }
  StreamDevice(const StreamDevice &) = delete;
  StreamDevice &operator=(const StreamDevice &) = delete;
  Status enter(fovea_context_t *context, hipStream_t stream);
  /// Goes back, for whom it matters whether that works.
  Status leave();
  int32_t device() const { return number; }

private:
  int32_t number = 0;
  int32_t before = 0;                       ///< to go back to
  const struct HipFunctions *hip = nullptr; ///< if it has to be gone back
};

/// Runs `body(device)`, which gives a Status, on the stream's device. Of
/// several failures the first is the result.
template <typename Body>
Status onDeviceOf(fovea_context_t *context, hipStream_t stream, Body body) {
  StreamDevice device;
  if (Status bad = device.enter(context, stream))
    return bad;
  Status status = body(device.device());
  Status back = device.leave();
  return status ? status : back;
}

/// Whether the stream is being captured.
Status isCaptured(fovea_context_t *context, hipStream_t stream, bool &captured);
/// Whether libfovea compiles what no package has; it has checked the variable.
bool compilesOnDemand();

/// Whether FOVEA_AOTRITON_WORKSPACE lets this library take memory of the
/// device.
bool mayAllocate();
/// What makes it so, for messages.
std::string settingToAllocate();

/// Memory of a stream's device for one call, where the client lets this library
/// take it: from HIP's allocator in the order of the stream, and given back
/// behind what the stream was given until the end of its life.
class StreamMemory {
public:
  StreamMemory() = default;
  ~StreamMemory() { (void)giveBack(); }
  StreamMemory(const StreamMemory &) = delete;
  StreamMemory &operator=(const StreamMemory &) = delete;
  /// Whether there is any to take, or why not: nothing is asked of HIP but
  /// whether the stream is being captured.
  Status canTake(fovea_context_t *context, hipStream_t stream);
  /// Once; the stream's device is the thread's current one.
  Status take(fovea_context_t *context, hipStream_t stream, uint64_t bytes);
  /// The same after canTake(), where the call goes on without memory if there
  /// is none left or the device gives none in this way, and HIP's last error is
  /// nobody's.
  Status takeIfAny(hipStream_t stream, uint64_t bytes);
  /// Now, for whom it matters whether that works.
  Status giveBack();
  void *data() const { return memory; }

private:
  Status allocate(hipStream_t of, uint64_t bytes);

  void *memory = nullptr;
  hipStream_t stream = nullptr;
  const struct HipFunctions *hip = nullptr;
};

/// Enqueues zeros for `count` rows of `bytes`, `pitch` bytes apart.
Status clearRows(fovea_context_t *context, hipStream_t stream, void *rows,
                 uint64_t pitch, uint64_t bytes, uint64_t count);

/// Success when some kernel of the open packages runs on the device or may be
/// compiled another time, else hipErrorNoBinaryForGpu.
Status deviceHasKernels(fovea_context_t *context, int32_t device);

/// The address of a function of the HIP library that calls use, or why not.
Status hipSymbol(const char *name, void *&address);

/// Success when the packages have kernels of both passes for some problem on
/// the stream's device (of the forward pass, if FOVEA_AOTRITON_PASSES says so).
Status streamIsServed(hipStream_t stream);

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_SESSION_H
