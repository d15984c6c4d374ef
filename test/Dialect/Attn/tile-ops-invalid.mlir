// RUN: aot-opt %s --split-input-file --verify-diagnostics

// Verifiers of the tile and lane ops.

func.func @load_elements(%view: !attn.view<64 x f16>) {
  // expected-error @below {{'attn.load' op element types differ: 'f16' and 'bf16'}}
  %tile = attn.load %view : !attn.view<64 x f16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @store_elements(%view: !attn.view<64 x f16>, %tile: tensor<32x64xf32>) {
  // expected-error @below {{'attn.store' op element types differ: 'f32' and 'f16'}}
  attn.store %tile, %view : tensor<32x64xf32>, !attn.view<64 x f16>
  return
}

// -----

func.func @atomic_add_elements(%view: !attn.view<64 x f16>, %tile: tensor<32x64xf32>) {
  // expected-error @below {{'attn.atomic_add' op element types differ: 'f32' and 'f16'}}
  attn.atomic_add %tile, %view : tensor<32x64xf32>, !attn.view<64 x f16>
  return
}

// -----

func.func @atomic_add_pairs(%view: !attn.view<64 x bf16>, %tile: tensor<32x64xbf16>) {
  // expected-error @below {{'attn.atomic_add' op adds pairs of 'bf16' to a view of i32, found '!attn.view<64 x bf16>'}}
  attn.atomic_add %tile, %view : tensor<32x64xbf16>, !attn.view<64 x bf16>
  return
}

// -----

func.func @atomic_add_outside(%view: !attn.view<32 x i32>, %tile: tensor<32x64xf16>) {
  // expected-error @below {{'attn.atomic_add' op adds pairs of rows to a view that holds them all; 'tensor<32x64xf16>' does not fit '!attn.view<32 x i32>'}}
  attn.atomic_add %tile, %view : tensor<32x64xf16>, !attn.view<32 x i32>
  return
}

// -----

func.func @atomic_add_type(%view: !attn.view<64 x i32>, %tile: tensor<32x64xi32>) {
  // expected-error @below {{'attn.atomic_add' op adds f32, f16 or bf16, found 'i32'}}
  attn.atomic_add %tile, %view : tensor<32x64xi32>, !attn.view<64 x i32>
  return
}

// -----

func.func @store_lds_shape(%lds: !attn.lds<32 x 64 x f16>, %tile: tensor<64x32xf16>) {
  // expected-error @below {{stores 'tensor<64x32xf16>' to '!attn.lds<32 x 64 x f16>'; the shapes must agree}}
  attn.store_lds %tile, %lds : tensor<64x32xf16>, !attn.lds<32 x 64 x f16>
  return
}

// -----

func.func @store_lds_elements(%lds: !attn.lds<32 x 64 x f16>, %tile: tensor<32x64xbf16>) {
  // expected-error @below {{element types differ: 'bf16' and 'f16'}}
  attn.store_lds %tile, %lds : tensor<32x64xbf16>, !attn.lds<32 x 64 x f16>
  return
}

// -----

func.func @load_lds_rows(%lds: !attn.lds<32 x 64 x f16>) {
  // expected-error @below {{loads 'tensor<64x64xf16>' from the smaller '!attn.lds<32 x 64 x f16>'}}
  %tile = attn.load_lds %lds : !attn.lds<32 x 64 x f16> -> tensor<64x64xf16>
  return
}

// -----

func.func @load_lds_columns(%lds: !attn.lds<32 x 64 x f16>) {
  // expected-error @below {{loads 'tensor<32x96xf16>' from the smaller '!attn.lds<32 x 64 x f16>'}}
  %tile = attn.load_lds %lds : !attn.lds<32 x 64 x f16> -> tensor<32x96xf16>
  return
}

// -----

func.func @load_lds_elements(%lds: !attn.lds<32 x 64 x f16>) {
  // expected-error @below {{element types differ: 'f16' and 'bf16'}}
  %tile = attn.load_lds %lds : !attn.lds<32 x 64 x f16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @dot_factors(%a: tensor<32x16xf16>, %b: tensor<16x32xbf16>, %c: tensor<32x32xf32>) {
  // expected-error @below {{element types differ: 'f16' and 'bf16'}}
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> : tensor<32x16xf16>, tensor<16x32xbf16>, tensor<32x32xf32>
  return
}

// -----

func.func @dot_contraction(%a: tensor<32x32xf16>, %b: tensor<16x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error @below {{contracts 32 columns of a with 16 rows of b}}
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> : tensor<32x32xf16>, tensor<16x32xf16>, tensor<32x32xf32>
  return
}

// -----

func.func @dot_accumulator(%a: tensor<64x16xf16>, %b: tensor<16x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error @below {{the product is 64x32, but the accumulator 32x32}}
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> : tensor<64x16xf16>, tensor<16x32xf16>, tensor<32x32xf32>
  return
}

// -----

func.func @dot_f64_factors(%a: tensor<32x16xf64>, %b: tensor<16x32xf64>, %c: tensor<32x32xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor of extents in [1, 65536] of 16-bit float or bfloat16 type or 32-bit float values}}
  %d = attn.dot %a, %b, %c inst<mfma_32x32x8> : tensor<32x16xf64>, tensor<16x32xf64>, tensor<32x32xf32>
  return
}

