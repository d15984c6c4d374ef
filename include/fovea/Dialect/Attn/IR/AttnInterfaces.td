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

#endif // FOVEA_DIALECT_ATTN_IR_ATTNINTERFACES_TD
