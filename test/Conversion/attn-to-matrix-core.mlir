// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-matrix-core))' | FileCheck %s

gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {
// CHECK-LABEL: gpu.func @f16(
// CHECK-SAME:    %[[A:[^:]*]]: vector<4xf16>, %[[B:[^:]*]]: vector<4xf16>, %[[C:[^:]*]]: vector<16xf32>
// CHECK:         amdgpu.mfma 32x32x8 %[[A]] * %[[B]] + %[[C]] blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
// CHECK-NOT:     attn.mma
gpu.func @f16(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<16xf32>) -> vector<16xf32> {
  %d = attn.mma %a, %b, %c inst<mfma_32x32x8> : vector<4xf16>, vector<4xf16>, vector<16xf32>
  gpu.return %d : vector<16xf32>
}

// CHECK-LABEL: gpu.func @bf16(
// CHECK:         amdgpu.mfma 16x16x16 %{{.*}} * %{{.*}} + %{{.*}} blgp = none : vector<4xbf16>, vector<4xbf16>, vector<4xf32>
gpu.func @bf16(%a: vector<4xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %d = attn.mma %a, %b, %c inst<mfma_16x16x16> : vector<4xbf16>, vector<4xbf16>, vector<4xf32>
  gpu.return %d : vector<4xf32>
}
}

// A module without a target is not one of ours.
// CHECK-LABEL: gpu.module @other
// CHECK:         attn.mma
gpu.module @other {
gpu.func @f16(%a: vector<4xf16>, %c: vector<16xf32>) -> vector<16xf32> {
  %d = attn.mma %a, %a, %c inst<mfma_32x32x8> : vector<4xf16>, vector<4xf16>, vector<16xf32>
  gpu.return %d : vector<16xf32>
}
}

gpu.module @gfx908 attributes {attn.target = #attn.target<"gfx908">} {
// CHECK-LABEL: gpu.func @short_bf16(
// CHECK:         amdgpu.mfma 32x32x4 %{{.*}} * %{{.*}} + %{{.*}} blgp = none : vector<2xbf16>, vector<2xbf16>, vector<16xf32>
gpu.func @short_bf16(%a: vector<2xbf16>, %c: vector<16xf32>) -> vector<16xf32> {
  %d = attn.mma %a, %a, %c inst<mfma_32x32x4> : vector<2xbf16>, vector<2xbf16>, vector<16xf32>
  gpu.return %d : vector<16xf32>
}
}

