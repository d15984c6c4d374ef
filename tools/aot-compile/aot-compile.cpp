//===- aot-compile.cpp - compiles attention kernels ahead of time ---------===//

#include "fovea/Tools/AotCompile.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  return fovea::tools::runAotCompile(argc, argv);
}
