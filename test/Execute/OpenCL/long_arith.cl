// 64-bit integer arithmetic: products, quotients by loops of 32-bit steps,
// shifts and comparisons; 10 results an item.
#include "common.h"

kernel void long_arith(global const long *a, global const long *b,
                       global long *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  long x = a[i], y = b[i];
  ulong ux = x, uy = y;
  long divisor = y == 0 || y == -1 ? 3 : y;
  ulong udivisor = uy == 0 ? 3 : uy;
  global long *o = out + i * 10;
  o[0] = (long)(ux + uy);
  o[1] = (long)(ux - uy);
  o[2] = (long)(ux * uy);
  o[3] = x / divisor;
  o[4] = x % divisor;
  o[5] = (long)(ux / udivisor);
  o[6] = (long)(ux % udivisor);
  o[7] = (long)(ux << (uy & 63)) ^ (x >> (y & 63));
  o[8] = (long)(ux >> (uy & 63));
  o[9] = (x < y) + (ux < uy) * 2 + (x == y) * 4 + ((int)x < (int)y) * 8;
}
