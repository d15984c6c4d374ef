// RUN: aot-opt %s --attn-choose-schedule | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 | FileCheck %s
// RUN: aot-opt %s --attn-choose-schedule --remarks-filter=attn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: aot-opt %s --attn-choose-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty

// QUIET-NOT: {{.}}

!t16 = memref<?x?x?x16xf16, strided<[?, ?, ?, 1]>>
!t80 = memref<?x?x?x80xf16, strided<[?, ?, ?, 1]>>
!t88 = memref<?x?x?x88xbf16, strided<[?, ?, ?, 1]>>
!t128 = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
!t136 = memref<?x?x?x136xbf16, strided<[?, ?, ?, 1]>>
!t192 = memref<?x?x?x192xf16, strided<[?, ?, ?, 1]>>
!t200 = memref<?x?x?x200xf16, strided<[?, ?, ?, 1]>>
!t256 = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>

// The table by head dimension, at both ends of each row.

// CHECK-LABEL: func.func @d16(
// CHECK-SAME:    attributes {attn.target = #attn.target<"gfx942">}
// CHECK: attn.forward {{.*}} schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
// REMARK: remark: {{.*}}schedule{{.*}}head_dim 16 on gfx942: block_m=128,block_n=64,waves=4,inst=mfma_32x32x8,stages=4,waves_per_simd=2,rescale_threshold=8
func.func @d16(%t: !t16, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t16, !t16, !t16, !t16
  return
}

// CHECK-LABEL: func.func @d80(
// CHECK: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
func.func @d80(%t: !t80, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t80, !t80, !t80, !t80
  return
}

// CHECK-LABEL: func.func @d88(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
func.func @d88(%t: !t88, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t88, !t88, !t88, !t88
  return
}

// CHECK-LABEL: func.func @d128(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
// REMARK: head_dim 128 on gfx942: block_m=128,block_n=32
func.func @d128(%t: !t128, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t128, !t128, !t128, !t128
  return
}

// CHECK-LABEL: func.func @d136(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
func.func @d136(%t: !t136, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t136, !t136, !t136, !t136
  return
}

// CHECK-LABEL: func.func @d192(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
func.func @d192(%t: !t192, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t192, !t192, !t192, !t192
  return
}

// CHECK-LABEL: func.func @d200(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
func.func @d200(%t: !t200, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t200, !t200, !t200, !t200
  return
}

// CHECK-LABEL: func.func @d256(
// CHECK: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
func.func @d256(%t: !t256, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s) : !t256, !t256, !t256, !t256
  return
}

// A schedule written by hand is kept.
// CHECK-LABEL: func.func @by_hand(
// CHECK: schedule(<block_m = 32, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 3, rescale_threshold = 2>)
// REMARK: head_dim 16 on gfx942: block_m=32,block_n=128,waves=2,inst=mfma_16x16x16,stages=1,waves_per_simd=3,rescale_threshold=2
func.func @by_hand(%t: !t16, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 32, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 3, rescale_threshold = 2>)
    : !t16, !t16, !t16, !t16
  return
}

// A function without attention is left alone.
// CHECK-LABEL: func.func @other(
// CHECK-NOT:   attn.
// CHECK:       return
func.func @other(%s: f32) -> f32 {
  return %s : f32
}
