//===- AttnOps.td - problem-level ops of the attn dialect --*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD

include "fovea/Dialect/Attn/IR/AttnAttrs.td"
include "fovea/Dialect/Attn/IR/AttnTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Rank 4: (batch, heads, sequence, head_dim), in 16-bit floating point.
def Attn_Tensor : MemRefRankOf<[F16, BF16, F32], [4]>;

// What a score program captures: a scalar, or a tensor with any strides.
def Attn_CapturedTensor
    : MemRefRankOf<[F32, F16, BF16, I32, I1], [1, 2, 3, 4]>;
def Attn_Capture : AnyTypeOf<[F32, I32, Attn_CapturedTensor]>;

// Of lists of blocks: their tensors, and sizes.
def Attn_BlockListOperand : AnyTypeOf<[I32, MemRefRankOf<[I32], [3, 4]>]>;

// Of sequences of different lengths: their tensors, and sizes.
def Attn_SequencesOperand : AnyTypeOf<[I32, MemRefRankOf<[I32], [1]>]>;

// Of dropout: where seeds are, and numbers.
def Attn_DropoutOperand
    : AnyTypeOf<[I32, I64, F32, MemRefRankOf<[I64], [1]>]>;

def Attn_VisibilityParts
    : TypedArrayAttrBase<Attn_VisibilityAttrInterface, "parts of visibility">;

class Attn_AttentionOp<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<
          Attn_AttentionOpInterface, ["getOperationKind", "getTensor",
                                      "getHeadDim", "getHeadDimV",
                                      "getElementType"]>])>;

