// fp32 matrix product through 16x16 tiles of LDS; sizes are no multiples.
#include "common.h"

kernel void matmul(global const float *a, global const float *b,
                   global float *c, int m, int n, int k) {
  local float tile_a[16][16], tile_b[16][16];
  int row = GY * 16 + LY, column = GX * 16 + LX;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    tile_a[LY][LX] = row < m && k0 + LX < k ? a[row * k + k0 + LX] : 0.0f;
    tile_b[LY][LX] = column < n && k0 + LY < k ? b[(k0 + LY) * n + column] : 0.0f;
    group_barrier();
    for (int j = 0; j < 16; ++j)
      sum = __builtin_fmaf(tile_a[LY][j], tile_b[j][LX], sum);
    group_barrier();
  }
  if (row < m && column < n)
    c[row * n + column] = sum;
}
