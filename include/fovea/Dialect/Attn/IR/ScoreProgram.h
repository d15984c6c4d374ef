//===- ScoreProgram.h - what score programs are made of ---------*- C++ -*-===//
//
// A score program is a straight line of scalar ops between the scaled product
// of a query and a key and its weight. Which ops there are is a table, with the
// derivative of each (docs/ScorePrograms.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_SCOREPROGRAM_H
#define FOVEA_DIALECT_ATTN_IR_SCOREPROGRAM_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

/// The arguments of a program, in this order.
enum class ScoreArgument {
  Score, ///< f32: scale times the product of query and key
  Batch, ///< i32, as those that follow
  Head,  ///< of the queries
  Query, ///< row in its sequence
  Key,   ///< likewise
  SeqlenQ,
  SeqlenK,
};
/// What is captured follows these.
inline constexpr unsigned kScoreArguments = 7;

/// An op that programs may hold.
struct ScoreOp {
  using Values = llvm::MutableArrayRef<mlir::Value>;
  /// Sets what the derivative of an f32 result, `adjoint`, adds to that of each
  /// operand; null: nothing.
  using Derive = void (*)(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                          mlir::Value adjoint, Values operands);

  /// Its result's degree, if it has one: of d, a factor c > 0 of the program's
  /// score makes it c^d times itself. A comparison of scores has none: a scale
  /// of 0 would make another of it.
  using DegreeOf = std::optional<int> (*)(llvm::ArrayRef<int> operands);

  llvm::StringLiteral name;
  Derive derive; ///< null: the table has no derivative
  /// Null: 0, of operands of degree 0 alone.
  DegreeOf degree = nullptr;
  /// It takes one of its operands, of equal ones the first.
  bool takesFirst = false;
};

llvm::ArrayRef<ScoreOp> allScoreOps();
/// Null: no program may hold it.
const ScoreOp *lookupScoreOp(mlir::Operation *op);

/// Checks the region of `op`, whose verifier this is, if it has a program.
/// \param captures  what it is to take behind the first arguments
/// \param derivatives  that it yields if it has any; 0: it may have none
llvm::LogicalResult verifyScoreProgram(mlir::Operation *op,
                                       mlir::Region &program,
                                       mlir::TypeRange captures,
                                       unsigned derivatives);

/// What a program, which may not be empty, comes to.
YieldOp yieldOf(mlir::Region &program);
/// What its predicate is, where it has one that hides places; else null.
mlir::Value seenOf(mlir::Region &program);

/// What a program captures, and how it is indexed.
std::vector<spec::CaptureSpec> capturesOf(mlir::Region &program);

/// Whether a positive factor may as well come after the program as before it:
/// it yields c f(x) for c x, and sees what it saw. Masks do, biases don't.
bool commutesWithScaling(mlir::Region &program);

/// Checks the gradients of captures of an op whose program is sound (C15).
llvm::LogicalResult verifyGradients(BackwardOp op);

/// The first read of a captured tensor; null: nothing reads it. Where it has a
/// gradient the others read the same element.
AtOp readOf(mlir::BlockArgument tensor);

/// Makes a program without derivatives yield that of the score for the first
/// argument too, and those for what some captures give it. Fails, with an
/// error, where an op has none.
/// \param gradients  numbers of those captures
llvm::LogicalResult differentiate(mlir::Region &program,
                                  llvm::ArrayRef<int32_t> gradients);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_SCOREPROGRAM_H
