// A sum in LDS by halving, one result a workgroup.
#include "common.h"

kernel void reduce(global const int *in, global int *out, int n) {
  local int partial[256];
  int l = LX, i = GX * 256 + l;
  partial[l] = i < n ? in[i] : 0;
  group_barrier();
  for (int step = 128; step > 0; step >>= 1) {
    if (l < step)
      partial[l] += partial[l + step];
    group_barrier();
  }
  if (l == 0)
    out[GX] = partial[0];
}
