//===- AttnTypes.td - types of the attn dialect ------------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNTYPES_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNTYPES_TD

include "fovea/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Attn_Type<string name, string typeMnemonic>
    : TypeDef<Attn_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Attn_ViewType : Attn_Type<"View", "view"> {
  let summary = "Bounds-checked rows in global memory";
  let description = [{
    `!attn.view<40 x bf16>`: some number of rows of 40 elements, at a run-time
    distance from one another. Reading past the last row or column gives zero,
    writing there does nothing.
  }];
  let parameters = (ins "int32_t":$columns, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $columns `x` $elementType `>`";
  let genVerifyDecl = 1;
}

def Attn_LdsType : Attn_Type<"Lds", "lds"> {
  let summary = "A tile in LDS";
  let description = [{
    `!attn.lds<64 x 128 x bf16>`: row-major, without padding, less than 2^31
    bytes. A swizzle attribute says how chunks of a row are permuted.
  }];
  let parameters = (ins "int32_t":$rows, "int32_t":$columns,
      "::mlir::Type":$elementType,
      OptionalParameter<"::fovea::attn::SwizzleAttr">:$swizzle);
  let assemblyFormat =
      "`<` $rows `x` $columns `x` $elementType (`,` $swizzle^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const;
  }];
}

// A two-dimensional tensor of static shape; its encoding, if any, is a layout.
class Attn_TileOf<list<Type> allowedTypes>
    : RankedTensorOf<allowedTypes, [CPred<
        "::fovea::attn::isTileShape("
        "::llvm::cast<::mlir::RankedTensorType>($_self).getShape())">],
      "2D tensor of extents in [1, 65536]">;
def Attn_Tile : Attn_TileOf<[AnyFloat, AnySignlessInteger]>;
def Attn_F32Tile : Attn_TileOf<[F32]>;
def Attn_FactorTile : Attn_TileOf<[F16, BF16, F32]>;

#endif // FOVEA_DIALECT_ATTN_IR_ATTNTYPES_TD
