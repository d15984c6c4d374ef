//===- TileBuilder.h - vocabulary of tile programs --------------*- C++ -*-===//
//
// What the kernels of attention share on the level of tiles: names for the ops
// they are written in, the rows of a tensor that a (batch, head) owns, and
// which key blocks a block of queries visits.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H

#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Package/ForwardAbi.h"
#include "fovea/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fovea::attn {

/// Puts a gpu.module of the function's name, with its target, before it.
mlir::gpu::GPUModuleOp makeKernelModule(mlir::func::FuncOp func);

/// An empty kernel of a module, with the arguments that `arguments` lists.
/// \param schedule  gives the size of a workgroup; kept on the kernel
mlir::gpu::GPUFuncOp makeKernel(mlir::gpu::GPUModuleOp module,
                                llvm::StringRef name,
                                llvm::ArrayRef<abi::ArgInfo> arguments,
                                ScheduleAttr schedule);

/// The op named `name` of a function: the one problem-level op that becomes its
/// kernels, on the function's arguments and with a target and a schedule. Null
/// if the function has none.
/// Fails with an error if it has a second, or anything else besides.
mlir::FailureOr<mlir::Operation *> findProblem(mlir::func::FuncOp func,
                                               llvm::StringRef name);

/// Replaces each function of a module that holds an `Op` by what
/// `tile(func, op, target)` puts before it.
template <typename Op, typename Tile>
mlir::LogicalResult tileFunctions(mlir::ModuleOp module, Tile tile) {
  for (auto func :
       llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>())) {
    mlir::FailureOr<mlir::Operation *> op =
        findProblem(func, Op::getOperationName());
    if (failed(op))
      return mlir::failure();
    if (!*op)
      continue;
    auto target = func->getAttrOfType<TargetAttr>(kTargetAttrName);
    if (failed(tile(func, llvm::cast<Op>(*op), target.getInfo())))
      return mlir::failure();
    func.erase();
  }
  return mlir::success();
}

/// A tensor in global memory: the rows of one (batch, head).
struct Rows {
  mlir::Value base;   ///< address of the tensor
  mlir::Value offset; ///< i64 elements to row 0
  mlir::Value stride; ///< i64 elements between rows
  mlir::Value count;  ///< i32 rows
};

/// Writes into one kernel. Names of arguments are those of its ABI.
class TileBuilder {
protected:
  using Value = mlir::Value;
  using StringRef = llvm::StringRef;

  TileBuilder(mlir::gpu::GPUFuncOp kernel, const target::TargetInfo &target,
              llvm::ArrayRef<abi::ArgInfo> arguments, mlir::Type elementType,
              int64_t headDim)
      : b(kernel.getLoc(), kernel.getContext()), kernel(kernel), target(target),
        arguments(arguments), elementType(elementType), headDim(headDim) {
    b.setInsertionPointToStart(&kernel.getBody().front());
  }

