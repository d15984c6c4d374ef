// RUN: aot-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(convert-attn-to-lanes))'

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
// expected-error @below {{has no 'attn.target'}}
gpu.module @no_target {
  gpu.func @kernel() kernel attributes {attn.schedule = #schedule} {
    gpu.return
  }
}

// -----

// A lane bit and a wave bit trade places: elements would have to cross waves.
#from = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [[32, 0]], grid = [1, 1]>
#to = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [32, 0], [0, 4]], wave = [[16, 0]], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 64, block_n = 64, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @waves attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    %t = attn.load %view : !attn.view<8 x f32> -> tensor<64x8xf32, #from>
    // expected-error @below {{would have to move elements between waves, which is not supported}}
    // expected-error @below {{failed to legalize}}
    %m = attn.convert_layout %t : tensor<64x8xf32, #from> -> tensor<64x8xf32, #to>
    attn.store %m, %view : tensor<64x8xf32, #to>, !attn.view<8 x f32>
    gpu.return
  }
}

// -----

#tile = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @rounding attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #tile>
    // expected-error @below {{rounds ties away from zero for pairs of bf16 only}}
    // expected-error @below {{failed to legalize}}
    %m = attn.round %t <nearest_away> : tensor<32x8xf32, #tile> -> tensor<32x8xf16, #tile>
    %out = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
    attn.store %m, %out : tensor<32x8xf16, #tile>, !attn.view<8 x f16>
    gpu.return
  }
}

// -----

#tile = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#turned = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#row = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @reduction attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
    %t = attn.load %view : !attn.view<8 x f16> -> tensor<32x8xf16, #tile>
    %s = attn.transpose %t : tensor<32x8xf16, #tile>
    // expected-error @below {{reduces f16 by sum only}}
    // expected-error @below {{failed to legalize}}
    %m = attn.reduce <max> %s : tensor<8x32xf16, #turned> -> tensor<1x32xf32, #row>
    %r = attn.transpose %m : tensor<1x32xf32, #row>
    %out = attn.view %base[%offset] rows %n stride %n : !attn.view<1 x f32>
    attn.store %r, %out : tensor<32x1xf32, #attn.layout<reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 0]], wave = [], grid = [1, 1]>>, !attn.view<1 x f32>
    gpu.return
  }
}

// -----

#tile = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 4]>
#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @operands attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f16>
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16, #tile>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #acc>
    // expected-error @below {{has operand layouts that do not belong together}}
    // expected-error @below {{failed to legalize}}
    %d = attn.dot %a, %a, %zero inst<mfma_32x32x8> : tensor<32x32xf16, #tile>, tensor<32x32xf16, #tile>, tensor<32x32xf32, #acc>
    %out = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f32>
    attn.store %d, %out : tensor<32x32xf32, #acc>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_layout attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel() kernel attributes {attn.schedule = #schedule} {
    // expected-error @below {{has a tile without a layout, 'tensor<1x32xi32>'; run attn-assign-layouts first}}
    %column = attn.column_index : tensor<1x32xi32>
    gpu.return
  }
}

// -----

#small = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#smallt = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @sums attributes {attn.target = #attn.target<"gfx908">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    %turned = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
    %t = attn.transpose %turned : tensor<32x8xf32, #smallt>
    // expected-error @below {{has fragments that 'mfma_32x32x8' does not sum}}
    // expected-error @below {{failed to legalize}}
    %m = attn.to_accumulators %t inst<mfma_32x32x8> factor f16 : tensor<8x32xf32, #small>
    %back = attn.transpose %m : tensor<8x32xf32, #small>
    attn.store %back, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
    gpu.return
  }
}

// -----

#small = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#smallt = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @sums attributes {attn.target = #attn.target<"gfx908">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    %turned = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #smallt>
    %t = attn.transpose %turned : tensor<32x8xf32, #smallt>
    // expected-error @below {{gfx908 has no matrix instruction 'mfma_32x32x8' for 'bf16'}}
    // expected-error @below {{failed to legalize}}
    %m = attn.to_accumulators %t inst<mfma_32x32x8> factor bf16 : tensor<8x32xf32, #small>
    %back = attn.transpose %m : tensor<8x32xf32, #small>
    attn.store %back, %view : tensor<32x8xf32, #smallt>, !attn.view<8 x f32>
    gpu.return
  }
}

// -----

