// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: aot-opt %s --attn-choose-schedule='chip=gfx942 passed-over=1,1,0' | FileCheck %s --check-prefixes=CHECK,KEYS
// RUN: aot-opt %s --attn-choose-schedule='chip=gfx942 passed-over=0,0,2' | FileCheck %s --check-prefixes=CHECK,QUERIES
// RUN: not aot-opt %s --attn-choose-schedule='chip=gfx942 passed-over=0,99' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not aot-opt %s --attn-choose-schedule='chip=gfx942 passed-over=99' 2>&1 | FileCheck %s --check-prefix=NONE-FORWARD

// Other schedules of the tables, of each kernel by itself, those most like the
// first before others; one that is as another is no choice more.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>

// CHECK-LABEL: @backward
// FIRST: dkdv = <block_m = 128, block_n = 32, {{.*}}mfma_16x16x16{{.*}}, dq = <block_m = 128, block_n = 32, {{.*}}mfma_16x16x16
// KEYS: dkdv = <block_m = 128, block_n = 32, {{[^>]*}}mfma_32x32x8{{.*}}, dq = <block_m = 128, block_n = 32, {{[^>]*}}mfma_16x16x16
// QUERIES: dkdv = <block_m = 128, block_n = 32, {{[^>]*}}mfma_16x16x16{{.*}}, dq = <block_m = 128, block_n = 32, {{[^>]*}}mfma_32x32x8
// NONE: error: 'attn.backward' op no deterministic schedule for gradients of head dimension 64 in 'bf16' on gfx942 behind those of passed-over=0,99
func.func @backward(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// CHECK-LABEL: @forward
// FIRST: schedule(<block_m = 128, block_n = 64
// KEYS: schedule(<block_m = 128, block_n = 32
// QUERIES: schedule(<block_m = 128, block_n = 64
// NONE-FORWARD: error: 'attn.forward' op no schedule for head dimension 64 in 'bf16' on gfx942 behind those of passed-over=99
func.func @forward(%t: !t, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t, !t, !t, !t
  return
}
