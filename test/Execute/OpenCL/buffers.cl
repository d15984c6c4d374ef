// Raw buffer resources: reads past the end give 0 and writes there are dropped.
#include "common.h"

// 32-bit data; on RDNA OOB_SELECT 3, raw buffers, and their format.
#if defined(__GFX11__) || defined(__GFX12__)
#define WORD3 0x31027000
#else
#define WORD3 0x00027000
#endif

kernel void buffers(global int *in, global int *out, int valid, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  __amdgpu_buffer_rsrc_t from =
      __builtin_amdgcn_make_buffer_rsrc(in, 0, valid * 4, WORD3);
  __amdgpu_buffer_rsrc_t to =
      __builtin_amdgcn_make_buffer_rsrc(out, 0, valid * 4, WORD3);
  int x = (int)__builtin_amdgcn_raw_buffer_load_b32(from, i * 4, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b32((uint)(x + 1000), to, i * 4, 0, 0);
}