  //===--- ops
  //--------------------------------------------------------------===//
  Value arg(const llvm::Twine &name);
  Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, value, 32).getResult();
  }
  Value f32(float value) {
    return mlir::arith::ConstantFloatOp::create(b, b.getF32Type(),
                                                llvm::APFloat(value))
        .getResult();
  }
  /// Of numbers that are never negative, so that their products need no sign.
  Value i64(Value value) {
    return mlir::arith::ExtUIOp::create(b, b.getI64Type(), value).getResult();
  }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(b, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivUIOp::create(b, x, y); }
  Value min(Value x, Value y) { return mlir::arith::MinSIOp::create(b, x, y); }
  Value max(Value x, Value y) { return mlir::arith::MaxSIOp::create(b, x, y); }
  Value fadd(Value x, Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  Value fsub(Value x, Value y) { return mlir::arith::SubFOp::create(b, x, y); }
  Value fmul(Value x, Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  /// Maximum of numbers. A NaN score is not kept here: it comes back through
  /// its own exponential.
  Value fmax(Value x, Value y) {
    return mlir::arith::MaxNumFOp::create(b, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return mlir::arith::SelectOp::create(b, condition, x, y);
  }
  /// Blocks of `size` that `count` rows make, the last one possibly not whole.
  Value blocksOf(Value count, int64_t size) {
    return div(add(count, i32(size - 1)), i32(size));
  }
  Value blockId(mlir::gpu::Dimension dim) {
    Value id = mlir::gpu::BlockIdOp::create(b, dim);
    return mlir::arith::IndexCastOp::create(b, b.getI32Type(), id);
  }
  mlir::RankedTensorType tile(int64_t rows, int64_t columns, mlir::Type type) {
    return mlir::RankedTensorType::get({rows, columns}, type);
  }
  mlir::RankedTensorType f32Tile(int64_t rows, int64_t columns) {
    return tile(rows, columns, b.getF32Type());
  }
  Value splat(mlir::RankedTensorType type, Value scalar) {
    return mlir::tensor::SplatOp::create(b, scalar, type);
  }
  Value splat(mlir::RankedTensorType type, float value) {
    return mlir::arith::ConstantOp::create(
        b, mlir::DenseElementsAttr::get(type,
                                        b.getF32FloatAttr(value).getValue()));
  }
  Value broadcast(Value row, mlir::RankedTensorType type) {
    return BroadcastOp::create(b, type, row);
  }
  Value transpose(Value value) { return TransposeOp::create(b, value); }
  Value exp2(Value value) { return mlir::math::Exp2Op::create(b, value); }
  Value ldsTile(int64_t rows, int64_t columns, mlir::Type type,
                int32_t buffers = 1) {
    return AllocLdsOp::create(
        b, LdsType::get(b.getContext(), rows, columns, type, nullptr), buffers);
  }
  Value opaque(Value scalar) { return makeOpaque(b, b.getLoc(), scalar); }
  void barrier() { mlir::amdgpu::LDSBarrierOp::create(b); }

  //===--- tensors
  //----------------------------------------------------------===//
  /// The rows of tensor `name` that belong to `batch` and `head`; `seqlen`
  /// names the argument with their number.
  Rows rowsOf(StringRef name, Value head, StringRef seqlen);
  /// Rows from `first` on; of the element type unless another is given.
  Value view(const Rows &rows, Value first, int64_t columns,
             mlir::Type type = nullptr);
  /// Rows [first, first + count); columns past the head dimension are zeros.
  Value loadTile(const Rows &rows, Value first, int64_t count, int64_t columns);
  /// The f32 values, one a row of this (batch, head), from row `first` on; the
  /// strides are those of the log-sum-exp.
  Value rowValuesView(Value base, Value head, Value first);

  //===--- attention
  //--------------------------------------------------------===//
  /// i32 by which query i sees keys past key i, or before it if negative; null
  /// if it sees all.
  Value causalShift(MaskKind mask);
  /// The head, of `heads`, that workgroup `x` takes.
  /// Workgroups are dealt to the XCDs in turn, so x mod XCDs is an XCD: each
  /// gets a run of heads, and those that share keys then share an L2.
  Value headOf(Value x, Value heads);

  /// |scale| * log2(e), at least the least normal number. The softmax is done
  /// in base 2 on unscaled scores: exp2(factor * s - factor * max) is one fused
  /// multiply-add a score, so scaling costs nothing and nothing is rounded a
  /// second time. A negative scale is moved, exactly, into the sign of one
  /// factor of the scores; a scale of 0 becomes the least normal number, so
  /// that -inf times the factor stays -inf.
  Value softmaxFactor();
  /// i1: whether the scale is negative.
  Value scaleIsNegative();

  /// P or dS in the type of the inputs, for a product. Ties go to even where
  /// the chip converts, away from zero where that is cheaper; neither is
  /// infinite or NaN unless the result is.
  Value round(Value values);
  /// The largest power of two that f16 holds, with room for a factor of almost
  /// two.
  static constexpr int kLargestExponent = 15;
  /// Whether P is multiplied by a power of two, so that matrix instructions
  /// that take subnormal operands for zeros see all of it that counts. The sums
  /// are divided by the same power, which is exact.
  bool raisesProbabilities() const {
    return elementType.isF16() && target.has(target::kMfmaFlushesSubnormals);
  }

  mlir::ImplicitLocOpBuilder b;
  mlir::gpu::GPUFuncOp kernel;
  const target::TargetInfo &target;
  llvm::ArrayRef<abi::ArgInfo> arguments;
  mlir::Type elementType;
  int64_t headDim;
  Value batch; ///< i32; set by what places the workgroup
};

/// A kernel whose workgroups own `blockM` queries of one head each and visit
/// blocks of `blockN` keys.
class QueryBlockBuilder : public TileBuilder {
protected:
  using TileBuilder::TileBuilder;

  /// Which batch, head and query rows this workgroup owns.
  void placeWorkgroup(MaskKind mask, int64_t blockM);
  /// The key blocks to visit, and how many of them need no mask. K and V end
  /// with the last key that any row sees.
  void keyRange(MaskKind mask, int64_t blockM, int64_t blockN);
  /// The last visible key of each query: [1, blockM].
  Value lastKeys(MaskKind mask, int64_t blockM);

  Value headQ, headK, firstRow;
  Rows k, v;
  Value blocksFull, blocksEnd; ///< i32: unmasked key blocks, all key blocks
  Value shift;                 ///< causal: query i sees keys up to i + shift
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_TILEBUILDER_H