def Attn_ForwardOp : Attn_AttentionOp<"forward", [AttrSizedOperandSegments,
                                                  IsolatedFromAbove]> {
  let summary = "Scaled dot-product attention, forward";
  let description = [{
    For each batch b, query head h and query row i, with g = heads_q / heads_k:

    ```
    x_j      = scale * sum_d q[b, h, i, d] * k[b, h / g, j, d]
    s_j      = score(x_j)                                     visible, seen j
    lse      = log(exp(sinks[h]) + sum_j exp(s_j))                 natural log
    out[d]   = sum_j exp(s_j - lse) * v[b, h / g, j, d]
    ```

    Sums are in f32. Key j is visible to query i if all parts of `visible` show
    it (docs/Visibility.md):

    | part | key j is seen by query i if |
    |---|---|
    | `#attn.causal<top_left>` | j <= i |
    | `#attn.causal<bottom_right>` | j <= i + seqlen_k - seqlen_q |
    | `#attn.window`, of operands left, right and alignment | i + dl - left <= j <= i + dr + right |

    Without parts every key is. A row that sees no key gives zeros and a log-sum-exp of -inf.

    With `blocks` only keys of blocks are that are listed for the query's block
    (docs/BlockLists.md): the tensors and then the scalars of the feature group
    `blocks`, in the order of its table (docs/KernelAbi.md). Of blocks that are
    listed as seen in whole `visible` and the predicate of `score` need not be
    looked at.

    With `sequences` each batch has lengths and places of its own
    (docs/VariableLengths.md): the tensors and then the scalars of the feature
    group `varlen`. seqlen_q and seqlen_k above, and in `visible` and `score`,
    are those of the batch, and the extents of tensors the most that any has.

    With `dropout` weights are dropped by chance (docs/Dropout.md): the tensors
    and then the scalars of the feature group `dropout`. lse is that of all.

    With `head_dims` rows of q and k, and rows of v and out, have fewer elements
    than the tensors' types say (docs/HeadDimensions.md): the scalars of the
    feature group `head_dims`. What is behind them is neither used nor written.

    A sink is a logit of its head that takes probability and has no value. It is
    neither scaled nor handed to `score`. Without sinks, or of -inf, there is
    none; with one, a row that sees no key has it for a log-sum-exp.

    `score` is a program, a region of scalar `arith` and `math` ops on x, in f32,
    and on where it stands, and on what the op captures; without one s is x
    (docs/ScorePrograms.md). It may yield a predicate besides, which hides
    places as `visible` does:

    ```mlir
    captures(%bias : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>) score {
    ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
         %seqlen_q: i32, %seqlen_k: i32,
         %table: memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>):
      %b = attn.at %table[%batch, %head, %query, %key]
        : memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
      %s = arith.addf %x, %b : f32
      attn.yield %s : f32
    }
    ```

    Limits of the arithmetic: scores that f32 cannot hold, before or after the
    scale, are infinite. Keys and scores that the mask hides take no
    part, whatever they hold; values of keys that it hides from a row, but not
    from the whole block of rows, are multiplied by 0, so that an infinity or
    NaN there gives NaN (docs/Accuracy.md).

    | operand | shape | type |
    |---|---|---|
    | q | [batch, heads_q, seqlen_q, head_dim] | f16, bf16 or f32 |
    | k | [batch, heads_k, seqlen_k, head_dim] | the same |
    | v | [batch, heads_k, seqlen_k, head_dim_v] | the same |
    | out | [batch, heads_q, seqlen_q, head_dim_v] | the same |
    | lse (optional) | [batch, heads_q, seqlen_q] | f32 |
    | sinks (optional) | [heads_q] | f32 |
    | scale | scalar | f32 |
    | captures | scalars, or tensors of rank 1 to 4 | f32, i32; f32, f16, bf16, i32, i1 |

    All extents but the head dimensions, and all strides but the last, may be dynamic, and
    are then arguments of the compiled kernel. Tensors may be of any size:
    addresses are 64 bits.

    Constraints:
    * (C1) q, k, v and out have one element type;
    * (C2) all have one batch size;
    * (C3) heads_k divides heads_q;
    * (C4) k and v agree in heads and sequence length;
    * (C5) head_dim is static, that of q and k, a multiple of 8, and in
      [8, 576], and so is head_dim_v, that of v and out, in [8, 512];
    * (C6) out has heads and rows of q;
    * (C7) lse is [batch, heads_q, seqlen_q];
    * (C8) the last stride is 1, no stride negative, the offset 0, and the
      memory space the default (global memory), of every tensor;
    * (C9) the bounds are as many as the parts of `visible` take;
    * (C10) `score` is one block with the arguments above;
    * (C11) its ops are of the table in docs/ScorePrograms.md, which have no
      effects, no regions, and values of i1, i32 and f32;
    * (C12) it ends with `attn.yield` of an f32, and possibly an i1 behind it;
    * (C13) the op captures what the program's arguments behind the first seven
      take, at most 8 values, and nothing without a program; tensors have a
      strided layout with offset 0, no negative stride and the default memory
      space;
    * (C14) sinks is [heads_q], of any stride that is not negative, without
      offset and in the default memory space;
    * (C15) blocks are the group's eight tensors, of i32 and as (C8) says, and
      six scalars; block_m and block_n of a schedule then divide 128;
    * (C17) sequences are the group's four tensors, of i32 and as (C8) says, and
      four scalars;
    * (C18) dropout is the group's four tensors, of i64 and as (C8) says, and
      five scalars;
    * (C19) head_dims are the group's two scalars.

    (C2), (C3), (C4), (C6), (C7) and (C13) are checked here where extents are static,
    and by the runtime otherwise. Static extents and strides do not specialise
    the kernel: it takes them as arguments all the same.

    With `combine` the keys of a block of rows are split: the op becomes two
    kernels, `<name>_split`, tiled by `schedule`, whose workgroups take a share
    of the keys each, and `<name>_combine_v2`, tiled by `combine` (`block_m` rows
    of a workgroup where shares are at most 16, or else one, and `block_n` shares
    of an iteration), which adds up what the first one leaves in a workspace
    (docs/KernelAbi.md).

    Operands are the kernel's arguments in the order of the function's: tensors
    in another order than `q, k, v, out, lse` make another kernel, which a
    caller of its own can launch and a package can't hold.

    Example:
    ```mlir
    !tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
    !rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
    func.func @forward(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                       %lse: !rows, %scale: f32, %left: i32, %right: i32,
                       %alignment: i32) {
      attn.forward %q, %k, %v, %out lse(%lse) scale(%scale)
        visible [#attn.window] (%left, %right, %alignment)
        : !tensor, !tensor, !tensor, !tensor, !rows
      return
    }
    ```
  }];
  let arguments = (ins
      Arg<Attn_Tensor, "queries", [MemRead]>:$q,
      Arg<Attn_Tensor, "keys", [MemRead]>:$k,
      Arg<Attn_Tensor, "values", [MemRead]>:$v,
      Arg<Attn_Tensor, "output", [MemWrite]>:$out,
      Arg<Optional<MemRefRankOf<[F32], [3]>>, "log-sum-exp", [MemWrite]>:$lse,
      F32:$scale, Variadic<I32>:$bounds,
      Arg<Optional<MemRefRankOf<[F32], [1]>>, "sinks", [MemRead]>:$sinks,
      Arg<Variadic<Attn_BlockListOperand>, "lists of blocks", [MemRead]>:$lists,
      Arg<Variadic<Attn_SequencesOperand>, "lengths of sequences",
          [MemRead]>:$sequences,
      Arg<Variadic<Attn_DropoutOperand>, "of dropout",
          [MemRead, MemWrite]>:$dropout,
      Variadic<I32>:$head_dims,
      Arg<Variadic<Attn_Capture>, "of the score program", [MemRead]>:$captures,
      OptionalAttr<Attn_VisibilityParts>:$visibility,
      OptionalAttr<Attn_ScheduleAttr>:$schedule,
      OptionalAttr<Attn_ScheduleAttr>:$combine);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out (`lse` `(` $lse^ `)`)? `scale` `(` $scale `)`
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`visible` $visibility^)? (`(` $bounds^ `)`)?
    (`blocks` `(` $lists^ `:` type($lists) `)`)?
    (`sequences` `(` $sequences^ `:` type($sequences) `)`)?
    (`dropout` `(` $dropout^ `:` type($dropout) `)`)?
    (`head_dims` `(` $head_dims^ `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)? (`score` $score^)?
    (`schedule` `(` $schedule^ `)`)? (`combine` `(` $combine^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($out)
    (`,` type($lse)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The operation's row of its algorithm: by whether it combines.
    const ::fovea::spec::AlgorithmSpec &getAlgorithm();
    /// Canonical text of its schedules, their key in a package.
    std::string getScheduleKey();
  }];
}

def Attn_BackwardOp : Attn_AttentionOp<"backward", [AttrSizedOperandSegments,
                                                    IsolatedFromAbove]> {
  let summary = "Scaled dot-product attention, gradients";
  let description = [{
    The gradients of `attn.forward` for a gradient `dout` of its output, from the
    forward pass's operands and results:

    ```
    x_ij    = scale * sum_d q_id * k_jd
    p_ij    = exp(score(x_ij) - lse_i)                             visible j
    delta_i = sum_d out_id * dout_id - dlse_i
    ds_ij   = p_ij * (sum_d dout_id * v_jd - delta_i) * score'(x_ij)
    dv_j    = sum_i p_ij * dout_i          over all queries of the group's heads
    dk_j    = scale * sum_i ds_ij * q_i    likewise
    dq_i    = scale * sum_j ds_ij * k_j
    dsink_h = - sum_i exp(sinks[h] - lse_i) * delta_i      over all of the head
    ```

    Sums are in f32; p and ds are rounded to the element type for the last three
    products. A row that saw no key (lse = -inf) takes no part: its dq is zero,
    whatever its dlse. `dlse` is the gradient of lse, zeros if it is left out.
    Sinks are in lse; `dsinks` names those of the forward pass and what receives
    their gradient, which is 0 of a sink of -inf.
    Visibility is as in `attn.forward`, and so is `score`, which may yield its
    derivative for x beside the score; `attn-differentiate-scores` makes those
    that don't.

    `gradients` names captures by their numbers, and tensors to add their
    gradients to, by atomic additions of f32: with ds before the last factor,
    what reads an element of capture n, at (i, j), adds

    ```
    p_ij * (sum_d dout_id * v_jd - delta_i) * dscore/delement
    ```

    to the same element of gradient n. It is not cleared first; strides of 0 sum
    up what is broadcast. Reads outside the capture, and places that are not
    visible, add nothing.

    A gradient in a capture's type of 16 bits is stored and not added: each place
    of queries and keys that there are, 0 where it is not visible. Batch, head,
    query and key then index the capture as they are.

    ```mlir
    captures(%bias, %slopes : memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>,
             memref<?x?xf32, strided<[?, ?]>>)
    gradients(0 = %dbias, 1 = %dslopes
              : memref<?x?x?x?xf32, strided<[?, ?, ?, ?]>>,
                memref<?x?xf32, strided<[?, ?]>>)
    ```

    The op becomes several kernels, launched one after the other
    (docs/Backward.md), those of its schedule's algorithm: `<name>_delta`,
    `<name>_dkdv` and `<name>_dq`, or `<name>_prepare`, `<name>_fused` and
    `<name>_convert`. With `dsinks` there is `<name>_dsinks` behind them.

    | operand | shape | type |
    |---|---|---|
    | q, dq | [batch, heads_q, seqlen_q, head_dim] | f16, bf16 or f32 |
    | out, dout | [batch, heads_q, seqlen_q, head_dim_v] | the same |
    | k, dk | [batch, heads_k, seqlen_k, head_dim] | the same |
    | v, dv | [batch, heads_k, seqlen_k, head_dim_v] | the same |
    | lse, dlse (optional) | [batch, heads_q, seqlen_q] | f32 |
    | sinks, dsinks (both or neither) | [heads_q] | f32 |
    | workspace | bytes, as docs/KernelAbi.md says | i8 |
    | scale | scalar | f32 |
    | gradients | those of the captures that they are of | f32, or the capture's of 16 bits |

    The constraints are (C1) to (C15), (C17) and (C18) of `attn.forward`, for gradients, dlse and
    dsinks included, as for their tensors; `attn.yield` may have another f32
    behind these, and then one for each of `gradients`. Besides:
    * (C16) `gradients` gives numbers of captures that rise, of f32, f16 or bf16,
      of which `attn.at` reads a tensor in one way; each has the rank of the
      capture, 0 for a scalar, its extents, a strided layout with offset 0, no
      negative stride and the default memory space.

    Example:
    ```mlir
    !tensor = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
    !rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
    func.func @backward(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                        %dout: !tensor, %lse: !rows, %dq: !tensor, %dk: !tensor,
                        %dv: !tensor, %workspace: memref<?xi8>, %scale: f32) {
      attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, %dv
        workspace(%workspace) scale(%scale)
        visible [#attn.causal<bottom_right>]
        : !tensor, !tensor, !tensor, !tensor, !tensor, !rows
          -> !tensor, !tensor, !tensor, memref<?xi8>
      return
    }
    ```
  }];
  let arguments = (ins
      Arg<Attn_Tensor, "queries", [MemRead]>:$q,
      Arg<Attn_Tensor, "keys", [MemRead]>:$k,
      Arg<Attn_Tensor, "values", [MemRead]>:$v,
      Arg<Attn_Tensor, "output", [MemRead]>:$out,
      Arg<Attn_Tensor, "gradient of the output", [MemRead]>:$dout,
      Arg<MemRefRankOf<[F32], [3]>, "log-sum-exp", [MemRead]>:$lse,
      Arg<Attn_Tensor, "gradient of the queries", [MemWrite]>:$dq,
      Arg<Attn_Tensor, "gradient of the keys", [MemWrite]>:$dk,
      Arg<Attn_Tensor, "gradient of the values", [MemWrite]>:$dv,
      Arg<MemRefRankOf<[I8], [1]>, "workspace", [MemRead, MemWrite]>:$workspace,
      F32:$scale, Variadic<I32>:$bounds,
      Arg<Optional<MemRefRankOf<[F32], [3]>>, "gradient of the log-sum-exp",
          [MemRead]>:$dlse,
      Arg<Optional<MemRefRankOf<[F32], [1]>>, "sinks", [MemRead]>:$sinks,
      Arg<Optional<MemRefRankOf<[F32], [1]>>, "gradient of the sinks",
          [MemWrite]>:$dsinks,
      Arg<Variadic<Attn_BlockListOperand>, "lists of blocks", [MemRead]>:$lists,
      Arg<Variadic<Attn_SequencesOperand>, "lengths of sequences",
          [MemRead]>:$sequences,
      Arg<Variadic<Attn_DropoutOperand>, "of dropout",
          [MemRead, MemWrite]>:$dropout,
      Variadic<I32>:$head_dims,
      Arg<Variadic<Attn_Capture>, "of the score program", [MemRead]>:$captures,
      Arg<Variadic<MemRefRankOf<[F32, F16, BF16], [0, 1, 2, 3, 4]>>,
          "gradients of captures", [MemRead, MemWrite]>:$gradients,
      OptionalAttr<DenseI32ArrayAttr>:$gradient_numbers,
      OptionalAttr<Attn_VisibilityParts>:$visibility,
      OptionalAttr<Attn_BackwardScheduleAttr>:$schedule);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $dout `,` $lse `->` $dq `,` $dk `,` $dv
    `workspace` `(` $workspace `)` `scale` `(` $scale `)`
    (`dlse` `(` $dlse^ `:` type($dlse) `)`)?
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    (`dsinks` `(` $dsinks^ `:` type($dsinks) `)`)?
    (`visible` $visibility^)? (`(` $bounds^ `)`)?
    (`blocks` `(` $lists^ `:` type($lists) `)`)?
    (`sequences` `(` $sequences^ `:` type($sequences) `)`)?
    (`dropout` `(` $dropout^ `:` type($dropout) `)`)?
    (`head_dims` `(` $head_dims^ `)`)?
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    (`gradients` `(` custom<Gradients>($gradients, type($gradients),
                                       $gradient_numbers)^ `)`)?
    (`score` $score^)? (`schedule` `(` $schedule^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($out) `,` type($dout) `,`
    type($lse) `->` type($dq) `,` type($dk) `,` type($dv) `,` type($workspace)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Numbers of the captures that `gradients` are of.
    ::llvm::ArrayRef<int32_t> getGradientsOf() {
      return getGradientNumbers().value_or(::llvm::ArrayRef<int32_t>());
    }
  }];
}

def Attn_DropoutMaskOp : Attn_AttentionOp<"dropout_mask", [IsolatedFromAbove]> {
  let summary = "Which weights dropout keeps";
  let description = [{
    0.5 where the weight of a query and key is kept, -0.5 where it is dropped, by
    an `attn.forward` with the same `dropout` on sequences of these lengths
    (docs/Dropout.md). What its `visible` shows has no part in it.

    | operand | shape | type |
    |---|---|---|
    | mask | [batch, heads_q, seqlen_q, seqlen_k] | f16 or bf16 |

    `mask` is as (C8) of `attn.forward` says, `dropout` as (C18).

    Example:
    ```mlir
    !mask = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
    !number = memref<1xi64>
    func.func @dropout_mask(%mask: !mask, %seed: !number, %offset: !number,
                            %seed_out: !number, %offset_out: !number,
                            %threshold: i32, %scale: f32, %flags: i32,
                            %seed_value: i64, %offset_value: i64) {
      attn.dropout_mask %mask dropout(%seed, %offset, %seed_out, %offset_out,
          %threshold, %scale, %flags, %seed_value, %offset_value
          : !number, !number, !number, !number, i32, f32, i32, i64, i64) : !mask
      return
    }
    ```
  }];
  let arguments = (ins
      Arg<Attn_Tensor, "the mask", [MemWrite]>:$mask,
      Arg<Variadic<Attn_DropoutOperand>, "of dropout",
          [MemRead, MemWrite]>:$dropout,
      OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let assemblyFormat = [{
    $mask `dropout` `(` $dropout `:` type($dropout) `)`
    (`schedule` `(` $schedule^ `)`)? attr-dict `:` type($mask)
  }];
  let hasVerifier = 1;
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator,
                                     ParentOneOf<["ForwardOp", "BackwardOp",
                                                  "SdpaOp"]>]> {
  let summary = "What a score program comes to";
  let description = [{
    The score, then possibly whether the query sees the key: the program's
    predicate. A place of which it is false is hidden as by `visible`, whatever
    the score is. With `blocks` it is not asked in blocks that are listed as seen
    in whole, which promise that it is true of all their places.

    In `attn.backward` the derivative of the score for the program's first
    argument may follow, and then those for what `gradients` names, in its
    order: of tensors for the element that is read.

    Example:
    ```mlir
    !tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
    !rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
    func.func @softcap(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                       %lse: !rows, %scale: f32) {
      attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) score {
      ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
           %seqlen_q: i32, %seqlen_k: i32):
        %cap = arith.constant 30.0 : f32
        %small = arith.divf %x, %cap : f32
        %bounded = math.tanh %small : f32
        %s = arith.mulf %bounded, %cap : f32
        %seen = arith.cmpi sle, %key, %query : i32
        attn.yield %s, %seen : f32, i1
      } : !tensor, !tensor, !tensor, !tensor, !rows
      return
    }
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[F32, I1]>>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let extraClassDeclaration = [{
    ::mlir::Value getScore() { return getValues().front(); }
    /// Null: all places are seen.
    ::mlir::Value getSeen() {
      ::mlir::ValueRange values = getValues();
      const bool isThere =
          values.size() > 1 && values[1].getType().isInteger(1);
      return isThere ? values[1] : ::mlir::Value();
    }
    /// For the first argument, then for captures; none: there are none yet.
    ::mlir::OperandRange getDerivatives() {
      return getValues().drop_front(getSeen() ? 2 : 1);
    }
  }];
}

def Attn_AtOp : Attn_Op<"at", [Pure, InferTypeOpAdaptor]> {
  let summary = "An element of what a score program captures";
  let description = [{
    f32 of an f32, f16 or bf16, i32 of an i32, and of an i1, a byte in memory,
    whether it is not 0. The tensor is not written while the kernel runs.

    An index that is the program's batch, head, query or key itself lies within
    the dimension's extent: who launches the kernel sees to it. Any other may
    lie outside; the element is then 0.

    The example keeps documents apart, whatever their lengths.

    It stands in a score program, or in a function that one is made of.

    Example:
    ```mlir
    !tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
    !rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
    !ids = memref<?x?xi32, strided<[?, 1]>>
    func.func @documents(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                         %lse: !rows, %scale: f32, %of: !ids) {
      attn.forward %q, %k, %v, %out lse(%lse) scale(%scale)
        captures(%of : !ids) score {
      ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
           %seqlen_q: i32, %seqlen_k: i32, %ids: !ids):
        %mine = attn.at %ids[%batch, %query] : !ids
        %its = attn.at %ids[%batch, %key] : !ids
        %same = arith.cmpi eq, %mine, %its : i32
        attn.yield %x, %same : f32, i1
      } : !tensor, !tensor, !tensor, !tensor, !rows
      return
    }
    ```
  }];
  let arguments = (ins Attn_CapturedTensor:$tensor, Variadic<I32>:$indices);
  let results = (outs AnyTypeOf<[F32, I32, I1]>:$element);
  let assemblyFormat = "$tensor `[` $indices `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNOPS_TD
