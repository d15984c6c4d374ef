// RUN: aot-opt %s --attn-to-scheduled='chip=gfx90a algorithm=atomic' --attn-scheduled-to-tiles | FileCheck %s

// The kernel of all gradients in segments: one barrier a block, dQ a block late,
// each product in a segment of its own.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK:       gpu.func @gradients_fused(
// Two buffers of what is visited, and of dS, of which nothing is there at first.
// CHECK:         attn.alloc_lds buffers 2
// CHECK:         %[[DS:.*]] = attn.alloc_lds buffers 2 : <16 x 256 x bf16>
// CHECK:         attn.store_lds %{{.*}}, %{{.*}} : tensor<16x256xbf16>
// CHECK:         scf.for
// The masked loop.
// CHECK:           scf.for
// CHECK:             attn.mask
// CHECK:           scf.for
// CHECK:             amdgpu.lds_barrier
// CHECK-NOT:         amdgpu.lds_barrier
// CHECK:             %[[DQ:.*]] = attn.dot {{.*}} column_waves 4
// CHECK:             attn.interleave
// CHECK-NEXT:        amdgpu.sched_barrier
// CHECK:             attn.atomic_add %[[DQ]]
// CHECK:             attn.dot {{.*}} tensor<16x256xf32>{{$}}
// CHECK:             attn.interleave
// CHECK:             math.exp2
// CHECK:             attn.dot {{.*}} tensor<16x256xf32>{{$}}
// CHECK:             attn.interleave
// CHECK-NEXT:        attn.pin
// CHECK:             attn.dot {{.*}} tensor<64x256xf32>{{$}}
// CHECK:             attn.store_lds %{{.*}} : tensor<16x256xbf16>
// CHECK:             attn.interleave
// CHECK:             attn.dot {{.*}} tensor<64x256xf32>{{$}}
// CHECK:             attn.interleave
// CHECK:             scf.yield
// What is left of the last block.
// CHECK:           attn.dot {{.*}} column_waves 4
// CHECK:           attn.atomic_add
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
