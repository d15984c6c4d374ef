// A problem and a schedule written by hand.

// RUN: aot-compile %s --emit=mlir --stage=scheduled -o %t.d/ && cat %t.d/by_hand.gfx942.mlir | FileCheck %s --check-prefix=HAND
// HAND-NOT: @chosen
// HAND: func.func @by_hand(
// HAND: schedule(<block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 2, rescale_threshold = 0>)
// RUN: FileCheck %s --check-prefix=CHOSEN --input-file=%t.d/chosen.gfx942.mlir
// CHOSEN-NOT: @by_hand
// CHOSEN: func.func @chosen(
// CHOSEN: schedule(<block_m = {{[0-9]+}},

// Options replace single parameters; standard input works.
// RUN: aot-compile - --stages=2 --emit=mlir --stage=scheduled -o %t.two/ < %s
// RUN: FileCheck %s --check-prefix=TWO --input-file=%t.two/by_hand.gfx942.mlir
// TWO: block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 2,

// RUN: aot-compile %s --emit=none --report=text | FileCheck %s --check-prefix=REPORT
// REPORT: {{^}}by_hand {{.*}} compiled
// REPORT: {{^}}chosen {{.*}} compiled

// RUN: not aot-compile %s --dtype=bf16 --head-dim=64 -o %t.x 2>&1 | FileCheck %s --check-prefix=CONTRADICTS
// CONTRADICTS: aot-compile: error: --dtype: contradicts input file '{{.*}}input.mlir', which says what to compile
// CONTRADICTS: aot-compile: error: --head-dim: contradicts input file
// RUN: not aot-compile %s.not -o %t.x 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: aot-compile: error: input: cannot read '{{.*}}': No such file or directory

!q = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @by_hand(%q: !q, %k: !q, %v: !q, %o: !q, %scale: f32) attributes {attn.target = #attn.target<"gfx942">} {
  attn.forward %q, %k, %v, %o scale(%scale) schedule(<block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 2, rescale_threshold = 0>) : !q, !q, !q, !q
  return
}
func.func @chosen(%q: !q, %k: !q, %v: !q, %o: !q, %scale: f32) attributes {attn.target = #attn.target<"gfx942">} {
  attn.forward %q, %k, %v, %o scale(%scale) visible [#attn.causal<top_left>] : !q, !q, !q, !q
  return
}
