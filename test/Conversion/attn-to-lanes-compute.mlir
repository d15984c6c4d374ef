// REQUIRES: first-argument-first
// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes,canonicalize,cse))' | FileCheck %s

// Products, reductions, masks and conversions of one wave.

#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [2, 1]>
#acct = #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>
#row = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [], grid = [1, 1]>
// Rows in lanes that are 4, 8 and both apart.
#apart = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [0, 4], [0, 8]], wave = [], grid = [1, 1]>
#apartt = #attn.layout<reg = [], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [4, 0], [8, 0]], wave = [], grid = [1, 1]>
#once = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 0], [0, 0], [0, 4], [0, 8]], wave = [], grid = [1, 1]>
#oncet = #attn.layout<reg = [], lane = [[1, 0], [2, 0], [0, 0], [0, 0], [4, 0], [8, 0]], wave = [], grid = [1, 1]>
#groups = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0]], wave = [], grid = [1, 1]>
#a = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = [], grid = [2, 2]>
#b = #attn.layout<reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [2, 1]>
// Four elements a lane, two of them pairs along a column.
#small = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#smallt = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
// The same elements in the same lanes, registers exchanged.
#exchanged = #attn.layout<reg = [[2, 0], [1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#exchangedt = #attn.layout<reg = [[0, 2], [0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>

gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {

// The contraction is outermost, so that neighbours write other accumulators:
// unit 0 of A's columns, first half, for both units of rows; then its second
// half; then unit 1.
// CHECK-LABEL: gpu.func @dot(
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<8xf16>
// CHECK:         %[[A00:.*]] = vector.shuffle %[[A0:.*]], %[[A0]] [0, 1, 2, 3]
// CHECK:         %[[B00:.*]] = vector.shuffle %[[B0:.*]], %[[B0]] [0, 1, 2, 3]
// CHECK:         %[[D0:.*]] = attn.mma %[[A00]], %[[B00]], %[[C:.*]] inst<mfma_32x32x8> : vector<4xf16>, vector<4xf16>, vector<16xf32>
// CHECK:         %[[A10:.*]] = vector.shuffle %[[A1:.*]], %[[A1]] [0, 1, 2, 3]
// CHECK:         %[[D1:.*]] = attn.mma %[[A10]], %[[B00]], %[[C]]
// CHECK:         %[[A01:.*]] = vector.shuffle %[[A0]], %[[A0]] [4, 5, 6, 7]
// CHECK:         %[[B01:.*]] = vector.shuffle %[[B0]], %[[B0]] [4, 5, 6, 7]
// CHECK:         %[[D2:.*]] = attn.mma %[[A01]], %[[B01]], %[[D0]]
// CHECK:         %[[A11:.*]] = vector.shuffle %[[A1]], %[[A1]] [4, 5, 6, 7]
// CHECK:         %[[D3:.*]] = attn.mma %[[A11]], %[[B01]], %[[D1]]
// CHECK:         attn.mma %{{.*}}, %{{.*}}, %[[D2]]
// CHECK:         attn.mma %{{.*}}, %{{.*}}, %[[D3]]
// CHECK:         attn.mma
// CHECK:         attn.mma
// CHECK-NOT:     attn.mma
gpu.func @dot(%out: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<64 x 32 x f16>
  %a = attn.load_lds %lds : !attn.lds<64 x 32 x f16> -> tensor<64x32xf16, #a>
  %qlds = attn.alloc_lds : !attn.lds<32 x 32 x f16>
  %q = attn.load_lds %qlds : !attn.lds<32 x 32 x f16> -> tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %b = attn.transpose %q : tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #acc>
  %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<64x32xf16, #a>, tensor<32x32xf16, #b>, tensor<64x32xf32, #acc>
  %t = attn.transpose %d : tensor<64x32xf32, #acc>
  %view = attn.view %out[%offset] rows %n stride %n : !attn.view<64 x f32>
  attn.store %t, %view : tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>, !attn.view<64 x f32>
  gpu.return
}

// Where all rows of a sum are the same, what the first unit of rows begins at
// serves all.
// CHECK-LABEL: gpu.func @rows_alike(
// CHECK:         %[[ROW:.*]] = attn.mma %{{.*}}, %{{.*}}, %[[C:.*]] inst<mfma_32x32x8> : vector<4xf16>, vector<4xf16>, vector<16xf32>
// CHECK:         attn.mma %{{.*}}, %{{.*}}, %[[C]] inst
// CHECK:         attn.mma %{{.*}}, %{{.*}}, %[[ROW]] inst
// CHECK-LABEL: gpu.func @rows_of_their_own(
// CHECK:         attn.mma %{{.*}}, %{{.*}}, %[[C:.*]] inst<mfma_32x32x8>
// CHECK-NOT:     attn.mma %{{.*}}, %{{.*}}, %[[C]] inst
// CHECK:         gpu.return
gpu.func @rows_alike(%out: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<64 x 32 x f16>
  %a = attn.load_lds %lds : !attn.lds<64 x 32 x f16> -> tensor<64x32xf16, #a>
  %qlds = attn.alloc_lds : !attn.lds<32 x 32 x f16>
  %q = attn.load_lds %qlds : !attn.lds<32 x 32 x f16> -> tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %b = attn.transpose %q : tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %view = attn.view %out[%offset] rows %n stride %n : !attn.view<64 x f32>
  %start = attn.load %view : !attn.view<64 x f32> -> tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %c = attn.transpose %start : tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> rows_alike : tensor<64x32xf16, #a>, tensor<32x32xf16, #b>, tensor<64x32xf32, #acc>
  %t = attn.transpose %d : tensor<64x32xf32, #acc>
  attn.store %t, %view : tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>, !attn.view<64 x f32>
  gpu.return
}

gpu.func @rows_of_their_own(%out: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %lds = attn.alloc_lds : !attn.lds<64 x 32 x f16>
  %a = attn.load_lds %lds : !attn.lds<64 x 32 x f16> -> tensor<64x32xf16, #a>
  %qlds = attn.alloc_lds : !attn.lds<32 x 32 x f16>
  %q = attn.load_lds %qlds : !attn.lds<32 x 32 x f16> -> tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %b = attn.transpose %q : tensor<32x32xf16, #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %view = attn.view %out[%offset] rows %n stride %n : !attn.view<64 x f32>
  %start = attn.load %view : !attn.view<64 x f32> -> tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %c = attn.transpose %start : tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> : tensor<64x32xf16, #a>, tensor<32x32xf16, #b>, tensor<64x32xf32, #acc>
  %t = attn.transpose %d : tensor<64x32xf32, #acc>
  attn.store %t, %view : tensor<32x64xf32, #attn.layout<reg = [[0, 1], [0, 2], [0, 4], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = [], grid = [1, 2]>>, !attn.view<64 x f32>
  gpu.return
}

// Inside the lane first; then with the lane whose bit 5 differs.
// CHECK-LABEL: gpu.func @reduce_max(
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[C63:.*]] = arith.constant 63 : i32
// CHECK:         %[[LANE:.*]] = arith.andi %{{.*}}, %[[C63]]
// CHECK-COUNT-3: arith.maxnumf
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[MINE:.*]] : f32 to i32
// CHECK:         %[[OTHER:.*]] = arith.xori %[[LANE]], %[[C32]]
// CHECK:         %[[ADDRESS:.*]] = arith.muli %[[OTHER]], %c4_i32
// CHECK:         %[[MOVED:.*]] = rocdl.ds_bpermute %[[ADDRESS]], %[[BITS]]
// CHECK:         %[[THEIRS:.*]] = arith.bitcast %[[MOVED]] : i32 to f32
// CHECK:         arith.maxnumf %[[MINE]], %[[THEIRS]]
// CHECK-NOT:     arith.maxnumf
// CHECK:         gpu.return
gpu.func @reduce_max(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %s = attn.transpose %t : tensor<32x8xf32, #smallt>
  %max = attn.reduce <max> %s : tensor<8x32xf32, #small> -> tensor<1x32xf32, #row>
  %r = attn.transpose %max : tensor<1x32xf32, #row>
  %rows = attn.view %base[%offset] rows %n stride %n : !attn.view<1 x f32>
  attn.store %r, %rows : tensor<32x1xf32, #attn.layout<reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 0]], wave = [], grid = [1, 1]>>, !attn.view<1 x f32>
  gpu.return
}

