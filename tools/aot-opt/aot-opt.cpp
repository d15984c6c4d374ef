//===- aot-opt.cpp - runs passes on attention IR --------------------------===//

#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  fovea::registerFoveaDialects(registry);
  mlir::registerAllPasses();
  fovea::registerFoveaPasses();
  // Or else the inputs after the first that is linked met no passes.
  fovea::hsaco::setOptionRestorer(
      [=] { llvm::cl::ParseCommandLineOptions(argc, argv); });
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv,
      "Fovea's pass driver: runs passes and pipelines on attention kernels.\n"
      "  aot-opt --attn-to-hsaco=chip=gfx942 f.mlir    the whole way\n"
      "  aot-opt --attn-to-scheduled f.mlir            one stage\n"
      "  aot-opt --attn-to-rocdl --mlir-print-ir-after-all f.mlir\n",
      registry));
}
