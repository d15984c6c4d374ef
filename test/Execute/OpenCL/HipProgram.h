//===- HipProgram.h - a program on HIP's module API -------------*- C++ -*-===//
//
// Declarations of the HIP functions that the tests call, as a program with
// AMD's headers would see them, and thin owners of modules and memory. Nothing
// here knows that the device is simulated.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_HIPPROGRAM_H
#define FOVEA_TEST_HIPPROGRAM_H

#include "fovea/HipAbi.h"
#include "fovea/HipSim.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

extern "C" {
hipError_t hipInit(unsigned);
hipError_t hipDriverGetVersion(int *);
hipError_t hipRuntimeGetVersion(int *);
hipError_t hipGetDeviceCount(int *);
hipError_t hipSetDevice(int);
hipError_t hipGetDevice(int *);
hipError_t hipDeviceGetName(char *, int, hipDevice_t);
hipError_t hipDeviceTotalMem(size_t *, hipDevice_t);
hipError_t hipDeviceGetAttribute(int *, int, int);
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *, int);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *, int);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();
hipError_t hipCtxGetCurrent(hipCtx_t *);
hipError_t hipCtxSetCurrent(hipCtx_t);
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *, hipDevice_t);
hipError_t hipMalloc(void **, size_t);
hipError_t hipFree(void *);
hipError_t hipMallocAsync(void **, size_t, hipStream_t);
hipError_t hipFreeAsync(void *, hipStream_t);
hipError_t hipMallocManaged(void **, size_t, unsigned);
hipError_t hipHostMalloc(void **, size_t, unsigned);
hipError_t hipHostFree(void *);
hipError_t hipHostRegister(void *, size_t, unsigned);
hipError_t hipHostUnregister(void *);
hipError_t hipHostGetDevicePointer(void **, void *, unsigned);
hipError_t hipMemcpy(void *, const void *, size_t, hipMemcpyKind);
hipError_t hipMemcpyAsync(void *, const void *, size_t, hipMemcpyKind,
                          hipStream_t);
hipError_t hipMemcpyHtoD(hipDeviceptr_t, void *, size_t);
hipError_t hipMemcpyDtoH(void *, hipDeviceptr_t, size_t);
hipError_t hipMemcpyDtoD(hipDeviceptr_t, hipDeviceptr_t, size_t);
hipError_t hipMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t,
                       hipMemcpyKind);
hipError_t hipMemcpy2DAsync(void *, size_t, const void *, size_t, size_t,
                            size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemcpyPeer(void *, int, const void *, int, size_t);
hipError_t hipMemcpyPeerAsync(void *, int, const void *, int, size_t,
                              hipStream_t);
hipError_t hipMallocPitch(void **, size_t *, size_t, size_t);
hipError_t hipMemset2D(void *, size_t, int, size_t, size_t);
hipError_t hipMemset2DAsync(void *, size_t, int, size_t, size_t, hipStream_t);
hipError_t hipDeviceCanAccessPeer(int *, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceDisablePeerAccess(int);
hipError_t hipMemset(void *, int, size_t);
hipError_t hipMemsetAsync(void *, int, size_t, hipStream_t);
hipError_t hipMemsetD8(hipDeviceptr_t, unsigned char, size_t);
hipError_t hipMemsetD16(hipDeviceptr_t, unsigned short, size_t);
hipError_t hipMemsetD32(hipDeviceptr_t, int, size_t);
hipError_t hipMemGetInfo(size_t *, size_t *);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *, const void *);
hipError_t hipPointerGetAttribute(void *, hipPointer_attribute, hipDeviceptr_t);
hipError_t hipGetProcAddress(const char *, void **, int, uint64_t,
                             hipDriverProcAddressQueryResult *);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *, size_t *, hipDeviceptr_t);
hipError_t hipModuleLoad(hipModule_t *, const char *);
hipError_t hipModuleLoadData(hipModule_t *, const void *);
hipError_t hipModuleLoadDataEx(hipModule_t *, const void *, unsigned, int *,
                               void **);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetFunction(hipFunction_t *, hipModule_t, const char *);
hipError_t hipModuleGetGlobal(hipDeviceptr_t *, size_t *, hipModule_t,
                              const char *);
hipError_t hipFuncGetAttribute(int *, hipFunction_attribute, hipFunction_t);
hipError_t hipFuncGetAttributes(hipFuncAttributes *, const void *);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, unsigned,
                                 hipStream_t, void **, void **);
hipError_t hipExtModuleLaunchKernel(hipFunction_t, uint32_t, uint32_t, uint32_t,
                                    uint32_t, uint32_t, uint32_t, size_t,
                                    hipStream_t, void **, void **, hipEvent_t,
                                    hipEvent_t, uint32_t);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *,
                                                              hipFunction_t,
                                                              int, size_t);
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *, int *, hipFunction_t,
                                                   size_t, int);
hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamCreateWithFlags(hipStream_t *, unsigned);
hipError_t hipStreamCreateWithPriority(hipStream_t *, unsigned, int);
hipError_t hipStreamGetPriority(hipStream_t, int *);
hipError_t hipStreamGetFlags(hipStream_t, unsigned *);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamQuery(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipStreamAddCallback(hipStream_t, hipStreamCallback_t, void *,
                                unsigned);
hipError_t hipLaunchHostFunc(hipStream_t, hipHostFn_t, void *);
hipError_t hipEventCreate(hipEvent_t *);
hipError_t hipEventCreateWithFlags(hipEvent_t *, unsigned);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventQuery(hipEvent_t);
hipError_t hipEventElapsedTime(float *, hipEvent_t, hipEvent_t);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
const char *hipGetErrorName(hipError_t);
const char *hipGetErrorString(hipError_t);
}

namespace fovea::test {

/// The status must be hipSuccess; the report says why it is not.
#define EXPECT_HIP(call)                                                       \
  do {                                                                         \
    const hipError_t hipStatus = (call);                                       \
    EXPECT_EQ(hipStatus, hipSuccess)                                           \
        << #call << ": " << hipGetErrorName(hipStatus) << ": "                 \
        << fovea_sim_last_report();                                            \
  } while (0)
#define ASSERT_HIP(call)                                                       \
  do {                                                                         \
    const hipError_t hipStatus = (call);                                       \
    ASSERT_EQ(hipStatus, hipSuccess)                                           \
        << #call << ": " << hipGetErrorName(hipStatus) << ": "                 \
        << fovea_sim_last_report();                                            \
  } while (0)

/// Device memory of `T`, with copies both ways.
template <typename T>
class Buffer {
public:
  explicit Buffer(const std::vector<T> &values) : count(values.size()) {
    EXPECT_HIP(hipMalloc(&memory, bytes()));
    EXPECT_HIP(
        hipMemcpy(memory, values.data(), bytes(), hipMemcpyHostToDevice));
  }
  explicit Buffer(size_t count, T value = T())
      : Buffer(std::vector<T>(count, value)) {}
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { (void)hipFree(memory); }

  std::vector<T> read() const {
    std::vector<T> values(count);
    EXPECT_HIP(
        hipMemcpy(values.data(), memory, bytes(), hipMemcpyDeviceToHost));
    return values;
  }
  size_t bytes() const { return count * sizeof(T); }
  T *device() const { return static_cast<T *>(memory); }

private:
  size_t count;
  void *memory = nullptr;
};

struct Size3 {
  unsigned x = 1, y = 1, z = 1;
};

/// One compiled file of this folder at one optimisation level.
class Program {
public:
  Program(const std::string &name, int level) {
    const char *folder = std::getenv("FOVEA_OPENCL_KERNELS");
    const std::string path = std::string(folder ? folder : FOVEA_OPENCL_DIR) +
                             "/" + name + ".O" +
                             std::to_string(level) + ".hsaco";
    EXPECT_EQ(hipModuleLoad(&module, path.c_str()), hipSuccess)
        << path << ": " << fovea_sim_last_report();
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;
  ~Program() { (void)hipModuleUnload(module); }

  hipFunction_t function(const char *name) const {
    hipFunction_t result = nullptr;
    EXPECT_EQ(hipModuleGetFunction(&result, module, name), hipSuccess)
        << fovea_sim_last_report();
    return result;
  }

  /// Launches and waits; the arguments must have the kernel's own types.
  template <typename... Args>
  hipError_t run(const char *name, Size3 grid, Size3 block, Args... args) {
    return runWithLds(name, grid, block, 0, args...);
  }

  template <typename... Args>
  hipError_t runWithLds(const char *name, Size3 grid, Size3 block,
                        unsigned ldsBytes, Args... args) {
    void *params[] = {static_cast<void *>(&args)..., nullptr};
    hipError_t launched = hipModuleLaunchKernel(
        function(name), grid.x, grid.y, grid.z, block.x, block.y, block.z,
        ldsBytes, nullptr, params, nullptr);
    return launched != hipSuccess ? launched : hipDeviceSynchronize();
  }

  hipModule_t module = nullptr;
};

/// Runs each test with the kernels at -O0 and at -O2.
class OpenCL : public testing::TestWithParam<int> {
protected:
  int level() const { return GetParam(); }
  // A fault ends with its test.
  void TearDown() override {
    if (HasFailure())
      (void)hipDeviceReset();
  }
};

/// Deterministic 64-bit random numbers (xorshift64*).
class Numbers {
public:
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
  }
  /// [low, high)
  double real(double low, double high) {
    return low + (high - low) * double(next() >> 11) * 0x1p-53;
  }
  template <typename T>
  std::vector<T> integers(size_t count) {
    std::vector<T> values(count);
    for (T &value : values)
      value = T(next() >> 13);
    return values;
  }
  template <typename T>
  std::vector<T> reals(size_t count, double low, double high) {
    std::vector<T> values(count);
    for (T &value : values)
      value = T(real(low, high));
    return values;
  }

private:
  uint64_t state = 0x1234567887654321ull;
};

/// Work-items of most workgroups.
constexpr unsigned kBlock = 64;

/// Workgroups of `block` that cover `n` items.
inline unsigned groups(size_t n, unsigned block) {
  return unsigned((n + block - 1) / block);
}

} // namespace fovea::test

#endif // FOVEA_TEST_HIPPROGRAM_H