// Within rows of 16 lanes by DPP: 4 apart are mirrored halves (321) whose quads
// are turned (27), 8 apart half a row round (296).
// CHECK-LABEL: gpu.func @reduce_within_rows(
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         %[[MIRRORED:.*]] = rocdl.update.dpp {{.*}} with 321, 15, 15, true
// CHECK:         rocdl.update.dpp {{.*}}, %[[MIRRORED]] with 27, 15, 15, true
// CHECK:         arith.maxnumf
// CHECK:         rocdl.update.dpp {{.*}} with 296, 15, 15, true
// CHECK-NOT:     rocdl.update.dpp
// CHECK:         arith.maxnumf
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         gpu.return
gpu.func @reduce_within_rows(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<4 x f32>
  %t = attn.load %view : !attn.view<4 x f32> -> tensor<16x4xf32, #apartt>
  %s = attn.transpose %t : tensor<16x4xf32, #apartt>
  %max = attn.reduce <max> %s : tensor<4x16xf32, #apart> -> tensor<1x16xf32, #once>
  %r = attn.transpose %max : tensor<1x16xf32, #once>
  %rows = attn.view %base[%offset] rows %n stride %n : !attn.view<1 x f32>
  attn.store %r, %rows : tensor<16x1xf32, #oncet>, !attn.view<1 x f32>
  gpu.return
}

// To the groups that lanes form anyway: nothing moves. f16 in pairs, exactly.
// CHECK-LABEL: gpu.func @reduce_groups(
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         %[[LOW:.*]] = vector.shuffle %[[TILE:.*]], %[[TILE]] [0, 1]
// CHECK:         %[[SUM:.*]] = llvm.call_intrinsic "llvm.amdgcn.fdot2"(%[[LOW]], %[[ONES:.*]], %{{.*}}, %false)
// CHECK:         %[[HIGH:.*]] = vector.shuffle %[[TILE]], %[[TILE]] [2, 3]
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.fdot2"(%[[HIGH]], %[[ONES]], %[[SUM]], %false)
// CHECK-NOT:     rocdl.ds_bpermute
// CHECK:         gpu.return
gpu.func @reduce_groups(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
  %t = attn.load %view : !attn.view<8 x f16> -> tensor<32x8xf16, #smallt>
  %s = attn.transpose %t : tensor<32x8xf16, #smallt>
  %sum = attn.reduce <sum> %s : tensor<8x32xf16, #small> -> tensor<2x32xf32, #groups>
  %r = attn.transpose %sum : tensor<2x32xf32, #groups>
  %rows = attn.view %base[%offset] rows %n stride %n : !attn.view<2 x f32>
  attn.store %r, %rows : tensor<32x2xf32, #attn.layout<reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], wave = [], grid = [1, 1]>>, !attn.view<2 x f32>
  gpu.return
}

// Register r of a lane holds key 4 * (lane / 32) + r: compared with the limit
// less the lane's part, which leaves a constant a register.
// CHECK-LABEL: gpu.func @mask(
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[C3:.*]] = arith.constant 3 : i32
// CHECK:         %[[SEEN:.*]] = arith.cmpi sgt, %[[LIMIT:[0-9]+]], %[[C0]] : i32
// CHECK-NEXT:    arith.select %[[SEEN]], %{{.*}}, %[[INF]] : f32
// CHECK:         %[[LAST:.*]] = arith.cmpi sgt, %[[LIMIT]], %[[C3]]
// CHECK:         arith.select %[[LAST]], %{{.*}}, %[[INF]] : f32
gpu.func @mask(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %s = attn.transpose %t : tensor<32x8xf32, #smallt>
  %column = attn.column_index : tensor<1x32xi32, #row>
  %m = attn.mask %s to %column : tensor<1x32xi32, #row> : tensor<8x32xf32, #small>
  %r = attn.transpose %m : tensor<8x32xf32, #small>
  attn.store %r, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  gpu.return
}

// Element-wise ops go register by register, not in vectors that the backend
// would pair; a row is repeated in the registers of its column; exp2 and log2
// are the chip's.
// CHECK-LABEL: gpu.func @elementwise(
// CHECK-COUNT-4: math.fma {{.*}} : f32
// CHECK-COUNT-4: rocdl.exp2 {{.*}} f32
// CHECK-COUNT-4: rocdl.log {{.*}} f32
// CHECK-NOT:     vector<4xf32> {{.*}}fma
// CHECK:         gpu.return
gpu.func @elementwise(%base: !llvm.ptr<1>, %offset: i64, %n: i32, %factor: f32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %s = attn.transpose %t : tensor<32x8xf32, #smallt>
  %wide = tensor.splat %factor : tensor<8x32xf32, #small>
  %max = attn.reduce <max> %s : tensor<8x32xf32, #small> -> tensor<1x32xf32, #row>
  %low = attn.broadcast %max : tensor<1x32xf32, #row> -> tensor<8x32xf32, #small>
  %e = math.fma %s, %wide, %low : tensor<8x32xf32, #small>
  %p = math.exp2 %e : tensor<8x32xf32, #small>
  %l = math.log2 %p : tensor<8x32xf32, #small>
  %r = attn.transpose %l : tensor<8x32xf32, #small>
  attn.store %r, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  gpu.return
}

