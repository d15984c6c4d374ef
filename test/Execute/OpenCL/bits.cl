// Counting, reversing and rotating bits; 8 results an item.
#include "common.h"

kernel void bits(global const uint *a, global const ulong *b,
                 global uint *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  uint x = a[i];
  ulong y = b[i];
  uint amount = x & 31;
  global uint *o = out + i * 8;
  o[0] = __builtin_popcount(x);
  o[1] = __builtin_popcountl(y);
  o[2] = x == 0 ? 32 : __builtin_clz(x);
  o[3] = x == 0 ? 32 : __builtin_ctz(x);
  o[4] = __builtin_bitreverse32(x);
  o[5] = __builtin_rotateleft32(x, amount);
  o[6] = __builtin_bswap32(x);
  o[7] = y == 0 ? 64 : __builtin_clzl(y);
}
