// RUN: aot-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(attn-assign-layouts))' | FileCheck %s

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>

gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {

// Layouts spread from a product through loops, branches, element-wise ops,
// reductions and broadcasts; a constant of two layouts becomes two.
// CHECK-LABEL: gpu.func @spread(
// CHECK-DAG:     arith.constant dense<0.000000e+00> : tensor<32x32xf32, [[ACC:#attn.layout<[^>]*>]]>
// CHECK-DAG:     arith.constant dense<0.000000e+00> : tensor<1x32xf32, [[ROW:#attn.layout<[^>]*>]]>
// CHECK:         scf.for {{.*}} -> (tensor<32x32xf32, [[ACC]]>, tensor<1x32xf32, [[ROW]]>)
// CHECK:           %[[S:.*]] = attn.dot {{.*}} tensor<32x32xf32, [[ACC]]>
// CHECK:           %[[MAX:.*]] = attn.reduce <max> %[[S]] : tensor<32x32xf32, [[ACC]]> -> tensor<1x32xf32, [[ROW]]>
// CHECK:           scf.if {{.*}} -> (tensor<32x32xf32, [[ACC]]>)
// CHECK:             attn.broadcast {{.*}} : tensor<1x32xf32, [[ROW]]> -> tensor<32x32xf32, [[ACC]]>
// CHECK:             arith.mulf {{.*}} : tensor<32x32xf32, [[ACC]]>
// CHECK:         attn.transpose {{.*}} : tensor<32x32xf32, [[ACC]]>
// CHECK:         attn.store %{{.*}} : tensor<32x32xf32, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 1]>>, <32 x f32>
gpu.func @spread(%view: !attn.view<16 x f16>, %out: !attn.view<32 x f32>, %n: i32, %flag: i1) kernel attributes {attn.schedule = #schedule} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %row = arith.constant dense<0.0> : tensor<1x32xf32>
  %a = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16>
  %q = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16>
  %b = attn.transpose %q : tensor<32x16xf16>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %last = %row) -> (tensor<32x32xf32>, tensor<1x32xf32>) : i32 {
    %s = attn.dot %a, %b, %acc inst<mfma_32x32x8> : tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x32xf32>
    %max = attn.reduce <max> %s : tensor<32x32xf32> -> tensor<1x32xf32>
    %sum = arith.addf %max, %last : tensor<1x32xf32>
    %next = scf.if %flag -> (tensor<32x32xf32>) {
      %wide = attn.broadcast %sum : tensor<1x32xf32> -> tensor<32x32xf32>
      %scaled = arith.mulf %s, %wide : tensor<32x32xf32>
      scf.yield %scaled : tensor<32x32xf32>
    } else {
      scf.yield %s : tensor<32x32xf32>
    }
    scf.yield %next, %sum : tensor<32x32xf32>, tensor<1x32xf32>
  }
  %t = attn.transpose %r#0 : tensor<32x32xf32>
  attn.store %t, %out : tensor<32x32xf32>, !attn.view<32 x f32>
  gpu.return
}

// A right operand that sits in lanes as the instruction cannot take it is
// converted first.
// CHECK-LABEL: gpu.func @convert(
// CHECK:         %[[LOADED:.*]] = attn.load {{.*}} -> tensor<16x32xf16, [[COPY:#attn.layout<[^>]*>]]>
// CHECK:         attn.store_lds %[[LOADED]], {{.*}} : tensor<16x32xf16, [[COPY]]>
// CHECK-NOT:     attn.convert_layout
// CHECK:         attn.dot
// CHECK:         %[[S:.*]] = attn.transpose %{{.*}} : tensor<32x32xf16, [[TURNED:#attn.layout<[^>]*>]]>
// CHECK:         %[[MOVED:.*]] = attn.convert_layout %[[S]] : tensor<32x32xf16, [[HAVE:#attn.layout<[^>]*>]]> -> tensor<32x32xf16, [[WANT:#attn.layout<[^>]*>]]>
// CHECK:         attn.dot %{{.*}}, %[[MOVED]], %{{.*}} tensor<32x32xf16, [[WANT]]>, tensor<32x32xf32
gpu.func @convert(%view: !attn.view<16 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<16 x 32 x f16>
  %loaded = attn.load %view : !attn.view<16 x f16> -> tensor<16x32xf16>
  attn.store_lds %loaded, %lds : tensor<16x32xf16>, !attn.lds<16 x 32 x f16>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16>
  %b = attn.load_lds %lds : !attn.lds<16 x 32 x f16> -> tensor<16x32xf16>
  %s = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x32xf32>
  %p = attn.round %s <nearest_even> : tensor<32x32xf32> -> tensor<32x32xf16>
  %t = attn.transpose %p : tensor<32x32xf16>
  %v = attn.load %view : !attn.view<16 x f16> -> tensor<32x32xf16>
  %o = attn.dot %v, %t, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
  attn.store %o, %out : tensor<32x32xf32>, !attn.view<32 x f32>
  gpu.return
}

