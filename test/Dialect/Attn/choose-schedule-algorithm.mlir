// RUN: aot-opt %s --split-input-file --attn-choose-schedule=algorithm=atomic --verify-diagnostics
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=algorithm=fast 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// The option names an algorithm; a schedule that is there may not contradict it.
// UNKNOWN: error: 'attn.backward' op unknown algorithm 'fast'; known: deterministic, atomic, atomic16

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @contradicts(%t: !t, %l: !l, %w: !w, %s: f32) {
  // expected-error @below {{has a schedule of algorithm 'deterministic', but option algorithm asks for 'atomic'; leave one of them out}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    schedule(<deterministic,
      delta = <block_m = 64, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>,
      dkdv = <block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>,
      dq = <block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 0>>)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
