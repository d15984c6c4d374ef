// RUN: aot-opt %s --split-input-file --verify-diagnostics

!mask = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
!n = memref<1xi64>
func.func @few(%mask: !mask, %a: !n) {
  // expected-error @below {{(C18) dropout are 4 tensors and 5 scalars, found 1}}
  attn.dropout_mask %mask dropout(%a : !n) : !mask
  return
}

// -----

func.func @none(%mask: memref<?x?x?x?xbf16>) {
  // expected-error @below {{(C18) has no dropout, whose mask it is}}
  "attn.dropout_mask"(%mask) : (memref<?x?x?x?xbf16>) -> ()
  return
}

// -----

!mask = memref<?x?x?x?xbf16, strided<[?, ?, ?, 2]>>
!n = memref<1xi64>
func.func @strided(%mask: !mask, %a: !n, %t: i32, %s: f32, %x: i64) {
  // expected-error @below {{(C8) the last stride of mask must be 1, found 2}}
  attn.dropout_mask %mask dropout(%a, %a, %a, %a, %t, %s, %t, %x, %x : !n, !n, !n, !n, i32, f32, i32, i64, i64) : !mask
  return
}

// -----

func.func @scatter(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %tile: tensor<32x64xf16>, %index: tensor<32x32xi32>) {
  // expected-error @below {{stores 'tensor<32x64xf16>' at an index of 'tensor<32x32xi32>'}}
  attn.scatter %tile, %base[%offset] size %size at %index : tensor<32x64xf16>, tensor<32x32xi32>
  return
}
