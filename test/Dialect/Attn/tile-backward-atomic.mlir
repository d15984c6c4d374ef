// RUN: aot-opt %s --attn-to-scheduled='chip=gfx908 algorithm=atomic block-m=128 block-n=32 stages=2 waves-per-simd=2 inst=mfma_32x32x8' --attn-scheduled-to-tiles | FileCheck %s

// The algorithm that adds dQ up in memory.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK-LABEL: gpu.module @gradients attributes

// Row sums as in the other algorithm, and zeros for the sums of dQ.
// CHECK:       gpu.func @gradients_prepare(
// CHECK-SAME:    attn.schedule = #attn.schedule<block_m = 64,
// CHECK:         %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
// CHECK:         attn.reduce <sum>
// CHECK:         attn.store %{{.*}} : tensor<64x1xf32>, <1 x f32>
// CHECK:         attn.store %[[ZEROS]], %{{.*}} : tensor<64x64xf32>, <64 x f32>

// The masked loop, for blocks with keys past the last, and the other. Keys past
// the last are masked; a mask of the problem there is none.
// CHECK:       gpu.func @gradients_fused(
// CHECK:         %[[KEYS:.*]] = attn.load %{{.*}} : <64 x f16> -> tensor<128x64xf16>
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             attn.mask
// CHECK:             attn.atomic_add
// CHECK:           scf.for
// CHECK-NOT:         attn.mask
// CHECK:             attn.dot {{.*}} tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK:             %[[DS:.*]] = attn.round
// CHECK:             attn.store_lds %[[DS]], %[[LDS:.*]] : tensor<32x128xf16>
// CHECK:             attn.dot %{{.*}}, %[[DS]], %{{.*}} : tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK:             amdgpu.lds_barrier
// CHECK:             %[[LEFT:.*]] = attn.load_lds %[[LDS]]
// CHECK:             %[[SUMS:.*]] = attn.dot %[[LEFT]], %[[KEYS]], %{{.*}} inst<mfma_16x16x16> column_waves 4 : tensor<32x128xf16>, tensor<128x64xf16>, tensor<32x64xf32>
// CHECK:             attn.atomic_add %[[SUMS]], %{{.*}} : tensor<32x64xf32>, <64 x f32>

// CHECK:       gpu.func @gradients_convert(
// CHECK:         %[[SUMS:.*]] = attn.load %{{.*}} : <64 x f32> -> tensor<64x64xf32>
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[SUMS]]
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[SCALED]]
// CHECK:         attn.store %[[ROUNDED]], %{{.*}} : tensor<64x64xf16>, <64 x f16>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
