// RUN: aot-opt %s --split-input-file --attn-choose-schedule=algorithm=flash --verify-diagnostics
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=algorithm=atomic 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: 'attn.forward' op unknown algorithm 'atomic'; known: flash, split

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @contradicts(%q: !t, %k: !t, %v: !t, %out: !t, %s: f32) {
  // expected-error @below {{has schedules of algorithm 'split', but option algorithm asks for 'flash'; leave one of them out}}
  attn.forward %q, %k, %v, %out scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    combine(<block_m = 1, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @alone(%q: !t, %k: !t, %v: !t, %out: !t, %s: f32) {
  // expected-error @below {{has a schedule of the kernel that combines and none of the one before it; give both or neither}}
  attn.forward %q, %k, %v, %out scale(%s)
    combine(<block_m = 1, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>)
    : !t, !t, !t, !t
  return
}
