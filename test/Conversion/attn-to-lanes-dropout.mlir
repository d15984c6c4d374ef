// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// A call of the generator serves four scores, in whatever lanes they are: it has
// 19 products (two in each round but the first, of whose factors one is 0).

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
// 32 keys by 32 queries: a lane has four keys in a row.
#acc = #attn.layout<reg = [[1, 0], [2, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
// 16 keys by 16 queries of wave32: two lanes have four keys in a row.
#half = #attn.layout<reg = [[2, 0], [4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], wave = [], grid = [1, 1]>

gpu.module @cdna attributes {attn.target = #attn.target<"gfx942">} {

// CHECK-LABEL: gpu.func @keys_in_registers(
// CHECK-COUNT-76: arith.mului_extended
// CHECK-NOT:     arith.mului_extended
// CHECK-COUNT-16: arith.cmpi sge
gpu.func @keys_in_registers(%w: f32, %seed: i64, %counter: i64, %groups: i32, %key: i32, %t: i32, %s: i1, %base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %p = tensor.splat %w : tensor<32x32xf32, #acc>
  %d = attn.dropout %p seed %seed counter %counter groups %groups key %key threshold %t swaps %s : tensor<32x32xf32, #acc>
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f32>
  attn.store %d, %view : tensor<32x32xf32, #acc>, !attn.view<32 x f32>
  gpu.return
}

// Four lanes have four keys in a row, and four queries each: they trade.
// CHECK-LABEL: gpu.func @keys_in_lanes(
// CHECK:         rocdl.update.dpp
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK-COUNT-16: llvm.call_intrinsic "llvm.ssub.sat"
gpu.func @keys_in_lanes(%w: f32, %seed: i64, %counter: i64, %groups: i32, %key: i32, %t: i32, %s: i1, %base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %p = tensor.splat %w : tensor<32x32xf32, #acc>
  %d = attn.dropout %p seed %seed counter %counter groups %groups key %key threshold %t swaps %s queries_are_rows negates : tensor<32x32xf32, #acc>
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f32>
  attn.store %d, %view : tensor<32x32xf32, #acc>, !attn.view<32 x f32>
  gpu.return
}
}

gpu.module @rdna attributes {attn.target = #attn.target<"gfx1100">} {
// CHECK-LABEL: gpu.func @keys_in_both(
// CHECK-COUNT-38: arith.mului_extended
// CHECK-NOT:     arith.mului_extended
gpu.func @keys_in_both(%w: f32, %seed: i64, %counter: i64, %groups: i32, %key: i32, %t: i32, %s: i1, %base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %p = tensor.splat %w : tensor<16x16xf32, #half>
  %d = attn.dropout %p seed %seed counter %counter groups %groups key %key threshold %t swaps %s : tensor<16x16xf32, #half>
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<16 x f32>
  attn.store %d, %view : tensor<16x16xf32, #half>, !attn.view<16 x f32>
  gpu.return
}
}
