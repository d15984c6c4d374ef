// RUN: aot-opt %s --attn-to-scheduled=chip=gfx950 --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s

// One wave copies a whole block of keys: a lane moves 512 elements, and its
// layout is read back all the same.

!t = memref<?x?x?x512xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @one_wave(
// CHECK:         attn.copy_lds {{.*}} layout <reg = {{\[\[}}0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = {{.*}}, wave = [], grid = [1, 1]>
func.func @one_wave(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 16, block_n = 64, waves = 1, inst = <mfma_16x16x32>, stages = 1, waves_per_simd = 1, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}
