// RUN: aot-opt %s --split-input-file --verify-diagnostics

// Attributes and types that refuse their parameters.

// expected-error @below {{unknown chip 'gfx000'; known: gfx908, gfx90a, gfx942}}
gpu.module @target attributes {attn.target = #attn.target<"gfx000">} {}

// -----

// expected-error @below {{attribute 'attn.target' has no meaning with the value "gfx942"; known are 'attn.target' (#attn.target)}}
gpu.module @target_kind attributes {attn.target = "gfx942"} {}

// -----

// expected-error @below {{attribute 'attn.tuning' has no meaning with the value 1 : i64}}
gpu.module @unknown attributes {attn.tuning = 1} {}

// -----

// expected-error @below {{unknown matrix instruction 'mfma_32x32x7'; use one of mfma_32x32x16, mfma_16x16x32, mfma_32x32x8}}
func.func @instruction() attributes {test.inst = #attn.inst<mfma_32x32x7>} { return }

// -----

// expected-error @below {{expected the name of a matrix instruction; use one of mfma_32x32x16, mfma_16x16x32, mfma_32x32x8}}
func.func @instruction_text() attributes {test.inst = #attn.inst<"mfma_32x32x8">} { return }

// -----

// expected-error @below {{block_m must be in [1, 256], found 512}}
func.func @block_m() attributes {attn.schedule = #attn.schedule<block_m = 512, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{block_m must be in [1, 256], found 0}}
func.func @block_m_zero() attributes {attn.schedule = #attn.schedule<block_m = 0, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{block_n must be a power of two up to 256, found 48}}
func.func @block_n() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 48, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{block_n must be a power of two up to 256, found 512}}
func.func @block_n_large() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 512, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{waves must be 1, 2, 4, 8 or 16, found 3}}
func.func @waves() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 3, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{waves must be 1, 2, 4, 8 or 16, found 32}}
func.func @waves_many() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 32, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{stages must be 1, 2, 3, 4 or 5, found 6}}
func.func @stages() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 6, waves_per_simd = 2, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{waves_per_simd must be in [1, 16], found 17}}
func.func @waves_per_simd() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 17, rescale_threshold = 8>} { return }

// -----

// expected-error @below {{rescale_threshold must be in [0, 8], found -1}}
func.func @threshold() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = -1>} { return }

// -----

// Past 8 powers of two an f16 probability could overflow.
// expected-error @below {{rescale_threshold must be in [0, 8], found 9}}
func.func @threshold_large() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 9>} { return }

// -----

// expected-error @below {{layout grid must be positive, found [0, 1]}}
func.func private @grid(tensor<1x32xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [0, 1]>>)

// -----

