//===- AttnTileOps.td - tile and lane ops of attn ----------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNTILEOPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNTILEOPS_TD

include "fovea/Dialect/Attn/IR/AttnAttrs.td"
include "fovea/Dialect/Attn/IR/AttnInterfaces.td"
include "fovea/Dialect/Attn/IR/AttnTypes.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Attn_ViewOp : Attn_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "Bounds-checked view of rows in global memory";
  let description = [{
    The view starts `offset` elements (64 bits) after `base` and has `rows` rows
    at a distance of `stride` elements; rows <= 0 makes it empty. A row may be
    shorter than the stride: columns past the view's are out of bounds. With
    `columns` those past so many are too, at most the type's; rows then may be
    read up to a multiple of 16 bytes, and what is out of bounds of those gives
    anything: `attn.cut` makes zeros of it. Of a `loose` view columns up to the
    type's may give anything, what other rows hold among them, and loads need
    not look whether they are there; it is only loaded from.

    A `single` view is loaded an element at a time, and nothing that is out of
    bounds is read: rows may have fewer elements than a word, and lie anywhere.

    With `again`, 0 or 1, columns ahead of column 8 lie that many elements behind
    their place: where it is 1, column 8 is column 7 once more, loaded and never
    stored, and a row, which begins with the second element, has one less than
    `columns`. So rows of an odd number of elements end with a whole word,
    wherever they begin, and loads need not touch what is behind them. The other
    columns do not lie one element ahead of their place: offsets of buffer
    instructions must not be negative ahead of the constant that is added.

    With `runs` rows lie in runs, as those of heads that are packed: row r of the
    view is number `first` + r of `count` runs of `length` rows each, whose
    distance is `distance` elements, and `offset` is that of number 0. Numbers are
    less than 2^16, and runs span less than 2^31 bytes. Such a view is only
    loaded from.

    Rows before `from`, where it is given, are out of bounds; such a view is only
    loaded from, too, and is none in runs.

    `rows` at most 256 are addressable, and `stride` times 256 rows must span
    less than 2^31 bytes (docs/KernelAbi.md).

    Example:
    ```mlir
    func.func @view(%base: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i32)
        -> tensor<32x64xbf16> {
      %view = attn.view %base[%offset] rows %rows stride %stride
        : !attn.view<40 x bf16>
      %tile = attn.load %view : !attn.view<40 x bf16> -> tensor<32x64xbf16>
      return %tile : tensor<32x64xbf16>
    }
    ```
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$base, I64:$offset,
                       I32:$rows, I32:$stride, Variadic<I32>:$runs,
                       Optional<I32>:$columns, Optional<I32>:$again,
                       Optional<I32>:$from, UnitAttr:$loose, UnitAttr:$single);
  let results = (outs Attn_ViewType:$view);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $base `[` $offset `]` `rows` $rows `stride` $stride
    (`runs` `(` $runs^ `)`)?
    (`columns` $columns^ (`again` $again^)? (`loose` $loose^)?
    (`single` $single^)?)? (`from` $from^)? attr-dict `:` type($view)
  }];
  let extraClassDeclaration = [{
    /// Operands of `runs`.
    enum Run { First, Length, Count, Distance, RunOperands };
    /// The column that with `again` is the one before it. Accesses begin there
    /// or end before it: they are powers of two, of as many columns at most.
    static constexpr int64_t kColumnSeenAgain = 8;
  }];
}

def Attn_LoadOp : Attn_Op<"load"> {
  let summary = "Loads a tile from global memory into registers";
  let description = [{
    Element (r, c) of the tile is row r, column c of the view, or zero outside
    the view; with `column` and `row`, of column c + `column` and row r + `row`.
    The tile may be larger than the view in both dimensions.

    Example:
    ```mlir
    func.func @load(%view: !attn.view<40 x bf16>) -> tensor<32x64xbf16> {
      %tile = attn.load %view : !attn.view<40 x bf16> -> tensor<32x64xbf16>
      return %tile : tensor<32x64xbf16>
    }
    ```
  }];
  let arguments = (ins Arg<Attn_ViewType, "", [MemRead]>:$view,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntNonNegative]>,
                                         "0">:$column,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntNonNegative]>,
                                         "0">:$row);
  let results = (outs Attn_Tile:$tile);
  let assemblyFormat = [{
    $view (`column` $column^)? (`row` $row^)? attr-dict `:` type($view) `->`
    type($tile)
  }];
  let hasVerifier = 1;
}

