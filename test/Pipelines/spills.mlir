// RUN: aot-opt %s --attn-to-hsaco -o /dev/null --verify-diagnostics

// A schedule that does not fit the registers compiles, runs, and is warned of.

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
// expected-warning @below {{kernel 'spills' spills}}
func.func @spills(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 96, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// The table's schedule does not.
func.func @fits(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
