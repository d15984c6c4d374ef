// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 | FileCheck %s
// RUN: not aot-opt %s --attn-to-scheduled=chip=gfx1010 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not aot-opt %s --attn-to-hsaco=chip=gfx1010 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not aot-opt %s --attn-to-rocdl=chip= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not aot-opt %s --attn-to-hsaco=tile=3 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: aot-opt %s --attn-to-hsaco=O=1 | FileCheck %s --check-prefix=LEVEL

// CHECK: attributes {attn.target = #attn.target<"gfx942">}
// CHIP: error: 'attn.forward' op unknown chip 'gfx1010'; known: gfx908, gfx90a, gfx942
// EMPTY: error: 'attn.forward' op unknown chip ''; known: gfx908, gfx90a, gfx942
// OPTION: no such option tile
// LEVEL: #rocdl.target<O = 1, chip = "gfx942">

!t = memref<?x?x?x16xf16, strided<[?, ?, ?, 1]>>
func.func @forward(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
