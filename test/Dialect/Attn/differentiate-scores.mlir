// RUN: aot-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(func.func(attn-differentiate-scores))' | FileCheck %s

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
// What nobody asks for, of constants and comparisons, is not there.
// CHECK-LABEL: @softcap
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: %[[CAP:.*]] = arith.constant 3.000000e+01
// CHECK: %[[SMALL:.*]] = arith.divf %[[X]], %[[CAP]]
// CHECK: %[[T:.*]] = math.tanh %[[SMALL]]
// CHECK: %[[S:.*]] = arith.mulf %[[T]], %[[CAP]]
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK: %[[SLOPE:.*]] = arith.subf %{{.*}}, %[[SQUARE]]
// CHECK: %[[UP:.*]] = arith.mulf %[[SLOPE]],
// CHECK: %[[D:.*]] = arith.divf %[[UP]], %[[CAP]]
// CHECK-NEXT: attn.yield %[[S]], %[[D]] : f32, f32
func.func @softcap(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %cap = arith.constant 30.0 : f32
    %small = arith.divf %x, %cap : f32
    %bounded = math.tanh %small : f32
    %y = arith.mulf %bounded, %cap : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// A bias has the derivative 1, a score that knows no product 0, and one's own is
// kept.
// CHECK-LABEL: @bias
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: attn.yield %{{.*}}, %[[ONE]]
func.func @bias(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %far = arith.sitofp %j : i32 to f32
    %y = arith.subf %x, %far : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
// CHECK-LABEL: @constant
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK: attn.yield %{{.*}}, %[[ZERO]]
func.func @constant(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %y = arith.sitofp %j : i32 to f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
// What is seen has no derivative, and changes none.
// CHECK-LABEL: @seen
// CHECK: %[[SEEN:.*]] = arith.cmpf
// CHECK-NEXT: %[[S:.*]] = arith.mulf
// CHECK-NOT: arith.select
// CHECK: attn.yield %[[S]], %[[SEEN]], %{{.*}} : f32, i1, f32
func.func @seen(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %least = arith.constant -2.0 : f32
    %large = arith.cmpf ogt, %x, %least : f32
    %y = arith.mulf %x, %x : f32
    attn.yield %y, %large : f32, i1
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
// CHECK-LABEL: @own
// CHECK: attn.yield %[[X:.*]], %[[X]] : f32, f32
func.func @own(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    attn.yield %x, %x : f32, f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @bits(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %bits = arith.bitcast %x : f32 to i32
    // expected-error @below {{'arith.bitcast' op has no derivative, and the score depends on it; give attn.yield of attn.backward the derivative behind the score}}
    %y = arith.bitcast %bits : i32 to f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Behind the derivative for the product come those for captures:
// the sum of both reads of one element, and 0 of what has no part in the score.
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
!b = memref<?x?xf16, strided<[?, ?]>>
!d = memref<?x?xf32, strided<[?, ?]>>
// CHECK-LABEL: @captured
// CHECK: gradients(0 = %{{.*}}, 2 = %{{.*}}, 3 = %{{.*}} : memref<?x?xf32, strided<[?, ?]>>, memref<f32>, memref<f32>)
// CHECK: ^bb0(%[[X:[^:]*]]: f32, {{.*}}, %[[CAP:[^:]*]]: f32, %{{[^:]*}}: f32):
// CHECK: %[[E:.*]] = attn.at
// CHECK: %[[F:.*]] = attn.at
// CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %[[CAP]]
// CHECK: %[[BOTH:.*]] = arith.addf %[[E]], %[[F]]
// CHECK: %[[NONE:.*]] = arith.constant 0.000000e+00
// CHECK: attn.yield %{{.*}}, %[[CAP]], %[[BOTH]], %[[X]], %[[NONE]] : f32, f32, f32, f32, f32
func.func @captured(%t: !t, %l: !l, %w: !w, %s: f32, %b0: !b, %b1: i32, %cap: f32, %off: f32, %d0: !d, %d2: memref<f32>, %d3: memref<f32>) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%b0, %b1, %cap, %off : !b, i32, f32, f32)
    gradients(0 = %d0, 2 = %d2, 3 = %d3 : !d, memref<f32>, memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %c0: !b, %c1: i32, %c2: f32, %c3: f32):
    %e = attn.at %c0[%h, %j] : !b
    %f = attn.at %c0[%h, %j] : !b
    %scaled = arith.mulf %x, %c2 : f32
    %square = arith.mulf %e, %f : f32
    %y = arith.addf %scaled, %square : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
