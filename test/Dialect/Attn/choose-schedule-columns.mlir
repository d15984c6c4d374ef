// RUN: aot-opt %s --attn-choose-schedule=chip=gfx908 | FileCheck %s --check-prefix=GFX908
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx942 | FileCheck %s --check-prefix=GFX942
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx950 | FileCheck %s --check-prefix=GFX950
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx1100 | FileCheck %s --check-prefix=GFX11
// RUN: aot-opt %s --attn-choose-schedule=chip=gfx1201 | FileCheck %s --check-prefix=GFX12
// RUN: aot-opt %s --attn-choose-schedule='chip=gfx942 algorithm=atomic16' | FileCheck %s --check-prefix=PAIRS

// Gradients of large head dimensions: what LDS does not hold comes in chunks.

!t264 = memref<?x?x?x264xf16, strided<[?, ?, ?, 1]>>
!t512 = memref<?x?x?x512xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>

// GFX908: dkdv = <block_m = 64, {{[^>]*>[^>]*}}column_chunk = 128>, dq = <block_m = 64, {{[^>]*>[^>]*}}column_chunk = 256>>
// GFX942: dkdv = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>, dq = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>>
// GFX950: dkdv = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>, dq = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>>
// GFX11: dkdv = <block_m = 32, {{[^>]*>[^>]*}}value_split = 4, queries_in_lds = 1, column_chunk = 64>, dq = <block_m = 32, {{[^>]*>[^>]*}}column_chunk = 64>>
// GFX12: dkdv = <block_m = 32, {{[^>]*>[^>]*}}value_split = 4, queries_in_lds = 1, column_chunk = 64>, dq = <block_m = 32, {{[^>]*>[^>]*}}column_chunk = 64>>
// Chunks may not end behind the memory of sums in pairs.
// PAIRS: fused16 = <block_m = 32, {{[^>]*>[^>]*}}column_chunk = 64>
func.func @d264(%t: !t264, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t264, !t264, !t264, !t264, !t264, !l -> !t264, !t264, !t264, !w
  return
}

// GFX908: dkdv = <block_m = 32, {{[^>]*>[^>]*}}value_split = 2, column_chunk = 256>, dq = <block_m = 64, {{[^>]*>[^>]*}}column_chunk = 256>>
// GFX942: dkdv = <block_m = 32, {{[^>]*>[^>]*}}value_split = 2, column_chunk = 256>, dq = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>>
// GFX950: dkdv = <block_m = 32, {{[^>]*>[^>]*}}value_split = 2>, dq = <block_m = 64, {{[^>]*>[^>]*}}rescale_threshold = 0>>
// GFX11: dkdv = <block_m = 16, block_n = 16, waves = 8, {{[^>]*>[^>]*}}value_split = 8, queries_in_lds = 1, column_chunk = 128>, dq = <block_m = 16, {{[^>]*>[^>]*}}column_chunk = 128>>
// GFX12: dkdv = <block_m = 16, block_n = 16, waves = 4, {{[^>]*>[^>]*}}value_split = 4, queries_in_lds = 1, column_chunk = 64>, dq = <block_m = 16, {{[^>]*>[^>]*}}column_chunk = 128>>
// PAIRS: fused16 = <block_m = 32, {{[^>]*>[^>]*}}column_chunk = 256>
func.func @d512(%t: !t512, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    : !t512, !t512, !t512, !t512, !t512, !l -> !t512, !t512, !t512, !w
  return
}
