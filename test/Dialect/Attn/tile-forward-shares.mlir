// RUN: aot-opt %s --attn-choose-schedule=algorithm=split --attn-tile-forward --split-input-file | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule=algorithm=split | FileCheck %s --check-prefix=SCHEDULE
// RUN: aot-opt %s --attn-choose-schedule=algorithm=split | aot-opt | FileCheck %s --check-prefix=SCHEDULE
// RUN: aot-opt %s --attn-choose-schedule=algorithm=flash --attn-tile-forward | FileCheck %s --check-prefix=FLASH

// Two kernels: workgroups of the first take a share of the keys, the second one
// adds up what they leave.

// SCHEDULE: schedule(<block_m = 64, block_n = 64, {{.*}}>) combine(<block_m = 8, block_n = 128, waves = 4, {{.*}}value_split = 4>)
// FLASH-COUNT-1: gpu.func @
// FLASH-NOT: gpu.func @
// FLASH-NOT: workspace

// CHECK: gpu.module @forward
// CHECK: gpu.func @forward_share({{.*}}, %[[WORKSPACE:.*]]: !llvm.ptr<1>, %[[SPLITS:.*]]: i32, %[[PACKED:.*]]: i32)
// z counts the shares of a batch: divided by f32, a half more than it.
// CHECK-NOT: arith.divui %{{.*}}, %{{arg[0-9]+}}
// CHECK: %[[REAL:.*]] = arith.uitofp %[[SPLITS]] : i32 to f32
// CHECK: %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.amdgcn.rcp"(%[[REAL]])
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: %[[MORE:.*]] = arith.addf %{{.*}}, %[[HALF]] : f32
// CHECK: %[[QUOTIENT:.*]] = arith.mulf %[[MORE]], %[[INVERSE]] : f32
// CHECK: %[[WHOLE:.*]] = arith.fptoui %[[QUOTIENT]]
// CHECK: %[[LANES:.*]] = llvm.inline_asm "", "=v,0" %[[WHOLE]]
// CHECK: %[[BATCH:.*]] = llvm.call_intrinsic "llvm.amdgcn.readfirstlane"(%[[LANES]])
// CHECK: %[[BEFORE:.*]] = arith.muli %[[BATCH]], %[[SPLITS]]
// CHECK: arith.subi %{{.*}}, %[[BEFORE]]
// Runs of shares, as many as heads leave dies, trade places with blocks.
// CHECK: math.cttz
// Rows of Q are those of packed heads.
// CHECK: attn.view {{.*}} runs(%{{.*}}, %{{.*}}, %[[PACKED]], %{{.*}})
// While the first keys and they come: what is carried, and addresses.
// CHECK: attn.pin
// CHECK-COUNT-2: llvm.inline_asm has_side_effects "", "=s,0" {{.*}} -> !llvm.ptr<1>
// CHECK: llvm.getelementptr %[[WORKSPACE]]
// CHECK: %[[SUMS:.*]] = llvm.inline_asm has_side_effects "", "=s,0"
// CHECK: llvm.getelementptr %[[WORKSPACE]]
// CHECK: %[[OFSHARE:.*]] = llvm.inline_asm has_side_effects "", "=s,0"
// CHECK: scf.for
// The sums are divided by those of the weights and rounded, and their terms stored
// beside one another.
// CHECK: %[[SUM:.*]] = attn.reduce <sum> %{{.*}} -> tensor<1x64xf32>
// CHECK: %[[LEAST:.*]] = arith.maxnumf %[[SUM]], %{{.*}}
// CHECK: %[[BY:.*]] = arith.divf %{{.*}}, %[[LEAST]] fastmath<afn>
// CHECK: %[[ALL:.*]] = attn.broadcast %[[BY]]
// CHECK: %[[QUOTIENTS:.*]] = arith.mulf %{{.*}}, %[[ALL]]
// CHECK: attn.round %[[QUOTIENTS]]
// CHECK: attn.view %[[SUMS]]{{.*}} <128 x bf16>
// CHECK: attn.view %[[OFSHARE]]{{.*}} <4 x f32>
// CHECK: attn.store %{{.*}}, %[[TERMS:[0-9]+]] : tensor
// CHECK: attn.store %{{.*}}, %[[TERMS]] column 1 : tensor
// CHECK: attn.store %{{.*}}, %[[TERMS]] column 2 : tensor
// CHECK-NOT: column 3
// CHECK-NOT: arith.divf
// CHECK: gpu.return

