// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles | FileCheck %s
// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles --attn-tiles-to-layouts \
// RUN:   | FileCheck %s --check-prefix=LDS

// Four stages by registers, a wave a SIMD: what the next segment multiplies is
// read beside the products of this one, behind a barrier that has it there.
// Rows are stored to LDS before a fence, and the next ones asked for behind it.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @alone(
// CHECK-DAG:     %[[NOROWS:.*]] = arith.constant dense<0.000000e+00> : tensor<32x128xbf16>
// CHECK:         %[[K:.*]] = attn.alloc_lds : <32 x 128 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <128 x 32 x bf16>

// Values of the block before the first are read too, as those of others.
// CHECK:         %[[NOVALUES:.*]] = attn.transpose %[[NOROWS]]
// CHECK-NEXT:    attn.store_lds %[[NOVALUES]], %[[V]]
// CHECK:         %[[K0:.*]] = attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK-NEXT:    attn.store_lds %[[K0]], %[[K]]
// CHECK:         attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK-NEXT:    amdgpu.lds_barrier
// CHECK:         attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK-NEXT:    attn.load_lds %[[K]]
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK-NEXT:      attn.store_lds {{.*}}, %[[K]]
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK:           attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK-NEXT:      attn.dot
// CHECK-NEXT:      %[[VALUES:.*]] = attn.load_lds %[[V]]
// CHECK-NEXT:      attn.round
// CHECK:           attn.interleave {has_loads}
// CHECK:           attn.reduce <max>
// CHECK:           amdgpu.lds_barrier
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK-NEXT:      %[[VT:.*]] = attn.transpose
// CHECK-NEXT:      attn.store_lds %[[VT]], %[[V]]
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK:           attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK:           math.exp2
// CHECK:           attn.dot %[[VALUES]]
// CHECK-NEXT:      attn.load_lds %[[K]]
// CHECK-NEXT:      attn.interleave {has_loads}
func.func @alone(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// Rows of 16 bytes in LDS whose halves trade places: without that each read of V
// meets another in its banks, which a store of zeros by rows would not allow.
// LDS-LABEL: gpu.func @narrow(
// LDS:         attn.alloc_lds : <64 x 128 x bf16, <chunks = 8, shifts = [0]>>
// LDS-NEXT:    attn.alloc_lds : <128 x 64 x bf16, <chunks = 8, shifts = [1, 2], half = 0>>
func.func @narrow(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 64, block_n = 64, waves = 4, inst = <mfma_16x16x16>, stages = 4, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}
