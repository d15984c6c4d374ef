// RUN: aot-opt %s --attn-to-scheduled='chip=gfx942 algorithm=atomic stages=1' --attn-scheduled-to-tiles | FileCheck %s
// RUN: not aot-opt %s --attn-to-scheduled=chip=gfx942 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not aot-opt %s --pass-pipeline='builtin.module(func.func(attn-choose-schedule{chip=gfx942 algorithm=atomic}),attn-tile-backward)' 2>&1 | FileCheck %s --check-prefix=EARLY

// The gradient of a bias is added element by element where dS is in f32, that of
// slopes and of a cap to sums that the loops carry, which are added once a head;
// that of a bias of the query row by row. The kernels around it have none.
// CHECK-LABEL: gpu.func @gradients_prepare
// CHECK-NOT: attn.scatter_add
// CHECK-LABEL: gpu.func @gradients_fused
// CHECK: scf.for
// In the masked loop what is hidden adds nothing.
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<64x256xf32>, tensor<64x256xf32>, tensor<[[G:[0-9]+]]x256xf32>, tensor<[[G]]x256xf32>)
// CHECK: %[[P:.*]] = attn.saturate
// CHECK: %[[DS:.*]] = arith.mulf %[[P]],
// CHECK: %[[HIDDEN:.*]] = arith.cmpf oeq, %[[P]],
// CHECK: %[[PLACE:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %{{.*}} : tensor<16x256xi1>, tensor<16x256xi32>
// CHECK: attn.scatter_add %[[DS]], %{{.*}}[%{{.*}}] size %{{.*}} at %[[PLACE]] : tensor<16x256xf32>, tensor<16x256xi32>
// CHECK: %[[SEEN:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %{{.*}} : tensor<16x256xi1>, tensor<16x256xf32>
// CHECK: %[[PART:.*]] = attn.reduce <sum> %[[SEEN]] : tensor<16x256xf32> -> tensor<[[G]]x256xf32>
// CHECK: arith.addf %{{.*}}, %[[PART]] : tensor<[[G]]x256xf32>
// CHECK: attn.reduce <sum>
// CHECK: attn.scatter_add {{.*}} by_row : tensor<16x256xf32>, tensor<16x256xi32>
// In the other one every place is seen.
// CHECK: scf.for
// CHECK-NOT: arith.cmpf oeq, {{.*}} : tensor<16x256xf32>
// CHECK: %[[WEIGHTS:.*]] = attn.saturate
// CHECK: %[[ALL:.*]] = arith.mulf %[[WEIGHTS]],
// CHECK: attn.scatter_add %[[ALL]], {{.*}} at %{{.*}} : tensor<16x256xf32>, tensor<16x256xi32>
// CHECK: attn.scatter_add {{.*}} by_row
// CHECK: }
// CHECK: attn.scatter_add %{{.*}}, %{{.*}}[%{{.*}}] size %{{.*}} : tensor<[[G]]x256xf32>{{$}}
// CHECK: attn.scatter_add %{{.*}}, %{{.*}}[%{{.*}}] size %{{.*}} : tensor<[[G]]x256xf32>{{$}}
// CHECK-LABEL: gpu.func @gradients_convert
// CHECK-NOT: attn.scatter_add

// ORDER: adds up the gradient of capture 1, f32[batch:?, head:?], in any order, and algorithm 'deterministic' gives the same bits in every run; use 'atomic' (--algorithm=atomic)
// EARLY: has gradients of captures and no derivatives in its score program; run attn-differentiate-scores first

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
!b = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!s = memref<?x?xf32, strided<[?, ?]>>
!d = memref<?x?x?x?xf32, strided<[?, ?, ?, ?]>>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: !w, %s: f32,
                     %g0: !b, %g1: !s, %g2: f32, %g3: !s, %d0: !d, %d1: !s, %d2: memref<f32>, %d3: !s) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    visible [#attn.causal<bottom_right>]
    captures(%g0, %g1, %g2, %g3 : !b, !s, f32, !s)
    gradients(0 = %d0, 1 = %d1, 2 = %d2, 3 = %d3 : !d, !s, memref<f32>, !s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %c0: !b, %c1: !s, %c2: f32, %c3: !s):
    %small = arith.divf %x, %c2 : f32
    %bounded = math.tanh %small : f32
    %capped = arith.mulf %bounded, %c2 : f32
    %distance = arith.subi %i, %j : i32
    %far = arith.sitofp %distance : i32 to f32
    %slope = attn.at %c1[%b, %h] : !s
    %slow = arith.mulf %far, %slope : f32
    %biased = arith.subf %capped, %slow : f32
    %e = attn.at %c0[%b, %h, %i, %j] : !b
    %y = arith.addf %biased, %e : f32
    %f = attn.at %c3[%h, %i] : !s
    %z = arith.addf %y, %f : f32
    attn.yield %z : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
