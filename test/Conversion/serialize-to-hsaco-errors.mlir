// RUN: aot-opt %s --split-input-file --attn-serialize-to-hsaco --verify-diagnostics
// RUN: not aot-opt %s --split-input-file --attn-serialize-to-hsaco=O=4 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not aot-opt %s --split-input-file --attn-serialize-to-hsaco=O=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// LEVEL: error: optimisation level must be in [0, 3], found 4
// NEGATIVE: error: optimisation level must be in [0, 3], found -1

// A call that nothing defines would fail only on the device.
// expected-error @below {{module 'undefined' calls 'helper', which nothing defines}}
gpu.module @undefined attributes {attn.target = #attn.target<"gfx942">} {
  llvm.func @helper()
  llvm.func @kernel() attributes {gpu.kernel, rocdl.kernel} {
    llvm.call @helper() : () -> ()
    llvm.return
  }
}

// -----

// A declaration that nobody calls does no harm.
gpu.module @unused attributes {attn.target = #attn.target<"gfx942">} {
  llvm.func @helper()
  llvm.func @kernel() attributes {gpu.kernel, rocdl.kernel} {
    llvm.return
  }
}

// -----

// What the backend refuses is an error of the module, not the end of aot-opt.
// expected-error @below {{LLVM: }}
gpu.module @too_much attributes {attn.target = #attn.target<"gfx942">} {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<70000 x i8>
  llvm.func @kernel() attributes {gpu.kernel, rocdl.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    llvm.store volatile %zero, %tile : i32, !llvm.ptr<3>
    llvm.return
  }
}
