// RUN: aot-opt %s | FileCheck %s
// RUN: aot-opt %s --mlir-print-op-generic | aot-opt | FileCheck %s
// RUN: aot-opt %s --emit-bytecode | aot-opt | FileCheck %s

// Every op, attribute and type of the dialect, as it prints.

#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [[0, 32], [0, 64]], grid = [2, 1]>
#row = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [[0, 32], [0, 64]], grid = [1, 1]>

!bhsd = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1]>>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, %[[K:[^:]*]]: memref{{.*}}, %[[V:[^:]*]]: memref{{.*}}, %[[OUT:[^:]*]]: memref{{.*}}, %[[LSE:[^:]*]]: memref{{.*}}, %[[SCALE:[^:]*]]: f32)
// CHECK-SAME:    attributes {attn.target = #attn.target<"gfx942">}
func.func @forward(%q: !bhsd, %k: !bhsd, %v: !bhsd, %out: !bhsd, %lse: !lse, %scale: f32)
    attributes {attn.target = #attn.target<"gfx942">} {
  // The mask is none unless said.
  // CHECK: attn.forward %[[Q]], %[[K]], %[[V]], %[[OUT]] scale(%[[SCALE]]) : memref
  // CHECK-NOT: memref<?x?x?xf32
  attn.forward %q, %k, %v, %out scale(%scale) : !bhsd, !bhsd, !bhsd, !bhsd
  // CHECK: attn.forward %[[Q]], %[[K]], %[[V]], %[[OUT]] scale(%[[SCALE]]) :
  attn.forward %q, %k, %v, %out scale(%scale) : !bhsd, !bhsd, !bhsd, !bhsd
  // CHECK: attn.forward %[[Q]], %[[K]], %[[V]], %[[OUT]] scale(%[[SCALE]]) visible [#attn.causal<top_left>] :
  attn.forward %q, %k, %v, %out scale(%scale) visible [#attn.causal<top_left>] : !bhsd, !bhsd, !bhsd, !bhsd
  // CHECK: attn.forward %[[Q]], %[[K]], %[[V]], %[[OUT]] lse(%[[LSE]]) scale(%[[SCALE]]) visible [#attn.causal<bottom_right>]
  // CHECK-SAME: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
  // CHECK-SAME: memref<?x?x?xf32, strided<[?, ?, 1]>>
  attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) visible [#attn.causal<bottom_right>]
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !bhsd, !bhsd, !bhsd, !bhsd, !lse
  return
}

// Static extents, any strides but the last.
// CHECK-LABEL: func.func @forward_static
// CHECK: attn.forward {{.*}} : memref<2x8x100x128xf16>, memref<2x2x33x128xf16, strided<[128, 8448, 256, 1]>>
func.func @forward_static(%q: memref<2x8x100x128xf16>, %kv: memref<2x2x33x128xf16, strided<[128, 8448, 256, 1]>>, %scale: f32) {
  attn.forward %q, %kv, %kv, %q scale(%scale)
    : memref<2x8x100x128xf16>, memref<2x2x33x128xf16, strided<[128, 8448, 256, 1]>>, memref<2x2x33x128xf16, strided<[128, 8448, 256, 1]>>, memref<2x8x100x128xf16>
  return
}

// CHECK-LABEL: func.func @memory(
// CHECK-SAME:    %[[BASE:[^:]*]]: !llvm.ptr<1>, %[[OFFSET:[^:]*]]: i64, %[[ROWS:[^:]*]]: i32, %[[STRIDE:[^:]*]]: i32)
func.func @memory(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) {
  // CHECK: %[[VIEW:.*]] = attn.view %[[BASE]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] : <40 x bf16>
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<40 x bf16>
  // CHECK: %[[TILE:.*]] = attn.load %[[VIEW]] : <40 x bf16> -> tensor<32x64xbf16>
  %tile = attn.load %view : !attn.view<40 x bf16> -> tensor<32x64xbf16>
  // CHECK: %[[LATER:.*]] = attn.view %[[BASE]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] from %[[ROWS]] : <40 x bf16>
  %later = attn.view %base[%offset] rows %rows stride %stride from %rows : !attn.view<40 x bf16>
  // CHECK: attn.load %[[LATER]] column 32 : <40 x bf16> -> tensor<32x32xbf16>
  %chunk = attn.load %later column 32 : !attn.view<40 x bf16> -> tensor<32x32xbf16>
  // CHECK: attn.load %[[VIEW]] column 32 row 16 : <40 x bf16> -> tensor<32x32xbf16>
  %below = attn.load %view column 32 row 16 : !attn.view<40 x bf16> -> tensor<32x32xbf16>
  // CHECK: attn.store %[[TILE]], %[[VIEW]] : tensor<32x64xbf16>, <40 x bf16>
  attn.store %tile, %view : tensor<32x64xbf16>, !attn.view<40 x bf16>
  // CHECK: attn.store %[[TILE]], %[[VIEW]] column 16 lines : tensor<32x64xbf16>, <40 x bf16>
  attn.store %tile, %view column 16 lines : tensor<32x64xbf16>, !attn.view<40 x bf16>
  // CHECK: attn.atomic_add %{{.*}}, %{{.*}} : tensor<32x64xf32>, <64 x f32>
  %sums = arith.constant dense<1.0> : tensor<32x64xf32>
  %wide = attn.view %base[%offset] rows %rows stride %stride : !attn.view<64 x f32>
  attn.atomic_add %sums, %wide : tensor<32x64xf32>, !attn.view<64 x f32>
  // CHECK: attn.atomic_add %{{.*}}, %{{.*}} : tensor<32x64xbf16>, <64 x i32>
  %halves = arith.constant dense<1.0> : tensor<32x64xbf16>
  %pairs = attn.view %base[%offset] rows %rows stride %stride : !attn.view<64 x i32>
  attn.atomic_add %halves, %pairs : tensor<32x64xbf16>, !attn.view<64 x i32>
  // CHECK: %[[LDS:.*]] = attn.alloc_lds : <32 x 64 x bf16>
  %lds = attn.alloc_lds : !attn.lds<32 x 64 x bf16>
  // CHECK: attn.alloc_lds : <32 x 64 x f16, <chunks = 8, shifts = [0, 2]>>
  %swizzled = attn.alloc_lds : !attn.lds<32 x 64 x f16, <chunks = 8, shifts = [0, 2]>>
  // Chunks are bytes, of elements of any size.
  // CHECK: attn.alloc_lds : <32 x 64 x f32, <chunks = 8, shifts = [0]>>
  %words = attn.alloc_lds : !attn.lds<32 x 64 x f32, <chunks = 8, shifts = [0]>>
  // CHECK: attn.store_lds %[[TILE]], %[[LDS]] : tensor<32x64xbf16>, <32 x 64 x bf16>
  attn.store_lds %tile, %lds : tensor<32x64xbf16>, !attn.lds<32 x 64 x bf16>
  // CHECK: attn.load_lds %[[LDS]] : <32 x 64 x bf16> -> tensor<32x48xbf16>
  %part = attn.load_lds %lds : !attn.lds<32 x 64 x bf16> -> tensor<32x48xbf16>
  return
}

// CHECK-LABEL: func.func @tiles(
func.func @tiles(%a: tensor<64x16xf16>, %b: tensor<16x128xf16>, %acc: tensor<64x128xf32>, %flag: i1) {
  // CHECK: %[[S:.*]] = attn.dot %{{.*}}, %{{.*}}, %{{.*}} inst<mfma_32x32x8> : tensor<64x16xf16>, tensor<16x128xf16>, tensor<64x128xf32>
  %s = attn.dot %a, %b, %acc inst<mfma_32x32x8> : tensor<64x16xf16>, tensor<16x128xf16>, tensor<64x128xf32>
  // CHECK: attn.dot %{{.*}}, %{{.*}}, %[[S]] inst<mfma_32x32x8> rows_alike : tensor<64x16xf16>, tensor<16x128xf16>, tensor<64x128xf32>
  %alike = attn.dot %a, %b, %s inst<mfma_32x32x8> rows_alike : tensor<64x16xf16>, tensor<16x128xf16>, tensor<64x128xf32>
  // CHECK: attn.transpose %{{.*}} : tensor<64x16xf16>
  %t = attn.transpose %a : tensor<64x16xf16>
  // CHECK: attn.reduce <max> %[[S]] : tensor<64x128xf32> -> tensor<1x128xf32>
  %max = attn.reduce <max> %s : tensor<64x128xf32> -> tensor<1x128xf32>
  // CHECK: attn.reduce <sum> %[[S]] : tensor<64x128xf32> -> tensor<2x128xf32>
  %sum = attn.reduce <sum> %s : tensor<64x128xf32> -> tensor<2x128xf32>
  // CHECK: attn.broadcast %{{.*}} : tensor<1x128xf32> -> tensor<64x128xf32>
  %wide = attn.broadcast %max : tensor<1x128xf32> -> tensor<64x128xf32>
  // CHECK: %[[COLUMN:.*]] = attn.column_index : tensor<1x128xi32>
  %column = attn.column_index : tensor<1x128xi32>
  // CHECK: attn.mask %[[S]] to %[[COLUMN]] : tensor<1x128xi32> : tensor<64x128xf32>
  %masked = attn.mask %s to %column : tensor<1x128xi32> : tensor<64x128xf32>
  // CHECK: attn.mask %[[S]] from %[[COLUMN]] : tensor<1x128xi32> to %[[COLUMN]] : tensor<1x128xi32> : tensor<64x128xf32>
  %both = attn.mask %s from %column : tensor<1x128xi32> to %column : tensor<1x128xi32> : tensor<64x128xf32>
  // CHECK: attn.round %[[S]] <nearest_even> : tensor<64x128xf32> -> tensor<64x128xf16>
  %even = attn.round %s <nearest_even> : tensor<64x128xf32> -> tensor<64x128xf16>
  // CHECK: attn.round %[[S]] <nearest_away> : tensor<64x128xf32> -> tensor<64x128xbf16>
  %away = attn.round %s <nearest_away> : tensor<64x128xf32> -> tensor<64x128xbf16>
  // CHECK: attn.negate_if %{{.*}}, %{{.*}} : tensor<64x16xf16>
  %negated = attn.negate_if %a, %flag : tensor<64x16xf16>
  // CHECK: attn.to_accumulators %[[S]] inst<mfma_32x32x8> factor f16 : tensor<64x128xf32>
  %kept = attn.to_accumulators %s inst<mfma_32x32x8> factor f16 : tensor<64x128xf32>
  // CHECK: attn.to_vectors %[[S]] : tensor<64x128xf32>
  %read = attn.to_vectors %s : tensor<64x128xf32>
  // CHECK: attn.pin %[[S]] : tensor<64x128xf32>
  %made = attn.pin %s : tensor<64x128xf32>
  // CHECK: attn.saturate %[[S]] : tensor<64x128xf32>
  %one = attn.saturate %s : tensor<64x128xf32>
  // CHECK: attn.wave_any %{{.*}} : tensor<64x128xi1>
  %none = arith.constant dense<false> : tensor<64x128xi1>
  %any = attn.wave_any %none : tensor<64x128xi1>
  return
}

// Layouts print in full; grid and empty lists too.
// CHECK-LABEL: func.func @layouts(
// CHECK-SAME:    tensor<64x128xf32, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [2, 1]>>
func.func @layouts(%s: tensor<64x128xf32, #acc>, %row: tensor<1x128xf32, #row>) {
  // CHECK: attn.reduce <sum> %{{.*}} -> tensor<1x128xf32, #attn.layout<reg = [], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [1, 1]>>
  %sum = attn.reduce <sum> %s : tensor<64x128xf32, #acc> -> tensor<1x128xf32, #row>
  // The result's layout is the operand's, turned.
  // CHECK: attn.transpose %{{.*}} : tensor<1x128xf32, #attn.layout<
  %t = attn.transpose %row : tensor<1x128xf32, #row>
  // CHECK: attn.convert_layout %{{.*}} : tensor<64x128xf32, #attn.layout<{{.*}}>> -> tensor<64x128xf32>
  %converted = attn.convert_layout %s : tensor<64x128xf32, #acc> -> tensor<64x128xf32>
  return
}

// CHECK-LABEL: gpu.module @lanes attributes {attn.target = #attn.target<"gfx942">}
gpu.module @lanes attributes {attn.target = #attn.target<"gfx942">} {
  // CHECK: gpu.func @mma({{.*}}) kernel attributes {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 1, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 8, rescale_threshold = 0>}
  gpu.func @mma(%a: vector<4xbf16>, %c: vector<4xf32>) kernel
      attributes {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 1, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 8, rescale_threshold = 0>} {
    // CHECK: attn.mma %{{.*}}, %{{.*}}, %{{.*}} inst<mfma_16x16x16> : vector<4xbf16>, vector<4xbf16>, vector<4xf32>
    %d = attn.mma %a, %a, %c inst<mfma_16x16x16> : vector<4xbf16>, vector<4xbf16>, vector<4xf32>
    gpu.return
  }
}
