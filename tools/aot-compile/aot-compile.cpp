//===- aot-compile.cpp - compiles attention kernels ahead of time ---------===//

#include "Main.h"

int main(int argc, char **argv) { return fovea_compile_main(argc, argv); }