// An LDS tile whose accesses have no conflicts gets no swizzle.
// CHECK-LABEL: gpu.func @no_swizzle(
// CHECK:         attn.alloc_lds : <64 x 64 x f16>
gpu.func @no_swizzle(%view: !attn.view<64 x f16>) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<64 x 64 x f16>
  %tile = attn.load %view : !attn.view<64 x f16> -> tensor<64x64xf16>
  attn.store_lds %tile, %lds : tensor<64x64xf16>, !attn.lds<64 x 64 x f16>
  gpu.return
}

// A function without a schedule is not one of ours.
// CHECK-LABEL: gpu.func @other(
// CHECK:         attn.column_index : tensor<1x32xi32>
gpu.func @other() kernel {
  %c = attn.column_index : tensor<1x32xi32>
  %l = arith.constant dense<0.0> : tensor<32x32xf32>
  %m = attn.mask %l to %c : tensor<1x32xi32> : tensor<32x32xf32>
  "test.keep"(%c, %m) : (tensor<1x32xi32>, tensor<32x32xf32>) -> ()
  gpu.return
}
}

// A product that begins at rows that are alike follows no other: it decides how
// P lies, though the product with P comes first in the loop, and only P is
// converted.
// CHECK-LABEL: gpu.func @ahead(
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = attn.convert_layout %{{.*}} : tensor<32x16xf16, [[HELD:#attn.layout<[^>]*>]]> -> tensor<32x16xf16, [[REPEATED:#attn.layout<[^>]*>]]>
// CHECK:           attn.dot %{{.*}}, %[[P]], %{{.*}} tensor<32x16xf16, [[REPEATED]]>
// CHECK:           attn.pin %{{.*}} : tensor<32x16xf32, [[HELD]]>
// CHECK:           attn.dot {{.*}} rows_alike {{.*}} tensor<32x16xf32, [[HELD]]>
// CHECK-NOT:       attn.convert_layout
// CHECK:         gpu.return
#rows = #attn.schedule<block_m = 16, block_n = 32, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @rows_alike attributes {attn.target = #attn.target<"gfx1100">} {
gpu.func @ahead(%view: !attn.view<16 x f16>, %out: !attn.view<16 x f32>, %n: i32) kernel attributes {attn.schedule = #rows} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<32x16xf16>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %start = arith.constant dense<0.0> : tensor<1x16xf32>
  %k = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16>
  %q = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16>
  %b = attn.transpose %q : tensor<16x16xf16>
  %v = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16>
  %vt = attn.transpose %v : tensor<32x16xf16>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %none, %acc = %zero, %row = %start) -> (tensor<32x16xf16>, tensor<16x16xf32>, tensor<1x16xf32>) : i32 {
    %o = attn.dot %vt, %p, %acc inst<wmma_16x16x16> : tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x16xf32>
    %from = attn.broadcast %row : tensor<1x16xf32> -> tensor<32x16xf32>
    %begin = attn.pin %from : tensor<32x16xf32>
    %s = attn.dot %k, %b, %begin inst<wmma_16x16x16> rows_alike : tensor<32x16xf16>, tensor<16x16xf16>, tensor<32x16xf32>
    %next = attn.round %s <nearest_even> : tensor<32x16xf32> -> tensor<32x16xf16>
    %max = attn.reduce <max> %s : tensor<32x16xf32> -> tensor<1x16xf32>
    scf.yield %next, %o, %max : tensor<32x16xf16>, tensor<16x16xf32>, tensor<1x16xf32>
  }
  %t = attn.transpose %r#1 : tensor<16x16xf32>
  attn.store %t, %out : tensor<16x16xf32>, !attn.view<16 x f32>
  gpu.return
}
}
