//===- ConstantMemory.h - pointers and scalar loads -------------*- C++ -*-===//
//
// Reads memory that nothing writes while a kernel runs, at addresses that are
// the same in all lanes: with scalar loads. And asks which tensors there are.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_CONSTANTMEMORY_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_CONSTANTMEMORY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

inline mlir::Type constantPointer(mlir::ImplicitLocOpBuilder &b) {
  constexpr unsigned constantAddressSpace = 4;
  return mlir::LLVM::LLVMPointerType::get(b.getContext(), constantAddressSpace);
}

/// i1
inline mlir::Value compareWithNull(mlir::ImplicitLocOpBuilder &b,
                                   mlir::LLVM::ICmpPredicate predicate,
                                   mlir::Value pointer) {
  mlir::Value null = mlir::LLVM::ZeroOp::create(b, pointer.getType());
  return mlir::LLVM::ICmpOp::create(b, predicate, pointer, null);
}
/// i1: whether a tensor was left out, and whether it was not.
inline mlir::Value isNull(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer) {
  return compareWithNull(b, mlir::LLVM::ICmpPredicate::eq, pointer);
}
inline mlir::Value isGiven(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer) {
  return compareWithNull(b, mlir::LLVM::ICmpPredicate::ne, pointer);
}

/// i64
inline mlir::Value addressOf(mlir::ImplicitLocOpBuilder &b,
                             mlir::Value pointer) {
  return mlir::LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
}

/// i64, of 4 bytes that may be read whatever a caller passes: the kernel's own
/// arguments.
inline mlir::Value readableAddress(mlir::ImplicitLocOpBuilder &b) {
  return addressOf(b, mlir::LLVM::CallIntrinsicOp::create(
                          b, constantPointer(b),
                          b.getStringAttr("llvm.amdgcn.kernarg.segment.ptr"),
                          mlir::ValueRange())
                          .getResult(0));
}

/// A number that is the same in all lanes, where its division has left it in
/// vector registers.
inline mlir::Value firstLane(mlir::ImplicitLocOpBuilder &b, mlir::Value value) {
  return mlir::LLVM::CallIntrinsicOp::create(
             b, value.getType(), b.getStringAttr("llvm.amdgcn.readfirstlane"),
             mlir::ValueRange(value))
      .getResult(0);
}

/// The number at an address; i32 unless another type is given.
inline mlir::Value loadConstant(mlir::ImplicitLocOpBuilder &b,
                                mlir::Value address,
                                mlir::Type type = nullptr) {
  return mlir::LLVM::LoadOp::create(
      b, type ? type : b.getI32Type(),
      mlir::LLVM::IntToPtrOp::create(b, constantPointer(b), address),
      /*alignment=*/4, /*isVolatile=*/false, /*isNonTemporal=*/false,
      /*isInvariant=*/true);
}

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_CONSTANTMEMORY_H
