// fp64 arithmetic and conversions; 8 results an item.
#include "common.h"
#pragma STDC FP_CONTRACT OFF

kernel void double_arith(global const double *a, global const double *b,
                         global double *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  double x = a[i], y = b[i];
  global double *o = out + i * 8;
  o[0] = x + y;
  o[1] = x * y;
  o[2] = __builtin_fma(x, y, -x);
  o[3] = x / y;
  o[4] = __builtin_sqrt(__builtin_fabs(x));
  o[5] = (double)(float)x;
  o[6] = (double)(int)__builtin_floor(x) + (double)(uint)i;
  o[7] = x < y ? __builtin_trunc(x) : __builtin_rint(y);
}