// Ties away from zero: half a place is added to two at once, a permute takes
// both upper halves. To nearest even is left to the backend.
// CHECK-LABEL: gpu.func @round_away(
// CHECK-DAG:     %[[HALVES:.*]] = arith.constant 140737488388096 : i64
// CHECK-DAG:     %[[UPPER:.*]] = arith.constant 117834498 : i32
// CHECK:         %[[SUM:.*]] = arith.addi %{{.*}}, %[[HALVES]] : i64
// CHECK:         %[[BOTH:.*]] = llvm.bitcast %[[SUM]] : i64 to vector<2xi32>
// CHECK:         %[[X:.*]] = vector.extract %[[BOTH]][0]
// CHECK:         %[[Y:.*]] = vector.extract %[[BOTH]][1]
// CHECK:         %[[P:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%[[Y]], %[[X]], %[[UPPER]])
// CHECK:         %[[Q:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"
// CHECK:         %[[WORDS:.*]] = vector.from_elements %[[P]], %[[Q]] : vector<2xi32>
// CHECK:         vector.bitcast %[[WORDS]] : vector<2xi32> to vector<4xbf16>
gpu.func @round_away(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %narrow = attn.round %t <nearest_away> : tensor<32x8xf32, #smallt> -> tensor<32x8xbf16, #smallt>
  %out = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x bf16>
  attn.store %narrow, %out : tensor<32x8xbf16, #smallt>, !attn.view<8 x bf16>
  gpu.return
}

// CHECK-LABEL: gpu.func @round_even(
// CHECK-NOT:     llvm.amdgcn.perm
// CHECK:         arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
gpu.func @round_even(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %narrow = attn.round %t <nearest_even> : tensor<32x8xf32, #smallt> -> tensor<32x8xf16, #smallt>
  %out = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
  attn.store %narrow, %out : tensor<32x8xf16, #smallt>, !attn.view<8 x f16>
  gpu.return
}

// Two signs a word.
// CHECK-LABEL: gpu.func @negate_if(
// CHECK-SAME:    %[[FLAG:[^:]*]]: i1)
// CHECK-DAG:     %[[SIGNS:.*]] = arith.constant -2147450880 : i32
// CHECK:         %[[FLIP:.*]] = arith.select %[[FLAG]], %[[SIGNS]], %{{.*}} : i32
// CHECK:         %[[WIDE:.*]] = vector.broadcast %[[FLIP]] : i32 to vector<2xi32>
// CHECK:         arith.xori %{{.*}}, %[[WIDE]] : vector<2xi32>
gpu.func @negate_if(%base: !llvm.ptr<1>, %offset: i64, %n: i32, %flag: i1) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
  %t = attn.load %view : !attn.view<8 x f16> -> tensor<32x8xf16, #smallt>
  %m = attn.negate_if %t, %flag : tensor<32x8xf16, #smallt>
  attn.store %m, %view : tensor<32x8xf16, #smallt>, !attn.view<8 x f16>
  gpu.return
}

// A product of zeros for each fragment.
// CHECK-LABEL: gpu.func @to_accumulators(
// CHECK-DAG:     %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<4xf16>
// CHECK-COUNT-2: attn.mma %[[ZEROS]], %[[ZEROS]], %{{.*}} inst<mfma_32x32x8> : vector<4xf16>, vector<4xf16>, vector<16xf32>
// CHECK-NOT:     attn.mma
gpu.func @to_accumulators(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f32>
  %turned = attn.load %view : !attn.view<64 x f32> -> tensor<32x64xf32, #acct>
  %t = attn.transpose %turned : tensor<32x64xf32, #acct>
  %kept = attn.to_accumulators %t inst<mfma_32x32x8> factor f16 : tensor<64x32xf32, #acc>
  %back = attn.transpose %kept : tensor<64x32xf32, #acc>
  attn.store %back, %view : tensor<32x64xf32, #acct>, !attn.view<64 x f32>
  gpu.return
}

// What ties a value to vector registers and is no instruction.
// CHECK-LABEL: gpu.func @to_vectors(
// CHECK-COUNT-4: llvm.inline_asm "", "=v,0" %{{.*}} : (f32) -> f32
// CHECK-NOT:     "=v,0"
gpu.func @to_vectors(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %v = attn.to_vectors %t : tensor<32x8xf32, #smallt>
  attn.store %v, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  gpu.return
}

