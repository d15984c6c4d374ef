// RUN: aot-opt %s --split-input-file --attn-to-scheduled=chip=gfx950 --attn-scheduled-to-tiles | FileCheck %s

// K and V copied to LDS past the registers (direct_copy = 1).

// Two stages: one barrier an iteration. Behind it this iteration's block is in
// LDS, and the next one's copies go to the other buffers.

!t = memref<?x?x?x80xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @two_stages(
// CHECK:         %[[K:.*]] = attn.alloc_lds buffers 2 : <64 x 128 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds buffers 2 : <64 x 128 x bf16>
// CHECK:         attn.copy_lds %{{.*}}, %{{.*}} : <80 x bf16>, <64 x 128 x bf16>
// CHECK:         attn.copy_lds
// CHECK-NOT:     attn.store_lds
// CHECK:         scf.for %[[BLOCK:[^ ]*]] =
// CHECK-NEXT:      amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           %[[NEXT:.*]] = arith.addi %[[BLOCK]], %{{.*}} : i32
// CHECK:           %[[PARITY:.*]] = arith.andi %[[NEXT]]
// CHECK:           %[[NEXTK:.*]] = attn.lds_buffer %[[K]][%[[PARITY]]]
// CHECK:           attn.copy_lds %{{.*}}, %[[NEXTK]]
// CHECK:           %[[NEXTV:.*]] = attn.lds_buffer %[[V]][%{{.*}}]
// CHECK:           attn.copy_lds %{{.*}}, %[[NEXTV]]
// CHECK:           %[[THIS:.*]] = arith.andi %[[BLOCK]]
// CHECK:           %[[THISK:.*]] = attn.lds_buffer %[[K]][%[[THIS]]]
// CHECK:           attn.load_lds %[[THISK]] : <64 x 128 x bf16> -> tensor<64x80xbf16>
// CHECK:           attn.dot
// CHECK:           attn.round %{{.*}} <nearest_even>
// CHECK:           %[[VALUES:.*]] = attn.load_lds %{{.*}} : <64 x 128 x bf16> -> tensor<64x96xbf16>
// CHECK:           %[[VT:.*]] = attn.transpose %[[VALUES]]
// CHECK:           attn.dot %[[VT]]
// CHECK-NOT:       amdgpu.lds_barrier
// CHECK:           scf.yield
// The last copies, which nobody reads, end before the workgroup may.
// CHECK:         scf.for
// CHECK:           attn.mask
// CHECK:           attn.dot
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    amdgpu.memory_counter_wait load(0)
func.func @two_stages(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// Three stages: blocks without a mask in pairs, so that buffers are known; the
// scores of the first block before the loop, those of the
// next beside the exponentials of each, behind the branch that rescales; K is a
// block ahead of V.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @three_stages(
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[EVEN:.*]] = arith.constant -2 : i32
// CHECK:         %[[FULL:.*]] = arith.andi %{{.*}}, %[[EVEN]]
// CHECK:         attn.copy_lds
// CHECK-NEXT:    amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:    amdgpu.lds_barrier
// CHECK:         attn.copy_lds
// CHECK:         attn.copy_lds
// CHECK:         %[[FIRST:.*]] = attn.dot
// CHECK:         scf.for %[[BLOCK:[^ ]*]] = %{{.*}} to %[[FULL]] step %[[C2]] iter_args({{.*}}, %[[HELD:[^ ]*]] = %[[FIRST]])
// CHECK:           amdgpu.lds_barrier
// CHECK:           attn.copy_lds
// CHECK:           attn.copy_lds
// CHECK:           attn.reduce <max> %[[HELD]]
// CHECK:           %[[SCALED:.*]]:{{[0-9]+}} = scf.if
// CHECK:           %[[AHEAD:.*]] = attn.dot
// CHECK:           math.fma %[[SCALED]]#0
// CHECK:           attn.dot
// CHECK-NEXT:      attn.interleave
// CHECK:           amdgpu.lds_barrier
// CHECK:           attn.reduce <max> %[[AHEAD]]
// CHECK:           %[[TWICE:.*]] = attn.dot
// CHECK:           attn.interleave
// CHECK:           scf.yield {{.*}}%[[TWICE]] :
func.func @three_stages(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 3, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// One stage: one buffer each, filled between two barriers.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @one_stage(
// CHECK:         %[[K:.*]] = attn.alloc_lds : <64 x 64 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <64 x 64 x bf16>
// CHECK-NOT:     attn.copy_lds
// CHECK:         scf.for
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           attn.copy_lds %{{.*}}, %[[K]]
// CHECK:           attn.copy_lds %{{.*}}, %[[V]]
// CHECK-NEXT:      amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           attn.load_lds %[[K]]
// CHECK:           attn.load_lds %[[V]]
func.func @one_stage(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}
