//===- KernelArguments.h - arguments of a kernel in memory ------*- C++ -*-===//

#ifndef FOVEA_LIB_TARGET_HSACO_KERNELARGUMENTS_H
#define FOVEA_LIB_TARGET_HSACO_KERNELARGUMENTS_H

#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/ValueHandle.h"

namespace fovea::hsaco {

/// Whether a value can be in scalar registers of an assembly instruction.
bool canBeHidden(const llvm::Value &value, const llvm::DataLayout &layout);
/// The same value, of which LLVM knows neither that nor when it was made, so
/// that what is made of it stays where it is.
llvm::Instruction *hide(llvm::IRBuilder<> &b, llvm::Value *value);
/// Whether an instruction is that.
bool isHidden(const llvm::Instruction &instruction);

/// Reads a kernel's arguments elsewhere than where it begins.
class KernelArguments {
public:
  explicit KernelArguments(llvm::Function &function) : function(function) {}

  /// Where they are.
  llvm::Value *segment();
  /// Reads one where the builder is, from what is `segment` there.
  llvm::LoadInst *load(llvm::IRBuilder<> &b, llvm::Argument &argument,
                       llvm::Value *segment);

private:
  llvm::Function &function;
  llvm::WeakVH found; ///< null again where it was dropped
};

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_KERNELARGUMENTS_H
