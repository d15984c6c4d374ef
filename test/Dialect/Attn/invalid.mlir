// RUN: aot-opt %s --split-input-file --verify-diagnostics

// Constraints of attn.forward, each function named after its own.

func.func @forward_c1_k(%q: memref<1x1x1x64xf16>, %k: memref<1x1x1x64xbf16>, %s: f32) {
  // expected-error @below {{(C1) element type of k is 'bf16', but that of q is 'f16'}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xbf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c1_out(%q: memref<1x1x1x64xf16>, %out: memref<1x1x1x64xbf16>, %s: f32) {
  // expected-error @below {{(C1) element type of out is 'bf16', but that of q is 'f16'}}
  attn.forward %q, %q, %q, %out scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xbf16>
  return
}

// -----

func.func @forward_c2(%q: memref<2x1x1x64xf16>, %v: memref<3x1x1x64xf16>, %s: f32) {
  // expected-error @below {{(C2) batch of v is 3, but that of q is 2}}
  attn.forward %q, %q, %v, %q scale(%s) : memref<2x1x1x64xf16>, memref<2x1x1x64xf16>, memref<3x1x1x64xf16>, memref<2x1x1x64xf16>
  return
}

// -----

func.func @forward_c3(%q: memref<1x6x1x64xf16>, %kv: memref<1x4x1x64xf16>, %s: f32) {
  // expected-error @below {{(C3) query heads (6) must be a multiple of key heads (4)}}
  attn.forward %q, %kv, %kv, %q scale(%s) : memref<1x6x1x64xf16>, memref<1x4x1x64xf16>, memref<1x4x1x64xf16>, memref<1x6x1x64xf16>
  return
}

// -----

func.func @forward_c3_no_heads(%q: memref<1x6x1x64xf16>, %kv: memref<1x0x1x64xf16>, %s: f32) {
  // expected-error @below {{(C3) query heads (6) must be a multiple of key heads (0)}}
  attn.forward %q, %kv, %kv, %q scale(%s) : memref<1x6x1x64xf16>, memref<1x0x1x64xf16>, memref<1x0x1x64xf16>, memref<1x6x1x64xf16>
  return
}

// -----

func.func @forward_c4_heads(%q: memref<1x4x1x64xf16>, %k: memref<1x2x1x64xf16>, %s: f32) {
  // expected-error @below {{(C4) heads of v is 4, but that of k is 2}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x4x1x64xf16>, memref<1x2x1x64xf16>, memref<1x4x1x64xf16>, memref<1x4x1x64xf16>
  return
}

// -----

func.func @forward_c4_length(%q: memref<1x4x7x64xf16>, %k: memref<1x4x9x64xf16>, %s: f32) {
  // expected-error @below {{(C4) sequence length of v is 7, but that of k is 9}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x4x7x64xf16>, memref<1x4x9x64xf16>, memref<1x4x7x64xf16>, memref<1x4x7x64xf16>
  return
}

// -----

func.func @forward_c5_static(%q: memref<1x1x1x?xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim must be static}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x?xf16>, memref<1x1x1x?xf16>, memref<1x1x1x?xf16>, memref<1x1x1x?xf16>
  return
}

// -----

func.func @forward_c5_small(%q: memref<1x1x1x4xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim must be a multiple of 8 in [8, 576], found 4}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x4xf16>, memref<1x1x1x4xf16>, memref<1x1x1x4xf16>, memref<1x1x1x4xf16>
  return
}

// -----

func.func @forward_c5_large(%q: memref<1x1x1x584xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim must be a multiple of 8 in [8, 576], found 584}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x584xf16>, memref<1x1x1x584xf16>, memref<1x1x1x584xf16>, memref<1x1x1x584xf16>
  return
}

// -----

func.func @forward_c5_step(%q: memref<1x1x1x100xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim must be a multiple of 8 in [8, 576], found 100}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x100xf16>, memref<1x1x1x100xf16>, memref<1x1x1x100xf16>, memref<1x1x1x100xf16>
  return
}

