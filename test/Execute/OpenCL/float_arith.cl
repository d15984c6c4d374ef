// fp32 arithmetic with IEEE results: exact rounding of every operation is
// compared bit by bit; 14 results an item.
#include "common.h"
#pragma STDC FP_CONTRACT OFF

kernel void float_arith(global const float *a, global const float *b,
                        global const float *c, global float *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  float x = a[i], y = b[i], z = c[i];
  global float *o = out + i * 14;
  o[0] = x + y;
  o[1] = x - y;
  o[2] = x * y;
  o[3] = __builtin_fmaf(x, y, z);
  o[4] = x / y;
  o[5] = __builtin_sqrtf(__builtin_fabsf(x));
  o[6] = __builtin_floorf(x);
  o[7] = __builtin_ceilf(x);
  o[8] = __builtin_truncf(x);
  o[9] = __builtin_rintf(x);
  o[10] = __builtin_copysignf(x, y);
  o[11] = x * y + z; // two roundings
  o[12] = -x - (-z);
  o[13] = 1.0f / x;
}
