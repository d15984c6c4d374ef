// RUN: aot-opt %s --split-input-file --attn-choose-schedule --attn-tile-backward --verify-diagnostics

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!b = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @types(%t: !t, %b: !b, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{(C1) element type of dk is 'bf16', but that of q is 'f16'}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %b, %t workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !b, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!k4 = memref<?x4x?x64xf16, strided<[?, ?, ?, 1]>>
!k8 = memref<?x8x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @heads(%t: !t, %k: !k4, %d: !k8, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{(C4) heads of dv is 8, but that of k is 4}}
  attn.backward %t, %k, %k, %t, %t, %l -> %t, %k, %d workspace(%w) scale(%s)
    : !t, !k4, !k4, !t, !t, !l -> !t, !k4, !k8, !w
  return
}

// -----

!t = memref<?x?x?x256xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @lds(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{the tiles of the dkdv kernel take 65792 bytes of LDS, but gfx942 has 65536; a smaller block_n, block_m or column_chunk fits}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @late(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{stages = 5 has dK a block late in kernels of all gradients; the dkdv kernel takes 1, 2 or 4}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 5, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Rows of neighbouring blocks are those of one view.
!t = memref<?x?x?x16xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @turns(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{blocks that go in turns are rows of one view, which has at most 256: with stages = 5 block_n must be at most 128, found 256}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<atomic,
      prepare = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      fused = <block_m = 64, block_n = 256, waves = 4, inst = <mfma_16x16x16>, stages = 5, waves_per_simd = 1, rescale_threshold = 0>,
      convert = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Two rows of dQ are a pair.
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @odd(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{sums of algorithm 'atomic16' are of two rows each: block_m of 'convert16' must be even, found 3}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<atomic16,
      prepare16 = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      fused16 = <block_m = 192, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 5, waves_per_simd = 1, rescale_threshold = 0>,
      convert16 = <block_m = 3, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @direct_copy(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{kernels of gradients load their tiles by way of registers: direct_copy must be 0, found 1}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 0, direct_copy = 1>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @segments(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{the tiles of the dq kernel take 98304 bytes of LDS, but gfx942 has 65536; a smaller block_n, block_m or column_chunk fits}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 128, block_n = 128, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @chunk(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{column_chunk must be a multiple of 32 (the contraction of mfma_16x16x16), of 64 (its rows times value_split) and of 64 bytes, found 32}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 16, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0, value_split = 4, column_chunk = 32>,
      dq = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @chunk_segments(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{columns come in 2 chunks with 1 or 2 stages, found stages = 4; column_chunk = 0 has all}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 4, waves_per_simd = 1, rescale_threshold = 0, column_chunk = 64>,
      dq = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Residents in LDS are there in all their columns.
!t = memref<?x?x?x512xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @chunk_lds(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{the tiles of the dkdv kernel take 73856 bytes of LDS, but gfx942 has 65536; a smaller block_n, block_m or column_chunk fits}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 32, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0, value_split = 2, queries_in_lds = 1, column_chunk = 64>,
      dq = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @anew_without_chunks(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{queries_in_lds = 2 reads operands of the dkdv kernel in chunks: column_chunk must be less than the head dimension, found 0}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0, queries_in_lds = 2>,
      dq = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @two(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-note @below {{the first is here}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  // expected-error @below {{is the second of its function; a function holds one}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @algorithm(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    // expected-error @below {{unknown algorithm 'random'; known: deterministic, atomic, atomic16}}
    schedule(<random>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Waves that share columns of dQ split its queries, which must be whole
// instructions.
!t = memref<?x?x?x32xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @shares(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{dQ of 16 queries by 32 columns does not divide over 4 waves; a larger block_n or fewer waves fit}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<atomic,
      prepare = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      fused = <block_m = 64, block_n = 16, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 0, queries_in_lds = 1>,
      convert = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<2x4x5x64xf16>
!l = memref<2x4x5xf32>
!w = memref<?xi8>
func.func @dlse(%t: !t, %l: !l, %w: !w, %s: f32, %dlse: memref<2x4x6xf32>) {
  // expected-error @below {{(C7) sequence length of dlse is 6, but that of q is 5}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    dlse(%dlse : memref<2x4x6xf32>) : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<2x4x5x64xf16>
!l = memref<2x4x5xf32>
!w = memref<?xi8>
func.func @sinks_alone(%t: !t, %l: !l, %w: !w, %s: f32, %sinks: memref<4xf32>) {
  // expected-error @below {{(C14) has sinks and no dsinks to receive their gradient; give both or neither}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    sinks(%sinks : memref<4xf32>) : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<2x4x5x64xf16>
!l = memref<2x4x5xf32>
!w = memref<?xi8>
func.func @dsinks(%t: !t, %l: !l, %w: !w, %s: f32, %sinks: memref<4xf32>, %dsinks: memref<3xf32>) {
  // expected-error @below {{(C14) heads of dsinks is 3, but that of q is 4}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    sinks(%sinks : memref<4xf32>) dsinks(%dsinks : memref<3xf32>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
