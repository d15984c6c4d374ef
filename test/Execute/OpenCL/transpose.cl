// A matrix transposed through a padded tile of LDS, with ragged edges.
#include "common.h"

kernel void transpose(global const float *in, global float *out, int rows,
                      int columns) {
  local float tile[16][17];
  int x = GX * 16 + LX, y = GY * 16 + LY;
  if (x < columns && y < rows)
    tile[LY][LX] = in[y * columns + x];
  group_barrier();
  int tx = GY * 16 + LX, ty = GX * 16 + LY;
  if (tx < rows && ty < columns)
    out[ty * rows + tx] = tile[LX][LY];
}
