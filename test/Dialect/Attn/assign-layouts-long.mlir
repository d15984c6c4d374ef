// RUN: aot-opt %s --attn-to-scheduled=chip=gfx950 --attn-scheduled-to-tiles --attn-tiles-to-layouts | FileCheck %s

// An instruction whose contraction is longer than the fragments of the scores
// takes two of them, which moves nothing between lanes.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @longer_contraction(
// CHECK:         scf.for
// CHECK:           attn.convert_layout %{{.*}} : tensor<32x64xf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0]], lane = [[LANES:.*]], wave = {{.*}}, grid = [2, 1]>> -> tensor<32x64xf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [16, 0]], lane = [[LANES]], wave = {{.*}}, grid = [1, 1]>>
func.func @longer_contraction(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 64, block_n = 32, waves = 4, inst = <mfma_16x16x32>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}
