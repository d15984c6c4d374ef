// RUN: aot-opt %s --attn-to-scheduled='chip=gfx942 algorithm=atomic16' --attn-scheduled-to-tiles | FileCheck %s
// RUN: not aot-opt %s --attn-to-scheduled='chip=gfx90a algorithm=atomic16' 2>&1 | FileCheck %s --check-prefix=LACKS
// RUN: aot-opt %s --attn-to-hsaco='chip=gfx1250 algorithm=atomic16' -o /dev/null
// RUN: not aot-opt %s --attn-to-scheduled='chip=gfx942 algorithm=atomic16 block-n=64' 2>&1 | FileCheck %s --check-prefix=BLOCK

// The algorithm that adds dQ up in memory in 16 bits, two rows at a time.
// LACKS: error: 'attn.backward' op algorithm 'atomic16' adds pairs of 'bf16' in memory, for which gfx90a has no instruction; use 'atomic'
// BLOCK: error: 'attn.backward' op algorithm 'atomic16' takes blocks of queries that divide 32, found block_n = 64

!t = memref<?x?x?x72xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>

// Rows of the workspace are padded to 64 columns.
// CHECK:       gpu.func @gradients_prepare16(
// CHECK:         %[[ZEROS:.*]] = arith.constant dense<0> : tensor<32x{{[0-9]+}}xi32>
// CHECK:         attn.store %[[ZEROS]], %{{.*}} : tensor<32x{{[0-9]+}}xi32>, <128 x i32>

// The scale comes before the rounding.
// CHECK:       gpu.func @gradients_fused16(
// CHECK:         %[[PARTS:.*]] = attn.dot {{.*}} column_waves 4
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<16x128xf32>
// CHECK:         %[[ROUNDED:.*]] = attn.round %[[SCALED]]{{.*}} tensor<16x128xbf16>
// CHECK:         attn.atomic_add %[[ROUNDED]], %{{.*}} : tensor<16x128xbf16>, <128 x i32>

// Even rows are the low halves, odd ones the high.
// CHECK:       gpu.func @gradients_convert16(
// CHECK-DAG:     %[[HALF:.*]] = arith.constant dense<16> : tensor<32x{{[0-9]+}}xi32>
// CHECK:         %[[PAIRS:.*]] = attn.load %{{.*}} : <128 x i32>
// CHECK:         %[[LOW:.*]] = arith.trunci %[[PAIRS]]
// CHECK:         %[[EVEN:.*]] = arith.bitcast %[[LOW]]
// CHECK:         attn.store %[[EVEN]], %{{.*}} : tensor<32x{{[0-9]+}}xbf16>, <72 x bf16>
// CHECK:         %[[HIGH:.*]] = arith.shrui %[[PAIRS]], %[[HALF]]
// CHECK:         %[[LAST:.*]] = arith.trunci %[[HIGH]]
// CHECK:         %[[ODD:.*]] = arith.bitcast %[[LAST]]
// CHECK:         attn.store %[[ODD]], %{{.*}} : tensor<32x{{[0-9]+}}xbf16>, <72 x bf16>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %do: !t, %l: !l, %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %s: f32) {
  attn.backward %q, %k, %v, %o, %do, %l -> %dq, %dk, %dv workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>
  return
}
