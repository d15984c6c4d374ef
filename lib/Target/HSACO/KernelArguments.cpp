//===- KernelArguments.cpp - arguments of a kernel in memory --------------===//

#include "KernelArguments.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;
using namespace fovea::hsaco;

/// Of the segment, which a launch allocates.
static constexpr uint64_t kAlignment = 16;

/// An identity between scalar registers.
static constexpr char kHidden[] = "=s,0";
/// Registers of a value that LLVM takes there, and of a pointer.
static constexpr unsigned kMostHiddenBits = 128, kMostPointerBits = 64;

bool fovea::hsaco::canBeHidden(const Value &value, const DataLayout &layout) {
  Type *type = value.getType();
  if (!type->isSingleValueType())
    return false;
  // A condition as a number: what decides it LLVM may compare in vector
  // registers, where it has one of them for something else.
  if (auto *cast = dyn_cast<CastInst>(&value);
      cast && cast->getSrcTy()->isIntOrIntVectorTy(1))
    return false;
  const uint64_t bits = layout.getTypeSizeInBits(type).getFixedValue();
  return bits >= 32 && bits % 32 == 0 &&
         bits <= (type->isPtrOrPtrVectorTy() ? kMostPointerBits
                                             : kMostHiddenBits);
}

Instruction *fovea::hsaco::hide(IRBuilder<> &b, Value *value) {
  Type *type = value->getType();
  auto *code = InlineAsm::get(FunctionType::get(type, {type}, false), "",
                              kHidden, /*hasSideEffects=*/true);
  return b.CreateCall(code, {value});
}

bool fovea::hsaco::isHidden(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  auto *code = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
  return code && code->getAsmString().empty() &&
         code->getConstraintString() == kHidden;
}

Value *KernelArguments::segment() {
  if (found)
    return found;
  BasicBlock &entry = function.getEntryBlock();
  IRBuilder<> b(&entry, entry.getFirstInsertionPt());
  CallInst *call = b.CreateIntrinsic(Intrinsic::amdgcn_kernarg_segment_ptr, {});
  call->addRetAttr(Attribute::getWithAlignment(b.getContext(), Align(kAlignment)));
  found = call;
  return call;
}

LoadInst *KernelArguments::load(IRBuilder<> &b, Argument &argument,
                                Value *segment) {
  const DataLayout &layout = function.getDataLayout();
  uint64_t offset = 0;
  for (Argument &other : function.args()) {
    offset = alignTo(offset, layout.getABITypeAlign(other.getType()));
    if (&other == &argument)
      break;
    offset += layout.getTypeAllocSize(other.getType());
  }
  Value *address =
      b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), segment, offset);
  LoadInst *load = b.CreateAlignedLoad(argument.getType(), address,
                                       commonAlignment(Align(kAlignment), offset),
                                       argument.getName());
  load->setMetadata(LLVMContext::MD_invariant_load,
                    MDNode::get(b.getContext(), {}));
  return load;
}
