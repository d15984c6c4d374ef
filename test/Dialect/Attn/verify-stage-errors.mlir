// RUN: split-file %s %t
// RUN: not aot-opt %t/no-target.mlir --attn-verify-stage=stage=scheduled 2>&1 | FileCheck %s --check-prefix=NO-TARGET
// RUN: not aot-opt %t/no-function.mlir --attn-verify-stage=stage=scheduled 2>&1 | FileCheck %s --check-prefix=NO-FUNCTION
// RUN: not aot-opt %t/module.mlir --attn-verify-stage=stage=tiles 2>&1 | FileCheck %s --check-prefix=MODULE
// RUN: not aot-opt %t/attn-op.mlir --attn-verify-stage=stage=lanes 2>&1 | FileCheck %s --check-prefix=ATTN-OP
// RUN: not aot-opt %t/host.mlir --attn-verify-stage=stage=rocdl 2>&1 | FileCheck %s --check-prefix=HOST

// What else a stage refuses, at the op that is wrong.

//--- no-target.mlir
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @no_target(%t: !t, %s: f32) {
  // NO-TARGET: error: 'attn.forward' op stands in a function without a target (stage 'scheduled')
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

//--- no-function.mlir
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
gpu.module @no_function {
  gpu.func @kernel(%t: !t, %s: f32) kernel {
    // NO-FUNCTION: error: 'attn.forward' op stands outside a func.func (stage 'scheduled')
    attn.forward %t, %t, %t, %t scale(%s)
      schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
      : !t, !t, !t, !t
    gpu.return
  }
}

//--- module.mlir
// MODULE: error: 'gpu.module' op has no target (stage 'tiles')
gpu.module @module {
}

//--- attn-op.mlir
// A view gives no tile, but is not for lanes either.
gpu.module @attn_op attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @k(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel {
    // ATTN-OP: error: 'attn.view' op is not distributed to lanes (stage 'lanes')
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    gpu.return
  }
}

//--- host.mlir
// HOST: error: 'func.return' op is neither llvm nor rocdl (stage 'rocdl')
func.func @host() {
  return
}
