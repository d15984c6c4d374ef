// What a kernel can ask of its launch: the hidden arguments and the dispatch.
#include "common.h"

kernel void launch_info(global int *out, int marker) {
  if (LX != 0 || LY != 0 || LZ != 0)
    return;
  int group = (GZ * 3 + GY) * 4 + GX;
  global int *o = out + group * 8;
  o[0] = marker;
  o[1] = SIZE_X;
  o[2] = SIZE_Y;
  o[3] = SIZE_Z;
  o[4] = __builtin_amdgcn_grid_size_x();
  o[5] = __builtin_amdgcn_grid_size_y();
  o[6] = __builtin_amdgcn_grid_size_z();
  o[7] = group;
}
