// RUN: aot-opt %s | FileCheck %s
// RUN: aot-opt %s --mlir-print-op-generic | aot-opt | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 --attn-tile-forward --canonicalize --cse | FileCheck %s --check-prefix=TILES

// Lengths and places of sequences, with and without what else an op may have.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!n = memref<?xi32>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[LQ:[a-z0-9]+]]: memref<?xi32>, %[[LK:[a-z0-9]+]]: memref<?xi32>, %[[SQ:[a-z0-9]+]]: memref<?xi32>, %[[SK:[a-z0-9]+]]: memref<?xi32>, %[[F:[a-z0-9]+]]: i32, %[[S:[a-z0-9]+]]: i32, %[[R:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32)
func.func @forward(%q: !t, %k: !t, %v: !t, %out: !t, %lse: !l, %scale: f32,
    %lq: !n, %lk: !n, %sq: !n, %sk: !n, %flags: i32, %stride: i32, %rows: i32, %count: i32) {
  // CHECK: attn.forward {{.*}} scale(%{{[a-z0-9]+}}) visible [#attn.causal<bottom_right>] sequences(%[[LQ]], %[[LK]], %[[SQ]], %[[SK]], %[[F]], %[[S]], %[[R]], %[[N]] : memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?xi32>, i32, i32, i32, i32) : memref
  attn.forward %q, %k, %v, %out lse(%lse) scale(%scale)
    visible [#attn.causal<bottom_right>]
    sequences(%lq, %lk, %sq, %sk, %flags, %stride, %rows, %count : !n, !n, !n, !n, i32, i32, i32, i32)
    : !t, !t, !t, !t, !l
  return
}
// A workgroup finds its sequence by its own number, or among the sums; reads two
// numbers of each side and where it begins before anything else, lengths no
// further believed than the call's; and where its first row is behind them has
// nothing to do.
// TILES-LABEL: gpu.func @forward(
// TILES-SAME: %[[MOST_Q:[a-z0-9]+]]: i32, %[[MOST_K:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: f32, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32)
// TILES: %[[FOUND:.*]]:2 = scf.if %{{.*}} -> (i32, i32) {
// TILES: scf.for
// TILES: llvm.load %{{.*}} invariant {{.*}} -> i32
// TILES: llvm.call_intrinsic "llvm.amdgcn.readfirstlane"(%[[FOUND]]#0)
// TILES-COUNT-2: llvm.load %{{.*}} invariant {{.*}} -> i32
// TILES: %[[CUT_Q:.*]] = arith.minsi %{{.*}}, %[[MOST_Q]] : i32
// TILES: %[[LENGTH_Q:.*]] = arith.select %{{.*}}, %[[MOST_Q]], %[[CUT_Q]] : i32
// TILES-COUNT-3: llvm.load %{{.*}} invariant {{.*}} -> i32
// TILES: %[[CUT_K:.*]] = arith.minsi %{{.*}}, %[[MOST_K]] : i32
// TILES: arith.select %{{.*}}, %[[MOST_K]], %[[CUT_K]] : i32
// TILES: llvm.load %{{.*}} invariant {{.*}} -> i32
// TILES-NOT: attn.{{load|store|copy}}
// TILES: %[[IS_THERE:.*]] = arith.cmpi ult, %{{.*}}, %[[LENGTH_Q]] : i32
// TILES: scf.if %[[IS_THERE]] {
// TILES: attn.store %{{.*}}, %{{.*}} : tensor<128x1xf32>
// TILES-NEXT: {{^        }$}}
// TILES-NEXT: {{^      }}} {attn.text}
// TILES-NEXT: gpu.return

// CHECK-LABEL: func.func @backward(
func.func @backward(%t: !t, %l: !l, %w: memref<?xi8>, %scale: f32, %a: i32,
    %n: !n, %i: i32) {
  // CHECK: attn.backward {{.*}} dlse(%{{.*}} : memref<?x?x?xf32, strided<[?, ?, 1]>>) visible [#attn.window](%{{.*}}, %{{.*}}, %{{.*}}) sequences(%{{.*}} : memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?xi32>, i32, i32, i32, i32) score {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w)
    scale(%scale) dlse(%l : !l) visible [#attn.window] (%a, %a, %a)
    sequences(%n, %n, %n, %n, %i, %i, %i, %i : !n, !n, !n, !n, i32, i32, i32, i32)
    score {
    ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %lq: i32, %lk: i32):
      %f = arith.sitofp %lk : i32 to f32
      %y = arith.divf %x, %f : f32
      attn.yield %y : f32
    }
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
