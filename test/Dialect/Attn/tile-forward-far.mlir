// RUN: aot-opt %s --attn-to-scheduled=chip=gfx1100 --attn-scheduled-to-tiles | FileCheck %s

// Three stages without direct_copy: LDS holds the first 64 columns of K and all of V.
// The other columns come straight from memory, of this iteration's block, into a
// second product on the same sum.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @far(
// CHECK:         %[[K:.*]] = attn.alloc_lds : <32 x 64 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <128 x 32 x bf16>
// CHECK:         attn.load %[[Q:[0-9]+]] : <128 x bf16> -> tensor<64x64xbf16>
// CHECK:         %[[NEAR:.*]] = attn.transpose
// CHECK:         attn.load %[[Q]] column 64 : <128 x bf16> -> tensor<64x64xbf16>
// CHECK:         %[[FAR:.*]] = attn.transpose
// CHECK:         scf.for %[[BLOCK:[^ ]*]] =
// CHECK:           amdgpu.lds_barrier
// CHECK:           %[[NEXT:.*]] = attn.load %{{.*}} : <128 x bf16> -> tensor<32x64xbf16>
// CHECK:           %[[FIRST:.*]] = arith.muli %[[BLOCK]],
// CHECK:           arith.extui %[[FIRST]]
// CHECK:           %[[VIEW:.*]] = attn.view
// CHECK:           %[[TAKEN:.*]] = attn.load %[[VIEW]] column 64 : <128 x bf16> -> tensor<32x64xbf16>
// CHECK:           %[[READ:.*]] = attn.load_lds %[[K]]
// CHECK:           %[[SUM:.*]] = attn.dot %[[READ]], %[[NEAR]],
// CHECK:           attn.dot %[[TAKEN]], %[[FAR]], %[[SUM]]
// CHECK:           attn.interleave
// CHECK:           attn.store_lds %[[NEXT]], %[[K]]
func.func @far(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 64, block_n = 32, waves = 4, inst = <wmma_16x16x16>, stages = 3, waves_per_simd = 6, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}
