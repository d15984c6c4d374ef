// RUN: aot-opt %s --split-input-file --attn-serialize-to-hsaco --verify-diagnostics

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
