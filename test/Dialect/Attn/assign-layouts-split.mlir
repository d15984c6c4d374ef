// RUN: aot-opt %s --split-input-file --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts | FileCheck %s

// Two waves share 32 queries: their scores are the same (a wave bit of zero),
// the rows of the output are dealt to them (a wave bit along dimension 0). The
// queries wait in LDS and are read in each iteration.

!t = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @shared_queries(
// CHECK-DAG:     %[[K:.*]] = attn.alloc_lds : <32 x 256 x bf16
// CHECK-DAG:     %[[V:.*]] = attn.alloc_lds : <256 x 32 x bf16
// CHECK:         %[[Q:.*]] = attn.alloc_lds : <64 x 256 x bf16
// CHECK:         attn.store_lds %{{.*}}, %[[Q]]
// CHECK:         scf.for
// CHECK:           amdgpu.lds_barrier
// CHECK:           %[[KEYS:.*]] = attn.load_lds %[[K]] {{.*}} wave = {{\[\[}}0, 0], [0, 0]]
// CHECK:           %[[ROWS:.*]] = attn.load_lds %[[Q]] {{.*}} wave = {{\[\[}}32, 0], [0, 0]]
// CHECK:           %[[QUERIES:.*]] = attn.transpose %[[ROWS]]
// CHECK:           attn.dot %[[KEYS]], %[[QUERIES]], %{{.*}} inst<mfma_32x32x8> : {{.*}} tensor<32x64xf32, {{.*}} wave = {{\[\[}}0, 32], [0, 0]]
// CHECK:           %[[VALUES:.*]] = attn.load_lds %[[V]] {{.*}} wave = {{\[\[}}0, 0], [32, 0]]
// CHECK:           attn.dot %[[VALUES]], %{{.*}}, %{{.*}} inst<mfma_32x32x8> split_rows : {{.*}} tensor<256x64xf32, {{.*}} wave = {{\[\[}}0, 32], [32, 0]], grid = [4, 1]
func.func @shared_queries(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 64, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8, value_split = 2, queries_in_lds = 1>)
    : !t, !t, !t, !t
  return
}
