// RUN: aot-opt %s --attn-outline-kernels --split-input-file --verify-diagnostics

!t = tensor<1x2x4x64xf16>
func.func @tensors(%q: !t, %s: f32) -> !t {
  // expected-error @below {{is on tensors, and kernels are on buffers; run --one-shot-bufferize before}}
  %o = attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q : !t) -> !t
  return %o : !t
}

// -----

!t = memref<1x2x4x64xf16>
!m = memref<1x1x4x4xi1, strided<[16, 16, -4, 1], offset: 12>>
func.func @mask(%q: !t, %m: !m, %s: f32) {
  // expected-error @below {{strides of mask must not be negative, found -4}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) mask(%m : !m) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
!s = memref<1x2x4x64xf16, strided<[?, ?, ?, ?], offset: ?>>
func.func @stride(%q: !t, %k: !s, %s: f32) {
  // expected-error @below {{the last stride of k must be 1, found a dynamic one; bufferize with function-boundary-type-conversion=identity-layout-map, or copy it}}
  attn.sdpa ins(%q, %k, %q : !t, !s, !t) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
!s = memref<1x2x4x64xf16, strided<[512, 256, 1, 4]>>
func.func @transposed(%q: !t, %k: !s, %s: f32) {
  // expected-error @below {{the last stride of k must be 1, found 4; copy it}}
  attn.sdpa ins(%q, %k, %q : !t, !s, !t) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
!s = memref<1x2x4x64xf16, 3>
func.func @space(%q: !t, %k: !s, %s: f32) {
  // expected-error @below {{k must be in the default memory space, found 3}}
  attn.sdpa ins(%q, %k, %q : !t, !s, !t) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
!s = memref<1x2x4x64xf16, strided<[512, 256, -64, 1], offset: 192>>
func.func @backwards(%q: !t, %k: !s, %s: f32) {
  // expected-error @below {{strides of k must not be negative, found -64}}
  attn.sdpa ins(%q, %k, %q : !t, !s, !t) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
func.func private @forward_dtype_fp16_head_dim_64(f32)
func.func @taken(%q: !t, %s: f32) {
  // expected-error @below {{is to be a call of 'forward_dtype_fp16_head_dim_64', a symbol that stands for something else; rename that}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q : !t)
  return
}

// -----

!t = memref<1x2x4x64xf16>
func.func @parts(%q: !t, %s: f32, %b: i32) {
  // expected-error @below {{no key of a package says that its kernels have #attn.window beside what stands before it}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) visible [#attn.causal<top_left>, #attn.window] (%b, %b, %b) outs(%q : !t)
  return
}
