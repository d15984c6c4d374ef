// A stencil on a 3-D grid whose extents are no multiples of the workgroup.
#include "common.h"

kernel void stencil3d(global const int *in, global int *out, int nx, int ny,
                      int nz) {
  int x = ID_X, y = ID_Y, z = ID_Z;
  if (x >= nx || y >= ny || z >= nz)
    return;
  int at = (z * ny + y) * nx + x, sum = 6 * in[at];
  if (x > 0)
    sum -= in[at - 1];
  if (x + 1 < nx)
    sum -= in[at + 1];
  if (y > 0)
    sum -= in[at - nx];
  if (y + 1 < ny)
    sum -= in[at + nx];
  if (z > 0)
    sum -= in[at - nx * ny];
  if (z + 1 < nz)
    sum -= in[at + nx * ny];
  out[at] = sum;
}