// Lanes of a 64-lane chip's layout that the kernel does not have.
#rows = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <wmma_16x16x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @lanes attributes {attn.target = #attn.target<"gfx1100">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    // expected-error @below {{has a layout of 1 waves of 64 lanes, but the kernel has 1 of 32}}
    %t = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32, #rows>
    attn.store %t, %view : tensor<32x8xf32, #rows>, !attn.view<8 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @copied_by_fewer attributes {attn.target = #attn.target<"gfx950">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %lds = attn.alloc_lds : <16 x 64 x f16>
    // expected-error @below {{has a layout of 2 waves of 64 lanes, but the kernel has 4 of 64}}
    attn.copy_lds %view, %lds layout <reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [[8, 0]], grid = [1, 1]> : !attn.view<64 x f16>, !attn.lds<16 x 64 x f16>
    gpu.return
  }
}

// -----

// One element of a contraction where the instruction takes four.
#a = #attn.layout<reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], wave = [], grid = [1, 16]>
#b = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0]], wave = [], grid = [16, 1]>
#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @narrow attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f16>
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16, #a>
    %b = attn.transpose %a : tensor<32x32xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #acc>
    // expected-error @below {{has operand layouts that do not belong together}}
    // expected-error @below {{failed to legalize}}
    %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<32x32xf16, #a>, tensor<32x32xf16, #b>, tensor<32x32xf32, #acc>
    %out = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f32>
    attn.store %d, %out : tensor<32x32xf32, #acc>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#one = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_pairs attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32, %flag: i1) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
    %t = attn.load %view : !attn.view<8 x f16> -> tensor<8x8xf16, #one>
    // expected-error @below {{changes the signs of pairs that a lane holds; a unit of this layout gives it one element}}
    // expected-error @below {{failed to legalize}}
    %m = attn.negate_if %t, %flag : tensor<8x8xf16, #one>
    attn.store %m, %view : tensor<8x8xf16, #one>, !attn.view<8 x f16>
    gpu.return
  }
}

// -----

#one = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_words attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
    %t = attn.load %view : !attn.view<8 x f16> -> tensor<8x8xf16, #one>
    // expected-error @below {{takes tiles of whole registers; a unit of this layout gives a lane 16 bits}}
    // expected-error @below {{failed to legalize}}
    %m = attn.pin %t : tensor<8x8xf16, #one>
    attn.store %m, %view : tensor<8x8xf16, #one>, !attn.view<8 x f16>
    gpu.return
  }
}

// -----

#wide = #attn.layout<reg = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [0, 0]], wave = [], grid = [1, 1]>
#one = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @two_layouts attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f32>
    %t = attn.load %view : !attn.view<8 x f32> -> tensor<8x8xf32, #one>
    %i = arith.constant dense<2> : tensor<8x8xi32, #wide>
    // expected-error @below {{has operands in another layout than its result's; attn.convert_layout goes before it}}
    // expected-error @below {{failed to legalize}}
    %m = math.fpowi %t, %i : tensor<8x8xf32, #one>, tensor<8x8xi32, #wide>
    attn.store %m, %view : tensor<8x8xf32, #one>, !attn.view<8 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_direct_copies attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %lds = attn.alloc_lds : <8 x 64 x f16>
    // expected-error @below {{gfx942 has no loads of 16 bytes a lane to LDS}}
    // expected-error @below {{failed to legalize}}
    attn.copy_lds %view, %lds layout <reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]> : !attn.view<64 x f16>, !attn.lds<8 x 64 x f16>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_copy_layout attributes {attn.target = #attn.target<"gfx950">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %lds = attn.alloc_lds : <8 x 64 x f16>
    // expected-error @below {{has no layout; run attn-assign-layouts first}}
    // expected-error @below {{failed to legalize}}
    attn.copy_lds %view, %lds : !attn.view<64 x f16>, !attn.lds<8 x 64 x f16>
    gpu.return
  }
}

// -----

// Chunks of a line would be in another row than they are fetched from.
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @copied_lines attributes {attn.target = #attn.target<"gfx950">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %lds = attn.alloc_lds : <8 x 64 x f16, <chunks = 16, shifts = [0]>>
    // expected-error @below {{fills whole chunks of 16 bytes in the rows that they are of, which #attn.swizzle<chunks = 16, shifts = [0]> does not leave them in}}
    // expected-error @below {{failed to legalize}}
    attn.copy_lds %view, %lds layout <reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]> : !attn.view<64 x f16>, !attn.lds<8 x 64 x f16, <chunks = 16, shifts = [0]>>
    gpu.return
  }
}

// -----

