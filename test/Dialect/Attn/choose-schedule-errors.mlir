// RUN: aot-opt %s --split-input-file --attn-choose-schedule --verify-diagnostics
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=chip=gfx803 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=waves=5 2>&1 | FileCheck %s --check-prefix=WAVES
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=inst=wmma_16x16x16 2>&1 | FileCheck %s --check-prefix=INST
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=inst=mfma_4x4x4 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=rescale-threshold=-2 2>&1 | FileCheck %s --check-prefix=RESCALE
// RUN: not aot-opt %s --split-input-file --attn-choose-schedule=queries-in-lds=-2 2>&1 | FileCheck %s --check-prefix=QUERIES

// What a chip cannot run is refused with the value and the limit.

// CHIP: error: 'attn.forward' op unknown chip 'gfx803'; known: gfx908, gfx90a, gfx942
// WAVES: error: 'attn.forward' op waves must be 1, 2, 4, 8 or 16, found 5
// RESCALE: error: 'attn.forward' op rescale_threshold must be in [0, 8], found -2
// QUERIES: error: 'attn.forward' op queries_in_lds must be 0, 1, 2 or 3, found -2
// INST: error: 'attn.forward' op gfx942 has no matrix instruction 'wmma_16x16x16' for 'f16'; it has mfma_32x32x8, mfma_16x16x16
// UNKNOWN: error: 'attn.forward' op unknown matrix instruction 'mfma_4x4x4'; use one of mfma_32x32x16, mfma_16x16x32, mfma_32x32x8,

!t64 = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @instruction(%t: !t64, %s: f32) {
  // expected-error @below {{gfx942 has no matrix instruction 'mfma_32x32x16' for 'f16'; it has mfma_32x32x8, mfma_16x16x16}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t64, !t64, !t64, !t64
  return
}

// -----

!t64 = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @block_m(%t: !t64, %s: f32) {
  // expected-error @below {{block_m must be a multiple of 128 (waves / value_split times the 32 columns of mfma_32x32x8), found 64}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 64, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t64, !t64, !t64, !t64
  return
}

// -----

!t64 = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @block_n(%t: !t64, %s: f32) {
  // expected-error @below {{block_n must be a multiple of 32, found 16}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 16, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t64, !t64, !t64, !t64
  return
}

// -----

!t256 = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>
func.func @column_chunk(%t: !t256, %s: f32) {
  // expected-error @below {{of forward kernels queries_in_lds = 2 and column_chunk go together, found 0 and 64}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8, column_chunk = 64>)
    : !t256, !t256, !t256, !t256
  return
}

// -----

!t256 = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>
func.func @lds(%t: !t256, %s: f32) {
  // expected-error @below {{K and V tiles of 128 keys by 256 take 131072 bytes of LDS, but gfx942 has 65536; a smaller block_n fits}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 128, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t256, !t256, !t256, !t256
  return
}

// -----

!t256 = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>
func.func @registers(%t: !t256, %s: f32) {
  // expected-error @below {{the output and Q take 1536 registers a lane, but 1 waves a SIMD leave each 512; a smaller block_m, a larger value_split or queries_in_lds fit}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 256, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t256, !t256, !t256, !t256
  return
}

// -----

// Eight waves of a workgroup are two a SIMD, whatever occupancy is asked for.
!t256 = memref<?x?x?x256xbf16, strided<[?, ?, ?, 1]>>
func.func @eight_waves(%t: !t256, %s: f32) {
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 256, block_n = 32, waves = 8, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t256, !t256, !t256, !t256
  // expected-error @below {{the output and Q take 192 registers a lane, but 3 waves a SIMD leave each 168; a smaller block_m, a larger value_split or queries_in_lds fit}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 256, block_n = 32, waves = 8, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 3, rescale_threshold = 8>)
    : !t256, !t256, !t256, !t256
  return
}

// -----

!t64 = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @direct_copy(%t: !t64, %s: f32) {
  // expected-error @below {{direct_copy needs loads of 16 bytes a lane to LDS and transposing reads from there, which gfx942 does not have; use 0}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t64, !t64, !t64, !t64
  return
}

// -----

!mask = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
!n = memref<1xi64>
func.func @mask(%mask: !mask, %a: !n, %t: i32, %s: f32, %x: i64) {
  // expected-error @below {{block_m and block_n of a mask's kernel must be powers of two with block_n at least 32 and 8 to 128 elements for each of 64 lanes, found 256 and 256}}
  attn.dropout_mask %mask dropout(%a, %a, %a, %a, %t, %s, %t, %x, %x : !n, !n, !n, !n, i32, f32, i32, i64, i64)
    schedule(<block_m = 256, block_n = 256, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 4, rescale_threshold = 0>) : !mask
  return
}
