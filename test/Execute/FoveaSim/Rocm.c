/*===- Rocm.c - in place of ROCm's HIP library --------------------*- C -*-===*\
|*
|* Its names, for the linker. fovea-sim is to keep programs from calling them.
|*
\*===----------------------------------------------------------------------===*/

#include <stdio.h>
#include <stdlib.h>

#define HIP(name)                                                              \
  int name(void);                                                              \
  int name(void) {                                                             \
    puts("ROCm's " #name " was called");                                       \
    exit(70);                                                                  \
  }
HIP(hipMalloc)
HIP(hipFree)
HIP(hipMemcpy)
HIP(hipGetLastError)
HIP(hipDeviceSynchronize)
HIP(hipGetErrorString)
HIP(hipLaunchKernel)
HIP(__hipPushCallConfiguration)
HIP(__hipPopCallConfiguration)
int __hipRegisterFatBinary(void);
int __hipRegisterFatBinary(void) { return 0; }
int __hipUnregisterFatBinary(void);
int __hipUnregisterFatBinary(void) { return 0; }
int __hipRegisterFunction(void);
int __hipRegisterFunction(void) { return 0; }
