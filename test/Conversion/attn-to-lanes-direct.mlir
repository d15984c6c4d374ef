// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// Copies to LDS past the registers, and reads that transpose.

#copy = #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [[8, 0], [16, 0]], grid = [1, 1]>
// Four rows in registers, 32 columns and two groups of rows over lanes.
#columns = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [[0, 0], [0, 0]], grid = [8, 2]>
#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 2, waves_per_simd = 2, rescale_threshold = 0, direct_copy = 1>
!lds = !attn.lds<64 x 64 x bf16, #attn.swizzle<chunks = 8, shifts = [-1]>>

gpu.module @module attributes {attn.target = #attn.target<"gfx950">} {

// CHECK: llvm.mlir.global internal @copy_lds0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<16384 x i8>

// A lane fetches the chunk whose place it fills: the row's swizzle, undone.
// Columns from 40 on are out of bounds, whatever rows are added.
// CHECK-LABEL: gpu.func @copy(
// CHECK-DAG:     %[[SIXTEEN:.*]] = arith.constant 16 : i32
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 80 : i32
// CHECK-DAG:     %[[OUT:.*]] = arith.constant -2147483648 : i32
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK:         %[[WAVE:.*]] = rocdl.readfirstlane
// CHECK:         %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc
// The buffer, then the wave's part of it; one access further is 32 rows of 128
// bytes in LDS.
// CHECK:         %[[BUFFER:.*]] = llvm.getelementptr inbounds %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr inbounds %[[BUFFER]][%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK:         %[[SWIZZLED:.*]] = arith.xori
// CHECK:         %[[AT:.*]] = arith.addi %{{.*}}, %[[SWIZZLED]]
// CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %[[SWIZZLED]], %[[COLUMNS]]
// CHECK:         %[[FIRST:.*]] = arith.select %[[INSIDE]], %[[AT]], %[[OUT]]
// CHECK:         rocdl.raw.ptr.buffer.load.lds %[[RESOURCE]], %{{.*}}, %[[SIXTEEN]], %[[FIRST]], %[[ZERO]], %[[ZERO]], %[[ZERO]] {alias_scopes = [#[[SCOPE:.*]]]}
// CHECK:         %[[DOWN:.*]] = arith.muli %{{.*}}, %[[ROWS]]
// CHECK:         %[[SECOND:.*]] = arith.addi %[[FIRST]], %[[DOWN]]
// CHECK:         %[[FURTHER:.*]] = llvm.getelementptr inbounds %[[PLACE]][4096]
// CHECK:         rocdl.raw.ptr.buffer.load.lds %[[RESOURCE]], %[[FURTHER]], %[[SIXTEEN]], %[[SECOND]], %[[ZERO]], %[[ZERO]], %[[ZERO]] {alias_scopes = [#[[SCOPE]]]}
// CHECK-NOT:     rocdl.raw.ptr.buffer.load.lds
// Reads of LDS say that they do not touch what is on its way.
// CHECK-COUNT-16: rocdl.ds.read.tr16.b64 %{{.*}} {noalias_scopes = [#[[SCOPE]]]} : <3> -> vector<4xbf16>
// CHECK-NOT:     rocdl.ds.read.tr16.b64
// CHECK-NOT:     llvm.load
// CHECK:         gpu.return
gpu.func @copy(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32, %number: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds buffers 2 : !lds
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<40 x bf16>
  %buffer = attn.lds_buffer %lds[%number] : !lds
  attn.copy_lds %view, %buffer layout #copy : !attn.view<40 x bf16>, !lds
  amdgpu.memory_counter_wait load(0)
  amdgpu.lds_barrier
  %tile = attn.load_lds %buffer : !lds -> tensor<64x64xbf16, #columns>
  attn.store %tile, %view : tensor<64x64xbf16, #columns>, !attn.view<40 x bf16>
  gpu.return
}

}
