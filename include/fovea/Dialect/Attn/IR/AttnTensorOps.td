//===- AttnTensorOps.td - attention on tensors -------------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNTENSOROPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNTENSOROPS_TD

include "fovea/Dialect/Attn/IR/AttnOps.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

class Attn_ShapedOf<list<Type> elements, int rank>
    : AnyTypeOf<[TensorRankOf<elements, [rank]>, MemRefRankOf<elements, [rank]>]>;

def Attn_SdpaOp : Attn_Op<"sdpa", [
    AttrSizedOperandSegments, DestinationStyleOpInterface, IsolatedFromAbove,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Scaled dot-product attention on tensors";
  let description = [{
    What `attn.forward` computes, for programs that are not kernels: among other
    ops, on tensors, and after bufferization on memrefs of any layout. The last
    operands are destinations, as those of `linalg` ops: the output and
    optionally the log-sum-exp, which are overwritten whole. On tensors the op
    has a result for each; on memrefs it has none.

    `visible`, its bounds and `score` are those of `attn.forward`. A `mask` acts
    on the score s before `score` takes it: one of floating point is added; where
    one of i1 is false the key is hidden. Its extents are those of [batch,
    heads_q, seqlen_q, seqlen_k], or 1, which repeats.

    | operand | shape | type |
    |---|---|---|
    | q | [batch, heads_q, seqlen_q, head_dim] | f16 or bf16 |
    | k | [batch, heads_k, seqlen_k, head_dim] | the same |
    | v | [batch, heads_k, seqlen_k, head_dim_v] | the same |
    | outs[0] | [batch, heads_q, seqlen_q, head_dim_v] | the same |
    | mask (optional) | [batch or 1, heads_q or 1, seqlen_q or 1, seqlen_k or 1] | f32, f16, bf16 or i1 |
    | scale | scalar | f32 |
    | outs[1] (optional) | [batch, heads_q, seqlen_q] | f32, the log-sum-exp |

    Constraints:
    * (C1) to (C7) and (C9) to (C12) of `attn.forward`;
    * (C13) there are one or two destinations, the first like q and the second
      of rank 3 in f32;
    * (C14) all shaped operands are tensors, or all memrefs;
    * (C15) the mask's extents, where they are static, are those of the table.

    Results have the types of their destinations.

    `attn-recognize-sdpa` finds the op in `linalg`, and `attn-outline-kernels`
    makes kernels of it (docs/Tensors.md).

    Example:
    ```mlir
    func.func @attention(%q: tensor<2x8x?x64xf16>, %k: tensor<2x2x?x64xf16>,
                         %v: tensor<2x2x?x64xf16>, %out: tensor<2x8x?x64xf16>,
                         %scale: f32) -> tensor<2x8x?x64xf16> {
      %attended = attn.sdpa ins(%q, %k, %v : tensor<2x8x?x64xf16>,
          tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>) scale(%scale)
        visible [#attn.causal<bottom_right>] outs(%out : tensor<2x8x?x64xf16>)
        -> tensor<2x8x?x64xf16>
      return %attended : tensor<2x8x?x64xf16>
    }
    ```
  }];
  let arguments = (ins
      Attn_ShapedOf<[F16, BF16], 4>:$q, Attn_ShapedOf<[F16, BF16], 4>:$k,
      Attn_ShapedOf<[F16, BF16], 4>:$v,
      Optional<Attn_ShapedOf<[F32, F16, BF16, I1], 4>>:$mask,
      F32:$scale, Variadic<I32>:$bounds,
      Variadic<AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>>:$outs,
      OptionalAttr<Attn_VisibilityParts>:$visibility);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    (`mask` `(` $mask^ `:` type($mask) `)`)? `scale` `(` $scale `)`
    (`visible` $visibility^)? (`(` $bounds^ `)`)? (`score` $score^)?
    `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getOut() { return getOuts().front(); }
    /// The destination of the log-sum-exp; null: it is not wanted.
    ::mlir::Value getLse() {
      return getOuts().size() > 1 ? getOuts()[1] : ::mlir::Value();
    }
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
  }];
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNTENSOROPS_TD
