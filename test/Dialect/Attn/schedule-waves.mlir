// RUN: sed -e 's/INST/mfma_16x16x8/' -e 's/TYPE/bf16/' %s | aot-opt --attn-to-scheduled=chip=gfx908 --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s
// RUN: sed -e 's/INST/mfma_16x16x16/' -e 's/TYPE/f16/' %s | aot-opt --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s
// RUN: sed -e 's/INST/mfma_16x16x32/' -e 's/TYPE/f16/' %s | aot-opt --attn-to-scheduled="chip=gfx950 direct-copy=1" --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s
// RUN: sed -e 's/INST/wmma_16x16x16/' -e 's/TYPE/bf16/' %s | aot-opt --attn-to-scheduled=chip=gfx1100 --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s
// RUN: sed -e 's/INST/wmma_16x16x16/' -e 's/TYPE/f16/' %s | aot-opt --attn-to-scheduled=chip=gfx1201 --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt | FileCheck %s

// A schedule of every number of waves gives layouts that are read back: the
// second aot-opt parses what the first one wrote.

!t = memref<?x?x?x64xTYPE, strided<[?, ?, ?, 1]>>

// CHECK-LABEL: gpu.func @waves1(
// CHECK:         attn.dot {{.*}} wave = [], grid
func.func @waves1(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 16, block_n = 32, waves = 1, inst = <INST>, stages = 1, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @waves2(
// CHECK:         attn.dot {{.*}} wave = {{\[\[}}0, 16]], grid
func.func @waves2(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 32, block_n = 32, waves = 2, inst = <INST>, stages = 1, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @waves4(
// CHECK:         attn.dot {{.*}} wave = {{\[\[}}0, 16], [0, 32]], grid
func.func @waves4(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 64, block_n = 32, waves = 4, inst = <INST>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @waves8(
// CHECK:         attn.dot {{.*}} wave = {{\[\[}}0, 16], [0, 32], [0, 64]], grid
func.func @waves8(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 8, inst = <INST>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// CHECK-LABEL: gpu.func @waves16(
// CHECK:         attn.dot {{.*}} wave = {{\[\[}}0, 16], [0, 32], [0, 64], [0, 128]], grid
func.func @waves16(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 256, block_n = 32, waves = 16, inst = <INST>, stages = 2, waves_per_simd = 1, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// Four share their queries.
// CHECK-LABEL: gpu.func @waves16_split(
// CHECK:         attn.dot {{.*}} wave = {{\[\[}}0, 16], [0, 32], [0, 0], [0, 0]], grid
func.func @waves16_split(%t: !t, %o: !t, %s: f32) {
  attn.forward %t, %t, %t, %o scale(%s)
    schedule(<block_m = 64, block_n = 32, waves = 16, inst = <INST>, stages = 2, waves_per_simd = 1, rescale_threshold = 8, value_split = 4>)
    : !t, !t, !t, !t
  return
}
