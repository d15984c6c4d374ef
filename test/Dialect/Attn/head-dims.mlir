// RUN: aot-opt %s | FileCheck %s
// RUN: aot-opt %s --mlir-print-op-generic | aot-opt | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 --attn-tile-forward --canonicalize --cse | FileCheck %s --check-prefix=TILES
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=GFX950
// RUN: not aot-opt %s --attn-to-rocdl='chip=gfx950 direct-copy=1' 2>&1 | FileCheck %s --check-prefix=DIRECT

// Rows of fewer elements than columns. K is cut on its way to LDS; V's columns
// are those of the output, and need no look. Column 8 of an odd number of
// elements is the one before it once more. Schedules copy nothing past
// registers, where nothing could be cut.

!tensor = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[QK:[^:]*]]: i32, %[[V:[^:]*]]: i32)
// CHECK:         attn.forward %{{.*}} scale(%{{.*}}) head_dims(%[[QK]], %[[V]])
// TILES-LABEL: gpu.func @forward(
// TILES-DAG:     %[[ELEMENTS:.*]] = arith.minsi %{{.*}}, %c64_i32
// TILES-DAG:     %[[AGAIN:.*]] = arith.andi %[[ELEMENTS]], %{{.*}} : i32
// TILES-DAG:     %[[QK:.*]] = arith.addi %[[ELEMENTS]], %[[AGAIN]] : i32
// TILES:         attn.view %arg0{{.*}} columns %[[QK]] again %[[AGAIN]] : <64 x bf16>
// TILES:         attn.cut %{{.*}} columns %[[QK]] again %[[AGAIN]] : tensor<128x64xbf16>
// TILES:         attn.view %arg2{{.*}} again %{{.*}} loose : <64 x bf16>
// TILES:         %[[KEYS:.*]] = attn.cut %{{.*}} columns %[[QK]] again %[[AGAIN]] : tensor<64x64xbf16>
// TILES:         attn.store_lds %[[KEYS]]
// TILES-NOT:     attn.cut {{.*}} columns %{{.*}} : tensor<64x128
// TILES:         attn.view %arg3{{.*}} columns %{{.*}} again
// GFX950-NOT:    direct_copy
// DIRECT:        can't cut columns that are known at run time; schedules of such kernels have direct_copy = 0
func.func @forward(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                   %scale: f32, %qk: i32, %dim_v: i32) {
  attn.forward %q, %k, %v, %out scale(%scale) head_dims(%qk, %dim_v)
    : !tensor, !tensor, !tensor, !tensor
  return
}
