//===- common.h - what the kernels share ------------------------*- C -*-===//
//
// Work-item numbers and barriers from clang's builtins: the kernels are built
// without a device library.
//
//===--------------------------------------------------------------------===//
#ifndef COMMON_H
#define COMMON_H

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

#define LX ((int)__builtin_amdgcn_workitem_id_x())
#define LY ((int)__builtin_amdgcn_workitem_id_y())
#define LZ ((int)__builtin_amdgcn_workitem_id_z())
#define GX ((int)__builtin_amdgcn_workgroup_id_x())
#define GY ((int)__builtin_amdgcn_workgroup_id_y())
#define GZ ((int)__builtin_amdgcn_workgroup_id_z())
#define SIZE_X ((int)__builtin_amdgcn_workgroup_size_x())
#define SIZE_Y ((int)__builtin_amdgcn_workgroup_size_y())
#define SIZE_Z ((int)__builtin_amdgcn_workgroup_size_z())
#define ID_X (GX * SIZE_X + LX)
#define ID_Y (GY * SIZE_Y + LY)
#define ID_Z (GZ * SIZE_Z + LZ)

static inline void group_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif
