// RUN: aot-opt %s --attn-to-scheduled=chip=gfx1201 --attn-scheduled-to-tiles | FileCheck %s

// A bias of the next block is on its way while one is worked on, through both loops: of
// keys' gradients as words, which are narrow again where scores take them, of queries' in
// runs of rows, which nothing takes apart ahead of the products.
// CHECK-LABEL: gpu.func @biased_dkdv
// CHECK: %[[FIRST:.*]] = attn.gather {{.*}} -> tensor<32x64xi16>
// CHECK: %[[WORDS:.*]] = arith.extui %[[FIRST]]
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[HAS:[a-z0-9]*]] = %[[WORDS]])
// CHECK: attn.dot
// CHECK: arith.trunci %[[HAS]] : tensor<32x64xi32> to tensor<32x64xi16>
// CHECK: %[[NEXT:.*]] = attn.gather {{.*}} -> tensor<32x64xi16>
// CHECK: %[[CARRIED:.*]] = arith.extui %[[NEXT]]
// CHECK: scf.yield {{.*}}, %[[CARRIED]] : {{.*}}, tensor<32x64xi32>
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[AFTER:[a-z0-9]*]] = %{{[0-9]+}}#6)
// CHECK: arith.trunci %[[AFTER]] :
// CHECK-LABEL: gpu.func @biased_dq
// CHECK: %[[RUNS:.*]] = attn.gather {{.*}} down {{.*}} -> tensor<32x64xbf16>
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[THESE:[a-z0-9]*]] = %[[RUNS]])
// CHECK: attn.dot
// CHECK-NEXT: amdgpu.sched_barrier
// CHECK: arith.extf %[[THESE]] :
// CHECK: %[[THOSE:.*]] = attn.gather {{.*}} down {{.*}} -> tensor<32x64xbf16>
// CHECK: scf.yield {{.*}}, %[[THOSE]] : {{.*}}, tensor<32x64xbf16>

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!b = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
func.func @biased(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>,
                  %s: f32, %g: !b) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    visible [#attn.causal<bottom_right>] captures(%g : !b) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %c: !b):
    %e = attn.at %c[%b, %h, %i, %j] : !b
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
