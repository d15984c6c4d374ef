// 32-bit integer arithmetic, signed and unsigned; 12 results an item.
#include "common.h"

kernel void int_arith(global const int *a, global const int *b,
                      global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int x = a[i], y = b[i];
  uint ux = x, uy = y;
  int divisor = y == 0 ? 7 : y;
  uint udivisor = uy == 0 ? 7u : uy;
  global int *o = out + i * 16;
  o[0] = (int)(ux + uy);
  o[1] = (int)(ux - uy);
  o[2] = (int)(ux * uy);
  o[3] = divisor == -1 ? (int)(0u - ux) : x / divisor;
  o[4] = divisor == -1 ? 0 : x % divisor;
  o[5] = (int)(ux / udivisor);
  o[6] = (int)(ux % udivisor);
  o[7] = x & y;
  o[8] = (x | y) ^ (int)0x5a5a5a5a;
  o[9] = ~x;
  o[10] = x < y ? x : y;
  o[11] = ux > uy ? (int)ux : (int)uy;
  o[12] = (int)(ux << (uy & 31));
  o[13] = x >> (y & 31);
  o[14] = (int)(ux >> (uy & 31));
  o[15] = (x < 0) + (y < 0) * 2 + (x == y) * 4 + (ux <= uy) * 8;
}
