//===- AttnDialect.td - the attn dialect -------------------*- tablegen -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTNDIALECT_TD
#define FOVEA_DIALECT_ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::fovea::attn";
  let summary = "Flash attention, from the mathematical problem to fragments";
  let description = [{
    Three levels share this dialect; everything else at each level is upstream.

    * Problem: `attn.forward` is the contract of one kernel, on strided buffers.
    * Tiles: the program of one workgroup. A tile is a two-dimensional tensor;
      its encoding, `#attn.layout`, says how its elements spread over registers,
      lanes and waves. `arith`, `math` and `scf` compute on tiles; the ops here
      move them, multiply them and reduce them.
    * Lanes: the program of one lane, on vectors; `attn.mma` is one matrix
      instruction.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
  // attn.view's text implies a pointer type: its parser makes one.
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits>;

#endif // FOVEA_DIALECT_ATTN_IR_ATTNDIALECT_TD
