// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// attn.scatter_add: one addition a register, or one of what lanes of a wave have
// added up, by the first of them.

// The result of a 16 x 16 instruction, two waves side by side: a lane has four
// rows of a column.
#sums = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [[0, 16]], grid = [1, 1]>
#repeated = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [[0, 0]], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 2, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
!tile = tensor<16x32xf32, #sums>
!index = tensor<16x32xi32, #sums>

gpu.module @cdna attributes {attn.target = #attn.target<"gfx942">} {

// CHECK-LABEL: gpu.func @elements(
// CHECK-NOT:     arith.addf
// CHECK-COUNT-4: rocdl.raw.ptr.buffer.atomic.fadd
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @elements(%base: !llvm.ptr<1>, %offset: i64, %size: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : !tile
  %index = attn.column_index : !index
  attn.scatter_add %tile, %base[%offset] size %size at %index : !tile, !index
  gpu.return
}

// Of two waves that hold the same one adds it.
// CHECK-LABEL: gpu.func @once(
// CHECK:         %[[WAVE:.*]] = arith.cmpi eq
// CHECK-COUNT-4: arith.select %[[WAVE]]
gpu.func @once(%base: !llvm.ptr<1>, %offset: i64, %size: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x16xf32, #repeated>
  %index = attn.row_index : tensor<16x16xi32, #repeated>
  attn.scatter_add %tile, %base[%offset] size %size at %index : tensor<16x16xf32, #repeated>, tensor<16x16xi32, #repeated>
  gpu.return
}

// Four registers, then lanes 16 and 32 apart; of 0 nothing is added.
// CHECK-LABEL: gpu.func @columns(
// CHECK-COUNT-5: arith.addf
// CHECK-NOT:     arith.addf
// CHECK:         arith.cmpf une
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @columns(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %x: f32) kernel attributes {attn.schedule = #schedule} {
  %tile = tensor.splat %x : !tile
  %index = attn.column_index : !index
  attn.scatter_add %tile, %base[%offset] size %size at %index by_column : !tile, !index
  gpu.return
}

// Each row over 16 lanes: of a wave four additions.
// CHECK-LABEL: gpu.func @rows(
// CHECK-COUNT-4: rocdl.raw.ptr.buffer.atomic.fadd
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @rows(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %x: f32) kernel attributes {attn.schedule = #schedule} {
  %tile = tensor.splat %x : !tile
  %index = attn.row_index : !index
  attn.scatter_add %tile, %base[%offset] size %size at %index by_row : !tile, !index
  gpu.return
}

// Registers, then 64 lanes: of a wave one addition.
// CHECK-LABEL: gpu.func @whole(
// CHECK-COUNT-9: arith.addf
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @whole(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %x: f32) kernel attributes {attn.schedule = #schedule} {
  %tile = tensor.splat %x : !tile
  attn.scatter_add %tile, %base[%offset] size %size : !tile
  gpu.return
}

}
