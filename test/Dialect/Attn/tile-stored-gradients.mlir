// RUN: aot-opt %s --attn-to-scheduled='chip=gfx942 stages=1' --attn-scheduled-to-tiles | FileCheck %s

// A gradient in the capture's type is stored where dS is in f32: hidden places as
// 0 and what is none not at all. The kernel before it stores zeros where this one
// does not come by; the last one has nothing of it.
// CHECK-LABEL: gpu.func @stored_delta
// CHECK: scf.for
// CHECK: attn.scatter %{{.*}} : tensor<[[M:[0-9]+]]x64xf16>, tensor<[[M]]x64xi32>
// CHECK-NOT: attn.scatter
// CHECK-LABEL: gpu.func @stored_dkdv
// CHECK-NOT: attn.scatter_add
// CHECK: %[[P:.*]] = attn.saturate
// CHECK: %[[HIDDEN:.*]] = arith.cmpf oeq, %[[P]],
// CHECK: %[[PART:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %{{.*}} : tensor<[[N:[0-9]+]]x[[M:[0-9]+]]xi1>, tensor<[[N]]x[[M]]xf32>
// CHECK: %[[OUTSIDE:.*]] = arith.ori
// CHECK: %[[PLACE:.*]] = arith.ori %{{.*}}, %[[OUTSIDE]]
// CHECK: %[[NARROW:.*]] = arith.truncf %[[PART]]
// CHECK: attn.scatter %[[NARROW]], {{.*}} at %[[PLACE]] : tensor<[[N]]x[[M]]xf16>
// CHECK-LABEL: gpu.func @stored_dq
// CHECK-NOT: attn.scatter

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
!b = memref<?x?x?x?xf16, strided<[?, ?, ?, ?]>>
func.func @stored(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: !w, %s: f32, %c: !b, %d: !b) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    visible [#attn.causal<top_left>]
    captures(%c : !b) gradients(0 = %d : !b) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k0: !b):
    %e = attn.at %k0[%b, %h, %i, %j] : !b
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
