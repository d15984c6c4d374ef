// Atomic operations on global memory; the order of the items cannot matter.
#include "common.h"

#define ORDER memory_order_relaxed, memory_scope_device

kernel void atomics(global const int *in, global atomic_int *cells,
                    global atomic_ulong *sum64, global atomic_float *sum_f,
                    int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int x = in[i];
  __opencl_atomic_fetch_add(&cells[0], x, ORDER);
  __opencl_atomic_fetch_sub(&cells[1], x, ORDER);
  __opencl_atomic_fetch_min(&cells[2], x, ORDER);
  __opencl_atomic_fetch_max(&cells[3], x, ORDER);
  __opencl_atomic_fetch_and(&cells[4], x | 0x0f, ORDER);
  __opencl_atomic_fetch_or(&cells[5], x & 0xff00, ORDER);
  __opencl_atomic_fetch_xor(&cells[6], x, ORDER);
  if (i == 5)
    __opencl_atomic_exchange(&cells[7], x, ORDER);
  // An increment by compare and exchange.
  int old = __opencl_atomic_load(&cells[8], ORDER);
  while (!__opencl_atomic_compare_exchange_strong(
      &cells[8], &old, old + 3, memory_order_relaxed, ORDER))
    ;
  __opencl_atomic_fetch_add(sum64, (ulong)(uint)x << 20, ORDER);
  __opencl_atomic_fetch_add(sum_f, (float)(x & 15), ORDER);
}
