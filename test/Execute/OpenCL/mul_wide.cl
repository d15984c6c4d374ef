// High halves of products, 24-bit products, saturation, sums of absolute
// differences; 8 results an item.
#include "common.h"

kernel void mul_wide(global const int *a, global const int *b,
                     global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int x = a[i], y = b[i];
  uint ux = x, uy = y;
  global int *o = out + i * 8;
  o[0] = (int)(((long)x * y) >> 32);
  o[1] = (int)(((ulong)ux * uy) >> 32);
  o[2] = (int)((ux & 0xffffff) * (uy & 0xffffff));
  o[3] = ((x << 8) >> 8) * ((y << 8) >> 8) + x;
  o[4] = __builtin_elementwise_add_sat(x, y);
  o[5] = (int)__builtin_elementwise_sub_sat(ux, uy);
  o[6] = (int)(ux > uy ? ux - uy : uy - ux);
  ulong wide = (ulong)ux * uy + ((ulong)uy << 7) + ux;
  o[7] = (int)(wide >> 17);
}
