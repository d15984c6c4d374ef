// RUN: aot-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-to-rocdl))' | FileCheck %s

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>

// CHECK-LABEL: gpu.module @module attributes {attn.target = #attn.target<"gfx942">
gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {

// Workgroup size and occupancy come from the schedule, which is then gone;
// pointers stay pointers.
// CHECK:       llvm.func @kernel(
// CHECK-SAME:    !llvm.ptr<1>{{[^,]*}}, %{{[^:]*}}: i64{{[^,]*}}, %{{[^:]*}}: f32
// CHECK-SAME:    attributes {
// CHECK-NOT:     attn.schedule
// CHECK-SAME:    gpu.kernel
// CHECK-SAME:    passthrough = {{\[\[}}"amdgpu-ieee", "false"]]
// CHECK-SAME:    rocdl.flat_work_group_size = "256,256"
// CHECK-SAME:    rocdl.kernel
// CHECK-SAME:    rocdl.reqd_work_group_size = array<i32: 256, 1, 1>
// CHECK-SAME:    rocdl.waves_per_eu = 2 : i32
// Control flow, the matrix instruction, the barrier and indices of 32 bits.
// CHECK-NOT:     scf.
// CHECK-DAG:     rocdl.workitem.id.x
// CHECK:         llvm.cond_br
// CHECK:         rocdl.mfma.f32.32x32x8f16
// CHECK:         rocdl.s.barrier
// CHECK:         llvm.return
gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %scale: f32, %n: i32, %a: vector<4xf16>, %c: vector<16xf32>) kernel
    attributes {attn.schedule = #schedule, known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %thread = gpu.thread_id x
  %id = arith.index_cast %thread : index to i32
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (vector<16xf32>) : i32 {
    %e = amdgpu.mfma 32x32x8 %a * %a + %acc blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    amdgpu.lds_barrier
    scf.yield %e : vector<16xf32>
  }
  %x = vector.extract %d[0] : f32 from vector<16xf32>
  %p = llvm.getelementptr %base[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %x, %p : f32, !llvm.ptr<1>
  gpu.return
}

// A function without a schedule gets no attributes of ours.
// CHECK-LABEL: llvm.func @helper(
// CHECK-NOT:     rocdl.waves_per_eu
// CHECK:         llvm.return
gpu.func @helper(%x: f32) -> f32 {
  gpu.return %x : f32
}
}

// A module without a target is not one of ours.
// CHECK-LABEL: gpu.module @other
// CHECK:         gpu.func @kernel
gpu.module @other {
gpu.func @kernel() kernel {
  gpu.return
}
}
