//===- HipLanguage.h - HIP for programs without AMD's headers ---*- C++ -*-===//
//
// The keywords, indices and host functions that the programs of this folder
// use, over clang's builtins: a program that includes AMD's hip_runtime.h
// instead compiles to the same code and calls. Nothing here knows that the
// device is simulated.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_HIPLANGUAGE_H
#define FOVEA_TEST_HIPLANGUAGE_H

#include <cstddef>
#include <cstdint>

#ifdef __HIP__ // the test's main program is plain C++
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(threads)                                             \
  __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define HD __host__ __device__
#else
#define HD
#endif

struct dim3 {
  uint32_t x, y, z;
  constexpr HD dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1)
      : x(x), y(y), z(z) {}
};

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef int hipError_t;
enum : int {
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4
};
struct hipFuncAttributes {
  int binaryVersion, cacheModeCA;
  size_t constSizeBytes, localSizeBytes;
  int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs,
      preferredShmemCarveout, ptxVersion;
  size_t sharedSizeBytes;
};

extern "C" {
hipError_t __hipPushCallConfiguration(dim3, dim3, size_t shared = 0,
                                      hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t,
                           hipStream_t);
hipError_t hipExtLaunchKernel(const void *, dim3, dim3, void **, size_t,
                              hipStream_t, hipEvent_t, hipEvent_t, int);
hipError_t hipLaunchCooperativeKernel(const void *, dim3, dim3, void **,
                                      unsigned, hipStream_t);
hipError_t hipGetDeviceCount(int *);
hipError_t hipGetDevice(int *);
hipError_t hipSetDevice(int);
hipError_t hipDeviceGetAttribute(int *, int, int);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();
hipError_t hipGetLastError();
const char *hipGetErrorName(hipError_t);
hipError_t hipMalloc(void **, size_t);
hipError_t hipFree(void *);
hipError_t hipHostMalloc(void **, size_t, unsigned);
hipError_t hipHostFree(void *);
hipError_t hipMemcpy(void *, const void *, size_t, int);
hipError_t hipMemcpyAsync(void *, const void *, size_t, int, hipStream_t);
hipError_t hipMemsetAsync(void *, int, size_t, hipStream_t);
hipError_t hipMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
hipError_t hipMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
hipError_t hipMemcpyToSymbolAsync(const void *, const void *, size_t, size_t,
                                  int, hipStream_t);
hipError_t hipMemcpyFromSymbolAsync(void *, const void *, size_t, size_t, int,
                                    hipStream_t);
hipError_t hipGetSymbolAddress(void **, const void *);
hipError_t hipGetSymbolSize(size_t *, const void *);
hipError_t hipFuncGetAttributes(hipFuncAttributes *, const void *);
hipError_t hipFuncSetAttribute(const void *, int, int);
hipError_t hipFuncSetCacheConfig(const void *, int);
hipError_t hipGetFuncBySymbol(hipFunction_t *, const void *);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, unsigned,
                                 hipStream_t, void **, void **);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *,
                                                        int, size_t);
hipError_t hipOccupancyMaxPotentialBlockSize(int *, int *, const void *, size_t,
                                             int);
hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamCreateWithFlags(hipStream_t *, unsigned);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipEventCreate(hipEvent_t *);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventElapsedTime(float *, hipEvent_t, hipEvent_t);
hipError_t hipEventQuery(hipEvent_t);
hipError_t hipStreamBeginCapture(hipStream_t, int);
hipError_t hipStreamEndCapture(hipStream_t, hipGraph_t *);
hipError_t hipStreamIsCapturing(hipStream_t, int *);
hipError_t hipGraphInstantiate(hipGraphExec_t *, hipGraph_t, hipGraphNode_t *,
                               char *, size_t);
hipError_t hipGraphGetNodes(hipGraph_t, hipGraphNode_t *, size_t *);
hipError_t hipGraphLaunch(hipGraphExec_t, hipStream_t);
hipError_t hipGraphDestroy(hipGraph_t);
hipError_t hipGraphExecDestroy(hipGraphExec_t);
}

#ifdef __HIP__
// Indices of the work-item, for dimension x where no other is named.
inline __device__ uint32_t threadX() {
  return __builtin_amdgcn_workitem_id_x();
}
inline __device__ uint32_t threadY() {
  return __builtin_amdgcn_workitem_id_y();
}
inline __device__ uint32_t threadZ() {
  return __builtin_amdgcn_workitem_id_z();
}
inline __device__ uint32_t blockX() {
  return __builtin_amdgcn_workgroup_id_x();
}
inline __device__ uint32_t blockY() {
  return __builtin_amdgcn_workgroup_id_y();
}
inline __device__ uint32_t blockZ() {
  return __builtin_amdgcn_workgroup_id_z();
}
inline __device__ uint32_t blockSizeX() {
  return __builtin_amdgcn_workgroup_size_x();
}
inline __device__ uint32_t gridItemsX() {
  return __builtin_amdgcn_grid_size_x();
}
inline __device__ uint32_t globalX() {
  return blockX() * blockSizeX() + threadX();
}
inline __device__ void syncThreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif // __HIP__

#endif // FOVEA_TEST_HIPLANGUAGE_H
