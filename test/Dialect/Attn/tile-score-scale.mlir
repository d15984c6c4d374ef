// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles | FileCheck %s

// A program that commutes with a positive factor acts on products that are not
// scaled: the scale is in the factor of the exponents. Others have it first.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>

// CHECK-LABEL: gpu.func @mask(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK-NOT: arith.mulf %[[PRODUCTS]]
// CHECK: arith.select %{{.*}}, %[[PRODUCTS]], %{{.*}}
func.func @mask(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %none = arith.constant 0xFF800000 : f32
    %shown = arith.cmpi sle, %key, %query : i32
    %s = arith.select %shown, %x, %none : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @predicate(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK-NOT: arith.mulf %[[PRODUCTS]]
// CHECK: arith.select %{{.*}}, %[[PRODUCTS]], %{{.*}}
func.func @predicate(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %shown = arith.cmpi sle, %key, %query : i32
    attn.yield %x, %shown : f32, i1
  } : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @linear(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK: math.absf %[[PRODUCTS]]
func.func @linear(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32, %w: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) captures(%w : f32) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32, %c: f32):
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    %size = math.absf %x : f32
    %less = arith.mulf %size, %c : f32
    %half = arith.divf %less, %two : f32
    %most = arith.maximumf %half, %zero : f32
    %s = math.fma %x, %c, %most : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @bias(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK: arith.mulf %[[PRODUCTS]]
func.func @bias(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %one = arith.constant 1.0 : f32
    %s = arith.addf %x, %one : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @square(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK: arith.mulf %[[PRODUCTS]]
func.func @square(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %s = arith.mulf %x, %x : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

// A scale of 0 would have 0 compared, and so is multiplied with first.
// CHECK-LABEL: gpu.func @compared(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK: arith.mulf %[[PRODUCTS]]
func.func @compared(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %none = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf ogt, %x, %zero : f32
    %s = arith.select %positive, %x, %none : f32
    attn.yield %s : f32
  } : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @compared_predicate(
// CHECK: scf.for
// CHECK: %[[PRODUCTS:.*]] = attn.dot
// CHECK: arith.mulf %[[PRODUCTS]]
func.func @compared_predicate(%q: !t, %k: !t, %v: !t, %out: !t, %scale: f32) {
  attn.forward %q, %k, %v, %out scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %least = arith.constant -1.0 : f32
    %large = arith.cmpf ogt, %x, %least : f32
    attn.yield %x, %large : f32, i1
  } : !t, !t, !t, !t
  return
}
