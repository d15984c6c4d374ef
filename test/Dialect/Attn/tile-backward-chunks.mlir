// RUN: aot-opt %s --attn-to-scheduled='column-chunk=64 stages=1' --attn-scheduled-to-tiles | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: aot-opt %s --attn-to-scheduled='column-chunk=64 stages=2' --attn-scheduled-to-tiles | FileCheck %s --check-prefixes=CHECK,TWO

// Columns of the head dimension come through LDS 64 at a time: scores and dP are
// sums over the chunks, of which the last has 24 columns; then they come once
// more, turned, and each has sums of its own.

!t = memref<?x?x?x152xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK-LABEL: gpu.func @gradients_dkdv(
// As they are and turned: tiles of a chunk.
// CHECK-COUNT-2: attn.alloc_lds : <16 x 64 x bf16>
// CHECK-COUNT-2: attn.alloc_lds : <64 x 16 x bf16>
// CHECK-NOT:     attn.alloc_lds : <{{[0-9]+}} x {{[0-9]+}} x bf16>
// What is owned, of one view each.
// CHECK:         attn.load %[[K:[0-9]+]] : <152 x bf16> -> tensor<64x64xbf16>
// CHECK:         attn.load %[[K]] column 64 :
// CHECK:         attn.load %[[K]] column 128 :
// CHECK:         attn.load %[[V:[0-9]+]] : <152 x bf16> -> tensor<64x64xbf16>
// CHECK:         attn.load %[[V]] column 64 :
// CHECK:         attn.load %[[V]] column 128 :
// The loops over heads and over blocks.
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             amdgpu.lds_barrier
// ONE:               attn.load {{.*}} : <152 x bf16> -> tensor<16x64xbf16>
// CHECK:             attn.store_lds
// CHECK:             amdgpu.lds_barrier
// TWO:               attn.load {{.*}} column 64 : <152 x bf16> -> tensor<16x64xbf16>
// CHECK:             %[[S0:.*]] = attn.dot {{.*}} tensor<16x64xf32>
// CHECK:             %[[P0:.*]] = attn.dot {{.*}} tensor<16x64xf32>
// CHECK:             amdgpu.lds_barrier
// ONE:               attn.load {{.*}} column 64 : <152 x bf16> -> tensor<16x64xbf16>
// CHECK:             amdgpu.lds_barrier
// TWO:               attn.load {{.*}} column 128 : <152 x bf16> -> tensor<16x64xbf16>
// CHECK:             %[[S1:.*]] = attn.dot {{.*}}, %[[S0]] {{.*}} tensor<16x64xf32>
// CHECK:             %[[P1:.*]] = attn.dot {{.*}}, %[[P0]] {{.*}} tensor<16x64xf32>
// CHECK:             amdgpu.lds_barrier
// CHECK:             amdgpu.lds_barrier
// CHECK:             attn.dot {{.*}}, %[[S1]] {{.*}} tensor<16x64xf32>
// CHECK:             attn.dot {{.*}}, %[[P1]] {{.*}} tensor<16x64xf32>
// CHECK:             math.exp2
// Each chunk of dV and dK.
// CHECK-COUNT-6:     attn.dot {{.*}} tensor<64x64xf32>
// CHECK:             scf.yield
// CHECK-COUNT-2:   attn.store {{.*}} <64 x bf16>
// CHECK:           attn.store {{.*}} <24 x bf16>

// K is read both ways, V as it is.
// CHECK-LABEL: gpu.func @gradients_dq(
// CHECK:         attn.alloc_lds : <16 x 64 x bf16>
// CHECK:         attn.alloc_lds : <16 x 64 x bf16>
// CHECK:         attn.alloc_lds : <64 x 16 x bf16>
// CHECK:         scf.for
// CHECK-COUNT-6:   attn.dot {{.*}} tensor<16x64xf32>
// CHECK-COUNT-3:   attn.dot {{.*}} tensor<64x64xf32>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
