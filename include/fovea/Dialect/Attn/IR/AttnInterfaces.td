//===- AttnInterfaces.td - interfaces of the attn dialect --*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let description = [{
    An op that relates the layouts of its tiles: of operands and results and,
    where it has regions, of their arguments and of what their terminators
    give.

    `attn-assign-layouts` lets products and copies choose layouts and follows
    them from op to op: each that defines or uses a tile with a layout is asked
    which others follow. Rules therefore run in both directions, and a tile
    that two of them reach must get the same layout from both.

    An op of this dialect that keeps the layout of its tiles takes the default;
    what turns or reduces them has a rule of its own. An op without the
    interface passes no layout on, but for element-wise ops of any dialect
    (trait `Elementwise`), whose tiles have one layout. Ops of other dialects
    get rules by external models: `scf.for` and `scf.if` by
    `registerLayoutModels`.
  }];
  let cppNamespace = "::fovea::attn";
  let methods = [
    InterfaceMethod<[{
      Hands to `set` the tiles whose layouts follow from `layout`, that of
      `known`, a tile of this op; `known` may be among them. Fails, with an
      error, if no layout follows where one has to, or if `set` fails.
    }], "::llvm::LogicalResult", "relateLayouts",
    (ins "::mlir::Value":$known,
         "const ::fovea::layout::TileLayout &":$layout,
         "::fovea::attn::SetLayout":$set), [{}], [{
      return ::fovea::attn::keepLayout($_op, layout, set);
    }]>
  ];
}

def Attn_VisibilityAttrInterface : AttrInterface<"VisibilityAttrInterface"> {
  let cppNamespace = "::fovea::attn";
  let description = [{
    A part of what a query may see. The keys that it sees are those of the
    sequence that every part of its op shows.

    Rows are queries. Methods emit scalar `arith` ops on i32, and say what they
    know as bounds, of which a missing one (null) is no bound: kernels visit the
    blocks within them and mask those that are not wholly seen. Bounds may lie
    outside the sequence. Numbers of rows and keys are local to the sequence, at
    most `spec::kMaxSeqlen`.
  }];
  let methods = [
    InterfaceMethod<[{The feature group whose scalars, all i32, are the operands
      that the part takes of its op's `bounds`; empty: it takes none.}],
      "::llvm::StringRef", "getGroup", (ins), [{}], [{ return ""; }]>,
    InterfaceMethod<[{Adds the part to the key of its op's kernels; false: no
      key can say so.}], "bool", "describe", (ins "::fovea::ProblemKey &":$key),
      [{}], [{
        return ::fovea::attn::describeGroup(
            ::mlir::cast<VisibilityAttrInterface>(::mlir::Attribute($_attr))
                .getGroup(),
            key);
      }]>,
    InterfaceMethod<[{Of the keys: what some row, and what every row, of [first,
      last] sees.}], "::fovea::attn::SeenBounds", "keysOfRows",
      (ins "::fovea::attn::VisibilityContext &":$context,
           "::mlir::ValueRange":$bounds, "::mlir::Value":$first,
           "::mlir::Value":$last)>,
    InterfaceMethod<[{Of the rows: those that see some key, and those that see
      every key, of [first, last].}], "::fovea::attn::SeenBounds", "rowsOfKeys",
      (ins "::fovea::attn::VisibilityContext &":$context,
           "::mlir::ValueRange":$bounds, "::mlir::Value":$first,
           "::mlir::Value":$last)>,
    InterfaceMethod<[{The keys that row `first` + p sees of each p of the tile
      [1, n] `places`, as such tiles of i32, less `origin`.}],
      "::fovea::attn::Bounds", "keysOfEachRow",
      (ins "::fovea::attn::VisibilityContext &":$context,
           "::mlir::ValueRange":$bounds, "::mlir::Value":$first,
           "::mlir::Value":$origin, "::mlir::Value":$places)>,
    InterfaceMethod<[{The rows that see key `first` + p, likewise.}],
      "::fovea::attn::Bounds", "rowsOfEachKey",
      (ins "::fovea::attn::VisibilityContext &":$context,
           "::mlir::ValueRange":$bounds, "::mlir::Value":$first,
           "::mlir::Value":$origin, "::mlir::Value":$places)>,
  ];
}

// Operands that an op may have; without a word about it it has none.
class Attn_OperandsMethod<string description, string name>
    : InterfaceMethod<description, "::mlir::OperandRange", name, (ins), [{}],
                      [{ return $_op->getOperands().take_front(0); }]>;

def Attn_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::fovea::attn";
  let description = [{
    A problem-level op: it becomes the kernels of an operation whose table
    (`package/…/OperationSpec.h`) has a row for each of its tensors.
  }];
  let methods = [
    InterfaceMethod<"The operation that it is.", "::fovea::OpKind",
      "getOperationKind">,
    InterfaceMethod<[{The operand that is the tensor of a name in the
      operation's table; null if it is left out.}], "::mlir::Value",
      "getTensor", (ins "::llvm::StringRef":$name)>,
    InterfaceMethod<"Elements of a row of q and k.", "int64_t", "getHeadDim">,
    InterfaceMethod<"Elements of a row of v and out.", "int64_t",
      "getHeadDimV">,
    InterfaceMethod<"Type of the tensors' elements.", "::mlir::Type",
      "getElementType">,
    InterfaceMethod<"Parts of what queries see, in order; may be null.",
      "::mlir::ArrayAttr", "getVisibilityAttr", (ins), [{}],
      [{ return ::mlir::ArrayAttr(); }]>,
    Attn_OperandsMethod<"Operands of all parts, in their order.", "getBounds">,
    Attn_OperandsMethod<[{The lists of blocks: what the group `blocks` has,
      tensors first; empty: none.}], "getLists">,
    Attn_OperandsMethod<[{Lengths and places of sequences: what the group
      `varlen` has, tensors first; empty: all have the same.}], "getSequences">,
    Attn_OperandsMethod<[{What the group `dropout` has, tensors first; empty: no
      weight is dropped.}], "getDropout">,
    Attn_OperandsMethod<[{How many elements rows have, as the group `head_dims`
      has it; empty: as many as their types.}], "getHeadDims">,
    InterfaceMethod<"The score program; empty: the score is what it is.",
      "::mlir::Region &", "getScore", (ins), [{}], [{
        static ::mlir::Region none; // never filled
        return none;
      }]>,
    Attn_OperandsMethod<"What it captures, in the order of its arguments.",
      "getCaptures">,
  ];
}

#endif // FOVEA_DIALECT_ATTN_IR_ATTNINTERFACES_TD
