// RUN: aot-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-assign-layouts))'

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @no_target {
  // expected-error @below {{stands in a gpu.module without 'attn.target'}}
  gpu.func @kernel() kernel attributes {attn.schedule = #schedule} {
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @instruction attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    // expected-error @below {{gfx942 has no matrix instruction 'wmma_16x16x16'}}
    %d = attn.dot %a, %a, %zero inst<wmma_16x16x16> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
    attn.store %d, %out : tensor<32x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 2, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @shape attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    // expected-error @below {{tiles of 32x32 and 32x32 do not divide into mfma_32x32x8 over 2 waves}}
    %d = attn.dot %a, %a, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
    attn.store %d, %out : tensor<32x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @conflict attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
    // One value as both operands: rows here, columns there.
    // expected-error @below {{tile would need two layouts: <reg = }}
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = attn.dot %a, %a, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
    attn.store %d, %out : tensor<32x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @groups attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %b = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
    // Two groups of lanes share a column, not four.
    // expected-error @below {{cannot be reduced to 4 rows}}
    %r = attn.reduce <sum> %d : tensor<32x32xf32> -> tensor<4x32xf32>
    attn.store %r, %out : tensor<4x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @unreached attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x i32>) kernel attributes {attn.schedule = #schedule} {
    // expected-error @below {{no layout was found for this tile}}
    %a = attn.column_index : tensor<1x32xi32>
    attn.store %a, %view : tensor<1x32xi32>, !attn.view<32 x i32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @odd attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<48 x f16>) kernel attributes {attn.schedule = #schedule} {
    %lds = attn.alloc_lds : !attn.lds<33 x 47 x f16>
    // expected-error @below {{does not cover 'tensor<33x47xf16>'}}
    %a = attn.load %view : !attn.view<48 x f16> -> tensor<33x47xf16>
    attn.store_lds %a, %lds : tensor<33x47xf16>, !attn.lds<33 x 47 x f16>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @lds_user attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel() kernel attributes {attn.schedule = #schedule} {
    %lds = attn.alloc_lds : !attn.lds<32 x 32 x f16>
    // expected-error @below {{uses an LDS tile otherwise than by attn.store_lds, attn.load_lds, attn.copy_lds or attn.lds_buffer}}
    "test.use"(%lds) : (!attn.lds<32 x 32 x f16>) -> ()
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @numbers attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x i32>) kernel attributes {attn.schedule = #schedule} {
    // Neither a product nor a copy gives it a layout.
    // expected-error @below {{no layout was found for this tile}}
    %tile = attn.row_index : tensor<32x32xi32>
    attn.store %tile, %view : tensor<32x32xi32>, !attn.view<32 x i32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @control_flow attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>) kernel attributes {attn.schedule = #schedule} {
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %b = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    // expected-error @below {{'scf.execute_region' op gives a tile; of control flow, scf.for and scf.if may}}
    %r = scf.execute_region -> tensor<32x32xf32> {
      %zero = arith.constant dense<0.0> : tensor<32x32xf32>
      %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
      scf.yield %d : tensor<32x32xf32>
    }
    attn.store %r, %out : tensor<32x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @lds attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>) kernel attributes {attn.schedule = #schedule} {
    // expected-error @below {{takes 33554432 bytes of LDS, but gfx942 has 65536}}
    %lds = attn.alloc_lds : <4096 x 4096 x f16>
    %t = arith.constant dense<0.0> : tensor<4096x4096xf16>
    attn.store_lds %t, %lds : tensor<4096x4096xf16>, !attn.lds<4096 x 4096 x f16>
    %back = attn.load_lds %lds : !attn.lds<4096 x 4096 x f16> -> tensor<32x32xf16>
    attn.store %back, %view : tensor<32x32xf16>, !attn.view<32 x f16>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @column_waves attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<128 x f32>) kernel attributes {attn.schedule = #schedule} {
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %b = attn.load %view : !attn.view<32 x f16> -> tensor<32x128xf16>
    %zero = arith.constant dense<0.0> : tensor<32x128xf32>
    // expected-error @below {{column_waves must divide the 4 waves, found 3}}
    %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> column_waves 3 : tensor<32x32xf16>, tensor<32x128xf16>, tensor<32x128xf32>
    attn.store %d, %out : tensor<32x128xf32>, !attn.view<128 x f32>
    gpu.return
  }
}

// -----

#schedule = #attn.schedule<block_m = 64, block_n = 32, waves = 1, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @copied_rows attributes {attn.target = #attn.target<"gfx950">} {
  gpu.func @kernel(%view: !attn.view<48 x f16>) kernel attributes {attn.schedule = #schedule} {
    %lds = attn.alloc_lds : <32 x 48 x f16>
    // expected-error @below {{fills tiles whose extents are powers of two, found '!attn.lds<32 x 48 x f16>'}}
    attn.copy_lds %view, %lds : !attn.view<48 x f16>, !attn.lds<32 x 48 x f16>
    gpu.return
  }
}

// -----

// What a loop carries gets a layout by its rule, and both ends must agree.
#schedule = #attn.schedule<block_m = 32, block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 1, rescale_threshold = 0>
gpu.module @carried attributes {attn.target = #attn.target<"gfx942">} {
  gpu.func @kernel(%view: !attn.view<32 x f16>, %out: !attn.view<32 x f32>, %n: i32) kernel attributes {attn.schedule = #schedule} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %b = attn.load %view : !attn.view<32 x f16> -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = attn.dot %a, %b, %zero inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
    // expected-error @below {{tile would need two layouts}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %d) -> (tensor<32x32xf32>) : i32 {
      %turned = attn.transpose %carried : tensor<32x32xf32>
      scf.yield %turned : tensor<32x32xf32>
    }
    attn.store %r, %out : tensor<32x32xf32>, !attn.view<32 x f32>
    gpu.return
  }
}
