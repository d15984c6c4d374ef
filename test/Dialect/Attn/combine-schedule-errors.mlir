// RUN: aot-opt %s --split-input-file --attn-choose-schedule --verify-diagnostics

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
func.func @rows(%q: !t, %k: !t, %v: !t, %out: !t, %s: f32) {
  // expected-error @below {{waves of the kernel that combines share the columns of few rows: block_m must be a power of two to 8 and value_split waves, found 16, and 1 of 1}}
  attn.forward %q, %k, %v, %out scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    combine(<block_m = 16, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
func.func @waves(%q: !t, %k: !t, %v: !t, %out: !t, %s: f32) {
  // expected-error @below {{block_m must be a power of two to 8 and value_split waves, found 1, and 2 of 4}}
  attn.forward %q, %k, %v, %out scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    combine(<block_m = 1, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0, value_split = 2>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
func.func @registers(%q: !t, %k: !t, %v: !t, %out: !t, %s: f32) {
  // expected-error @below {{sums of 128 shares take 256 registers a lane, more than 128; a smaller block_n fits}}
  attn.forward %q, %k, %v, %out scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    combine(<block_m = 1, block_n = 128, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>)
    : !t, !t, !t, !t
  return
}