// -----

func.func @reduce_columns(%s: tensor<64x128xf32>) {
  // expected-error @below {{keeps 128 columns, but the result has 64}}
  %r = attn.reduce <max> %s : tensor<64x128xf32> -> tensor<1x64xf32>
  return
}

// -----

#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [1, 1]>
#groups = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0]], wave = [], grid = [1, 1]>
func.func @reduce_layout(%s: tensor<32x32xf32, #acc>) {
  // Two groups are what the lanes hold.
  %two = attn.reduce <sum> %s : tensor<32x32xf32, #acc> -> tensor<2x32xf32, #groups>
  // expected-error @below {{the operand's layout reduced to 32 rows is not the result's layout}}
  %r = attn.reduce <sum> %s : tensor<32x32xf32, #acc> -> tensor<32x32xf32, #acc>
  return
}

// -----

func.func @broadcast_rows(%row: tensor<2x128xf32>) {
  // expected-error @below {{repeats one row of the result's width, found 'tensor<2x128xf32>' and 'tensor<64x128xf32>'}}
  %r = attn.broadcast %row : tensor<2x128xf32> -> tensor<64x128xf32>
  return
}

// -----

func.func @broadcast_columns(%row: tensor<1x64xf32>) {
  // expected-error @below {{repeats one row of the result's width, found 'tensor<1x64xf32>' and 'tensor<64x128xf32>'}}
  %r = attn.broadcast %row : tensor<1x64xf32> -> tensor<64x128xf32>
  return
}

// -----

#acc = #attn.layout<reg = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], wave = [], grid = [1, 1]>
#turned = #attn.layout<reg = [], lane = [[0, 2], [0, 1], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [], grid = [1, 1]>
func.func @broadcast_layout(%row: tensor<1x32xf32, #turned>) {
  // expected-error @below {{the result's layout reduced to one row is not the operand's layout}}
  %r = attn.broadcast %row : tensor<1x32xf32, #turned> -> tensor<32x32xf32, #acc>
  return
}

// -----

func.func @broadcast_elements(%row: tensor<1x32xf32>) {
  // expected-error @below {{element types differ: 'f32' and 'f16'}}
  %r = attn.broadcast %row : tensor<1x32xf32> -> tensor<32x32xf16>
  return
}

// -----

func.func @mask_limits(%s: tensor<64x128xf32>, %last: tensor<1x64xi32>) {
  // expected-error @below {{needs one limit a column of 'tensor<64x128xf32>', found 'tensor<1x64xi32>'}}
  %r = attn.mask %s to %last : tensor<1x64xi32> : tensor<64x128xf32>
  return
}

// -----

func.func @mask_limits_rows(%s: tensor<64x128xf32>, %last: tensor<64x128xi32>) {
  // expected-error @below {{needs one limit a column of 'tensor<64x128xf32>', found 'tensor<64x128xi32>'}}
  %r = attn.mask %s to %last : tensor<64x128xi32> : tensor<64x128xf32>
  return
}

