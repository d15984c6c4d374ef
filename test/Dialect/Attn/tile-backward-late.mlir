// RUN: aot-opt %s --attn-to-scheduled='chip=gfx942 algorithm=atomic' --attn-scheduled-to-tiles | FileCheck %s

// stages = 5: dK and dQ a block late. What dK takes goes round the loop in registers,
// so that its products are beside the reads behind the barrier. An iteration visits two
// blocks, whose buffers are known: the second block's rows are those behind the first's.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK:       gpu.func @gradients_fused(
// CHECK:         %[[DS:.*]] = attn.alloc_lds buffers 2 : <16 x 256 x bf16>
// The first block has none before it: zeros, of which dQ is taken too.
// CHECK:         attn.store_lds %{{.*}}, %{{.*}} : tensor<16x256xbf16>
// CHECK:         scf.for
// The masked loop.
// CHECK:           scf.for
// CHECK:             attn.mask
// CHECK:           scf.for {{.*}} step %c2_i32 iter_args(%[[DV:.*]] = %{{.*}}#0, %[[DK:.*]] = %{{.*}}#1, {{.*}}, %[[LATE_DS:.*]] = %{{.*}}#7, %[[LATE_Q:.*]] = %{{.*}}#8)
// CHECK:             amdgpu.lds_barrier
// CHECK-NOT:         amdgpu.lds_barrier
// CHECK:             attn.lds_buffer %{{.*}}[%c1_i32] : <16 x 256 x bf16>
// CHECK:             %[[ALL_DS:.*]] = attn.load_lds {{.*}} -> tensor<16x256xbf16>
// CHECK:             attn.load_lds {{.*}} -> tensor<16x64xbf16>
// CHECK:             %[[NEW_DK:.*]] = attn.dot %[[LATE_Q]], %[[LATE_DS]], %[[DK]] {{.*}} tensor<64x256xf32>{{$}}
// CHECK-NEXT:        attn.interleave
// CHECK:             %[[DQ:.*]] = attn.dot %[[ALL_DS]], {{.*}} column_waves 4
// CHECK-NEXT:        attn.interleave
// CHECK:             attn.atomic_add %[[DQ]]
// CHECK:             attn.dot {{.*}} tensor<16x256xf32>{{$}}
// CHECK-NEXT:        attn.interleave
// CHECK:             math.exp2
// CHECK:             attn.dot {{.*}} tensor<16x256xf32>{{$}}
// CHECK-NEXT:        attn.interleave
// CHECK:             %[[NEW_DV:.*]] = attn.dot {{.*}}, %[[DV]] {{.*}} tensor<64x256xf32>{{$}}
// CHECK:             attn.store_lds %[[NEW_DS:.*]], %{{.*}} : tensor<16x256xbf16>
// CHECK:             %[[TURNED_Q:.*]] = attn.load_lds {{.*}} -> tensor<64x16xbf16>
// CHECK-NEXT:        attn.interleave
// CHECK:             %[[KEPT_DS:.*]] = attn.pin %[[NEW_DS]]
// CHECK:             amdgpu.lds_barrier
// CHECK-NOT:         amdgpu.lds_barrier
// CHECK:             %[[NEXT_DK:.*]] = attn.dot %[[TURNED_Q]], %[[KEPT_DS]], %[[NEW_DK]] {{.*}} tensor<64x256xf32>{{$}}
// CHECK:             attn.load {{.*}} row 16 : <64 x bf16>
// CHECK:             %[[NEXT_DV:.*]] = attn.dot {{.*}}, %[[NEW_DV]] {{.*}} tensor<64x256xf32>{{$}}
// CHECK:             attn.store_lds %[[NEXT_DS:.*]], %{{.*}} : tensor<16x256xbf16>
// CHECK:             %[[NEXT_Q:.*]] = attn.load_lds {{.*}} -> tensor<64x16xbf16>
// CHECK:             %[[LAST_DS:.*]] = attn.pin %[[NEXT_DS]]
// CHECK:             scf.yield %[[NEXT_DV]], %[[NEXT_DK]], {{.*}}, %[[LAST_DS]], %[[NEXT_Q]] :
// What is left of the last block.
// CHECK:           amdgpu.lds_barrier
// CHECK:           attn.dot {{.*}} tensor<64x256xf32>{{$}}
// CHECK:           attn.dot {{.*}} column_waves 4
// CHECK:           attn.atomic_add
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
