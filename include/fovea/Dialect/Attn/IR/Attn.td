//===- Attn.td - the attn dialect, whole -------------------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTN_TD
#define FOVEA_DIALECT_ATTN_IR_ATTN_TD

include "fovea/Dialect/Attn/IR/AttnDialect.td"
include "fovea/Dialect/Attn/IR/AttnAttrs.td"
include "fovea/Dialect/Attn/IR/AttnTypes.td"
include "fovea/Dialect/Attn/IR/AttnInterfaces.td"
include "fovea/Dialect/Attn/IR/AttnOps.td"
include "fovea/Dialect/Attn/IR/AttnTensorOps.td"
include "fovea/Dialect/Attn/IR/AttnTileOps.td"

#endif // FOVEA_DIALECT_ATTN_IR_ATTN_TD