// -----

func.func @round_shape(%s: tensor<64x128xf32>) {
  // expected-error @below {{changes the element type only}}
  %r = attn.round %s <nearest_even> : tensor<64x128xf32> -> tensor<128x64xf16>
  return
}

// -----

func.func @convert_shape(%s: tensor<64x128xf32>) {
  // expected-error @below {{changes the layout only}}
  %r = attn.convert_layout %s : tensor<64x128xf32> -> tensor<128x64xf32>
  return
}

// -----

func.func @convert_elements(%s: tensor<64x128xf32>) {
  // expected-error @below {{element types differ: 'f32' and 'f16'}}
  %r = attn.convert_layout %s : tensor<64x128xf32> -> tensor<64x128xf16>
  return
}

// -----

func.func @transpose_result(%s: tensor<64x32xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{inferred type(s) 'tensor<32x64xf32>' are incompatible with return type(s) of operation 'tensor<64x32xf32>'}}
  %r = "attn.transpose"(%s) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return
}

// -----

func.func @mma_instruction(%a: vector<4xf16>, %c: vector<16xf32>) {
  // expected-error @below {{no instruction 'mfma_32x32x4' for 'f16'; its factors are bf16}}
  %d = attn.mma %a, %a, %c inst<mfma_32x32x4> : vector<4xf16>, vector<4xf16>, vector<16xf32>
  return
}

// -----

func.func @mma_sums(%a: vector<4xf16>, %c: vector<16xf32>) {
  // expected-error @below {{'mfma_16x16x16' takes factors of 4 and sums of 4 elements a lane, found 'vector<4xf16>', 'vector<4xf16>' and 'vector<16xf32>'}}
  %d = attn.mma %a, %a, %c inst<mfma_16x16x16> : vector<4xf16>, vector<4xf16>, vector<16xf32>
  return
}

// -----

func.func @mma_factors(%a: vector<4xf16>, %b: vector<8xf16>, %c: vector<16xf32>) {
  // expected-error @below {{'mfma_32x32x8' takes factors of 4 and sums of 16 elements a lane, found 'vector<4xf16>', 'vector<8xf16>' and 'vector<16xf32>'}}
  %d = attn.mma %a, %b, %c inst<mfma_32x32x8> : vector<4xf16>, vector<8xf16>, vector<16xf32>
  return
}

// -----

// The parser asks for the result's type before anything is verified.
func.func @transpose_rank(%s: tensor<4xf32>) {
  // expected-error @below {{'attn.transpose' op takes a tile, found 'tensor<4xf32>'}}
  %r = attn.transpose %s : tensor<4xf32>
  return
}

// -----

func.func @dynamic(%s: tensor<?x32xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor of extents in [1, 65536] of}}
  %r = attn.convert_layout %s : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @empty(%s: tensor<0x32xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor of extents in [1, 65536] of}}
  %r = attn.reduce <max> %s : tensor<0x32xf32> -> tensor<1x32xf32>
  return
}

// -----

func.func @large(%s: tensor<65537x1xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor of extents in [1, 65536] of}}
  %r = attn.convert_layout %s : tensor<65537x1xf32> -> tensor<65537x1xf32>
  return
}

// -----

func.func @buffers() {
  // expected-error @below {{'attn.alloc_lds' op reserves less than 2^31 bytes, found 2147483647 buffers of 4096}}
  %lds = attn.alloc_lds buffers 2147483647 : <32 x 64 x f16>
  return
}

// -----

#acc = #attn.layout<reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], grid = [1, 2]>
#limits = #attn.layout<reg = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 0], [0, 0]], wave = [], grid = [1, 1]>
func.func @mask_layout(%s: tensor<16x32xf32, #acc>, %last: tensor<1x32xi32, #limits>) {
  // expected-error @below {{the tile's layout reduced to one row is not that of the limits}}
  %m = attn.mask %s to %last : tensor<1x32xi32, #limits> : tensor<16x32xf32, #acc>
  return
}

// -----

