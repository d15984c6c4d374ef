//===- aot-opt.cpp - runs passes on attention IR --------------------------===//

#include "fovea/Package/ReadFile.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Pipelines/SourceCheck.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// What MlirOptMain does with names of files, but that it looks at the input
/// before the parser does.
static LogicalResult run(StringRef input, StringRef output,
                         DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  std::string error;
  fovea::Expected<std::string> text = fovea::readFileOrStdin(input.str());
  if (!text) {
    llvm::errs() << "aot-opt: " << text.status().message() << "\n";
    return failure();
  }
  std::unique_ptr<llvm::MemoryBuffer> file =
      llvm::MemoryBuffer::getMemBufferCopy(*text,
                                           input == "-" ? "<stdin>" : input);
  if (llvm::Error bad = fovea::checkSource(file->getMemBufferRef(),
                                           config.inputSplitMarker())) {
    llvm::errs() << llvm::toString(std::move(bad)) << "\n";
    return failure();
  }
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(output, &error);
  if (!out) {
    llvm::errs() << error << "\n";
    return failure();
  }
  if (failed(MlirOptMain(out->os(), std::move(file), registry, config)))
    return failure();
  out->keep();
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  fovea::registerFoveaDialects(registry);
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllPasses();
  fovea::registerFoveaPasses();
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "aot-opt " FOVEA_PROJECT_VERSION ", LLVM " LLVM_VERSION_STRING "\n";
  });
  // Or else the inputs after the first that is linked met no passes.
  fovea::hsaco::setOptionRestorer(
      [=] { llvm::cl::ParseCommandLineOptions(argc, argv); });
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv,
      "Fovea's pass driver: runs passes and pipelines on attention kernels.\n"
      "  aot-opt --attn-to-hsaco=chip=gfx942 f.mlir    the whole way\n"
      "  aot-opt --attn-to-scheduled f.mlir            one stage\n"
      "  aot-opt --attn-to-rocdl --mlir-print-ir-after-all f.mlir\n",
      registry);
  const MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses()) // reads nothing
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(run(input, output, registry));
}
