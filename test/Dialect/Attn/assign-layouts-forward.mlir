// RUN: aot-opt %s --split-input-file --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts | FileCheck %s

// Layouts of whole kernels. In each, the accumulator of the first product feeds
// the second as it is; no layout is converted anywhere.

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @d64_f16(
// CHECK-NOT:     attn.convert_layout
// Q is read from memory as the first product wants it, 16 bytes a lane.
// CHECK:         attn.load {{.*}} -> tensor<128x64xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = {{\[\[}}32, 0], [64, 0]], grid = [1, 4]>>
// K is copied 16 bytes a lane along a row, neighbours beside one another.
// CHECK:         %[[K:.*]] = attn.load {{.*}} -> tensor<64x64xf16, [[KCOPY:#attn.layout<reg = \[\[0, 1\], \[0, 2\], \[0, 4\]\], lane = \[\[0, 8\], \[0, 16\], \[0, 32\], \[1, 0\], \[2, 0\], \[4, 0\]\], wave = \[\[8, 0\], \[16, 0\]\], grid = \[2, 1\]>]]>
// CHECK:         attn.store_lds %[[K]], %[[KLDS:.*]] : tensor<64x64xf16, [[KCOPY]]>
// CHECK:         scf.for
// CHECK:           attn.dot %{{.*}} inst<mfma_32x32x8>
// CHECK-SAME:        : tensor<64x64xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [2, 4]>>
// CHECK-SAME:        tensor<64x128xf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [4, 1]>>
// CHECK-SAME:        tensor<64x128xf32, [[ACC:#attn.layout<reg = \[\[1, 0\], \[2, 0\], \[4, 0\], \[16, 0\]\], lane = \[\[0, 1\], \[0, 2\], \[0, 4\], \[0, 8\], \[0, 16\], \[8, 0\]\], wave = \[\[0, 32\], \[0, 64\]\], grid = \[2, 1\]>]]>
// V is written turned, along a column of K's block.
// CHECK:           attn.store_lds %{{.*}} : tensor<64x64xf16, #attn.layout<reg = {{\[\[}}1, 0]
// CHECK:           %[[P:.*]] = attn.round {{.*}} <nearest_even> : tensor<64x128xf32, [[ACC]]> -> tensor<64x128xf16, [[ACC]]>
// CHECK-NOT:       attn.convert_layout
// CHECK:           attn.dot %{{.*}}, %[[P]], %{{.*}} inst<mfma_32x32x8>
// The left operand holds the keys in P's order.
// CHECK-SAME:        : tensor<64x64xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [2, 2]>>
// CHECK-SAME:        tensor<64x128xf16, [[ACC]]>
// CHECK-SAME:        tensor<64x128xf32, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [2, 1]>>
// CHECK-NOT:     attn.convert_layout
// CHECK:         gpu.return
func.func @d64_f16(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x96xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @d96_bf16(
// CHECK-NOT:     attn.convert_layout
// Q is read from memory as the first product wants it, 16 bytes a lane.
// CHECK:         attn.load {{.*}} -> tensor<128x96xbf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = {{\[\[}}32, 0], [64, 0]], grid = [1, 6]>>
// K is copied 16 bytes a lane along a row, neighbours beside one another.
// CHECK:         %[[K:.*]] = attn.load {{.*}} -> tensor<64x96xbf16, [[KCOPY:#attn.layout<reg = \[\[0, 1\], \[0, 2\], \[0, 4\]\], lane = \[\[0, 8\], \[0, 16\], \[1, 0\], \[2, 0\], \[4, 0\], \[8, 0\]\], wave = \[\[16, 0\], \[32, 0\]\], grid = \[1, 3\]>]]>
// CHECK:         attn.store_lds %[[K]], %[[KLDS:.*]] : tensor<64x96xbf16, [[KCOPY]]>
// CHECK:         scf.for
// CHECK:           attn.dot %{{.*}} inst<mfma_32x32x8>
// CHECK-SAME:        : tensor<64x96xbf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [2, 6]>>
// CHECK-SAME:        tensor<96x128xbf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [6, 1]>>
// CHECK-SAME:        tensor<64x128xf32, [[ACC:#attn.layout<reg = \[\[1, 0\], \[2, 0\], \[4, 0\], \[16, 0\]\], lane = \[\[0, 1\], \[0, 2\], \[0, 4\], \[0, 8\], \[0, 16\], \[8, 0\]\], wave = \[\[0, 32\], \[0, 64\]\], grid = \[2, 1\]>]]>
// V is written turned, along a column of K's block.
// CHECK:           attn.store_lds %{{.*}} : tensor<96x64xbf16, #attn.layout<reg = {{\[\[}}1, 0]
// CHECK:           %[[P:.*]] = attn.round {{.*}} <nearest_away> : tensor<64x128xf32, [[ACC]]> -> tensor<64x128xbf16, [[ACC]]>
// CHECK-NOT:       attn.convert_layout
// CHECK:           attn.dot %{{.*}}, %[[P]], %{{.*}} inst<mfma_32x32x8>
// The left operand holds the keys in P's order.
// CHECK-SAME:        : tensor<96x64xbf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [3, 2]>>
// CHECK-SAME:        tensor<64x128xbf16, [[ACC]]>
// CHECK-SAME:        tensor<96x128xf32, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [3, 1]>>
// CHECK-NOT:     attn.convert_layout
// CHECK:         gpu.return
func.func @d96_bf16(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @d128_f16(
// CHECK-NOT:     attn.convert_layout
// Q is read from memory as the first product wants it, 16 bytes a lane.
// CHECK:         attn.load {{.*}} -> tensor<128x128xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]], wave = {{\[\[}}32, 0], [64, 0]], grid = [1, 8]>>
// K is copied 16 bytes a lane along a row, neighbours beside one another.
// CHECK:         %[[K:.*]] = attn.load {{.*}} -> tensor<64x128xf16, [[KCOPY:#attn.layout<reg = \[\[0, 1\], \[0, 2\], \[0, 4\]\], lane = \[\[0, 8\], \[0, 16\], \[0, 32\], \[0, 64\], \[1, 0\], \[2, 0\]\], wave = \[\[4, 0\], \[8, 0\]\], grid = \[4, 1\]>]]>
// CHECK:         attn.store_lds %[[K]], %[[KLDS:.*]] : tensor<64x128xf16, [[KCOPY]]>
// CHECK:         scf.for
// CHECK:           attn.dot %{{.*}} inst<mfma_32x32x8>
// CHECK-SAME:        : tensor<64x128xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [2, 8]>>
// CHECK-SAME:        tensor<128x128xf16, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [8, 1]>>
// CHECK-SAME:        tensor<64x128xf32, [[ACC:#attn.layout<reg = \[\[1, 0\], \[2, 0\], \[4, 0\], \[16, 0\]\], lane = \[\[0, 1\], \[0, 2\], \[0, 4\], \[0, 8\], \[0, 16\], \[8, 0\]\], wave = \[\[0, 32\], \[0, 64\]\], grid = \[2, 1\]>]]>
// V is written turned, along a column of K's block.
// CHECK:           attn.store_lds %{{.*}} : tensor<128x64xf16, #attn.layout<reg = {{\[\[}}1, 0]
// CHECK:           %[[P:.*]] = attn.round {{.*}} <nearest_even> : tensor<64x128xf32, [[ACC]]> -> tensor<64x128xf16, [[ACC]]>
// CHECK-NOT:       attn.convert_layout
// CHECK:           attn.dot %{{.*}}, %[[P]], %{{.*}} inst<mfma_32x32x8>
// The left operand holds the keys in P's order.
// CHECK-SAME:        : tensor<128x64xf16, #attn.layout<reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [8, 0], [4, 0], [16, 0], [0, 8]], wave = {{\[\[}}0, 0], [0, 0]], grid = [4, 2]>>
// CHECK-SAME:        tensor<64x128xf16, [[ACC]]>
// CHECK-SAME:        tensor<128x128xf32, #attn.layout<reg = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = {{\[\[}}0, 32], [0, 64]], grid = [4, 1]>>
// CHECK-NOT:     attn.convert_layout
// CHECK:         gpu.return
func.func @d128_f16(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}
