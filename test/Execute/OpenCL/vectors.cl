// Vector types: loads, swizzles, element-wise operations, stores.
#include "common.h"

kernel void vectors(global const float4 *a, global const int4 *b,
                    global const uchar4 *c, global float4 *out_f,
                    global int4 *out_i, global uchar4 *out_c, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  float4 x = a[i];
  int4 y = b[i];
  uchar4 z = c[i];
  out_f[i] = x.wzyx * 2.0f + x.xxyy;
  out_i[i] = (y << 1) ^ y.yzwx;
  out_c[i] = z.wzyx + (uchar4)(1, 2, 3, 4);
}

kernel void vectors8(global const int8 *a, global int16 *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int8 x = a[i];
  out[i] = (int16)(x, x.s76543210 * 3);
}

kernel void vectors3(global const int *a, global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int3 x = (int3)(a[3 * i], a[3 * i + 1], a[3 * i + 2]);
  x = x.zxy + x;
  out[3 * i] = x.x;
  out[3 * i + 1] = x.y;
  out[3 * i + 2] = x.z;
}
