// Constant tables, and variables of the module that the host reads and writes.
#include "common.h"

constant uint crc_nibbles[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
    0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
    0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

__attribute__((visibility("default"))) global int shared_state[4] = {10, 20, 30, 40};
constant float weights[3] = {0.25f, 0.5f, 0.25f};

kernel void crc32(global const uchar *in, global uint *out, int length, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  uint crc = 0xffffffffu;
  for (int k = 0; k < length; ++k) {
    crc ^= in[i * length + k];
    crc = (crc >> 4) ^ crc_nibbles[crc & 15];
    crc = (crc >> 4) ^ crc_nibbles[crc & 15];
  }
  out[i] = ~crc;
}

kernel void use_state(global int *out) {
  int i = LX;
  out[i] = shared_state[i & 3] * 2;
  if (i < 4)
    shared_state[i] += 1;
}

kernel void blur(global const float *in, global float *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    int at = i + k - 1;
    if (at >= 0 && at < n)
      sum += weights[k] * in[at];
  }
  out[i] = sum;
}
