// RUN: aot-opt %s | FileCheck %s
// RUN: aot-opt %s --mlir-print-op-generic | aot-opt | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 --attn-tile-dropout-mask | FileCheck %s --check-prefix=TILES

// The op of attention that drops weights writes which ones, in a loop over keys.

!mask = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
!n = memref<1xi64>

// CHECK-LABEL: func.func @mask(
// CHECK: attn.dropout_mask %{{.*}} dropout(%{{.*}} : memref<1xi64>, memref<1xi64>, memref<1xi64>, memref<1xi64>, i32, f32, i32, i64, i64) : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
// TILES-LABEL: gpu.func @mask(
// TILES-SAME: mask_stride_seq
// TILES: scf.for
// TILES: %[[KEPT:.*]] = attn.dropout {{.*}} queries_are_rows negates : tensor<16x256xf32>
// TILES: %[[NARROW:.*]] = arith.truncf %[[KEPT]]
// TILES: attn.scatter %[[NARROW]], {{.*}} : tensor<16x256xbf16>, tensor<16x256xi32>
// TILES-NOT: attn.dropout_mask
func.func @mask(%mask: !mask, %a: !n, %b: !n, %c: !n, %d: !n, %t: i32, %s: f32, %f: i32, %x: i64, %y: i64) {
  attn.dropout_mask %mask dropout(%a, %b, %c, %d, %t, %s, %f, %x, %y : !n, !n, !n, !n, i32, f32, i32, i64, i64) : !mask
  return
}
