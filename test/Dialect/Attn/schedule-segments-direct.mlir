// RUN: aot-opt %s --split-input-file --attn-choose-schedule=chip=gfx950 --verify-diagnostics

// Segments on direct copies take blocks in two parts, and count what waves copy.

!t128 = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
func.func @block_n(%t: !t128, %s: f32) {
  // expected-error @below {{block_n must be a multiple of 64, found 32}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 256, block_n = 32, waves = 8, inst = <mfma_32x32x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t128, !t128, !t128, !t128
  return
}

// -----

!t64 = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @copies(%t: !t64, %s: f32) {
  // expected-error @below {{counts what each wave copies of 32 keys by 64, which are no multiple of 16 bytes for each of 512 lanes; a larger block_n or fewer waves divide}}
  attn.forward %t, %t, %t, %t scale(%s)
    schedule(<block_m = 256, block_n = 64, waves = 8, inst = <mfma_32x32x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t64, !t64, !t64, !t64
  return
}
