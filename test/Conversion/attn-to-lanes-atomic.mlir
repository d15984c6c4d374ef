// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// attn.atomic_add: one addition a register, of neighbouring columns in
// neighbouring lanes.

// The result of a 16 x 16 instruction, two waves side by side.
#sums = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [[0, 16]], grid = [1, 1]>
// Both waves hold all.
#repeated = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [[0, 0]], grid = [1, 1]>
#wave32 = #attn.layout<reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], wave = [[0, 16]], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 2, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>

gpu.module @cdna attributes {attn.target = #attn.target<"gfx942">} {

// Rows are dense, so that their distance is a constant, and the instruction's:
// what it is added to does not leave the loop.
// CHECK-LABEL: gpu.func @dense(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[ROW:.*]] = arith.constant 128 : i32
// CHECK:         scf.for
// CHECK:           %[[FIRST:.*]] = llvm.inline_asm has_side_effects "", "=v,0"
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %[[RESOURCE:.*]], %[[FIRST]], %[[ZERO]], %[[ZERO]] : f32
// CHECK:         %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[ROW]]
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %[[RESOURCE]], %[[SECOND]], %[[ZERO]], %[[ZERO]] : f32
// CHECK-COUNT-2: rocdl.raw.ptr.buffer.atomic.fadd
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @dense(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %n: index) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x32xf32, #sums>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %stride = arith.constant 32 : i32
  scf.for %i = %zero to %n step %one {
    %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x f32>
    attn.atomic_add %tile, %view : tensor<16x32xf32, #sums>, !attn.view<32 x f32>
  }
  gpu.return
}

// Lanes past the view's columns add out of bounds.
// CHECK-LABEL: gpu.func @narrow(
// CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %c24_i32
// CHECK:         %[[AT:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-2147483648_i32
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %[[AT]]
gpu.func @narrow(%base: !llvm.ptr<1>, %offset: i64, %rows: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x32xf32, #sums>
  %stride = arith.constant 32 : i32
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<24 x f32>
  attn.atomic_add %tile, %view : tensor<16x32xf32, #sums>, !attn.view<24 x f32>
  gpu.return
}

// What several waves hold is added by one.
// CHECK-LABEL: gpu.func @once(
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq
// CHECK:         %[[AT:.*]] = arith.select %[[FIRST]], %{{.*}}, %c-2147483648_i32
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %[[AT]]
gpu.func @once(%base: !llvm.ptr<1>, %offset: i64, %rows: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x16xf32, #repeated>
  %stride = arith.constant 32 : i32
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<16 x f32>
  attn.atomic_add %tile, %view : tensor<16x16xf32, #repeated>, !attn.view<16 x f32>
  gpu.return
}

// Two rows of 16 bits an addition: their distance is half of that of rows.
// CHECK-LABEL: gpu.func @pairs(
// CHECK:         %[[ROW:.*]] = arith.constant 128 : i32
// CHECK:         %[[AT:.*]] = llvm.inline_asm has_side_effects "", "=v,0"
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %[[AT]], %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK:         %[[NEXT:.*]] = arith.addi %[[AT]], %[[ROW]]
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
gpu.func @pairs(%base: !llvm.ptr<1>, %offset: i64, %rows: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x32xf16, #sums>
  %stride = arith.constant 32 : i32
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x i32>
  attn.atomic_add %tile, %view : tensor<16x32xf16, #sums>, !attn.view<32 x i32>
  gpu.return
}

// This chip adds pairs of bf16 by their address only.
// CHECK-LABEL: gpu.func @by_address(
// CHECK-NOT:     rocdl.raw.ptr.buffer.atomic.fadd
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic {rocdl.no_fine_grained_memory, rocdl.no_remote_memory} : !llvm.ptr<1>, vector<2xbf16>
// CHECK:         llvm.getelementptr inbounds %{{.*}}[128]
// CHECK:         llvm.atomicrmw fadd {{.*}} vector<2xbf16>
// CHECK-NOT:     llvm.atomicrmw
gpu.func @by_address(%base: !llvm.ptr<1>, %offset: i64, %rows: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x32xbf16, #sums>
  %stride = arith.constant 32 : i32
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x i32>
  attn.atomic_add %tile, %view : tensor<16x32xbf16, #sums>, !attn.view<32 x i32>
  gpu.return
}
}

// Where instructions name a scope, it is the device's.
gpu.module @rdna4 attributes {attn.target = #attn.target<"gfx1201">} {
// CHECK-LABEL: gpu.func @scope(
// CHECK:         rocdl.raw.ptr.buffer.atomic.fadd %{{.*}}, %{{.*}}, %{{.*}}, %c0_i32, %c16_i32 : f32
gpu.func @scope(%base: !llvm.ptr<1>, %offset: i64, %rows: i32) kernel attributes {attn.schedule = #schedule} {
  %tile = arith.constant dense<1.0> : tensor<16x32xf32, #wave32>
  %stride = arith.constant 32 : i32
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x f32>
  attn.atomic_add %tile, %view : tensor<16x32xf32, #wave32>, !attn.view<32 x f32>
  gpu.return
}
}
