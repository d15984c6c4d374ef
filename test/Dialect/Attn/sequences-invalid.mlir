// RUN: aot-opt %s --split-input-file --verify-diagnostics

!t = memref<2x4x5x64xf16>
!n = memref<?xi32>
func.func @forward_c17_few(%q: !t, %s: f32, %n: !n, %x: i32) {
  // expected-error @below {{(C17) sequences are 4 tensors and 4 scalars, found 7}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %n, %n, %n, %x, %x, %x : !n, !n, !n, !n, i32, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<2x4x5x64xf16>
!n = memref<?xi32>
func.func @forward_c17_scalar(%q: !t, %s: f32, %n: !n, %x: i32) {
  // expected-error @below {{(C17) seqlens_k of sequences must be [batch] of i32, found 'i32'}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %x, %n, %n, %x, %x, %x, %x : !n, i32, !n, !n, i32, i32, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<2x4x5x64xf16>
!n = memref<?xi32>
func.func @forward_c17_tensor(%q: !t, %s: f32, %n: !n, %x: i32) {
  // expected-error @below {{(C17) lse_stride_seq of sequences must be 'i32', found 'memref<?xi32>'}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %n, %n, %n, %x, %n, %x, %x : !n, !n, !n, !n, i32, !n, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<2x4x5x64xf16>
!n = memref<?xi32>
!m = memref<?x?xi32>
func.func @forward_c17_rank(%q: !t, %s: f32, %n: !n, %m: !m, %x: i32) {
  // expected-error @below {{operand #8 must be variadic of 32-bit signless integer or 1D memref of 32-bit signless integer values, but got 'memref<?x?xi32>'}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %n, %n, %m, %x, %x, %x, %x : !n, !n, !n, !m, i32, i32, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<2x4x5x64xf16>
!n = memref<?xi64>
func.func @forward_c17_type(%q: !t, %s: f32, %n: !n, %x: i32) {
  // expected-error @below {{operand #5 must be variadic of 32-bit signless integer or 1D memref of 32-bit signless integer values, but got 'memref<?xi64>'}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %n, %n, %n, %x, %x, %x, %x : !n, !n, !n, !n, i32, i32, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<2x4x5x64xf16>
!n = memref<?xi32>
!m = memref<?xi32, strided<[2]>>
func.func @forward_c8_stride(%q: !t, %s: f32, %n: !n, %m: !m, %x: i32) {
  // expected-error @below {{(C8) the last stride of starts_q must be 1, found 2}}
  attn.forward %q, %q, %q, %q scale(%s) sequences(%n, %n, %m, %n, %x, %x, %x, %x : !n, !n, !m, !n, i32, i32, i32, i32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!n = memref<?xi32>
func.func @backward_c17_few(%t: !t, %l: !l, %w: memref<?xi8>, %s: f32, %n: !n) {
  // expected-error @below {{(C17) sequences are 4 tensors and 4 scalars, found 4}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    sequences(%n, %n, %n, %n : !n, !n, !n, !n)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
