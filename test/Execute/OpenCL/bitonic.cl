// A bitonic sort of 512 keys a workgroup, 256 work-items, keys in dynamic LDS.
#include "common.h"

kernel void bitonic(global int *keys, local int *tile) {
  int l = LX;
  global int *mine = keys + GX * 512;
  tile[l] = mine[l];
  tile[l + 256] = mine[l + 256];
  group_barrier();
  for (int size = 2; size <= 512; size <<= 1)
    for (int stride = size >> 1; stride > 0; stride >>= 1) {
      int low = 2 * l - (l & (stride - 1));
      bool up = (low & size) == 0;
      int a = tile[low], b = tile[low + stride];
      if ((a > b) == up) {
        tile[low] = b;
        tile[low + stride] = a;
      }
      group_barrier();
    }
  mine[l] = tile[l];
  mine[l + 256] = tile[l + 256];
}
