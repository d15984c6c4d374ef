// RUN: aot-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// Conversions between lanes, by what the chip exchanges lanes with.

#schedule = #attn.schedule<block_m = 16, block_n = 32, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
// Columns are read and written as rows of memory.
#halves = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]], wave = [], grid = [1, 1]>
#both = #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], wave = [], grid = [1, 1]>

// The halves of a wave hold eight elements each and are to hold sixteen: four
// words trade places, and eight selections put them where they belong.
// CHECK-LABEL: gpu.func @both_halves(
// CHECK:         %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<8xf16> to vector<4xi32>
// CHECK:         %[[OWN:.*]] = vector.extract %[[WORDS]][0]
// CHECK:         %[[UPPER:.*]] = arith.cmpi ne, %{{.*}}, %c0_i32
// CHECK:         %[[OTHER:.*]] = rocdl.permlanex16 %{{.*}}, %[[OWN]], %c1985229328_i32, %c-19088744_i32, false, false
// CHECK:         arith.select %[[UPPER]], %[[OTHER]], %[[OWN]]
// CHECK-COUNT-3: rocdl.permlanex16
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         arith.select %[[UPPER]], %[[OWN]], %[[OTHER]]
// CHECK-COUNT-3: arith.select %[[UPPER]]
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         gpu.return
gpu.module @rows attributes {attn.target = #attn.target<"gfx1100">} {
gpu.func @both_halves(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x16xf16, #halves> -> tensor<16x16xf16, #both>
  attn.store %m, %view : tensor<16x16xf16, #both>, !attn.view<16 x f16>
  gpu.return
}

// The way back needs no other lane: each keeps half of what it has.
// CHECK-LABEL: gpu.func @one_half(
// CHECK-COUNT-4: arith.select
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         gpu.return
gpu.func @one_half(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #both>
  %m = attn.convert_layout %t : tensor<16x16xf16, #both> -> tensor<16x16xf16, #halves>
  attn.store %m, %view : tensor<16x16xf16, #halves>, !attn.view<16 x f16>
  gpu.return
}
}

// -----

// In forward kernels both halves get what either has by way of LDS that is the
// wave's own, a write and two reads, where as many workgroups fit a compute unit
// with these bytes. Here that is two, so that each may have 32768.
#schedule = #attn.schedule<block_m = 16, block_n = 32, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 8>
#queries = #attn.schedule<block_m = 16, block_n = 32, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 8, queries_in_lds = 1>
#halves = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]], wave = [], grid = [1, 1]>
#both = #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], wave = [], grid = [1, 1]>
#halves2 = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]], wave = [], grid = [1, 2]>
#both2 = #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], wave = [], grid = [1, 2]>

