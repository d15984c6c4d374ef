// RUN: aot-opt %s --attn-to-scheduled=chip=gfx908 --attn-scheduled-to-tiles | FileCheck %s
// RUN: aot-opt %s --attn-to-scheduled=chip=gfx90a --attn-scheduled-to-tiles | FileCheck %s --check-prefix=UNIFIED

// Where sums have registers of their own, the rescale takes the accumulator from
// a matrix instruction and gives it to one: the loop carries nothing else.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @rescale(
// The branch may change the scores, so they are taken from there before it.
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = attn.to_vectors
// CHECK:           attn.reduce <max> %[[S]]
// CHECK:           scf.if
// CHECK:             %[[OLD:.*]] = attn.to_accumulators %{{.*}} inst<mfma_32x32x8> factor f16 : tensor<64x128xf32>
// CHECK:             %[[SCALED:.*]] = arith.mulf %[[OLD]], %{{.*}} : tensor<64x128xf32>
// CHECK:             %[[NEW:.*]] = attn.to_accumulators %[[SCALED]] inst<mfma_32x32x8> factor f16 : tensor<64x128xf32>
// CHECK-NOT:         attn.to_accumulators
// CHECK:             scf.yield {{.*}}%[[NEW]]

// UNIFIED-LABEL: gpu.func @rescale(
// UNIFIED-NOT:     attn.to_{{accumulators|vectors}}
// UNIFIED:         gpu.return
func.func @rescale(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
