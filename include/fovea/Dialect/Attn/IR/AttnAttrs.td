//===- AttnAttrs.td - attributes of the attn dialect -------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD

include "fovea/Dialect/Attn/IR/AttnDialect.td"
include "fovea/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class Attn_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Attn_Alignment : I32EnumAttr<"Alignment", "the diagonal that a side counts from", [
    I32EnumAttrCase<"TopLeft", 0, "top_left">,
    I32EnumAttrCase<"BottomRight", 1, "bottom_right">]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}
def Attn_AlignmentParam : EnumParameter<Attn_Alignment>;

def Attn_ReduceKind : I32EnumAttr<"ReduceKind", "how elements are combined", [
    I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Sum", 1, "sum">]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}
def Attn_ReduceKindAttr : EnumAttr<Attn_Dialect, Attn_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attn_Rounding : I32EnumAttr<"Rounding", "rounding to a narrower type", [
    I32EnumAttrCase<"NearestEven", 0, "nearest_even">,
    I32EnumAttrCase<"NearestAway", 1, "nearest_away">]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}
def Attn_RoundingAttr : EnumAttr<Attn_Dialect, Attn_Rounding, "rounding"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attn_BackwardAlgorithm : I32EnumAttr<"BackwardAlgorithm", "how gradients are summed", [
    I32EnumAttrCase<"Deterministic", 0, "deterministic">,
    I32EnumAttrCase<"Atomic", 1, "atomic">,
    I32EnumAttrCase<"Atomic16", 2, "atomic16">]> {
  let cppNamespace = "::fovea::attn";
  let genSpecializedAttr = 0;
}
def Attn_BackwardAlgorithmParam : EnumParameter<Attn_BackwardAlgorithm>;

//===----------------------------------------------------------------------===//
// Visibility
//===----------------------------------------------------------------------===//

class Attn_VisibilityAttr<string name, string attrMnemonic, string method>
    : Attn_Attr<name, attrMnemonic, [DeclareAttrInterfaceMethods<
          Attn_VisibilityAttrInterface, [method]>]>;

def Attn_CausalAttr : Attn_VisibilityAttr<"Causal", "causal", "describe"> {
  let summary = "Keys up to the diagonal";
  let description = [{
    Row i sees key j if `j <= i` (`#attn.causal<top_left>`), or `j <= i +
    seqlen_k - seqlen_q` (`#attn.causal<bottom_right>`).
  }];
  let parameters = (ins Attn_AlignmentParam:$alignment);
  let assemblyFormat = "`<` $alignment `>`";
}

def Attn_WindowAttr : Attn_VisibilityAttr<"Window", "window", "getGroup"> {
  let summary = "Keys of a band around the diagonal, known at run time";
  let description = [{
    Row i sees key j if `i + dl - left <= j <= i + dr + right`. Takes three
    operands of its op, i32: left, right, and alignment, whose bit 0 says that
    dl, and bit 1 that dr, is seqlen_k - seqlen_q, which else is 0. The largest
    i32 for a side is no bound. Sums saturate.
  }];
}

//===----------------------------------------------------------------------===//
// Target and schedule
//===----------------------------------------------------------------------===//

def Attn_TargetAttr : Attn_Attr<"Target", "target"> {
  let summary = "The chip that code is generated for";
  let description = [{
    A row of the chip table, by name: `#attn.target<"gfx942">`. Put on a
    function or a `gpu.module` as `attn.target`.
  }];
  let parameters = (ins StringRefParameter<"chip">:$chip);
  let assemblyFormat = "`<` $chip `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The chip's row; never null in a verified attribute.
    const ::fovea::target::TargetInfo &getInfo() const;
  }];
}

