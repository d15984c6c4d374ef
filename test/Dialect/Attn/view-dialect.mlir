// RUN: split-file %s %t
// RUN: not aot-opt %t/view.mlir 2>&1 | FileCheck %s

// attn.view makes a pointer type of the llvm dialect, which no other op of this
// text loads. The views of a valid text come from a pointer, whose type does.

// CHECK: view.mlir:3:20: error: use of undeclared SSA value name
// CHECK-NOT: PLEASE submit a bug report

//--- view.mlir
gpu.module @m {
  gpu.func @f(%n: i32) {
    %v = attn.view %q[%o] rows %n stride %n : !attn.view<16 x f16>
    gpu.return
  }
}
