// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// Views, loads, stores and LDS tiles.

// 64 rows over two waves, three units of 16 columns.
#rows = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [[32, 0]], grid = [1, 3]>
// The same row in both halves of a wave.
#repeated = #attn.layout<reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 0]], wave = [[32, 0]], grid = [1, 1]>
// Two runs of 4 columns, registers in another order.
#runs = #attn.layout<reg = [[8, 0], [0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [16, 0], [0, 4], [0, 8]], wave = [[0, 0]], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
#tight = #attn.schedule<block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>

gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {

// The resource ends after the last row's columns and is empty without rows; no
// more than 256 rows are in it.
// CHECK-LABEL: gpu.func @view(
// CHECK-SAME:    %[[BASE:[^:]*]]: !llvm.ptr<1>, %[[OFFSET:[^:]*]]: i64, %[[ROWS:[^:]*]]: i32, %[[STRIDE:[^:]*]]: i32)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[FLAGS:.*]] = arith.constant 159744 : i32
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 80 : i32
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 256 : i32
// CHECK:         %[[PITCH:.*]] = arith.muli %[[STRIDE]], %{{.*}}
// CHECK:         %[[COUNT:.*]] = arith.minsi %[[ROWS]], %[[MOST]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[COUNT]]
// CHECK:         %[[START:.*]] = arith.muli %[[LAST]], %[[PITCH]]
// CHECK:         %[[END:.*]] = arith.addi %[[START]], %[[BYTES]]
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[ROWS]], %[[ZERO]]
// CHECK:         %[[SIZE:.*]] = arith.select %[[SOME]], %[[END]], %[[ZERO]]
// CHECK:         %[[SIZE64:.*]] = arith.extui %[[SIZE]] : i32 to i64
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[BASE]][%[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
// CHECK:         %[[RESOURCE:.*]] = rocdl.make.buffer.rsrc %[[AT]], %{{.*}}, %[[SIZE64]], %[[FLAGS]] : <1> to <8>
// Of the last unit only columns 32 to 39 exist, in lanes of the first half;
// the others' offset is out of every bound.
// CHECK:         rocdl.raw.ptr.buffer.load %[[RESOURCE]], %[[FIRST:.*]], %[[ZERO]], %[[ZERO]] : vector<4xi32>
// CHECK:         rocdl.raw.ptr.buffer.load %[[RESOURCE]], %{{.*}}, %[[ZERO]], %[[ZERO]] : vector<4xi32>
// CHECK:         %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %c8_i32
// CHECK:         %[[GUARDED:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c-2147483648_i32
// CHECK:         rocdl.raw.ptr.buffer.load %[[RESOURCE]], %[[GUARDED]], %[[ZERO]], %[[ZERO]] : vector<4xi32>
// CHECK-NOT:     rocdl.raw.ptr.buffer.load
// CHECK:         rocdl.raw.ptr.buffer.store %{{.*}}, %[[RESOURCE]], %[[FIRST]]
// CHECK:         rocdl.raw.ptr.buffer.store
// CHECK:         rocdl.raw.ptr.buffer.store %{{.*}}, %[[RESOURCE]], %[[GUARDED]]
// CHECK-NOT:     rocdl.raw.ptr.buffer.store
gpu.func @view(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<40 x bf16>
  %tile = attn.load %view : !attn.view<40 x bf16> -> tensor<64x48xbf16, #rows>
  attn.store %tile, %view : tensor<64x48xbf16, #rows>, !attn.view<40 x bf16>
  gpu.return
}

// A unit outside the view in every lane is neither read nor written; a view as
// wide as the tile needs no guard.
// CHECK-LABEL: gpu.func @outside(
// CHECK-COUNT-2: rocdl.raw.ptr.buffer.load
// CHECK-NOT:     rocdl.raw.ptr.buffer.load
// CHECK-COUNT-2: rocdl.raw.ptr.buffer.store
// CHECK-NOT:     rocdl.raw.ptr.buffer.store
// CHECK:         gpu.return
gpu.func @outside(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x bf16>
  %tile = attn.load %view : !attn.view<32 x bf16> -> tensor<64x48xbf16, #rows>
  attn.store %tile, %view : tensor<64x48xbf16, #rows>, !attn.view<32 x bf16>
  gpu.return
}

// CHECK-LABEL: gpu.func @whole(
// CHECK-NOT:     arith.cmpi slt
// CHECK:         gpu.return
gpu.func @whole(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<48 x bf16>
  %tile = attn.load %view : !attn.view<48 x bf16> -> tensor<64x48xbf16, #rows>
  attn.store %tile, %view : tensor<64x48xbf16, #rows>, !attn.view<48 x bf16>
  gpu.return
}

// Of lanes that hold the same element the first writes it: lane bit 5 clear.
// CHECK-LABEL: gpu.func @once(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[C63:.*]] = arith.constant 63 : i32
// CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %[[C63]]
// CHECK:         rocdl.raw.ptr.buffer.load %{{.*}}, %[[EVERYONE:.*]], %[[ZERO]], %[[ZERO]] : i32
// CHECK:         %[[HALF:.*]] = arith.andi %[[LANE]], %[[C32]]
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[HALF]], %[[ZERO]]
// CHECK:         %[[WHERE:.*]] = arith.select %[[FIRST]], %[[EVERYONE]], %c-2147483648_i32
// CHECK:         rocdl.raw.ptr.buffer.store %{{.*}}, %{{.*}}, %[[WHERE]], %[[ZERO]], %[[ZERO]] : i32
gpu.func @once(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<1 x f32>
  %tile = attn.load %view : !attn.view<1 x f32> -> tensor<64x1xf32, #repeated>
  attn.store %tile, %view : tensor<64x1xf32, #repeated>, !attn.view<1 x f32>
  gpu.return
}

// Where occupancy leaves few registers, what the wave stores is worked out from
// its number again.
// CHECK-LABEL: gpu.func @tight(
// CHECK:         rocdl.raw.ptr.buffer.load
// CHECK:         llvm.inline_asm has_side_effects "", "=s,0" %{{.*}} : (i32) -> i32
// CHECK:         rocdl.raw.ptr.buffer.store
gpu.func @tight(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #tight} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<48 x bf16>
  %tile = attn.load %view : !attn.view<48 x bf16> -> tensor<64x48xbf16, #rows>
  attn.store %tile, %view : tensor<64x48xbf16, #rows>, !attn.view<48 x bf16>
  gpu.return
}

// Rows before a first one are zeros: their offset is out of every bound.
// CHECK-LABEL: gpu.func @from(
// CHECK-SAME:    i32, %[[FIRST:[^:]*]]: i32) kernel
// CHECK:         %[[BEYOND:.*]] = arith.subi %{{.*}}, %[[FIRST]]
// CHECK:         %[[SIGN:.*]] = arith.andi %[[BEYOND]], %c-2147483648_i32
// CHECK:         %[[AT:.*]] = arith.ori %{{.*}}, %[[SIGN]]
// CHECK:         rocdl.raw.ptr.buffer.load %{{.*}}, %[[AT]]
gpu.func @from(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32, %first: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<48 x bf16>
  %later = attn.view %base[%offset] rows %rows stride %stride from %first : !attn.view<48 x bf16>
  %tile = attn.load %later : !attn.view<48 x bf16> -> tensor<64x48xbf16, #rows>
  attn.store %tile, %view : tensor<64x48xbf16, #rows>, !attn.view<48 x bf16>
  gpu.return
}

// Accesses follow runs of columns wherever their registers are. An LDS tile is
// a global of its bytes.
// CHECK:         llvm.mlir.global internal @runs_lds0() {addr_space = 3 : i32, alignment = 16 : i64{{.*}}} : !llvm.array<1024 x i8>
// CHECK-LABEL: gpu.func @runs(
// CHECK:         %[[LDS:.*]] = llvm.mlir.addressof @runs_lds0 : !llvm.ptr<3>
// CHECK-COUNT-2: rocdl.raw.ptr.buffer.load {{.*}} : vector<2xi32>
// CHECK-NOT:     rocdl.raw.ptr.buffer.load
// CHECK:         %[[LANE:.*]] = llvm.getelementptr inbounds %[[LDS]][%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK:         llvm.store %{{.*}}, %[[LANE]] {alignment = 8 : i64} : vector<4xf16>, !llvm.ptr<3>
// Row 8 is 8 * 32 bytes further: a constant, for the instruction's offset.
// CHECK:         %[[ROW:.*]] = llvm.getelementptr inbounds %[[LANE]][256]
// CHECK:         llvm.store %{{.*}}, %[[ROW]] {alignment = 8 : i64} : vector<4xf16>, !llvm.ptr<3>
// CHECK:         llvm.load %[[LANE]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<4xf16>
// CHECK:         llvm.load %[[ROW]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<4xf16>
gpu.func @runs(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<16 x f16>
  %lds = attn.alloc_lds : !attn.lds<32 x 16 x f16>
  %tile = attn.load %view : !attn.view<16 x f16> -> tensor<32x16xf16, #runs>
  attn.store_lds %tile, %lds : tensor<32x16xf16, #runs>, !attn.lds<32 x 16 x f16>
  %again = attn.load_lds %lds : !attn.lds<32 x 16 x f16> -> tensor<32x16xf16, #runs>
  attn.store %again, %view : tensor<32x16xf16, #runs>, !attn.view<16 x f16>
  gpu.return
}

// A swizzle turns the lane's column by its row: (row & 3) * 16 bytes, and what
// a register adds inside the swizzled bits is XORed, not added.
// CHECK-LABEL: gpu.func @swizzled(
// CHECK-DAG:     %[[C3:.*]] = arith.constant 3 : i32
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : i32
// CHECK:         %[[TURN:.*]] = arith.andi %{{.*}}, %[[C3]]
// CHECK:         %[[TURNED:.*]] = arith.muli %[[TURN]], %[[C16]]
// CHECK:         %[[COLUMN:.*]] = arith.xori %{{.*}}, %[[TURNED]]
// CHECK:         %[[OTHER:.*]] = arith.xori %[[COLUMN]], %c32_i32
gpu.func @swizzled(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<32 x f16>
  %chunks = attn.alloc_lds : !attn.lds<64 x 32 x f16, <chunks = 4, shifts = [0]>>
  %tile = attn.load_lds %chunks : !attn.lds<64 x 32 x f16, <chunks = 4, shifts = [0]>> -> tensor<64x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [[32, 0]], grid = [1, 2]>>
  attn.store %tile, %view : tensor<64x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [[32, 0]], grid = [1, 2]>>, !attn.view<32 x f16>
  gpu.return
}
// The same bytes of elements of other sizes: 16 a lane, turned by as much.
// CHECK-LABEL: gpu.func @swizzled_bytes(
// CHECK:         %[[TURN:.*]] = arith.andi %{{.*}}, %c3_i32
// CHECK:         arith.muli %[[TURN]], %c16_i32
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<16xi8>
gpu.func @swizzled_bytes(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<64 x i8>
  %chunks = attn.alloc_lds : !attn.lds<64 x 64 x i8, <chunks = 4, shifts = [0]>>
  %tile = attn.load_lds %chunks : !attn.lds<64 x 64 x i8, <chunks = 4, shifts = [0]>> -> tensor<64x64xi8, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 16]], wave = [[32, 0]], grid = [1, 2]>>
  attn.store %tile, %view : tensor<64x64xi8, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 16]], wave = [[32, 0]], grid = [1, 2]>>, !attn.view<64 x i8>
  gpu.return
}

// CHECK-LABEL: gpu.func @swizzled_words(
// CHECK:         %[[TURN:.*]] = arith.andi %{{.*}}, %c3_i32
// CHECK:         arith.muli %[[TURN]], %c16_i32
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
gpu.func @swizzled_words(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %rows stride %stride : !attn.view<16 x f32>
  %chunks = attn.alloc_lds : !attn.lds<64 x 16 x f32, <chunks = 4, shifts = [0]>>
  %tile = attn.load_lds %chunks : !attn.lds<64 x 16 x f32, <chunks = 4, shifts = [0]>> -> tensor<64x16xf32, #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [[32, 0]], grid = [1, 2]>>
  attn.store %tile, %view : tensor<64x16xf32, #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [[32, 0]], grid = [1, 2]>>, !attn.view<16 x f32>
  gpu.return
}
}
