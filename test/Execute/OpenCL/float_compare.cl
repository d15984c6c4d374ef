// fp32 comparisons and classes with NaN, infinities, zeros and subnormals, and
// conversions to and from integers; 8 results an item.
#include "common.h"

kernel void float_compare(global const float *a, global const float *b,
                          global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  float x = a[i], y = b[i];
  global int *o = out + i * 8;
  o[0] = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 |
         (x > y) << 4 | (x >= y) << 5;
  o[1] = !(x < y) | !(x >= y) << 1;
  o[2] = __builtin_isnan(x) | __builtin_isinf(x) << 1 |
         __builtin_isfinite(x) << 2 | __builtin_isnormal(x) << 3;
  float safe = x > -2.0e9f && x < 2.0e9f ? x : 0.0f;
  o[3] = (int)safe;
  o[4] = (int)(uint)__builtin_fabsf(safe);
  o[5] = __builtin_astype((float)o[3], int);
  o[6] = __builtin_astype((float)(uint)o[0] + 0.25f, int);
  o[7] = __builtin_astype(x < y ? x : y, int);
}
