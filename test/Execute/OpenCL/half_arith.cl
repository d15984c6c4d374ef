// fp16 arithmetic, scalar and packed, and conversions.
#include "common.h"
#pragma STDC FP_CONTRACT OFF

kernel void half_arith(global const half *a, global const half *b,
                       global half *out, global float *wide, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  half x = a[i], y = b[i];
  global half *o = out + i * 6;
  o[0] = x + y;
  o[1] = x * y;
  o[2] = x - y;
  o[3] = __builtin_fmaf16(x, y, (half)0.5h);
  o[4] = (half)((float)x * 3.0f);
  o[5] = x < y ? x : y;
  wide[i] = (float)x * (float)y;
}

kernel void half_packed(global const half2 *a, global const half2 *b,
                        global half2 *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  half2 x = a[i], y = b[i];
  out[i * 3] = x + y;
  out[i * 3 + 1] = x * y;
  out[i * 3 + 2] = __builtin_elementwise_fma(x, y, x.yx);
}
