//===- Main.h - aot-compile, in the compiler's library ----------*- C++ -*-===//
//
// No part of the interface: for the command of the same build alone, which so
// needs no second copy of LLVM where that is in the library (FOVEA_LINK_STATIC).
//
//===----------------------------------------------------------------------===//

#pragma once

extern "C" __attribute__((visibility("default"))) int
fovea_compile_main(int argc, char **argv);
