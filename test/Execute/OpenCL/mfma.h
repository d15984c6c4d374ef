//===- mfma.h - matrix cores, one element type ------------------*- C -*-===//
//
// One wave computes a 16x16 or a 32x32 tile of a * b^T. Operand layouts as
// AMD's matrix instruction calculator gives them. To be defined before:
// ELEMENT, the names KERNEL16 and KERNEL32, and the builtins MFMA16 and MFMA32.
//
//===--------------------------------------------------------------------===//
#include "common.h"

typedef ELEMENT element4v __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));

// a [16 m][k], b [16 n][k], c [16 m][16 n], k a multiple of 16
kernel void KERNEL16(global const ELEMENT *a, global const ELEMENT *b,
                     global float *c, int k, int ldc) {
  int lane = LX, i = lane % 16, g = lane / 16;
  a += (GY * 16 + i) * k;
  b += (GX * 16 + i) * k;
  float4v acc = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    element4v x = *(global const element4v *)(a + k0 + 4 * g);
    element4v y = *(global const element4v *)(b + k0 + 4 * g);
    acc = MFMA16(x, y, acc, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r)
    c[(GY * 16 + 4 * g + r) * ldc + GX * 16 + i] = acc[r];
}

// a [32 m][k], b [32 n][k], c [32 m][32 n], k a multiple of 8
kernel void KERNEL32(global const ELEMENT *a, global const ELEMENT *b,
                     global float *c, int k, int ldc) {
  int lane = LX, i = lane % 32, g = lane / 32;
  a += (GY * 32 + i) * k;
  b += (GX * 32 + i) * k;
  float16v acc = 0;
  for (int k0 = 0; k0 < k; k0 += 8) {
    element4v x = *(global const element4v *)(a + k0 + 4 * g);
    element4v y = *(global const element4v *)(b + k0 + 4 * g);
    acc = MFMA32(x, y, acc, 0, 0, 0);
  }
  for (int r = 0; r < 16; ++r)
    c[(GY * 32 + 8 * (r / 4) + 4 * g + r % 4) * ldc + GX * 32 + i] = acc[r];
}
