// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles | FileCheck %s

// What a program captures is read as its indices allow: once a workgroup, once
// a column, several rows at once, or element by element, and ahead of the loops
// where it can be.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!slopes = memref<?x?xf32, strided<[?, ?]>>
!flags = memref<?x?xi1, strided<[?, ?]>>
!bias = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!table = memref<?xi32, strided<[?]>>

// CHECK-LABEL: gpu.func @captures(
// CHECK: attn.gather %{{[^ ]+}} size %{{[^ ]+}} -> f32
// CHECK: attn.gather %{{[^ ]+}} size %{{[^ ]+}} at %{{[^ ]+}} : tensor<1x{{[0-9]+}}xi32> -> tensor<1x{{[0-9]+}}xi8>
// CHECK: scf.for
// CHECK-NOT: -> f32
// CHECK-NOT: xi8>
// CHECK: attn.gather %{{[^ ]+}} size %{{[^ ]+}} at %{{[^ ]+}} down : tensor<[[WHOLE:[0-9]+x[0-9]+]]xi32> -> tensor<[[WHOLE]]xf16>
// CHECK: %[[BEYOND:.*]] = arith.cmpi uge
// CHECK: %[[INDEX:.*]] = arith.select %[[BEYOND]]
// CHECK: attn.gather %{{[^ ]+}} size %{{[^ ]+}} at %[[INDEX]] : tensor<[[WHOLE]]xi32> -> tensor<[[WHOLE]]xi32>
func.func @captures(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32,
                    %c0: !slopes, %c1: !flags, %c2: !bias, %c3: !table,
                    %c4: f32) {
  attn.forward %q, %k, %v, %out scale(%scale)
    captures(%c0, %c1, %c2, %c3, %c4 : !slopes, !flags, !bias, !table, f32)
    score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32, %slopes: !slopes, %flags: !flags,
       %bias: !bias, %table: !table, %cap: f32):
    %slope = attn.at %slopes[%batch, %head] : !slopes
    %flag = attn.at %flags[%batch, %query] : !flags
    %b = attn.at %bias[%batch, %head, %query, %key] : !bias
    %distance = arith.subi %query, %key : i32
    %t = attn.at %table[%distance] : !table
    %far = arith.sitofp %t : i32 to f32
    %f = arith.mulf %far, %slope : f32
    %y = arith.addf %x, %b : f32
    %z = arith.addf %y, %f : f32
    %least = arith.minimumf %z, %cap : f32
    %s = arith.select %flag, %least, %x : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

!mask = memref<?x?xi1, strided<[?, 1]>>

// A window's blocks begin at any key: in those that may go past the last one
// lanes read the words around their rows.
// CHECK-LABEL: gpu.func @window(
// CHECK: scf.for
// CHECK: attn.gather {{.*}} down : tensor<{{.*}}xi32> -> tensor<{{.*}}xi8>
// CHECK: scf.for
// CHECK: attn.gather {{.*}} down unaligned : tensor<{{.*}}xi32> -> tensor<{{.*}}xi8>
func.func @window(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32, %l: i32,
                  %r: i32, %a: i32, %c0: !mask) {
  attn.forward %q, %k, %v, %out scale(%scale)
    visible [#attn.window] (%l, %r, %a) captures(%c0 : !mask) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32, %mask: !mask):
    %none = arith.constant 0xFF800000 : f32
    %shown = attn.at %mask[%query, %key] : !mask
    %s = arith.select %shown, %x, %none : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}
