// RUN: aot-opt %s --attn-to-scheduled | FileCheck %s --check-prefix=SCHEDULED
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles | aot-opt --attn-verify-stage=stage=tiles | FileCheck %s --check-prefix=TILES
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts | aot-opt --attn-verify-stage=stage=layouts -o /dev/null
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts --attn-layouts-to-lanes | aot-opt --attn-verify-stage=stage=lanes -o /dev/null
// RUN: aot-opt %s --attn-to-rocdl | aot-opt --attn-verify-stage=stage=rocdl -o /dev/null

// Each stage accepts its own form and refuses the form of the stage before.
// RUN: not aot-opt %s --attn-verify-stage=stage=scheduled 2>&1 | FileCheck %s --check-prefix=NOT-SCHEDULED
// RUN: aot-opt %s --attn-to-scheduled | not aot-opt --attn-verify-stage=stage=tiles 2>&1 | FileCheck %s --check-prefix=NOT-TILES
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles | not aot-opt --attn-verify-stage=stage=layouts 2>&1 | FileCheck %s --check-prefix=NOT-LAYOUTS
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts | not aot-opt --attn-verify-stage=stage=lanes 2>&1 | FileCheck %s --check-prefix=NOT-LANES
// RUN: aot-opt %s --attn-to-scheduled --attn-scheduled-to-tiles --attn-tiles-to-layouts --attn-layouts-to-lanes | not aot-opt --attn-verify-stage=stage=rocdl 2>&1 | FileCheck %s --check-prefix=NOT-ROCDL
// RUN: not aot-opt %s --attn-verify-stage=stage=hsaco 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not aot-opt %s --attn-verify-stage 2>&1 | FileCheck %s --check-prefix=NONE

// SCHEDULED: attn.forward {{.*}} schedule(
// TILES: gpu.func @forward
// NOT-SCHEDULED: error: 'attn.forward' op has no schedule (stage 'scheduled')
// NOT-TILES: error: 'attn.forward' op is not tiled (stage 'tiles')
// NOT-LAYOUTS: op gives a tile without a layout (stage 'layouts')
// NOT-LANES: op still works on tiles (stage 'lanes')
// NOT-ROCDL: op is neither llvm nor rocdl (stage 'rocdl')
// UNKNOWN: error: unknown stage 'hsaco'; known: scheduled, tiles, layouts, lanes, rocdl
// NONE: error: unknown stage ''; known: scheduled, tiles, layouts, lanes, rocdl

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @forward(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
