// RUN: aot-opt %s --split-input-file --attn-tile-forward --verify-diagnostics

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @no_schedule(%t: !t, %o: !t, %s: f32) {
  // expected-error @below {{has no target or schedule; run attn-choose-schedule first}}
  attn.forward %t, %t, %t, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @no_target(%t: !t, %o: !t, %s: f32) {
  // expected-error @below {{has no target or schedule; run attn-choose-schedule first}}
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

// A schedule is checked again: it may not have come from attn-choose-schedule.
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @bad_schedule(%t: !t, %o: !t, %s: f32) attributes {attn.target = #attn.target<"gfx942">} {
  // expected-error @below {{block_m must be a multiple of 128}}
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @two(%t: !t, %o: !t, %s: f32) attributes {attn.target = #attn.target<"gfx942">} {
  // expected-note @below {{the first is here}}
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  // expected-error @below {{is the second of its function; a function holds one}}
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @operand(%t: !t, %o: !t) attributes {attn.target = #attn.target<"gfx942">} {
  %s = arith.constant 0.125 : f32
  // expected-error @below {{must take its operands from the function's arguments}}
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @company(%t: !t, %o: !t, %s: f32) attributes {attn.target = #attn.target<"gfx942">} {
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  // expected-error @below {{stands beside attn.forward; a kernel function holds nothing else}}
  gpu.barrier
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @branch(%t: !t, %o: !t, %s: f32, %wanted: i1) attributes {attn.target = #attn.target<"gfx942">} {
  scf.if %wanted {
    // expected-error @below {{stands inside 'scf.if'; it must stand in the body of its function}}
    attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  }
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// expected-error @below {{a function with attn.forward becomes a kernel, and so has one block and no results}}
func.func @blocks(%t: !t, %o: !t, %s: f32, %wanted: i1) attributes {attn.target = #attn.target<"gfx942">} {
  cf.cond_br %wanted, ^work, ^done
^work:
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  cf.br ^done
^done:
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// expected-error @below {{a function with attn.forward becomes a kernel, and so has one block and no results}}
func.func @result(%t: !t, %o: !t, %s: f32) -> f32 attributes {attn.target = #attn.target<"gfx942">} {
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return %s : f32
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @in_place(%t: !t, %s: f32) attributes {attn.target = #attn.target<"gfx942">} {
  // expected-error @below {{writes out, which is its operand q too; kernels read while they write: give it a tensor of its own}}
  attn.forward %t, %t, %t, %t scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// expected-error @below {{argument 2 is no operand of attn.forward, and its kernels would not have it; take it out}}
func.func @unused(%t: !t, %o: !t, %u: !t, %s: f32) attributes {attn.target = #attn.target<"gfx942">} {
  attn.forward %t, %t, %t, %o scale(%s) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @scalar_twice(%t: !t, %o: !t, %s: f32, %w: i32, %a: i32) attributes {attn.target = #attn.target<"gfx942">} {
  // expected-error @below {{takes the function's argument 3 2 times; of scalars each is an argument of its own}}
  attn.forward %t, %t, %t, %o scale(%s) visible [#attn.window] (%w, %w, %a) schedule(#schedule) : !t, !t, !t, !t
  return
}

// -----

// No key of a package names both.
#schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @two_parts(%t: !t, %o: !t, %s: f32, %l: i32, %r: i32, %a: i32) attributes {attn.target = #attn.target<"gfx942">} {
  // expected-error @below {{no key of a package says that its kernels have #attn.causal<top_left> beside what stands before it}}
  attn.forward %t, %t, %t, %o scale(%s) visible [#attn.window, #attn.causal<top_left>] (%l, %r, %a) schedule(#schedule) : !t, !t, !t, !t
  return
}
