// RUN: not aot-opt %s --attn-rocdl-to-hsaco -o /dev/null 2>&1 | FileCheck %s

// A saturating difference is a vector instruction, and its result would be put
// into the scalar register that assembly takes by an illegal copy, which does
// nothing: an error, and no code.
// CHECK: error: {{.*}}LLVM: {{.*}}in function clamped{{.*}}: illegal VGPR to SGPR copy
// CHECK-SAME: compute it by what scalar ones can

gpu.module @m attributes {attn.target = #attn.target<"gfx1100">} {
  llvm.func amdgpu_kernelcc @clamped(%out: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, rocdl.kernel} {
    %least = llvm.mlir.constant(22 : i32) : i32
    %more = llvm.intr.usub.sat(%n, %least) : (i32, i32) -> i32
    %scalar = llvm.inline_asm has_side_effects "", "=s,0" %more : (i32) -> i32
    llvm.store %scalar, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}
