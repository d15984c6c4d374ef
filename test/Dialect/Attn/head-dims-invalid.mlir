// RUN: aot-opt %s --split-input-file --verify-diagnostics

!tensor = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @one(%q: !tensor, %scale: f32, %dim: i32) {
  // expected-error @below {{(C19) head_dims are 0 tensors and 2 scalars, found 1}}
  attn.forward %q, %q, %q, %q scale(%scale) head_dims(%dim)
    : !tensor, !tensor, !tensor, !tensor
  return
}

// -----

#layout = #attn.layout<reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 2]], wave = [], grid = [1, 1]>
// expected-note @below {{prior use here}}
func.func @other_type(%tile: tensor<32x4xf16, #layout>, %columns: i64) {
  // expected-error @+1 {{expects different type than prior uses: 'i32' vs 'i64'}}
  %cut = attn.cut %tile columns %columns : tensor<32x4xf16, #layout>
  return
}
