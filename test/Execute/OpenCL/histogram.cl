// A histogram: atomics on LDS, then on global memory.
#include "common.h"

kernel void histogram(global const uchar *in, global atomic_uint *bins, int n) {
  local atomic_uint partial[256];
  for (int k = LX; k < 256; k += SIZE_X)
    __opencl_atomic_init(&partial[k], 0);
  group_barrier();
  int stride = SIZE_X * (int)(__builtin_amdgcn_grid_size_x() / SIZE_X);
  for (int i = ID_X; i < n; i += stride)
    __opencl_atomic_fetch_add(&partial[in[i]], 1, memory_order_relaxed,
                              memory_scope_work_group);
  group_barrier();
  for (int k = LX; k < 256; k += SIZE_X)
    __opencl_atomic_fetch_add(
        &bins[k],
        __opencl_atomic_load(&partial[k], memory_order_relaxed,
                             memory_scope_work_group),
        memory_order_relaxed, memory_scope_device);
}
