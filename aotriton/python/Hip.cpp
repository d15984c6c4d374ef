//===- Hip.cpp - HIP's statuses and memory --------------------------------===//
//
// Of the HIP library that libfovea_aotriton uses, found at run time: the module
// is imported where there is none.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"

namespace pyaotriton {
namespace {

/// HIP's statuses, by the names that HIP gives them; some have two.
/// Source: AMD, "HIP API reference", Error codes.
struct StatusRow {
  const char *name;
  int value;
};
constexpr StatusRow kStatuses[] = {
    {"hipSuccess", 0},
    {"hipErrorInvalidValue", 1},
    {"hipErrorOutOfMemory", 2},
    {"hipErrorMemoryAllocation", 2},
    {"hipErrorNotInitialized", 3},
    {"hipErrorInitializationError", 3},
    {"hipErrorDeinitialized", 4},
    {"hipErrorProfilerDisabled", 5},
    {"hipErrorProfilerNotInitialized", 6},
    {"hipErrorProfilerAlreadyStarted", 7},
    {"hipErrorProfilerAlreadyStopped", 8},
    {"hipErrorInvalidConfiguration", 9},
    {"hipErrorInvalidPitchValue", 12},
    {"hipErrorInvalidSymbol", 13},
    {"hipErrorInvalidDevicePointer", 17},
    {"hipErrorInvalidMemcpyDirection", 21},
    {"hipErrorInsufficientDriver", 35},
    {"hipErrorMissingConfiguration", 52},
    {"hipErrorPriorLaunchFailure", 53},
    {"hipErrorInvalidDeviceFunction", 98},
    {"hipErrorNoDevice", 100},
    {"hipErrorInvalidDevice", 101},
    {"hipErrorInvalidImage", 200},
    {"hipErrorInvalidContext", 201},
    {"hipErrorContextAlreadyCurrent", 202},
    {"hipErrorMapFailed", 205},
    {"hipErrorMapBufferObjectFailed", 205},
    {"hipErrorUnmapFailed", 206},
    {"hipErrorArrayIsMapped", 207},
    {"hipErrorAlreadyMapped", 208},
    {"hipErrorNoBinaryForGpu", 209},
    {"hipErrorAlreadyAcquired", 210},
    {"hipErrorNotMapped", 211},
    {"hipErrorNotMappedAsArray", 212},
    {"hipErrorNotMappedAsPointer", 213},
    {"hipErrorECCNotCorrectable", 214},
    {"hipErrorUnsupportedLimit", 215},
    {"hipErrorContextAlreadyInUse", 216},
    {"hipErrorPeerAccessUnsupported", 217},
    {"hipErrorInvalidKernelFile", 218},
    {"hipErrorInvalidGraphicsContext", 219},
    {"hipErrorInvalidSource", 300},
    {"hipErrorFileNotFound", 301},
    {"hipErrorSharedObjectSymbolNotFound", 302},
    {"hipErrorSharedObjectInitFailed", 303},
    {"hipErrorOperatingSystem", 304},
    {"hipErrorInvalidHandle", 400},
    {"hipErrorInvalidResourceHandle", 400},
    {"hipErrorIllegalState", 401},
    {"hipErrorNotFound", 500},
    {"hipErrorNotReady", 600},
    {"hipErrorIllegalAddress", 700},
    {"hipErrorLaunchOutOfResources", 701},
    {"hipErrorLaunchTimeOut", 702},
    {"hipErrorPeerAccessAlreadyEnabled", 704},
    {"hipErrorPeerAccessNotEnabled", 705},
    {"hipErrorSetOnActiveProcess", 708},
    {"hipErrorContextIsDestroyed", 709},
    {"hipErrorAssert", 710},
    {"hipErrorHostMemoryAlreadyRegistered", 712},
    {"hipErrorHostMemoryNotRegistered", 713},
    {"hipErrorLaunchFailure", 719},
    {"hipErrorCooperativeLaunchTooLarge", 720},
    {"hipErrorNotSupported", 801},
    {"hipErrorStreamCaptureUnsupported", 900},
    {"hipErrorStreamCaptureInvalidated", 901},
    {"hipErrorStreamCaptureMerge", 902},
    {"hipErrorStreamCaptureUnmatched", 903},
    {"hipErrorStreamCaptureUnjoined", 904},
    {"hipErrorStreamCaptureIsolation", 905},
    {"hipErrorStreamCaptureImplicit", 906},
    {"hipErrorCapturedEvent", 907},
    {"hipErrorStreamCaptureWrongThread", 908},
    {"hipErrorGraphExecUpdateFailure", 910},
    {"hipErrorUnknown", 999},
    {"hipErrorRuntimeMemory", 1052},
    {"hipErrorRuntimeOther", 1053},
    {"hipErrorTbd", 1054},
};

/// hipMemcpyKind.
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;

void *pointer(intptr_t address) { return reinterpret_cast<void *>(address); }

hipError_t copy(void *to, const void *from, size_t bytes, int kind) {
  py::gil_scoped_release released;
  return callHip("hipMemcpy", hipSignature<void *, const void *, size_t, int>(),
                 to, from, bytes, kind);
}

/// Memory of the current device. Outcomes of HIP are kept as last_state(), as
/// in AOTriton's module, which ignores sizes beyond the memory's, too: those
/// raise ValueError.
class HipMemory {
public:
  HipMemory() = default;
  HipMemory(const HipMemory &) = delete;
  ~HipMemory() { free(); }

  void alloc(size_t size) {
    free();
    if (state != hipSuccess)
      return;
    state =
        callHip("hipMalloc", hipSignature<void **, size_t>(), &memory, size);
    if (state != hipSuccess)
      memory = nullptr; // whatever it holds
    bytes = memory ? size : 0;
  }

  void free() {
    if (memory)
      state = callHip("hipFree", hipSignature<void *>(), memory);
    else
      state = hipSuccess;
    memory = nullptr;
    bytes = 0;
  }

  intptr_t address() const { return reinterpret_cast<intptr_t>(memory); }

  void load(intptr_t from, size_t size) {
    check("load_from_host", size);
    state = copy(memory, pointer(from), size, kHostToDevice);
  }

  void store(intptr_t to, size_t size) {
    check("store_to_host", size);
    state = copy(pointer(to), memory, size, kDeviceToHost);
  }

  void zero() {
    py::gil_scoped_release released;
    state = callHip("hipMemset", hipSignature<void *, int, size_t>(), memory, 0,
                    bytes);
  }

  hipError_t last() const { return state; }

private:
  void check(const char *what, size_t size) const {
    if (size > bytes)
      throw py::value_error("HipMemory." + std::string(what) + ": " +
                            std::to_string(size) + " bytes, where " +
                            std::to_string(bytes) + " are allocated");
  }

  void *memory = nullptr;
  size_t bytes = 0;
  hipError_t state = hipSuccess;
};

} // namespace

void defineHip(py::module_ &module) {
  // A module of AOTriton's in the same process has a class of its own.
  py::enum_<hipError_t> statuses(module, "hipError_t", py::module_local(),
                                 "HIP's statuses.");
  for (const StatusRow &row : kStatuses)
    statuses.value(row.name, hipError_t(row.value));
  statuses.export_values();
  module.def(
      "hipDeviceSynchronize",
      [] {
        py::gil_scoped_release released;
        return callHip("hipDeviceSynchronize", hipSignature<>());
      },
      "Waits for the current device. hipErrorNoDevice where there is none.");
  module.def(
      "hipGetLastError",
      [] { return callHip("hipGetLastError", hipSignature<>()); },
      "The thread's last status of HIP, which is success afterwards.");
  py::class_<HipMemory>(module, "HipMemory",
                        "Memory of the current device, freed with the object.")
      .def(py::init<>(), "None yet.")
      .def("alloc", &HipMemory::alloc, py::arg("size"),
           "Frees what there is and allocates `size` bytes.")
      .def("free", &HipMemory::free, "Frees what there is.")
      .def("get_pointer", &HipMemory::address,
           "Its address on the device; 0 without memory.")
      .def("last_state", &HipMemory::last,
           "The hipError_t of the latest of these calls.")
      .def("load_from_host", &HipMemory::load, py::arg("ptr"),
           py::arg("nbytes"), "Copies from the host's address `ptr`.")
      .def("store_to_host", &HipMemory::store, py::arg("ptr"),
           py::arg("nbytes"), "Copies to the host's address `ptr`.")
#if AOTRITON_VERSION_MINOR >= 12
      .def("zero_memory", &HipMemory::zero, "Sets all bytes to 0.")
#endif
      ;
}

} // namespace pyaotriton
