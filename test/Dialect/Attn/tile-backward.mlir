// REQUIRES: first-argument-first
// RUN: aot-opt %s --attn-to-scheduled=chip=gfx908 --attn-scheduled-to-tiles | FileCheck %s

// One op, three kernels with the same arguments.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK-LABEL: gpu.module @gradients attributes {attn.target = #attn.target<"gfx908">}

// Row sums of O and dO, to the workspace.
// CHECK:       gpu.func @gradients_delta(
// CHECK:         %[[OUT:.*]] = arith.extf
// CHECK:         %[[DOUT:.*]] = arith.extf
// CHECK:         %[[PRODUCTS:.*]] = arith.mulf %[[OUT]], %[[DOUT]]
// CHECK:         %[[TURNED:.*]] = attn.transpose %[[PRODUCTS]]
// CHECK:         attn.reduce <sum> %[[TURNED]] : tensor<64x64xf32> -> tensor<1x64xf32>

// Scores with queries as rows: P and dS are the right operands as they stand.
// Without a mask there is no masked loop.
// CHECK:       gpu.func @gradients_dkdv(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             amdgpu.lds_barrier
// CHECK-COUNT-6:     attn.store_lds
// CHECK:             amdgpu.lds_barrier
// CHECK:             %[[S:.*]] = attn.dot {{.*}} tensor<32x128xf32>{{$}}
// CHECK-NOT:         attn.mask
// CHECK:             %[[E:.*]] = math.exp2
// CHECK:             %[[P:.*]] = attn.saturate %[[E]]
// CHECK:             %[[PR:.*]] = attn.round %[[P]] <nearest_even>
// CHECK:             attn.dot %{{.*}}, %[[PR]], %{{.*}} : tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK:             %[[DP:.*]] = attn.dot
// CHECK:             %[[DIFFERENCE:.*]] = arith.subf %[[DP]]
// CHECK:             %[[DS:.*]] = arith.mulf %[[P]], %[[DIFFERENCE]]
// CHECK:             %[[DSR:.*]] = attn.round %[[DS]]
// CHECK:             attn.dot %{{.*}}, %[[DSR]], %{{.*}} : tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK-NOT:       scf.for

// Keys as rows; the tail of the keys is masked.
// CHECK:       gpu.func @gradients_dq(
// CHECK:         scf.for
// CHECK-NOT:       attn.mask
// CHECK:           %[[DS:.*]] = attn.round
// CHECK:           attn.dot %{{.*}}, %[[DS]], %{{.*}} : tensor<64x32xf16>, tensor<32x128xf16>, tensor<64x128xf32>
// CHECK:         scf.for
// CHECK:           attn.mask
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}

// Keys that no query sees are out of bounds where dK and dV are made.
// CHECK-LABEL: gpu.module @causal
// CHECK:       gpu.func @causal_dkdv(
// CHECK:         %[[SEEN:.*]] = arith.minsi %{{.*}}, %{{.*}} : i32
// CHECK:         %[[POSITIVE:.*]] = arith.maxsi %[[SEEN]], %{{.*}} : i32
// CHECK:         %[[LEFT:.*]] = arith.subi %[[POSITIVE]], %{{.*}} : i32
// CHECK:         attn.view %{{.*}} rows %[[LEFT]]
// CHECK:         attn.negate_if
// CHECK:         attn.view %{{.*}} rows %[[LEFT]]
func.func @causal(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s) visible [#attn.causal<top_left>]
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