#copy = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], grid = [1, 1]>
func.func @copy_layout(%view: !attn.view<64 x f16>) {
  %lds = attn.alloc_lds : <16 x 64 x f16>
  // expected-error @below {{layout of 8x64 elements does not cover '!attn.lds<16 x 64 x f16>'}}
  attn.copy_lds %view, %lds layout #copy : !attn.view<64 x f16>, !attn.lds<16 x 64 x f16>
  return
}

// -----

func.func @gather_shape(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  %row = attn.row_index : tensor<32x32xi32>
  // expected-error @below {{gives 'tensor<32x64xf32>' for an index of 'tensor<32x32xi32>'}}
  %r = attn.gather %base[%offset] size %size at %row
    : tensor<32x32xi32> -> tensor<32x64xf32>
  return
}

// -----

func.func @gather_unaligned(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  %row = attn.row_index : tensor<32x32xi32>
  // expected-error @below {{is unaligned and does not go down}}
  %r = "attn.gather"(%base, %offset, %size, %row) {unaligned}
    : (!llvm.ptr<1>, i64, i32, tensor<32x32xi32>) -> tensor<32x32xf16>
  return
}

// -----

func.func @gather_all(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  // expected-error @below {{gives a tile and has no index}}
  %r = attn.gather %base[%offset] size %size -> tensor<32x64xf32>
  return
}

// -----

func.func @scatter_add_both(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %tile: tensor<32x64xf32>, %at: tensor<32x64xi32>) {
  // expected-error @below {{'attn.scatter_add' op takes an index by_row or by_column}}
  attn.scatter_add %tile, %base[%offset] size %size at %at by_row by_column : tensor<32x64xf32>, tensor<32x64xi32>
  return
}

// -----

func.func @scatter_add_shape(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %tile: tensor<32x64xf32>, %at: tensor<1x64xi32>) {
  // expected-error @below {{'attn.scatter_add' op adds 'tensor<32x64xf32>' at an index of 'tensor<1x64xi32>'}}
  attn.scatter_add %tile, %base[%offset] size %size at %at by_column : tensor<32x64xf32>, tensor<1x64xi32>
  return
}

// -----

func.func @load_beyond(%view: !attn.view<32 x f16>) {
  // expected-error @below {{'attn.load' op goes to row 288 of its view, which has at most 256}}
  %r = attn.load %view row 256 : !attn.view<32 x f16> -> tensor<32x32xf16>
  return
}

// -----

func.func @gather_index(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  // expected-error @below {{gives numbers of 8, 16 or 32 bits, alone or in a tile, found 'index'}}
  %r = attn.gather %base[%offset] size %size -> index
  return
}

// -----

func.func @gather_pointer(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  // expected-error @below {{gives numbers of 8, 16 or 32 bits, alone or in a tile, found '!llvm.ptr<1>'}}
  %r = attn.gather %base[%offset] size %size -> !llvm.ptr<1>
  return
}

// -----

func.func @gather_bits(%base: !llvm.ptr<1>, %offset: i64, %size: i32) {
  %row = attn.row_index : tensor<32x32xi32>
  // expected-error @below {{gives numbers of 8, 16 or 32 bits, alone or in a tile, found 'tensor<32x32xi4>'}}
  %r = attn.gather %base[%offset] size %size at %row
    : tensor<32x32xi32> -> tensor<32x32xi4>
  return
}

// -----

func.func @scatter_bits(%base: !llvm.ptr<1>, %offset: i64, %size: i32, %tile: tensor<32x32xi1>, %index: tensor<32x32xi32>) {
  // expected-error @below {{stores numbers of 8, 16 or 32 bits, found 'tensor<32x32xi1>'}}
  attn.scatter %tile, %base[%offset] size %size at %index : tensor<32x32xi1>, tensor<32x32xi32>
  return
}

// -----

func.func @store_beyond(%view: !attn.view<32 x f16>, %tile: tensor<512x32xf16>) {
  // expected-error @below {{'attn.store' op goes to row 512 of its view, which has at most 256}}
  attn.store %tile, %view : tensor<512x32xf16>, !attn.view<32 x f16>
  return
}
