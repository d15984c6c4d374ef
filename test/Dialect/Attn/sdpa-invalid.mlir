// RUN: aot-opt %s --split-input-file --verify-diagnostics

// Constraints of attn.sdpa, each function named after its own.

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c1(%q: !t, %k: tensor<1x2x4x64xbf16>, %s: f32) {
  // expected-error @below {{(C1) element type of k is 'bf16', but that of q is 'f16'}}
  attn.sdpa ins(%q, %k, %q : !t, tensor<1x2x4x64xbf16>, !t) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c2(%q: !t, %k: tensor<3x2x4x64xf16>, %s: f32) {
  // expected-error @below {{(C2) batch of k is 3, but that of q is 1}}
  attn.sdpa ins(%q, %k, %q : !t, tensor<3x2x4x64xf16>, !t) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c3(%q: !t, %k: tensor<1x4x4x64xf16>, %s: f32) {
  // expected-error @below {{(C3) query heads (2) must be a multiple of key heads (4)}}
  attn.sdpa ins(%q, %k, %k : !t, tensor<1x4x4x64xf16>, tensor<1x4x4x64xf16>) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c4(%q: !t, %v: tensor<1x2x5x64xf16>, %s: f32) {
  // expected-error @below {{(C4) sequence length of v is 5, but that of k is 4}}
  attn.sdpa ins(%q, %q, %v : !t, !t, tensor<1x2x5x64xf16>) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x12xf16>
func.func @sdpa_c5(%q: !t, %s: f32) {
  // expected-error @below {{(C5) head_dim must be a multiple of 8 in [8, 576], found 12}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c6(%q: !t, %o: tensor<1x2x5x64xf16>, %s: f32) {
  // expected-error @below {{(C6) sequence length of out is 5, but that of q is 4}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%o : tensor<1x2x5x64xf16>) -> tensor<1x2x5x64xf16>
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c7(%q: !t, %l: tensor<1x2x5xf32>, %s: f32) {
  // expected-error @below {{(C7) sequence length of lse is 5, but that of q is 4}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q, %l : !t, tensor<1x2x5xf32>) -> !t, tensor<1x2x5xf32>
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c9(%q: !t, %s: f32, %b: i32) {
  // expected-error @below {{(C9) its parts of visibility take 3 bounds, found 1}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) visible [#attn.window] (%b) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c10(%q: !t, %s: f32) {
  // expected-error @below {{(C10) its score program takes the score (f32) and batch, head}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) score {
  ^bb0(%x: f32):
    attn.yield %x : f32
  } outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c11(%q: !t, %s: f32) {
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    // expected-error @below {{(C11) }}
    %y = math.erf %x : f32
    attn.yield %y : f32
  } outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c12(%q: !t, %s: f32) {
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, found ('f32', 'f32')}}
    attn.yield %x, %x : f32, f32
  } outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c13_three(%q: !t, %l: tensor<1x2x4xf32>, %s: f32) {
  // expected-error @below {{(C13) has one destination or, with the log-sum-exp, two, found 3}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q, %l, %l : !t, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> !t, tensor<1x2x4xf32>, tensor<1x2x4xf32>
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c13_out(%q: !t, %l: tensor<1x2x4xf16>, %s: f32) {
  // expected-error @below {{(C13) its first destination must be of rank 4 as q is, found 'tensor<1x2x4xf16>'}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%l : tensor<1x2x4xf16>) -> tensor<1x2x4xf16>
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c13_lse(%q: !t, %l: tensor<1x2x4xf16>, %s: f32) {
  // expected-error @below {{(C13) its second destination, the log-sum-exp, must be of rank 3 in f32, found 'tensor<1x2x4xf16>'}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q, %l : !t, tensor<1x2x4xf16>) -> !t, tensor<1x2x4xf16>
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c14(%q: !t, %k: memref<1x2x4x64xf16>, %s: f32) {
  // expected-error @below {{(C14) is on tensors or on memrefs, found both 'tensor<1x2x4x64xf16>' and 'memref<1x2x4x64xf16>'}}
  attn.sdpa ins(%q, %k, %q : !t, memref<1x2x4x64xf16>, !t) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

!t = tensor<1x2x4x64xf16>
func.func @sdpa_c15(%q: !t, %m: tensor<1x1x4x5xi1>, %s: f32) {
  // expected-error @below {{(C15) key length of mask is 5, but that of k is 4}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) mask(%m : tensor<1x1x4x5xi1>) scale(%s) outs(%q : !t) -> !t
  return
}

// -----

// Upstream's, of destinations.
!t = tensor<1x2x4x64xf16>
func.func @sdpa_results(%q: !t, %s: f32) {
  // expected-error @below {{expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%s) outs(%q : !t)
  return
}