#rows = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @written_halves attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %t = attn.load %view : !attn.view<64 x f16> -> tensor<8x64xf16, #rows>
    %lds = attn.alloc_lds : <8 x 64 x f16, <chunks = 8, shifts = [0], half = 1>>
    // expected-error @below {{has lanes that differ in whether #attn.swizzle<chunks = 8, shifts = [0], half = 1> swaps the halves of what they access at once; a register bit has to decide}}
    // expected-error @below {{failed to legalize}}
    attn.store_lds %t, %lds : tensor<8x64xf16, #rows>, !attn.lds<8 x 64 x f16, <chunks = 8, shifts = [0], half = 1>>
    gpu.return
  }
}

// -----

#rows = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @read_halves attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<64 x f16>
    %lds = attn.alloc_lds : <8 x 64 x f16, <chunks = 8, shifts = [0], half = 1>>
    // expected-error @below {{has lanes that differ in whether}}
    // expected-error @below {{failed to legalize}}
    %t = attn.load_lds %lds : !attn.lds<8 x 64 x f16, <chunks = 8, shifts = [0], half = 1>> -> tensor<8x64xf16, #rows>
    attn.store %t, %view : tensor<8x64xf16, #rows>, !attn.view<64 x f16>
    gpu.return
  }
}

// -----

#from = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#to = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[2, 0], [1, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @bytes attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x i8>
    %t = attn.load %view : !attn.view<8 x i8> -> tensor<32x8xi8, #from>
    // expected-error @below {{moves elements of 16 or 32 bits between lanes, found 'i8'}}
    // expected-error @below {{failed to legalize}}
    %m = attn.convert_layout %t : tensor<32x8xi8, #from> -> tensor<32x8xi8, #to>
    attn.store %m, %view : tensor<32x8xi8, #to>, !attn.view<8 x i8>
    gpu.return
  }
}

// -----

// Of element-wise ops, those of one result have a lowering.
#tile = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @two_results attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x i32>
    %t = attn.load %view : !attn.view<8 x i32> -> tensor<32x8xi32, #tile>
    // expected-error @below {{failed to legalize operation 'arith.mulsi_extended'}}
    %low, %high = arith.mulsi_extended %t, %t : tensor<32x8xi32, #tile>
    attn.store %high, %view : tensor<32x8xi32, #tile>, !attn.view<8 x i32>
    gpu.return
  }
}

// -----

#tile = #attn.layout<reg = [[0, 1]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @two_values attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<2 x i32>
    // expected-error @below {{failed to legalize operation 'arith.constant'}}
    %t = arith.constant dense<[[1, 2]]> : tensor<1x2xi32, #tile>
    attn.store %t, %view : tensor<1x2xi32, #tile>, !attn.view<2 x i32>
    gpu.return
  }
}

// -----

#a = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#b = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], grid = [1, 1]>
#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_product attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f16>
    %a = attn.load %view : !attn.view<8 x f16> -> tensor<32x8xf16, #a>
    %b = attn.transpose %a : tensor<32x8xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #acc>
    // expected-error @below {{gfx942 has no matrix instruction 'mfma_32x32x16' for 'f16'; it has mfma_32x32x8, mfma_16x16x16}}
    // expected-error @below {{failed to legalize}}
    %d = attn.dot %a, %b, %zero inst<mfma_32x32x16> : tensor<32x8xf16, #a>, tensor<8x32xf16, #b>, tensor<32x32xf32, #acc>
    %out = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f32>
    attn.store %d, %out : tensor<32x32xf32, #acc>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#tile = #attn.layout<reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @small_floats attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<8 x f8E4M3FNUZ>
    // expected-error @below {{has a tile of 'f8E4M3FNUZ', whose elements no later stage computes with; use integers, f16, bf16, f32 or f64}}
    %t = attn.load %view : !attn.view<8 x f8E4M3FNUZ> -> tensor<32x8xf8E4M3FNUZ, #tile>
    attn.store %t, %view : tensor<32x8xf8E4M3FNUZ, #tile>, !attn.view<8 x f8E4M3FNUZ>
    gpu.return
  }
}

// -----

// A lane's loads to LDS are of 16 bytes; here it has runs of 8.
#copy = #attn.layout<reg = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
#schedule = #attn.schedule<block_m = 32, block_n = 64, waves = 1, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0, direct_copy = 1>
gpu.module @short_runs attributes {attn.target = #attn.target<"gfx950">} {
  gpu.func @kernel(%base: !llvm.ptr<1>, %offset: i64, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %lds = attn.alloc_lds : !attn.lds<16 x 32 x f16>
    %view = attn.view %base[%offset] rows %n stride %n : !attn.view<32 x f16>
    // expected-error @below {{does not give each lane runs of 16 bytes}}
    // expected-error @below {{failed to legalize}}
    attn.copy_lds %view, %lds layout #copy : !attn.view<32 x f16>, !attn.lds<16 x 32 x f16>
    gpu.return
  }
}