// -----

func.func @forward_c5_differs(%q: memref<1x1x1x64xf16>, %v: memref<1x1x1x128xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim_v of out must be that of v (128), found 'memref<1x1x1x64xf16>'}}
  attn.forward %q, %q, %v, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x128xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c5_of_k(%q: memref<1x1x1x64xf16>, %k: memref<1x1x1x128xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim of k must be that of q (64), found 'memref<1x1x1x128xf16>'}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x128xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c5_step_v(%q: memref<1x1x1x64xf16>, %v: memref<1x1x1x100xf16>, %s: f32) {
  // expected-error @below {{(C5) head_dim_v must be a multiple of 8 in [8, 512], found 100}}
  attn.forward %q, %q, %v, %v scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x100xf16>, memref<1x1x1x100xf16>
  return
}

// -----

func.func @forward_c6_heads(%q: memref<1x4x1x64xf16>, %out: memref<1x8x1x64xf16>, %s: f32) {
  // expected-error @below {{(C6) heads of out is 8, but that of q is 4}}
  attn.forward %q, %q, %q, %out scale(%s) : memref<1x4x1x64xf16>, memref<1x4x1x64xf16>, memref<1x4x1x64xf16>, memref<1x8x1x64xf16>
  return
}

// -----

func.func @forward_c6_length(%q: memref<1x4x5x64xf16>, %out: memref<1x4x6x64xf16>, %s: f32) {
  // expected-error @below {{(C6) sequence length of out is 6, but that of q is 5}}
  attn.forward %q, %q, %q, %out scale(%s) : memref<1x4x5x64xf16>, memref<1x4x5x64xf16>, memref<1x4x5x64xf16>, memref<1x4x6x64xf16>
  return
}

// -----

func.func @forward_c7_batch(%q: memref<2x4x5x64xf16>, %lse: memref<1x4x5xf32>, %s: f32) {
  // expected-error @below {{(C7) batch of lse is 1, but that of q is 2}}
  attn.forward %q, %q, %q, %q lse(%lse) scale(%s) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<1x4x5xf32>
  return
}

// -----

func.func @forward_c7_heads(%q: memref<2x4x5x64xf16>, %lse: memref<2x5x5xf32>, %s: f32) {
  // expected-error @below {{(C7) heads of lse is 5, but that of q is 4}}
  attn.forward %q, %q, %q, %q lse(%lse) scale(%s) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x5x5xf32>
  return
}

// -----

func.func @forward_c7_length(%q: memref<2x4x5x64xf16>, %lse: memref<2x4x4xf32>, %s: f32) {
  // expected-error @below {{(C7) sequence length of lse is 4, but that of q is 5}}
  attn.forward %q, %q, %q, %q lse(%lse) scale(%s) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x4xf32>
  return
}

// -----

func.func @forward_c8_stride(%q: memref<1x1x1x64xf16, strided<[128, 128, 128, 2]>>, %s: f32) {
  // expected-error @below {{(C8) the last stride of q must be 1, found 2}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x64xf16, strided<[128, 128, 128, 2]>>, memref<1x1x1x64xf16, strided<[128, 128, 128, 2]>>, memref<1x1x1x64xf16, strided<[128, 128, 128, 2]>>, memref<1x1x1x64xf16, strided<[128, 128, 128, 2]>>
  return
}

// -----

func.func @forward_c8_dynamic_stride(%q: memref<1x1x1x64xf16>, %k: memref<1x1x1x64xf16, strided<[64, 64, 64, ?]>>, %s: f32) {
  // expected-error @below {{(C8) the last stride of k must be 1, found a dynamic one}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16, strided<[64, 64, 64, ?]>>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c8_offset(%q: memref<1x1x1x64xf16>, %out: memref<1x1x1x64xf16, strided<[64, 64, 64, 1], offset: 8>>, %s: f32) {
  // expected-error @below {{(C8) the offset of out must be 0; put it into the address}}
  attn.forward %q, %q, %q, %out scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16, strided<[64, 64, 64, 1], offset: 8>>
  return
}