// The same, and stays where it is: a fragment of f32 at once, others by words.
// CHECK-LABEL: gpu.func @pin(
// CHECK:         llvm.inline_asm has_side_effects "", "=v,0" %{{.*}} : (vector<4xf32>) -> vector<4xf32>
// CHECK-COUNT-2: llvm.inline_asm has_side_effects "", "=v,0" %{{.*}} : (i32) -> i32
// CHECK-NOT:     "=v,0"
gpu.func @pin(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %v = attn.pin %t : tensor<32x8xf32, #smallt>
  attn.store %v, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  %narrow = attn.round %v <nearest_even> : tensor<32x8xf32, #smallt> -> tensor<32x8xf16, #smallt>
  %kept = attn.pin %narrow : tensor<32x8xf16, #smallt>
  %narrowview = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
  attn.store %kept, %narrowview : tensor<32x8xf16, #smallt>, !attn.view<8 x f16>
  gpu.return
}

// A median that becomes the clamp of an instruction, under the mode that lets
// NaNs through: hwreg(HW_REG_MODE, 8, 1).
// CHECK-LABEL: gpu.func @saturate(
// CHECK-DAG:     %[[MODE:.*]] = arith.constant 513 : i32
// CHECK-DAG:     %[[CLEAR:.*]] = arith.constant 0 : i32
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.s.setreg"(%[[MODE]], %[[CLEAR]])
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.amdgcn.fmed3"(%{{.*}}, %{{.*}}, %{{.*}})
gpu.func @saturate(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %v = attn.saturate %t : tensor<32x8xf32, #smallt>
  attn.store %v, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  gpu.return
}

// Registers are combined, then the lanes of the wave asked.
// CHECK-LABEL: gpu.func @wave_any(
// CHECK-COUNT-3: arith.ori
// CHECK:         %[[BALLOT:.*]] = rocdl.ballot %{{.*}} : i64
// CHECK:         %[[ANY:.*]] = arith.cmpi ne, %[[BALLOT]], %c0_i64
// CHECK:         scf.if %[[ANY]]
gpu.func @wave_any(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %zero = arith.constant dense<0.0> : tensor<32x8xf32, #smallt>
  %more = arith.cmpf ogt, %t, %zero : tensor<32x8xf32, #smallt>
  %any = attn.wave_any %more : tensor<32x8xi1, #smallt>
  scf.if %any {
    attn.store %zero, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
  }
  gpu.return
}

// A conversion inside the lane renames registers.
// CHECK-LABEL: gpu.func @convert_registers(
// CHECK:         %[[FROM:.*]] = llvm.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
// CHECK-NEXT:    vector.extract %[[FROM]][0]
// CHECK-NEXT:    vector.extract %[[FROM]][2]
// CHECK-NEXT:    vector.extract %[[FROM]][1]
// CHECK-NEXT:    vector.extract %[[FROM]][3]
// CHECK:         %[[SUM:.*]] = vector.from_elements
// A store takes them in the order of columns again.
// CHECK:         vector.shuffle %[[SUM]], %[[SUM]] [0, 2, 1, 3]
gpu.func @convert_registers(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
  %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
  %m = attn.convert_layout %t : tensor<32x8xf32, #smallt> -> tensor<32x8xf32, #exchangedt>
  %one = arith.constant dense<1.0> : tensor<32x8xf32, #exchangedt>
  %s = arith.addf %m, %one : tensor<32x8xf32, #exchangedt>
  attn.store %s, %view : tensor<32x8xf32, #exchangedt>, !attn.view<8 x f32>
  gpu.return
}

// The instruction is one on f32; other types stay with math, lane by lane.
// CHECK-LABEL: gpu.func @exp2_f16(
// CHECK-COUNT-4: math.exp2 {{.*}} : f16
// CHECK-NOT:     rocdl.exp2
gpu.func @exp2_f16(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
  %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
  %t = attn.load %view : !attn.view<8 x f16> -> tensor<32x8xf16, #smallt>
  %e = math.exp2 %t : tensor<32x8xf16, #smallt>
  attn.store %e, %view : tensor<32x8xf16, #smallt>, !attn.view<8 x f16>
  gpu.return
}

// What is not on tiles, and kernels of others, stay.
// CHECK-LABEL: gpu.func @other(
// CHECK-NEXT:    math.exp2
// CHECK-NEXT:    return
gpu.func @other(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  gpu.return %y : f32
}
}
