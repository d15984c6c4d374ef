// 8- and 16-bit loads and stores, signed and unsigned, at odd offsets.
#include "common.h"

kernel void bytes(global const char *a, global const uchar *b,
                  global const short *c, global const ushort *d,
                  global char *out8, global short *out16, global int *sums,
                  int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int sum = a[i] + b[i] * 3 + c[i] * 5 + d[i] * 7;
  sums[i] = sum;
  out8[i] = (char)(a[i] - b[n - 1 - i]);
  out16[i] = (short)(c[i] * 3 - d[n - 1 - i]);
}
