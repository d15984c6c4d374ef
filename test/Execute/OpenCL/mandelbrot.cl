// Escape times: long divergent fp32 loops.
#include "common.h"
#pragma STDC FP_CONTRACT OFF

kernel void mandelbrot(global int *out, int width, int height, float x0,
                       float y0, float step, int limit) {
  int px = ID_X, py = ID_Y;
  if (px >= width || py >= height)
    return;
  float cx = x0 + step * (float)px, cy = y0 + step * (float)py;
  float x = 0, y = 0;
  int count = 0;
  while (count < limit) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f)
      break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    ++count;
  }
  out[py * width + px] = count;
}
