//===- OperandBanks.h - operands of WMMA in banks of their own --*- C++ -*-===//
//
// A WMMA whose operands begin in one of the four banks of the register file
// reads them one after the other: two clocks more of 32 on gfx11 (measured on
// gfx1151 by others, llvm/llvm-project#204254). LLVM packs tuples of four and
// eight registers from v0 on, so that all begin in one bank.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_OPERANDBANKS_H
#define FOVEA_LIB_TARGET_HSACO_OPERANDBANKS_H

#include "llvm/ADT/StringSet.h"

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Of functions with WMMA: hints to the register allocator, so that the factors
/// and the sum of each begin in three banks. Not of those with kAnyBanksAttrName:
/// tuples of several banks leave gaps.
/// \param hinted  in the end, functions with hints
void addOperandBanks(llvm::TargetPassConfig &config,
                     llvm::StringSet<> &hinted);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_OPERANDBANKS_H
