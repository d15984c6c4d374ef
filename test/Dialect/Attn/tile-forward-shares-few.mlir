// RUN: aot-opt %s --attn-choose-schedule=algorithm=split --attn-tile-forward | FileCheck %s
// RUN: aot-compile --target=gfx1201,gfx908,gfx942 --op=forward --dtype=bf16 --head-dim=128 \
// RUN:   --algorithm=split --block-m=16 --value-split=4 --emit=mlir --stage=scheduled -o %t
// RUN: cat %t/*.mlir | FileCheck %s --check-prefix=ROOM

// Of few rows shares are many. The kernel that combines tells them apart by
// halves, so that none passes the code of all others.
// CHECK: gpu.func @few_combine_v2(
// CHECK: scf.if
// CHECK: scf.if
// CHECK: attn.load %{{.*}} -> tensor<16x128xf32>
// CHECK: scf.if
// CHECK: attn.load %{{.*}} -> tensor<32x128xf32>
// CHECK: } else {
// CHECK: attn.load %{{.*}} -> tensor<64x128xf32>
// CHECK: scf.if
// CHECK: attn.load %{{.*}} -> tensor<128x128xf32>
// CHECK: scf.if
// CHECK: attn.load %{{.*}} -> tensor<256x128xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: attn.load %{{.*}} -> tensor<256x128xf32>

// As many at once as a lane has registers for: gfx1201, gfx908, gfx942.
// ROOM: combine(<block_m = 1, block_n = 128, waves = 4,
// ROOM-COUNT-2: combine(<block_m = 1, block_n = 256, waves = 4,
!tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
module {
  func.func @few(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor, %scale: f32) {
    attn.forward %q, %k, %v, %out scale(%scale)
      schedule(<block_m = 16, block_n = 64, waves = 4, inst = <mfma_16x16x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8, value_split = 4>)
      combine(<block_m = 1, block_n = 256, waves = 4, inst = <mfma_16x16x16>, stages = 1, waves_per_simd = 2, rescale_threshold = 0, value_split = 4>)
      : !tensor, !tensor, !tensor, !tensor
    return
  }
}
