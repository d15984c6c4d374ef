// Matrix cores, bf16: as mfma_f16.cl.
#include "common.h"

typedef short short4v __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));

// a [16 m][k], b [16 n][k], c [16 m][16 n], k a multiple of 16
kernel void mfma16_bf16(global const short *a, global const short *b,
                        global float *c, int k, int ldc) {
  int lane = LX, i = lane % 16, g = lane / 16;
  a += (GY * 16 + i) * k;
  b += (GX * 16 + i) * k;
  float4v acc = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    short4v x = *(global const short4v *)(a + k0 + 4 * g);
    short4v y = *(global const short4v *)(b + k0 + 4 * g);
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, acc, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r)
    c[(GY * 16 + 4 * g + r) * ldc + GX * 16 + i] = acc[r];
}

// a [32 m][k], b [32 n][k], c [32 m][32 n], k a multiple of 8
kernel void mfma32_bf16(global const short *a, global const short *b,
                        global float *c, int k, int ldc) {
  int lane = LX, i = lane % 32, g = lane / 32;
  a += (GY * 32 + i) * k;
  b += (GX * 32 + i) * k;
  float16v acc = 0;
  for (int k0 = 0; k0 < k; k0 += 8) {
    short4v x = *(global const short4v *)(a + k0 + 4 * g);
    short4v y = *(global const short4v *)(b + k0 + 4 * g);
    acc = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x, y, acc, 0, 0, 0);
  }
  for (int r = 0; r < 16; ++r)
    c[(GY * 32 + 8 * (r / 4) + 4 * g + r % 4) * ldc + GX * 32 + i] = acc[r];
}
