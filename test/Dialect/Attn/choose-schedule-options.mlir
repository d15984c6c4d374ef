// RUN: aot-opt %s --attn-choose-schedule=block-m=256 | FileCheck %s --check-prefix=BLOCK-M
// RUN: aot-opt %s --attn-choose-schedule=block-n=32 | FileCheck %s --check-prefix=BLOCK-N
// RUN: aot-opt %s --attn-choose-schedule=waves=1 | FileCheck %s --check-prefix=WAVES
// RUN: aot-opt %s --attn-choose-schedule=stages=1 | FileCheck %s --check-prefix=STAGES
// RUN: aot-opt %s --attn-choose-schedule=inst=mfma_16x16x16 | FileCheck %s --check-prefix=INST
// RUN: aot-opt %s --attn-choose-schedule=waves-per-simd=1 | FileCheck %s --check-prefix=OCCUPANCY
// RUN: aot-opt %s --attn-choose-schedule=rescale-threshold=0 | FileCheck %s --check-prefix=RESCALE
// RUN: aot-opt %s --attn-choose-schedule="block-m=32 waves=1 stages=1" | FileCheck %s --check-prefix=ALL
// RUN: aot-opt %s --attn-choose-schedule="block-m=0 block-n=0 waves=0 stages=0 waves-per-simd=0 rescale-threshold=-1" | FileCheck %s --check-prefix=NONE

// Each option replaces one parameter, of a chosen schedule and of one written
// by hand; the default value of an option replaces nothing.

!t = memref<?x?x?x16xf16, strided<[?, ?, ?, 1]>>

func.func @chosen(%t: !t, %s: f32) {
  // BLOCK-M: schedule(<block_m = 256, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
  // BLOCK-N: schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
  // WAVES: schedule(<block_m = 128, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
  // STAGES: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 2, rescale_threshold = 8>)
  // INST: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_16x16x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
  // OCCUPANCY: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 1, rescale_threshold = 8>)
  // RESCALE: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 0>)
  // ALL: schedule(<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 2, rescale_threshold = 8>)
  // NONE: schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
  attn.forward %t, %t, %t, %t scale(%s) : !t, !t, !t, !t
  return
}

func.func @by_hand(%t: !t, %s: f32) {
  // BLOCK-M: schedule(<block_m = 256, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
  // BLOCK-N: schedule(<block_m = 64, block_n = 32, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
  // WAVES: schedule(<block_m = 64, block_n = 128, waves = 1, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
  // STAGES: schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 3, rescale_threshold = 2>)
  // INST: schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
  // OCCUPANCY: schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 1, rescale_threshold = 2>)
  // RESCALE: schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 0>)
  // ALL: schedule(<block_m = 32, block_n = 128, waves = 1, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 3, rescale_threshold = 2>)
  // NONE: schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 64, block_n = 128, waves = 2, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 3, rescale_threshold = 2>)
    : !t, !t, !t, !t
  return
}
