// An inclusive prefix sum of each workgroup's 512 elements in LDS, two buffers.
#include "common.h"

__attribute__((reqd_work_group_size(512, 1, 1)))
kernel void scan(global const uint *in, global uint *out, int n) {
  local uint buffer[2][512];
  int l = LX, i = GX * 512 + l, from = 0;
  buffer[0][l] = i < n ? in[i] : 0;
  group_barrier();
  for (int offset = 1; offset < 512; offset <<= 1) {
    uint value = buffer[from][l];
    if (l >= offset)
      value += buffer[from][l - offset];
    buffer[1 - from][l] = value;
    from = 1 - from;
    group_barrier();
  }
  if (i < n)
    out[i] = buffer[from][l];
}
