//===- aot-opt.cpp - runs passes on attention IR --------------------------===//

#include "fovea/Pipelines/Pipelines.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  fovea::registerFoveaDialects(registry);
  mlir::registerAllPasses();
  fovea::registerFoveaPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv,
      "Fovea's pass driver: runs passes and pipelines on attention kernels.\n"
      "  aot-opt --attn-to-hsaco=chip=gfx942 f.mlir    the whole way\n"
      "  aot-opt --attn-to-scheduled f.mlir            one stage\n"
      "  aot-opt --attn-to-rocdl --mlir-print-ir-after-all f.mlir\n",
      registry));
}
