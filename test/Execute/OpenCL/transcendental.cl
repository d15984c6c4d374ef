// The native exponential, logarithm, reciprocals, roots and sine, which are
// right to about one unit in the last place; 6 results an item.
#include "common.h"

kernel void transcendental(global const float *a, global float *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  float x = a[i]; // in (0, 32)
  global float *o = out + i * 6;
  o[0] = __builtin_amdgcn_exp2f(x - 16.0f);
  o[1] = __builtin_amdgcn_logf(x);
  o[2] = __builtin_amdgcn_rcpf(x);
  o[3] = __builtin_amdgcn_rsqf(x);
  o[4] = __builtin_amdgcn_sqrtf(x);
  o[5] = __builtin_amdgcn_sinf(x * 0.03125f);
}
