// Stopping after each stage and starting again from the text gives what the
// whole pipeline gives, for every stage.

// RUN: aot-opt %s --attn-to-scheduled -o %t.scheduled
// RUN: aot-opt %t.scheduled --attn-scheduled-to-tiles -o %t.tiles
// RUN: aot-opt %t.tiles --attn-tiles-to-layouts -o %t.layouts
// RUN: aot-opt %t.layouts --attn-layouts-to-lanes -o %t.lanes
// RUN: aot-opt %t.lanes --attn-lanes-to-matrix-core -o %t.matrix
// RUN: aot-opt %t.matrix --attn-matrix-core-to-rocdl -o %t.rocdl
// RUN: aot-opt %t.rocdl --attn-rocdl-to-hsaco -o %t.hsaco
// RUN: aot-opt %s --attn-to-rocdl -o %t.rocdl.whole
// RUN: aot-opt %s --attn-to-hsaco -o %t.hsaco.whole
// RUN: diff %t.rocdl %t.rocdl.whole
// RUN: diff %t.hsaco %t.hsaco.whole

// Twice the same: nothing depends on addresses or time.
// RUN: aot-opt %s --attn-to-hsaco -o %t.hsaco.again
// RUN: diff %t.hsaco.whole %t.hsaco.again

// The form of each stage.
// RUN: FileCheck %s --check-prefix=SCHEDULED < %t.scheduled
// RUN: FileCheck %s --check-prefix=TILES < %t.tiles
// RUN: FileCheck %s --check-prefix=LAYOUTS < %t.layouts
// RUN: FileCheck %s --check-prefix=LANES < %t.lanes
// RUN: FileCheck %s --check-prefix=MATRIX < %t.matrix
// RUN: FileCheck %s --check-prefix=ROCDL < %t.rocdl
// RUN: FileCheck %s --check-prefix=HSACO < %t.hsaco

// SCHEDULED: attn.forward {{.*}} schedule(
// TILES-NOT: attn.layout
// TILES: attn.dot {{.*}} tensor<64x128xf32>{{$}}
// LAYOUTS: attn.dot {{.*}} #attn.layout
// LANES-NOT: tensor<
// LANES: attn.mma
// MATRIX-NOT: attn.mma
// MATRIX: amdgpu.mfma
// ROCDL-NOT: amdgpu.
// ROCDL: rocdl.mfma.f32.32x32x8bf16.1k
// HSACO: gpu.binary @forward [#gpu.object<#rocdl.target<O = 3, chip = "gfx942">, bin = "\7FELF

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
func.func @forward(%q: !t, %k: !t, %v: !t, %o: !t, %lse: memref<?x?x?xf32, strided<[?, ?, 1]>>, %s: f32) {
  attn.forward %q, %k, %v, %o lse(%lse) scale(%s) visible [#attn.causal<bottom_right>] : !t, !t, !t, !t, memref<?x?x?xf32, strided<[?, ?, 1]>>
  return
}
