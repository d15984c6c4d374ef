// RUN: aot-opt %s --attn-choose-schedule='chip=gfx1201 algorithm=atomic passed-over=0,3' 2>&1 | FileCheck %s
// RUN: not aot-opt %s --attn-choose-schedule='chip=gfx1201 algorithm=atomic passed-over=0,4' 2>&1 | FileCheck %s --check-prefix=NONE

// Rows that this head dimension doesn't suit are none to take, and nothing is
// said of them.

!t = memref<?x?x?x24xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>

// CHECK-NOT: error
// CHECK: fused = <block_m = 32, block_n = 16, waves = 2,
// NONE-NOT: does not divide
// NONE: error: 'attn.backward' op no atomic schedule for gradients of head dimension 24 in 'f16' on gfx1201 behind those of passed-over=0,4
// NONE-NOT: error
func.func @backward(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