def Attn_InstAttr : Attn_Attr<"Inst", "inst"> {
  let summary = "A matrix instruction, by family and shape";
  let description = [{
    A name in the table of matrix instructions: `#attn.inst<mfma_32x32x8>`.
    Rows of one name share family and shape. Which of them an op means follows
    from its factors' type and from the chip.
  }];
  let parameters = (ins StringRefParameter<"as the table spells it">:$name);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Family and shape.
    const ::fovea::target::MatrixShape &getInfo() const;
  }];
}

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "How one kernel is tiled and pipelined";
  let description = [{
    | parameter | meaning |
    |---|---|
    | `block_m` | query rows that a workgroup owns; a multiple of waves / value_split × n of the instruction |
    | `block_n` | keys of one iteration; a power of two and a multiple of m of the instruction |
    | `waves` | waves of a workgroup: 1, 2, 4, 8 or 16 |
    | `inst` | matrix instruction (`#attn.inst`) |
    | `stages` | 1: load a key block, then use it; 2: load the next block while computing this one; 3: compute the next block's scores too while computing this one (needs `direct_copy`); 4: compute scores beside rounding of the block before and its output beside exponentials, between segments that move data; with `direct_copy` in two parts, and half of the waves a segment behind the others where they share SIMDs; gradients have 1, 2 and 4; 5: `fused` of gradients, with dK a block late beside the reads behind the barrier |
    | `waves_per_simd` | occupancy to allocate registers for |
    | `rescale_threshold` | the accumulator is rescaled when a running maximum grew by more than this, in powers of two; 0: whenever it grew |
    | `value_split` | waves that share their queries and split the columns of the output, so that the accumulator fits; each computes all their scores. Left out: 1 |
    | `queries_in_lds` | 1: queries are read from LDS in each iteration instead of staying in registers; 2: they are read from memory each time, in chunks of columns, where rows are too long for both; 3: of the two operands that gradient kernels keep, the one of the scores is in LDS, the other in registers. Left out: 0 |
    | `direct_copy` | 1: keys and values are loaded to LDS without passing registers, and V is transposed by the reads from there. Left out: 0 |
    | `column_chunk` | so many columns of the head dimension are taken at a time: scores are summed over them. In gradients they come through LDS so, scores first; in forward kernels it goes with `queries_in_lds` = 2. A multiple of 32. Left out: 0, all at once |

    `attn-choose-schedule` fills it in; a hand-written one is kept.
  }];
  let parameters = (ins "int32_t":$blockM, "int32_t":$blockN, "int32_t":$waves,
      "::fovea::attn::InstAttr":$inst, "int32_t":$stages, "int32_t":$wavesPerSimd,
      "int32_t":$rescaleThreshold, DefaultValuedParameter<"int32_t", "1">:$value_split,
      DefaultValuedParameter<"int32_t", "0">:$queries_in_lds,
      DefaultValuedParameter<"int32_t", "0">:$direct_copy,
      DefaultValuedParameter<"int32_t", "0">:$column_chunk);
  let assemblyFormat = [{
    `<` `block_m` `=` $blockM `,` `block_n` `=` $blockN `,` `waves` `=` $waves
    `,` `inst` `=` $inst `,` `stages` `=` $stages
    `,` `waves_per_simd` `=` $wavesPerSimd
    `,` `rescale_threshold` `=` $rescaleThreshold
    (`,` struct($value_split, $queries_in_lds, $direct_copy, $column_chunk)^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Canonical text, the schedule's key in a package:
    /// "block_m=128,block_n=64,…".
    std::string getKey() const;
    bool keepsQueriesInRegisters() const { return getQueriesInLds() == 0; }
    bool keepsQueriesInLds() const {
      return getQueriesInLds() == 1 || getQueriesInLds() == 3;
    }
    /// The other operand that gradient kernels keep.
    bool keepsOtherInLds() const { return getQueriesInLds() == 1; }
  }];
}

def Attn_BackwardScheduleAttr : Attn_Attr<"BackwardSchedule", "backward_schedule"> {
  let summary = "How the kernels of one backward pass are tiled and pipelined";
  let description = [{
    The algorithm by name, and a schedule for each of its kernels, in the order
    in which they are launched:

    | algorithm | kernel | its schedule |
    |---|---|---|
    | `deterministic`: each sum in one order | `delta` | `block_m`: rows of a workgroup of the row sums |
    | | `dkdv` | `block_m` keys that a workgroup owns, `block_n` queries of an iteration; `value_split` and `queries_in_lds` are about those keys |
    | | `dq` | `block_m` queries that a workgroup owns, `block_n` keys of an iteration |
    | `atomic`: dQ is added up in memory, in any order | `prepare` | as `delta` |
    | | `fused` | as `dkdv` |
    | | `convert` | `block_m`: rows of a workgroup |
    | `atomic16`: the same in the type of the inputs, two sums an addition | `prepare16` | as `prepare` |
    | | `fused16` | as `fused` |
    | | `convert16` | as `convert` |

    ```mlir
    #attn.backward_schedule<atomic, prepare = <...>, fused = <...>,
                            convert = <...>>
    ```

    `attn-choose-schedule` fills it in; a hand-written one is kept.
  }];
  let parameters = (ins Attn_BackwardAlgorithmParam:$algorithm,
      ArrayRefParameter<"::fovea::attn::ScheduleAttr">:$kernels);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Canonical text, the schedule's key in a package.
    std::string getKey() const;
  }];
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def Attn_LayoutAttr : Attn_Attr<"Layout", "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How a tile's elements spread over registers, lanes and waves";
  let description = [{
    A linear map over bits: bit i of the register, lane or wave number adds
    (XOR) basis i to the coordinates inside one unit of the tile; `grid` units
    make the tile. Encoding of two-dimensional tensors, which are then tiles:

    ```mlir
    // Accumulator of a 32x32 matrix instruction, two waves side by side.
    #attn.layout<reg = [[1, 0], [2, 0], [8, 0], [16, 0]],
                 lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]],
                 wave = [[0, 32]], grid = [2, 1]>
    ```
  }];
  let parameters = (ins "::fovea::layout::TileLayout":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_SwizzleAttr : Attn_Attr<"Swizzle", "swizzle"> {
  let summary = "How the rows of an LDS tile are permuted against bank conflicts";
  let description = [{
    In row r, the 16-byte chunk c of each group of `chunks` (a power of two)
    chunks is stored at place `c xor f(r)`, where f(r) is the XOR of `r >> s`
    over the `shifts` (a negative one shifts to the left), modulo `chunks`. Rows with fewer chunks join to lines of
    so many, and take the line's number for r. With `half`, the 8-byte halves of
    the chunks of a row trade places where that bit of the row's number is set.
  }];
  let parameters = (ins "int32_t":$chunks, ArrayRefParameter<"int32_t">:$shifts,
                        DefaultValuedParameter<"int32_t", "-1">:$half);
  let assemblyFormat = [{
    `<` `chunks` `=` $chunks `,` `shifts` `=` `[` $shifts `]`
    (`,` `half` `=` $half^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNATTRS_TD
