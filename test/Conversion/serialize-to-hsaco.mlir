// RUN: aot-opt %s --attn-serialize-to-hsaco | FileCheck %s
// RUN: aot-opt %s --attn-serialize-to-hsaco --remarks-filter=attn -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: aot-opt %s --attn-serialize-to-hsaco=O=0 | FileCheck %s --check-prefix=O0

// The module becomes a binary of its name with an ELF image.
// CHECK-LABEL: gpu.binary @module [#gpu.object<#rocdl.target<O = 3, chip = "gfx942">, bin = "\7FELF
// O0: gpu.binary @module [#gpu.object<#rocdl.target<O = 0, chip = "gfx942">, bin = "\7FELF
// REMARK: remark: {{.*}}resources{{.*}}kernel on gfx942: {{[0-9]+}} VGPRs, 0 AGPRs, {{[0-9]+}} SGPRs, 512 bytes of LDS, 0 bytes of scratch, {{[1-8]}} waves a SIMD
gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {
  llvm.mlir.global internal @lds() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
  llvm.func @kernel(%out: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>, rocdl.flat_work_group_size = "64,64"} {
    %id = rocdl.workitem.id.x : i32
    %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>
    %slot = llvm.getelementptr %lds[%id] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %id, %slot : i32, !llvm.ptr<3>
    rocdl.s.barrier
    %word = llvm.load volatile %lds : !llvm.ptr<3> -> i32
    %at = llvm.getelementptr %out[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %word, %at : i32, !llvm.ptr<1>
    llvm.return
  }
}

// Not one of ours.
// CHECK-LABEL: gpu.module @other
gpu.module @other {
  llvm.func @kernel() attributes {gpu.kernel, rocdl.kernel} {
    llvm.return
  }
}