// CHECK: gpu.func @forward_combine_v2(
// Of few shares 8 rows a workgroup, and of more one.
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %{{.*}}, %{{c16.*}} : i32
// CHECK: %[[OWNED:.*]] = arith.select %[[FEW]], %{{c8.*}}, %{{c1.*}} : i32
// CHECK: arith.muli %{{.*}}, %[[OWNED]] : i32
// CHECK: scf.if %[[FEW]]
// All shares of a row are its lanes', so that nothing is exchanged or reduced, by
// four more from way to way; those that are not there are the next row's, and
// dropped. Terms come ahead of sums.
// CHECK: scf.if
// CHECK: scf.if
// CHECK: attn.view {{.*}} loose {{.*}} <16 x f32>
// CHECK: attn.view {{.*}} loose : <512 x bf16>
// CHECK-COUNT-12: attn.load %{{.*}} <16 x f32> -> tensor<8x1xf32>
// CHECK: attn.load %{{.*}} : <512 x bf16> -> tensor<8x128xbf16>
// CHECK: attn.load %{{.*}} column 128 : <512 x bf16> -> tensor<8x128xbf16>
// CHECK: arith.select %{{.*}} : tensor<8x128xbf16>
// CHECK-NOT: attn.store_lds
// CHECK-NOT: attn.reduce
// CHECK: amdgpu.sched_barrier
// CHECK: arith.extf %{{.*}} : tensor<8x128xbf16> to tensor<8x128xf32>
// CHECK: attn.store %{{.*}} : tensor<8x128xbf16>
// CHECK: } else {
// CHECK: attn.load %{{.*}} column 512 : <1024 x bf16> -> tensor<8x128xbf16>
// CHECK-NEXT: attn.load %{{.*}} column 640 : <1024 x bf16> -> tensor<8x128xbf16>
// CHECK: arith.select %{{.*}} : tensor<8x128xbf16>
// CHECK: attn.store %{{.*}} : tensor<8x128xbf16>
// CHECK: } else {
// CHECK: attn.load %{{.*}} column 1408 : <1536 x bf16> -> tensor<8x128xbf16>
// CHECK: } else {
// CHECK: attn.load %{{.*}} column 1920 : <2048 x bf16> -> tensor<8x128xbf16>
// CHECK-NOT: attn.reduce
// CHECK: attn.store %{{.*}} : tensor<8x128xbf16>
// CHECK: } else {
// Shares of one row at once, or else a loop over them, in their order, that loads
// all before it waits: the terms, and of sums that were rounded none before.
// CHECK: scf.if
// CHECK: attn.view {{.*}} <4 x f32>
// CHECK-NOT: column 3
// CHECK: attn.load %{{.*}} column 2 : {{.*}} -> tensor<32x1xf32>
// CHECK: attn.load %{{.*}} -> tensor<32x128xbf16>
// CHECK: llvm.inline_asm has_side_effects "", "=s,0" {{.*}} -> !llvm.ptr<1>
// CHECK-NOT: barrier
// CHECK: attn.store_lds
// CHECK: amdgpu.sched_barrier
// CHECK: arith.extf %{{.*}} : tensor<32x128xbf16> to tensor<32x128xf32>
// CHECK: } else {
// CHECK: attn.load %{{.*}} -> tensor<64x128xbf16>
// CHECK: attn.store_lds
// CHECK: } else {
// CHECK: scf.if
// CHECK: attn.load %{{.*}} -> tensor<128x128xbf16>
// CHECK: } else {
// CHECK: scf.for
// CHECK: attn.load %{{.*}} -> tensor<128x128xbf16>
// CHECK: arith.maxnumf
// CHECK: attn.store_lds
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: arith.truncf
// CHECK: gpu.return
!tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
!rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
func.func @forward(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                   %lse: !rows, %scale: f32) {
  attn.forward %q, %k, %v, %out lse(%lse) scale(%scale)
    : !tensor, !tensor, !tensor, !tensor, !rows
  return
}