gpu.module @forward attributes {attn.target = #attn.target<"gfx1100">} {
// 512 bytes a wave and fragment, 16 a lane. What has two fragments has bytes of
// its own; what has one shares them.
// CHECK-DAG:     llvm.mlir.global internal @by_lds_lds_of_waves_512() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
// CHECK-DAG:     llvm.mlir.global internal @by_lds_lds_of_waves_1024() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
// CHECK-LABEL: gpu.func @by_lds(
// CHECK-DAG:     llvm.mlir.addressof @by_lds_lds_of_waves_512
// CHECK-DAG:     llvm.mlir.addressof @by_lds_lds_of_waves_1024
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         %[[FIRST:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         %[[SECOND:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         vector.shuffle %[[FIRST]], %[[SECOND]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         gpu.return
gpu.func @by_lds(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x16xf16, #halves> -> tensor<16x16xf16, #both>
  attn.store %m, %view : tensor<16x16xf16, #both>, !attn.view<16 x f16>
  %wide = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f16>
  %t2 = attn.load %wide : !attn.view<32 x f16> -> tensor<16x32xf16, #halves2>
  %m2 = attn.convert_layout %t2 : tensor<16x32xf16, #halves2> -> tensor<16x32xf16, #both2>
  attn.store %m2, %wide : tensor<16x32xf16, #both2>, !attn.view<32 x f16>
  gpu.return
}

// 32256 bytes of tiles leave just as many.
// CHECK-LABEL: gpu.func @just_fits(
// CHECK:         llvm.mlir.addressof @just_fits_lds_of_waves_512
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         gpu.return
gpu.func @just_fits(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<252 x 64 x f16>
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x16xf16, #halves> -> tensor<16x16xf16, #both>
  attn.store %m, %view : tensor<16x16xf16, #both>, !attn.view<16 x f16>
  gpu.return
}

// A row of a tile more, and lanes exchange.
// CHECK-LABEL: gpu.func @too_large(
// CHECK-NOT:     lds_of_waves
// CHECK-COUNT-4: rocdl.permlanex16
// CHECK-NOT:     lds_of_waves
// CHECK:         gpu.return
gpu.func @too_large(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<253 x 64 x f16>
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x16xf16, #halves> -> tensor<16x16xf16, #both>
  attn.store %m, %view : tensor<16x16xf16, #both>, !attn.view<16 x f16>
  gpu.return
}

// So do they beside queries in LDS.
// CHECK-LABEL: gpu.func @queries_in_lds(
// CHECK-NOT:     lds_of_waves
// CHECK-COUNT-4: rocdl.permlanex16
// CHECK:         gpu.return
gpu.func @queries_in_lds(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #queries} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f16>
  %t = attn.load %view : !attn.view<16 x f16> -> tensor<16x16xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x16xf16, #halves> -> tensor<16x16xf16, #both>
  attn.store %m, %view : tensor<16x16xf16, #both>, !attn.view<16 x f16>
  gpu.return
}
}

// -----

#schedule = #attn.schedule<block_m = 16, block_n = 32, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
#halves = #attn.layout<reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 2]], wave = [], grid = [1, 1]>
// Lane bits 0 and 1 trade places; register bit 0 and lane bit 4 do.
#swapped = #attn.layout<reg = [[0, 1]], lane = [[2, 0], [1, 0], [4, 0], [8, 0], [0, 2]], wave = [], grid = [1, 1]>
#turned = #attn.layout<reg = [[0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], wave = [], grid = [1, 1]>

gpu.module @within attributes {attn.target = #attn.target<"gfx1201">} {
// Inside a row of 16 lanes. Lanes whose bits 0 and 1 agree keep theirs.
// CHECK-LABEL: gpu.func @in_rows(
// CHECK:         %[[BIT0:.*]] = arith.andi %[[LANE:.*]], %c1_i32
// CHECK:         %[[SET0:.*]] = arith.cmpi ne, %[[BIT0]], %c0_i32
// CHECK:         %[[BIT1:.*]] = arith.andi %[[LANE]], %c2_i32
// CHECK:         %[[SET1:.*]] = arith.cmpi ne, %[[BIT1]], %c0_i32
// CHECK:         %[[MOVES:.*]] = arith.xori %[[SET0]], %[[SET1]] : i1
// CHECK:         %[[OTHER:.*]] = rocdl.update.dpp %{{.*}}, %[[OWN:.*]] with 355, 15, 15, true
// CHECK:         arith.select %[[MOVES]], %[[OTHER]], %[[OWN]]
// CHECK:         gpu.return
gpu.func @in_rows(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<16x4xf32, #halves>
  %m = attn.convert_layout %t : tensor<16x4xf32, #halves> -> tensor<16x4xf32, #swapped>
  attn.store %m, %view : tensor<16x4xf32, #swapped>, !attn.view<4 x f32>
  gpu.return
}

// Halves of pairs part, so each element travels in a word of its own.
// CHECK-LABEL: gpu.func @apart(
// CHECK-COUNT-2: arith.extui %{{.*}} : i16 to i32
// CHECK-COUNT-2: rocdl.permlanex16
// CHECK-NOT:     rocdl.permlanex16
// CHECK:         arith.trunci %{{.*}} : i32 to i16
// CHECK:         gpu.return
gpu.func @apart(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f16>
  %t = attn.load %view : !attn.view<4 x f16> -> tensor<16x4xf16, #halves>
  %m = attn.convert_layout %t : tensor<16x4xf16, #halves> -> tensor<16x4xf16, #turned>
  attn.store %m, %view : tensor<16x4xf16, #turned>, !attn.view<4 x f16>
  gpu.return
}
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
#from = #attn.layout<reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 2]], wave = [[0, 0]], grid = [1, 1]>
#turned = #attn.layout<reg = [[0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], wave = [[0, 0]], grid = [1, 1]>
#bywave = #attn.layout<reg = [[0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 0]], wave = [[0, 1]], grid = [1, 1]>

#rowsof4 = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 0]], wave = [[0, 0]], grid = [1, 1]>
#banks = #attn.layout<reg = [[0, 1], [4, 0]], lane = [[1, 0], [2, 0], [0, 2], [8, 0], [16, 0], [0, 0]], wave = [[0, 0]], grid = [1, 1]>
#halfrows = #attn.layout<reg = [[0, 1], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 2], [16, 0], [0, 0]], wave = [[0, 0]], grid = [1, 1]>

gpu.module @chip_without_exchanges attributes {attn.target = #attn.target<"gfx942">} {
// CHECK-LABEL: gpu.func @through_lds(
// CHECK-COUNT-2: rocdl.ds_bpermute
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK-COUNT-2: arith.select
// CHECK:         gpu.return
gpu.func @through_lds(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<32x4xf32, #from>
  %m = attn.convert_layout %t : tensor<32x4xf32, #from> -> tensor<32x4xf32, #turned>
  attn.store %m, %view : tensor<32x4xf32, #turned>, !attn.view<4 x f32>
  gpu.return
}

// Banks of a row that trade words: those that get one name it, and keep the
// others. 0x104 shifts left by 4 lanes, 0x114 right.
// CHECK-LABEL: gpu.func @between_banks(
// CHECK-DAG:     rocdl.update.dpp {{.*}}with 276, 15, 10, false
// CHECK-DAG:     rocdl.update.dpp {{.*}}with 260, 15, 5, false
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         gpu.return
gpu.func @between_banks(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<32x4xf32, #rowsof4>
  %m = attn.convert_layout %t : tensor<32x4xf32, #rowsof4> -> tensor<32x4xf32, #banks>
  attn.store %m, %view : tensor<32x4xf32, #banks>, !attn.view<4 x f32>
  gpu.return
}

// Half a row on is half a row back: 0x128 turns a row of 16 by 8 lanes, and two banks
// get their words.
// CHECK-LABEL: gpu.func @between_half_rows(
// CHECK-DAG:     rocdl.update.dpp {{.*}}with 296, 15, 12, false
// CHECK-DAG:     rocdl.update.dpp {{.*}}with 296, 15, 3, false
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         gpu.return
gpu.func @between_half_rows(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<32x4xf32, #rowsof4>
  %m = attn.convert_layout %t : tensor<32x4xf32, #rowsof4> -> tensor<32x4xf32, #halfrows>
  attn.store %m, %view : tensor<32x4xf32, #halfrows>, !attn.view<4 x f32>
  gpu.return
}

// Which register a lane takes may depend on its wave.
// CHECK-LABEL: gpu.func @by_wave(
// CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
// CHECK:         %[[BIT:.*]] = arith.andi %[[WAVE]], %c1_i32
// CHECK:         arith.cmpi ne, %[[BIT]], %c0_i32
// CHECK:         gpu.return
gpu.func @by_wave(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<32x4xf32, #from>
  %m = attn.convert_layout %t : tensor<32x4xf32, #from> -> tensor<32x4xf32, #bywave>
  attn.store %m, %view : tensor<32x4xf32, #bywave>, !attn.view<4 x f32>
  gpu.return
}
}