// expected-error @below {{a layout has at most 12 register and 4 wave bits, found 13 and 0}}
func.func private @registers(tensor<1x32xf32, #attn.layout<reg = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{a layout has 5 or 6 lane bits, found 2}}
func.func private @lanes(tensor<4x1xf32, #attn.layout<reg = [], lane = [[1, 0], [2, 0]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{a lane holds at most 4096 elements, but a grid of [2147483647, 2147483647] gives it 1 of each unit}}
func.func private @grid_large(tensor<1x32xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [2147483647, 2147483647]>>)

// -----

// expected-error @below {{a lane holds at most 4096 elements, but a grid of [2049, 1] gives it 2 of each unit}}
func.func private @grid_registers(tensor<4098x32xf32, #attn.layout<reg = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [2049, 1]>>)

// -----

// expected-error @below {{a layout has at most 12 register and 4 wave bits, found 0 and 5}}
func.func private @waves(tensor<1x32xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], grid = [1, 1]>>)

// -----

// expected-error @below {{layout basis out of range: -1}}
func.func private @negative(tensor<1x32xf32, #attn.layout<reg = [], lane = [[0, -1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{layout bases must be independent and cover the unit of the tile}}
func.func private @dependent(tensor<1x32xf32, #attn.layout<reg = [[0, 1]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{layout bases must be independent and cover the unit of the tile}}
func.func private @hole(tensor<1x64xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 32]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{layout covers a 1x32 tile, which is not the tensor's shape}}
func.func private @shape(tensor<1x64xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{layout covers a 1x32 tile, which is not the tensor's shape}}
func.func private @rank(tensor<32xf32, #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{expected 'lane'}}
func.func private @syntax(tensor<1x32xf32, #attn.layout<reg = [], line = [[0, 1]], wave = [], grid = [1, 1]>>)

// -----

// expected-error @below {{swizzle chunks must be a power of two, found 6}}
// expected-error @below {{failed to parse Attn_LdsType parameter 'swizzle'}}
func.func private @chunks(!attn.lds<32 x 64 x f16, <chunks = 6, shifts = [0]>>)

// -----

// expected-error @below {{swizzle shift must be in [-8, 8], found 9}}
// expected-error @below {{failed to parse Attn_LdsType parameter 'swizzle'}}
func.func private @shift(!attn.lds<32 x 64 x f16, <chunks = 8, shifts = [0, 9]>>)

// -----

// expected-error @below {{32 rows of 96 bytes do not divide into the swizzle's groups of 4 chunks of 16 bytes}}
func.func private @swizzled_rows(!attn.lds<32 x 48 x f16, <chunks = 4, shifts = [0]>>)

// -----

// expected-error @below {{33 rows of 64 bytes do not divide into the swizzle's groups of 8 chunks of 16 bytes}}
func.func private @swizzled_lines(!attn.lds<33 x 32 x f16, <chunks = 8, shifts = [0]>>)

// -----

// expected-error @below {{an LDS tile needs a positive shape, found 0x64}}
func.func private @lds_shape(!attn.lds<0 x 64 x f16>)

// -----

// expected-error @below {{an LDS tile holds integers or floats, found 'index'}}
func.func private @lds_elements(!attn.lds<32 x 64 x index>)

// -----

// A row of no bytes would divide by zero.
// expected-error @below {{an LDS tile holds elements of 8, 16, 32 or 64 bits, found 'i1'}}
func.func private @lds_bits(!attn.lds<1 x 1 x i1, <chunks = 2, shifts = [0]>>)

// -----

// expected-error @below {{an LDS tile holds elements of 8, 16, 32 or 64 bits, found 'i24'}}
func.func private @lds_odd_bytes(!attn.lds<32 x 64 x i24>)

// -----

// expected-error @below {{an LDS tile has less than 2^31 bytes, found 2147483647 rows of 17179869176}}
func.func private @lds_large(!attn.lds<2147483647 x 2147483647 x f64>)

// -----

// expected-error @below {{an LDS tile has less than 2^31 bytes, found 32768 rows of 65536}}
func.func private @lds_just_too_large(!attn.lds<32768 x 32768 x f16>)

// -----

// expected-error @below {{a view has columns in [1, 65536], found -1}}
func.func private @view_columns(!attn.view<-1 x f16>)

// -----

// expected-error @below {{a view has columns in [1, 65536], found 65537}}
func.func private @view_columns_large(!attn.view<65537 x f16>)

// -----

// expected-error @below {{a view holds integers or floats, found 'index'}}
func.func private @view_elements(!attn.view<16 x index>)

// -----

// expected-error @below {{a view holds elements of 8, 16, 32 or 64 bits, found 'f128'}}
func.func private @view_bits(!attn.view<16 x f128>)

// -----

// expected-error @below {{attribute 'attn.argument_names' has no meaning with the value [1]}}
gpu.module @names attributes {attn.argument_names = [1]} {}

// -----

// expected-error @below {{value_split must be a power of two up to waves (4), found 8}}
func.func @value_split() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, value_split = 8>} { return }

// -----

// expected-error @below {{column_chunk must be 0 or a multiple of 32 up to 512, found 48}}
func.func @column_chunk() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, column_chunk = 48>} { return }

// -----

// expected-error @below {{queries_in_lds must be 0, 1, 2 or 3, found 4}}
func.func @queries_in_lds() attributes {attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, queries_in_lds = 4>} { return }

// -----

// expected-error @below {{swizzle half must be a bit of the row number in [0, 8], or -1, found 9}}
// expected-error @below {{failed to parse Attn_LdsType parameter 'swizzle'}}
func.func private @swizzled_halves(!attn.lds<32 x 64 x f16, <chunks = 8, shifts = [0], half = 9>>)
