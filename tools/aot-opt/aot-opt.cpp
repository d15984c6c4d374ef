//===- aot-opt.cpp - runs passes on attention IR --------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<fovea::attn::AttnDialect>();
  mlir::registerAllDialects(registry);
  mlir::registerAllPasses();
  fovea::attn::registerAttnPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Fovea's pass driver\n", registry));
}