def Attn_GatherOp : Attn_Op<"gather", [Pure, LayoutOpInterface]> {
  let summary = "Elements of global memory, each at a place of its own";
  let description = [{
    Element (r, c) is that `index(r, c)` elements behind `base` and `offset`, or
    zero where the index is not in [0, size). Nothing writes this memory while
    the kernel runs. `size` elements are less than 2^31 bytes. Without an index
    the result is one value for the whole workgroup, the element at 0.

    With `down` the index of row r + 1 is that of row r plus one, and address,
    offset, size and what columns begin with are multiples of 4 bytes: lanes
    read several rows at once. With `unaligned` columns may begin anywhere, and
    lanes put rows together from the words around them: a word that ends past
    the last element would be zero as a whole.

    Example:
    ```mlir
    func.func @gather(%base: !llvm.ptr<1>, %offset: i64, %size: i32,
                      %scores: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %key = attn.row_index : tensor<32x32xi32>
      %bias = attn.gather %base[%offset] size %size at %key down
        : tensor<32x32xi32> -> tensor<32x32xf32>
      %sum = arith.addf %scores, %bias : tensor<32x32xf32>
      return %sum : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$base, I64:$offset,
                       I32:$size, Optional<Attn_TileOf<[I32]>>:$index,
                       UnitAttr:$down, UnitAttr:$unaligned);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $base `[` $offset `]` `size` $size (`at` $index^ (`down` $down^)?
    (`unaligned` $unaligned^)? `:` type($index))? attr-dict `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_ScatterAddOp : Attn_Op<"scatter_add", [LayoutOpInterface]> {
  let summary = "Adds elements to global memory, each at a place of its own";
  let description = [{
    Element (r, c) is added, as `attn.atomic_add` adds f32, to what lies
    `index(r, c)` elements behind `base` and `offset`; where the index is not in
    [0, size) it is dropped. `size` elements are less than 2^31 bytes. Each
    element is added once, also where the layout replicates it.

    With `by_column` the index is the same for all rows of a column, with
    `by_row` for all columns of a row, and without an index it is 0 throughout:
    a wave then adds up what it holds of them first, and leaves out sums of 0.

    Fails to lower for a chip without such an instruction.

    Example:
    ```mlir
    func.func @scatter_add(%base: !llvm.ptr<1>, %offset: i64, %size: i32,
                           %parts: tensor<32x32xf32>) {
      %key = attn.column_index : tensor<32x32xi32>
      attn.scatter_add %parts, %base[%offset] size %size at %key by_column
        : tensor<32x32xf32>, tensor<32x32xi32>
      attn.scatter_add %parts, %base[%offset] size %size : tensor<32x32xf32>
      return
    }
    ```
  }];
  let arguments = (ins
      Attn_TileOf<[F32]>:$tile,
      Arg<LLVM_PointerInAddressSpace<1>, "", [MemRead, MemWrite]>:$base,
      I64:$offset, I32:$size, Optional<Attn_TileOf<[I32]>>:$index,
      UnitAttr:$by_row, UnitAttr:$by_column);
  let assemblyFormat = [{
    $tile `,` $base `[` $offset `]` `size` $size
    (`at` $index^ (`by_row` $by_row^)? (`by_column` $by_column^)?)? attr-dict
    `:` type($tile) (`,` type($index)^)?
  }];
  let hasVerifier = 1;
}

def Attn_ScatterOp : Attn_Op<"scatter", [LayoutOpInterface]> {
  let summary = "Stores elements to global memory, each to a place of its own";
  let description = [{
    Element (r, c) goes `index(r, c)` elements behind `base` and `offset`; where
    the index is not in [0, size) it is dropped. `size` elements are less than
    2^31 bytes. Each element is written once, also where the layout replicates
    it.

    Example:
    ```mlir
    func.func @scatter(%base: !llvm.ptr<1>, %offset: i64, %size: i32,
                       %tile: tensor<32x64xf16>, %index: tensor<32x64xi32>) {
      attn.scatter %tile, %base[%offset] size %size at %index
        : tensor<32x64xf16>, tensor<32x64xi32>
      return
    }
    ```
  }];
  let arguments = (ins
      Attn_Tile:$tile, Arg<LLVM_PointerInAddressSpace<1>, "", [MemWrite]>:$base,
      I64:$offset, I32:$size, Attn_TileOf<[I32]>:$index);
  let assemblyFormat = [{
    $tile `,` $base `[` $offset `]` `size` $size `at` $index attr-dict
    `:` type($tile) `,` type($index)
  }];
  let hasVerifier = 1;
}

def Attn_StoreOp : Attn_Op<"store"> {
  let summary = "Stores a tile to global memory";
  let description = [{
    Element (r, c) of the tile goes to row r, column c of the view, with `column`
    to column c + `column`. Elements outside the view are dropped. Each element is
    written once, also where the layout replicates it. With `lines`
    attn-assign-layouts has lanes trade elements first, so that an access writes
    whole lines of caches.

    Example:
    ```mlir
    func.func @store(%tile: tensor<32x64xf32>, %view: !attn.view<40 x f32>) {
      attn.store %tile, %view : tensor<32x64xf32>, !attn.view<40 x f32>
      return
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile, Arg<Attn_ViewType, "", [MemWrite]>:$view,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntNonNegative]>,
                                         "0">:$column,
                       UnitAttr:$lines);
  let assemblyFormat = [{
    $tile `,` $view (`column` $column^)? (`lines` $lines^)? attr-dict `:`
    type($tile) `,` type($view)
  }];
  let hasVerifier = 1;
}

def Attn_AtomicAddOp : Attn_Op<"atomic_add"> {
  let summary = "Adds a tile to global memory, element by element";
  let description = [{
    Element (r, c) of the tile is added to row r, column c of the view, by an
    atomic addition of f32 that the whole device sees; the old value is not
    kept. Each element is added once, also where the layout replicates it;
    elements outside the view are dropped. In which order additions to one
    element are done, by lanes, waves or workgroups, is not said: sums may
    differ in their last bits between runs.

    Elements of 16 bits are added two at a time, to a view of i32: rows 2r and
    2r + 1 of the tile are the low and the high halves of row r of the view.
    Such a sum is rounded to its type, ties to even, by each addition. The view
    must hold all rows and columns of the tile: not every chip has this addition
    with bounds, so none is promised. Rows of the view are at a constant
    distance, and the layout gives the two rows to the same lane.

    Fails to lower for a chip without such an instruction.

    Example:
    ```mlir
    func.func @atomic_add(%tile: tensor<32x64xf32>, %sums: !attn.view<64 x f32>) {
      attn.atomic_add %tile, %sums : tensor<32x64xf32>, !attn.view<64 x f32>
      return
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile,
                       Arg<Attn_ViewType, "", [MemRead, MemWrite]>:$view);
  let assemblyFormat = "$tile `,` $view attr-dict `:` type($tile) `,` type($view)";
  let hasVerifier = 1;
}

def Attn_AllocLdsOp : Attn_Op<"alloc_lds", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Reserves LDS for a tile, for the life of the workgroup";
  let description = [{
    With `buffers`, for so many tiles one after another, less than 2^31 bytes
    in all; the result is the first of them, `attn.lds_buffer` gives any.

    Example:
    ```mlir
    func.func @alloc_lds(%tile: tensor<32x64xbf16>) {
      %lds = attn.alloc_lds buffers 2 : !attn.lds<32 x 64 x bf16>
      attn.store_lds %tile, %lds : tensor<32x64xbf16>, !attn.lds<32 x 64 x bf16>
      return
    }
    ```
  }];
  let arguments = (ins DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>,
                                         "1">:$buffers);
  let results = (outs Attn_LdsType:$lds);
  let assemblyFormat = "(`buffers` $buffers^)? attr-dict `:` type($lds)";
  let builders = [OpBuilder<(ins "LdsType":$lds), [{
    build($_builder, $_state, lds, /*buffers=*/1);
  }]>];
  let hasVerifier = 1;
}

def Attn_LdsBufferOp : Attn_Op<"lds_buffer", [Pure, AllTypesMatch<["lds", "buffer"]>]> {
  let summary = "One of the tiles that were reserved together";
  let description = [{
    `number` is uniform over the workgroup and less than the `buffers` of the
    `attn.alloc_lds` that `lds` comes from.

    Example:
    ```mlir
    func.func @lds_buffer(%tile: tensor<32x64xbf16>, %number: i32) {
      %lds = attn.alloc_lds buffers 2 : !attn.lds<32 x 64 x bf16>
      %buffer = attn.lds_buffer %lds[%number] : !attn.lds<32 x 64 x bf16>
      attn.store_lds %tile, %buffer
        : tensor<32x64xbf16>, !attn.lds<32 x 64 x bf16>
      return
    }
    ```
  }];
  let arguments = (ins Attn_LdsType:$lds, I32:$number);
  let results = (outs Attn_LdsType:$buffer);
  let assemblyFormat = "$lds `[` $number `]` attr-dict `:` type($lds)";
}

def Attn_CopyLdsOp : Attn_Op<"copy_lds"> {
  let summary = "Starts to copy rows from global memory to LDS";
  let description = [{
    Element (r, c) of the LDS tile becomes row r, column c of the view, or zero
    outside the view; the tile may be larger than the view in both dimensions.
    The data pass no registers. The copy is under way when the op is done:
    `amdgpu.memory_counter_wait load(0)` waits for the copies of this wave, and
    a barrier behind it for those of the workgroup.

    `layout` says which lane fetches which element of the tile; it is
    `attn-assign-layouts` that sets it.

    Example:
    ```mlir
    func.func @copy_lds(%view: !attn.view<40 x bf16>,
                        %lds: !attn.lds<32 x 64 x bf16>)
        attributes {attn.target = #attn.target<"gfx950">} {
      attn.copy_lds %view, %lds : !attn.view<40 x bf16>, !attn.lds<32 x 64 x bf16>
      amdgpu.memory_counter_wait load(0)
      gpu.barrier
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_ViewType, "", [MemRead]>:$view,
                       Arg<Attn_LdsType, "", [MemWrite]>:$lds,
                       OptionalAttr<Attn_LayoutAttr>:$layout);
  let assemblyFormat = [{
    $view `,` $lds (`layout` $layout^)? attr-dict `:` type($view) `,` type($lds)
  }];
  let hasVerifier = 1;
}

def Attn_StoreLdsOp : Attn_Op<"store_lds"> {
  let summary = "Writes a tile from registers to LDS";
  let description = [{
    Example:
    ```mlir
    func.func @store_lds(%rows: tensor<32x64xbf16>,
                         %lds: !attn.lds<64 x 32 x bf16>) {
      %columns = attn.transpose %rows : tensor<32x64xbf16>
      attn.store_lds %columns, %lds
        : tensor<64x32xbf16>, !attn.lds<64 x 32 x bf16>
      return
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile, Arg<Attn_LdsType, "", [MemWrite]>:$lds);
  let assemblyFormat = "$tile `,` $lds attr-dict `:` type($tile) `,` type($lds)";
  let hasVerifier = 1;
}

def Attn_LoadLdsOp : Attn_Op<"load_lds"> {
  let summary = "Reads a tile from LDS into registers";
  let description = [{
    The tile is the upper left part of the LDS tile. Where the tile's layout
    holds columns rather than rows and the chip has reads that transpose among
    lanes, those are used.

    Example:
    ```mlir
    func.func @load_lds(%lds: !attn.lds<64 x 32 x f16>, %b: tensor<32x32xf16>)
        -> tensor<32x32xf32> {
      %a = attn.load_lds %lds : !attn.lds<64 x 32 x f16> -> tensor<32x32xf16>
      %zero = arith.constant dense<0.0> : tensor<32x32xf32>
      %product = attn.dot %a, %b, %zero inst<mfma_32x32x8>
        : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>
      return %product : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Arg<Attn_LdsType, "", [MemRead]>:$lds);
  let results = (outs Attn_Tile:$tile);
  let assemblyFormat = "$lds attr-dict `:` type($lds) `->` type($tile)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Computation on tiles
//===----------------------------------------------------------------------===//

// An op with a rule of its own for the layouts of its tiles.
def Attn_RelatesLayouts
    : DeclareOpInterfaceMethods<LayoutOpInterface, ["relateLayouts"]>;

def Attn_DotOp : Attn_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>,
                                 Attn_RelatesLayouts]> {
  let summary = "Matrix product of tiles on the matrix cores";
  let description = [{
    result[m, n] = acc[m, n] + sum_k a[m, k] * b[k, n], summed in f32.
    `inst` is the matrix instruction. `split_rows`: the schedule's
    `value_split` waves that share columns take rows each; otherwise each of
    them computes all rows. `column_waves`, in place of what the schedule says:
    that many waves share out the columns, the others the rows. `rows_alike`:
    all rows of `acc` are the same, so that one unit of them serves all.

    Example:
    ```mlir
    func.func @dot(%a: tensor<64x16xf16>, %b: tensor<16x32xf16>)
        -> tensor<64x32xf32> {
      %zero = arith.constant dense<0.0> : tensor<64x32xf32>
      %product = attn.dot %a, %b, %zero inst<mfma_32x32x8>
        : tensor<64x16xf16>, tensor<16x32xf16>, tensor<64x32xf32>
      return %product : tensor<64x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_FactorTile:$a, Attn_FactorTile:$b, Attn_F32Tile:$acc,
                       Attn_InstAttr:$inst, UnitAttr:$split_rows,
                       OptionalAttr<ConfinedAttr<I32Attr, [IntPositive]>>:$column_waves,
                       UnitAttr:$rows_alike);
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b,
                                 "::mlir::Value":$acc, "InstAttr":$inst,
                                 CArg<"bool", "false">:$splitRows), [{
    build($_builder, $_state, a, b, acc, inst, splitRows,
          /*column_waves=*/nullptr, /*rows_alike=*/false);
  }]>];
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc `inst` `` $inst (`split_rows` $split_rows^)?
    (`column_waves` $column_waves^)? (`rows_alike` $rows_alike^)? attr-dict
    `:` type($a) `,` type($b) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def Attn_ToAccumulatorsOp : Attn_Op<"to_accumulators",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "The same sums, in the registers that a product keeps them in";
  let description = [{
    Adds a product of zeros of type `factor`. That moves a tile to where chips
    whose matrix instructions have a register file of their own keep sums, and
    hides from the compiler's later stages that the tile came from elsewhere.
    Zeros lose their sign.

    Example:
    ```mlir
    func.func @to_accumulators(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>,
                               %factors: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %zero = arith.constant dense<0.0> : tensor<32x32xf32>
      %sums = attn.dot %a, %b, %zero inst<mfma_32x32x8>
        : tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x32xf32>
      %rescaled = arith.mulf %sums, %factors : tensor<32x32xf32>
      %kept = attn.to_accumulators %rescaled inst<mfma_32x32x8> factor f16
        : tensor<32x32xf32>
      return %kept : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile, Attn_InstAttr:$inst,
                       TypeAttrOf<AnyTypeOf<[F16, BF16, F32]>>:$factor);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = [{
    $tile `inst` `` $inst `factor` $factor attr-dict `:` type($tile)
  }];
}

def Attn_ToVectorsOp : Attn_Op<"to_vectors",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "The same values in registers that vector instructions read";
  let description = [{
    Sums of matrix instructions that lie in registers of their own are read here
    once, and not again by each user; a constant takes no scalar register.

    Example:
    ```mlir
    func.func @to_vectors(%scores: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %read = attn.to_vectors %scores : tensor<32x32xf32>
      return %read : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Attn_PinOp : Attn_Op<"pin",
    [AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "The same values, made before this place";
  let description = [{
    What makes the operand is not moved behind this op to where the result is
    used, past a barrier or branch, as the compiler's later stages would do: a
    segment that mixes it with matrix instructions then finds it. Takes no
    instruction.

    Example:
    ```mlir
    func.func @pin(%scores: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %p = math.exp2 %scores : tensor<32x32xf32>
      %made = attn.pin %p : tensor<32x32xf32>
      amdgpu.lds_barrier
      return %made : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile, UnitAttr:$accumulators);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat =
      "$tile (`in` `accumulators` $accumulators^)? attr-dict `:` type($tile)";
}

def Attn_TransposeOp : Attn_Op<"transpose", [Pure, InferTypeOpAdaptor,
                                             Attn_RelatesLayouts]> {
  let summary = "Exchanges the dimensions of a tile; moves nothing";
  let description = [{
    Example:
    ```mlir
    func.func @transpose(%tile: tensor<64x32xf16>) -> tensor<32x64xf16> {
      %turned = attn.transpose %tile : tensor<64x32xf16>
      return %turned : tensor<32x64xf16>
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Attn_ReduceOp : Attn_Op<"reduce", [Pure, Attn_RelatesLayouts]> {
  let summary = "Combines the rows of a tile";
  let description = [{
    `[R, N] -> [G, N]`: rows are dealt to G groups, each row of the result
    combines one group. With G > 1 which row falls into which group is left to
    the layout: groups are what the lanes hold anyway, so nothing moves; a
    later reduction to one group gives the defined total. With G = 1 the result
    is replicated over the lanes that held the rows.

    f16 elements are summed in f32.

    Example:
    ```mlir
    func.func @reduce(%scores: tensor<32x32xf32>) -> tensor<1x32xf32> {
      %max = attn.reduce <max> %scores : tensor<32x32xf32> -> tensor<1x32xf32>
      return %max : tensor<1x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_ReduceKindAttr:$kind, Attn_TileOf<[F32, F16]>:$tile);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = "$kind $tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_BroadcastOp : Attn_Op<"broadcast", [Pure, Attn_RelatesLayouts]> {
  let summary = "Repeats the single row of a tile, or each group's row";
  let description = [{
    `[1, N] -> [R, N]`; the result's layout is one that `attn.reduce` would
    reduce to the operand's.

    Example:
    ```mlir
    func.func @broadcast(%scores: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %max = attn.reduce <max> %scores : tensor<32x32xf32> -> tensor<1x32xf32>
      %maxima = attn.broadcast %max : tensor<1x32xf32> -> tensor<32x32xf32>
      %relative = arith.subf %scores, %maxima : tensor<32x32xf32>
      return %relative : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_MaskOp : Attn_Op<"mask", [Pure, AllTypesMatch<["tile", "result"]>,
                                   AttrSizedOperandSegments,
                                   Attn_RelatesLayouts]> {
  let summary = "Sets to -inf what lies outside the bounds of its column";
  let description = [{
    `result[r, c] = begin[0, c] <= r < end[0, c] ? tile[r, c] : -inf`; a bound
    that is left out is none. Of scores with keys as rows the bounds are the
    keys that each query sees, with queries as rows the queries that see each
    key, relative to the first of the block.

    Example:
    ```mlir
    func.func @mask(%scores: tensor<32x32xf32>, %begin: tensor<1x32xi32>,
                    %end: tensor<1x32xi32>) -> tensor<32x32xf32> {
      %visible = attn.mask %scores from %begin : tensor<1x32xi32>
        to %end : tensor<1x32xi32> : tensor<32x32xf32>
      return %visible : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile, Optional<Attn_TileOf<[I32]>>:$begin,
                       Optional<Attn_TileOf<[I32]>>:$end);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = [{
    $tile (`from` $begin^ `:` type($begin))? (`to` $end^ `:` type($end))?
    attr-dict `:` type($tile)
  }];
  let hasVerifier = 1;
}

def Attn_DropoutOp : Attn_Op<"dropout",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "Drops weights by chance";
  let description = [{
    `result[r, c]` is `tile[r, c]` if the random word of its query and key is, as
    a number with sign, at least `threshold`, and else 0, or with `negates`
    `-tile[r, c]`.

    Four keys of a query share a call of Philox4x32-10 (Salmon et al. 2011,
    "Parallel random numbers: as easy as 1, 2, 3"), whose key is `seed` and whose
    counter is `counter` for the tile's first query and keys 0 to 3, one more for
    each further four keys, and `groups` more for each further query. Its words
    are theirs in order, or, if `swaps`, in the order 0, 2, 1, 3. The tile's
    first key is `key`, a multiple of 4. With `queries_are_rows` columns are
    keys, else rows are.

    Example:
    ```mlir
    func.func @dropout(%weights: tensor<32x32xf32>, %seed: i64, %counter: i64,
                       %groups: i32, %key: i32, %threshold: i32, %swaps: i1)
        -> tensor<32x32xf32> {
      %kept = attn.dropout %weights seed %seed counter %counter groups %groups
        key %key threshold %threshold swaps %swaps : tensor<32x32xf32>
      return %kept : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile, I64:$seed, I64:$counter, I32:$groups,
                       I32:$key, I32:$threshold, I1:$swaps,
                       UnitAttr:$queries_are_rows, UnitAttr:$negates);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = [{
    $tile `seed` $seed `counter` $counter `groups` $groups `key` $key
    `threshold` $threshold `swaps` $swaps
    (`queries_are_rows` $queries_are_rows^)? (`negates` $negates^)?
    attr-dict `:` type($tile)
  }];
}

def Attn_ColumnIndexOp : Attn_Op<"column_index", [Pure]> {
  let summary = "The number of each column, as a tile of one row";
  let description = [{
    Example:
    ```mlir
    func.func @column_index(%scores: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %query = attn.column_index : tensor<1x32xi32>
      %causal = attn.mask %scores to %query : tensor<1x32xi32>
        : tensor<32x32xf32>
      return %causal : tensor<32x32xf32>
    }
    ```
  }];
  let results = (outs Attn_TileOf<[I32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Attn_RowIndexOp : Attn_Op<"row_index", [Pure]> {
  let summary = "The number of its row, for each element of a tile";
  let description = [{
    Example:
    ```mlir
    func.func @row_index(%bias: tensor<32x32xi32>) -> tensor<32x32xi32> {
      %key = attn.row_index : tensor<32x32xi32>
      %sum = arith.addi %key, %bias : tensor<32x32xi32>
      return %sum : tensor<32x32xi32>
    }
    ```
  }];
  let results = (outs Attn_TileOf<[I32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Attn_RoundOp : Attn_Op<"round", [Pure, LayoutOpInterface]> {
  let summary = "Rounds probabilities, or a share's sums, to 16 bits";
  let description = [{
    `nearest_away` rounds ties away from zero, at half the cost on chips without a
    conversion for bf16. Infinity and NaNs that 16 bits or the hardware made stay;
    a NaN with bits in the lower half of its fraction may become anything.

    Example:
    ```mlir
    func.func @round(%p: tensor<32x32xf32>) -> tensor<32x32xbf16> {
      %rounded = attn.round %p <nearest_away>
        : tensor<32x32xf32> -> tensor<32x32xbf16>
      return %rounded : tensor<32x32xbf16>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile, Attn_RoundingAttr:$mode);
  let results = (outs Attn_TileOf<[F16, BF16]>:$result);
  let assemblyFormat = "$tile $mode attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_SaturateOp : Attn_Op<"saturate",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "At most 1, of numbers that are not negative";
  let description = [{
    A NaN stays one. Free where clamping is part of the instruction that makes
    the operand and a mode lets NaNs through; else an instruction.

    Example:
    ```mlir
    func.func @saturate(%p: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %one = attn.saturate %p : tensor<32x32xf32>
      return %one : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins Attn_F32Tile:$tile);
  let results = (outs Attn_F32Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Attn_NegateIfOp : Attn_Op<"negate_if",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "Changes the sign of a tile if a flag is set";
  let description = [{
    Exact for every value. `flag` is uniform over the workgroup.

    Example:
    ```mlir
    func.func @negate_if(%queries: tensor<32x64xf16>, %negative: i1)
        -> tensor<32x64xf16> {
      %signed = attn.negate_if %queries, %negative : tensor<32x64xf16>
      return %signed : tensor<32x64xf16>
    }
    ```
  }];
  let arguments = (ins Attn_FactorTile:$tile, I1:$flag);
  let results = (outs Attn_FactorTile:$result);
  let assemblyFormat = "$tile `,` $flag attr-dict `:` type($tile)";
}

def Attn_CutOp : Attn_Op<"cut",
    [Pure, AllTypesMatch<["tile", "result"]>, LayoutOpInterface]> {
  let summary = "Zeros in the place of a tile's last columns";
  let description = [{
    Columns from number `columns` on are zeros, whatever the tile holds there,
    and so is column 8 where `again` is 1 (see `attn.view`). Both are uniform
    over the workgroup.

    Example:
    ```mlir
    func.func @cut(%keys: tensor<32x64xf16>, %columns: i32)
        -> tensor<32x64xf16> {
      %there = attn.cut %keys columns %columns : tensor<32x64xf16>
      return %there : tensor<32x64xf16>
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile, I32:$columns, Optional<I32>:$again);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = [{
    $tile `columns` $columns (`again` $again^)? attr-dict `:` type($tile)
  }];
}

def Attn_WaveAnyOp : Attn_Op<"wave_any", [Pure]> {
  let summary = "Whether any element that this wave holds is true";
  let description = [{
    Uniform over a wave, not over the workgroup; a guard for work that is
    right, but not needed, where it is false.

    Example:
    ```mlir
    func.func @wave_any(%max: tensor<1x32xf32>, %limit: tensor<1x32xf32>,
                        %view: !attn.view<32 x f32>) {
      %above = arith.cmpf ogt, %max, %limit : tensor<1x32xf32>
      %any = attn.wave_any %above : tensor<1x32xi1>
      scf.if %any {
        attn.store %max, %view : tensor<1x32xf32>, !attn.view<32 x f32>
      }
      return
    }
    ```
  }];
  let arguments = (ins Attn_TileOf<[I1]>:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Attn_IsLateWaveOp : Attn_Op<"is_late_wave", [Pure]> {
  let summary = "Whether this wave belongs to the second half of its workgroup's";
  let description = [{
    Uniform over a wave, not over the workgroup. Where more waves than a compute
    unit has SIMDs make a workgroup, the halves share the SIMDs.

    Example:
    ```mlir
    func.func @is_late_wave() {
      %late = attn.is_late_wave
      scf.if %late {
        amdgpu.lds_barrier
      }
      return
    }
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

def Attn_ConvertLayoutOp : Attn_Op<"convert_layout", [Pure]> {
  let summary = "The same tile in another layout";
  let description = [{
    Example:
    ```mlir
    #rows = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]],
                         lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
                         wave = [], grid = [1, 2]>
    #columns = #attn.layout<reg = [[0, 1], [0, 2], [0, 4]],
                            lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0],
                                    [0, 8]],
                            wave = [], grid = [1, 2]>
    func.func @convert_layout(%tile: tensor<32x32xf32, #rows>)
        -> tensor<32x32xf32, #columns> {
      %moved = attn.convert_layout %tile
        : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
      return %moved : tensor<32x32xf32, #columns>
    }
    ```
  }];
  let arguments = (ins Attn_Tile:$tile);
  let results = (outs Attn_Tile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_InterleaveOp : Attn_Op<"interleave"> {
  let summary = "Asks for an even mix of the work before it";
  let description = [{
    What stands between the last branch or barrier before this op and the op
    itself is scheduled such that matrix instructions, vector arithmetic and
    reads of LDS alternate evenly. It changes no result. With `has_loads` the
    work contains loads by way of registers, whose instructions cannot be
    counted yet: a matrix instruction is followed by one of them besides.

    Example:
    ```mlir
    func.func @interleave(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>)
        -> tensor<32x32xf32> {
      %zero = arith.constant dense<0.0> : tensor<32x32xf32>
      %s = attn.dot %a, %b, %zero inst<mfma_32x32x8>
        : tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x32xf32>
      %p = math.exp2 %s : tensor<32x32xf32>
      attn.interleave
      return %p : tensor<32x32xf32>
    }
    ```
  }];
  let arguments = (ins UnitAttr:$has_loads);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

def Attn_MmaOp : Attn_Op<"mma", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "One matrix instruction on the registers of one lane";
  let description = [{
    D = A * B + C as the instruction `inst` defines it; the
    operands are what one lane holds.

    Example:
    ```mlir
    func.func @mma(%a: vector<4xbf16>, %b: vector<4xbf16>, %c: vector<16xf32>)
        -> vector<16xf32> {
      %d = attn.mma %a, %b, %c inst<mfma_32x32x8>
        : vector<4xbf16>, vector<4xbf16>, vector<16xf32>
      return %d : vector<16xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F16, BF16, F32]>:$a,
                       VectorOfRankAndType<[1], [F16, BF16, F32]>:$b,
                       VectorOfRankAndType<[1], [F32]>:$c, Attn_InstAttr:$inst);
  let results = (outs VectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $c `inst` `` $inst attr-dict
    `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNTILEOPS_TD