gpu.module @gfx950 attributes {attn.target = #attn.target<"gfx950">} {
// CHECK-LABEL: gpu.func @double_k(
// CHECK:         amdgpu.mfma 16x16x32 %{{.*}} * %{{.*}} + %{{.*}} blgp = none : vector<8xf16>, vector<8xf16>, vector<4xf32>
gpu.func @double_k(%a: vector<8xf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %d = attn.mma %a, %a, %c inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  gpu.return %d : vector<4xf32>
}

// An even mix: reads first, then each matrix instruction with its share of the
// vector arithmetic (mask 2) and of the reads (256). What a barrier separates is
// not counted.
// CHECK-LABEL: gpu.func @interleave(
// CHECK:         amdgpu.lds_barrier
// CHECK:         arith.subf
// CHECK-NEXT:    rocdl.sched.group.barrier 256, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 256, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 256, 1, 0
// CHECK-NEXT:    gpu.return
gpu.func @interleave(%a: vector<8xf16>, %c: vector<4xf32>, %p: !llvm.ptr<3>, %x: f32) -> (vector<4xf32>, f32) {
  %before = arith.mulf %x, %x : f32
  amdgpu.lds_barrier
  %b = llvm.load %p : !llvm.ptr<3> -> vector<8xf16>
  %d = attn.mma %a, %b, %c inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  %e = attn.mma %b, %a, %d inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  %y = arith.mulf %before, %x : f32
  %z = arith.addf %y, %x : f32
  %w = arith.subf %z, %y : f32
  attn.interleave
  gpu.return %e, %w : vector<4xf32>, f32
}

// Exponentials (1024) go to single ones where there are fewer; rounding without a
// conversion is three instructions a pair, a negation none. A change of priority
// ends what is counted as a barrier does.
// CHECK-LABEL: gpu.func @segment(
// CHECK:         rocdl.s.setprio 1
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.perm"
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 2, 2, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 1024, 1, 0
// CHECK-NEXT:    rocdl.s.setprio 0
gpu.func @segment(%a: vector<8xf16>, %c: vector<4xf32>, %x: f32, %selector: i32) -> (vector<4xf32>, f32, i32) {
  %half = arith.constant 32768 : i32
  %before = arith.mulf %x, %x : f32
  rocdl.s.setprio 1
  %d = attn.mma %a, %a, %c inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  %e = attn.mma %a, %a, %d inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  %negated = arith.negf %before : f32
  %exp = rocdl.exp2 %negated f32 -> f32
  %first = arith.bitcast %before : f32 to i32
  %second = arith.bitcast %x : f32 to i32
  %low = arith.addi %first, %half : i32
  %high = arith.addi %second, %half : i32
  %pair = llvm.call_intrinsic "llvm.amdgcn.perm"(%high, %low, %selector) : (i32, i32, i32) -> i32
  attn.interleave
  rocdl.s.setprio 0
  gpu.return %e, %exp, %pair : vector<4xf32>, f32, i32
}

// Two maxima of a chain are one instruction, a comparison is one. A fence ends
// what is counted, and so does an earlier mix.
// CHECK-LABEL: gpu.func @maxima(
// CHECK:         arith.select
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    rocdl.sched.group.barrier 2, 4, 0
// CHECK:         amdgpu.mfma
// CHECK-NEXT:    rocdl.sched.group.barrier 8, 1, 0
// CHECK-NEXT:    gpu.return
gpu.func @maxima(%a: vector<8xf16>, %c: vector<4xf32>, %x: f32, %y: f32, %row: i32, %end: i32) -> (vector<4xf32>, f32) {
  %before = arith.mulf %x, %x : f32
  amdgpu.sched_barrier allow = <none>
  %d = attn.mma %a, %a, %c inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  %first = arith.maxnumf %x, %y : f32
  %second = arith.maxnumf %first, %before : f32
  %third = arith.maxnumf %second, %x : f32
  %seen = arith.cmpi slt, %row, %end : i32
  %shown = arith.select %seen, %third, %x : f32
  attn.interleave
  %e = attn.mma %a, %a, %d inst<mfma_16x16x32> : vector<8xf16>, vector<8xf16>, vector<4xf32>
  attn.interleave
  gpu.return %e, %shown : vector<4xf32>, f32
}
}

gpu.module @gfx1100 attributes {attn.target = #attn.target<"gfx1100">} {
// CHECK-LABEL: gpu.func @repeated(
// CHECK:         amdgpu.wmma 16x16x16 %{{.*}} * %{{.*}} + %{{.*}} : vector<16xf16>, vector<16xf16>, vector<8xf32>
gpu.func @repeated(%a: vector<16xf16>, %c: vector<8xf32>) -> vector<8xf32> {
  %d = attn.mma %a, %a, %c inst<wmma_16x16x16> : vector<16xf16>, vector<16xf16>, vector<8xf32>
  gpu.return %d : vector<8xf32>
}
}

gpu.module @gfx1201 attributes {attn.target = #attn.target<"gfx1201">} {
// CHECK-LABEL: gpu.func @halves(
// CHECK:         amdgpu.wmma 16x16x16 %{{.*}} * %{{.*}} + %{{.*}} : vector<8xbf16>, vector<8xbf16>, vector<8xf32>
gpu.func @halves(%a: vector<8xbf16>, %c: vector<8xf32>) -> vector<8xf32> {
  %d = attn.mma %a, %a, %c inst<wmma_16x16x16> : vector<8xbf16>, vector<8xbf16>, vector<8xf32>
  gpu.return %d : vector<8xf32>
}
}
