//===- Main.cpp - aot-compile, in the compiler's library ------------------===//

#include "Main.h"
#include "fovea/Tools/AotCompile.h"
#include "llvm/Support/InitLLVM.h"

int fovea_compile_main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  return fovea::tools::runAotCompile(argc, argv);
}