// -----

func.func @forward_c8_map(%q: memref<1x1x1x64xf16>, %v: memref<1x1x1x64xf16, affine_map<(b, h, s, d) -> (b, h, s, d floordiv 8, d mod 8)>>, %s: f32) {
  // expected-error @below {{(C8) v must have a strided layout}}
  attn.forward %q, %q, %v, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16, affine_map<(b, h, s, d) -> (b, h, s, d floordiv 8, d mod 8)>>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c8_negative(%q: memref<2x1x2x64xf16, strided<[128, 128, -64, 1]>>, %s: f32) {
  // expected-error @below {{(C8) strides of q must not be negative, found -64}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<2x1x2x64xf16, strided<[128, 128, -64, 1]>>, memref<2x1x2x64xf16, strided<[128, 128, -64, 1]>>, memref<2x1x2x64xf16, strided<[128, 128, -64, 1]>>, memref<2x1x2x64xf16, strided<[128, 128, -64, 1]>>
  return
}

// -----

func.func @forward_c8_space(%q: memref<1x1x1x64xf16>, %k: memref<1x1x1x64xf16, 3>, %s: f32) {
  // expected-error @below {{(C8) k must be in the default memory space, found 3}}
  attn.forward %q, %k, %q, %q scale(%s) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16, 3>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c8_lse(%q: memref<1x1x2x64xf16>, %lse: memref<1x1x2xf32, strided<[4, 4, 2]>>, %s: f32) {
  // expected-error @below {{(C8) the last stride of lse must be 1, found 2}}
  attn.forward %q, %q, %q, %q lse(%lse) scale(%s) : memref<1x1x2x64xf16>, memref<1x1x2x64xf16>, memref<1x1x2x64xf16>, memref<1x1x2x64xf16>, memref<1x1x2xf32, strided<[4, 4, 2]>>
  return
}

// -----

func.func @forward_type(%q: memref<1x1x1x64xf64>, %s: f32) {
  // expected-error @below {{operand #0 must be 4D memref of 16-bit float or bfloat16 type or 32-bit float values, but got 'memref<1x1x1x64xf64>'}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x1x64xf64>, memref<1x1x1x64xf64>, memref<1x1x1x64xf64>, memref<1x1x1x64xf64>
  return
}

// -----

func.func @forward_rank(%q: memref<1x1x64xf16>, %s: f32) {
  // expected-error @below {{operand #0 must be 4D memref of}}
  attn.forward %q, %q, %q, %q scale(%s) : memref<1x1x64xf16>, memref<1x1x64xf16>, memref<1x1x64xf16>, memref<1x1x64xf16>
  return
}

// -----

// Unknown extents agree with anything, and are checked at launch.
func.func @forward_dynamic(%q: memref<?x?x?x64xf16>, %k: memref<2x3x5x64xf16>, %v: memref<?x3x?x64xf16>, %s: f32) {
  attn.forward %q, %k, %v, %q scale(%s) : memref<?x?x?x64xf16>, memref<2x3x5x64xf16>, memref<?x3x?x64xf16>, memref<?x?x?x64xf16>
  return
}

// -----

func.func @forward_c9_missing(%q: memref<1x1x1x64xf16>, %s: f32) {
  // expected-error @below {{(C9) its parts of visibility take 3 bounds, found 0}}
  attn.forward %q, %q, %q, %q scale(%s) visible [#attn.window] : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c9_many(%q: memref<1x1x1x64xf16>, %s: f32, %w: i32) {
  // expected-error @below {{(C9) its parts of visibility take 0 bounds, found 1}}
  attn.forward %q, %q, %q, %q scale(%s) visible [#attn.causal<top_left>] (%w) : memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>, memref<1x1x1x64xf16>
  return
}

// -----

func.func @forward_c13_heads(%q: memref<2x4x5x64xf16>, %sinks: memref<3xf32>, %s: f32) {
  // expected-error @below {{(C14) heads of sinks is 3, but that of q is 4}}
  attn.forward %q, %q, %q, %q scale(%s) sinks(%sinks : memref<3xf32>) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c13_offset(%q: memref<2x4x5x64xf16>, %sinks: memref<4xf32, strided<[2], offset: 1>>, %s: f32) {
  // expected-error @below {{(C14) sinks must have a stride that is not negative, no offset and the default memory space}}
  attn.forward %q, %q, %q, %q scale(%s) sinks(%sinks : memref<4xf32, strided<[2], offset: 1>>) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c15_few(%q: memref<2x4x5x64xf16>, %n: memref<?x?x?xi32, strided<[?, ?, 1]>>, %i: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %m: memref<?x?x?xi32, strided<[?, ?, 1]>>, %j: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %s: f32, %x: i32) {
  // expected-error @below {{(C15) blocks are 8 tensors and 6 scalars, found 13}}
  attn.forward %q, %q, %q, %q scale(%s) blocks(%n, %i, %m, %j, %m, %j, %m, %j, %x, %x, %x, %x, %x : memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, i32, i32, i32, i32, i32) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c15_rank(%q: memref<2x4x5x64xf16>, %n: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %i: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %m: memref<?x?x?xi32, strided<[?, ?, 1]>>, %j: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %s: f32, %x: i32) {
  // expected-error @below {{(C15) kv_num_blocks of blocks must be [batch, heads_q, blocks of seqlen_q] of i32, found 'memref<?x?x?x?xi32}}
  attn.forward %q, %q, %q, %q scale(%s) blocks(%n, %i, %m, %j, %m, %j, %m, %j, %x, %x, %x, %x, %x, %x : memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, i32, i32, i32, i32, i32, i32) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c15_heads(%q: memref<2x4x5x64xf16>, %n: memref<?x3x?xi32, strided<[?, ?, 1]>>, %i: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %m: memref<?x?x?xi32, strided<[?, ?, 1]>>, %j: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %s: f32, %x: i32) {
  // expected-error @below {{(C15) heads of kv_num_blocks is 3, but that of q is 4}}
  attn.forward %q, %q, %q, %q scale(%s) blocks(%n, %i, %m, %j, %m, %j, %m, %j, %x, %x, %x, %x, %x, %x : memref<?x3x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, i32, i32, i32, i32, i32, i32) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c15_stride(%q: memref<2x4x5x64xf16>, %n: memref<?x?x?xi32, strided<[?, ?, 1]>>, %i: memref<?x?x?x?xi32, strided<[?, ?, ?, 2]>>, %m: memref<?x?x?xi32, strided<[?, ?, 1]>>, %j: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %s: f32, %x: i32) {
  // expected-error @below {{(C8) the last stride of kv_indices must be 1, found 2}}
  attn.forward %q, %q, %q, %q scale(%s) blocks(%n, %i, %m, %j, %m, %j, %m, %j, %x, %x, %x, %x, %x, %x : memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 2]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, i32, i32, i32, i32, i32, i32) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}

// -----

func.func @forward_c15_schedule(%q: memref<2x4x5x64xf16>, %n: memref<?x?x?xi32, strided<[?, ?, 1]>>, %i: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %m: memref<?x?x?xi32, strided<[?, ?, 1]>>, %j: memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, %s: f32, %x: i32) {
  // expected-error @below {{(C15) block_m of a kernel that reads lists of blocks must divide 128, found 256}}
  attn.forward %q, %q, %q, %q scale(%s) blocks(%n, %i, %m, %j, %m, %j, %m, %j, %x, %x, %x, %x, %x, %x : memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, memref<?x?x?xi32, strided<[?, ?, 1]>>, memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>, i32, i32, i32, i32, i32, i32) schedule(<block_m = 256, block_n = 32, waves = 4, inst = #attn.inst<mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>) : memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>, memref<2x4x5x64xf16>
  return
}
