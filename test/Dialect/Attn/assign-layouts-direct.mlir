// RUN: aot-opt %s --attn-to-scheduled="chip=gfx950 direct-copy=1 stages=2 waves=4 block-m=128" --attn-scheduled-to-tiles --attn-tiles-to-layouts | FileCheck %s

// Copies past the registers fill LDS in the order of lanes, waves and accesses:
// 8 columns a lane, 16 lanes a row, 4 rows a wave.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @direct(
// Rows of K are read 16 bytes at a time, four rows of V 64 bytes at a time:
// each tile has the swizzle of its own reads.
// CHECK:         attn.alloc_lds buffers 2 : <64 x 128 x bf16, <chunks = 16, shifts = [{{[0-9, ]+}}]>>
// CHECK:         attn.alloc_lds buffers 2 : <64 x 128 x bf16, <chunks = 16, shifts = [-2]>>
// CHECK:         attn.copy_lds {{.*}} layout <reg = {{\[\[}}0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = {{\[\[}}0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0]], wave = {{\[\[}}4, 0], [8, 0]], grid = [1, 1]>
// V is held as the second product's left factor wants it: columns over lanes,
// keys in registers.
// CHECK:         scf.for
// CHECK:           attn.lds_buffer %{{.*}}[%{{.*}}] : <64 x 128 x bf16, <chunks = 16, shifts = [-2]>>
// CHECK:           attn.load_lds %{{.*}} -> tensor<64x128xbf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 8], [0, 4], [0, 16], [8, 0]]
func.func @direct(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
