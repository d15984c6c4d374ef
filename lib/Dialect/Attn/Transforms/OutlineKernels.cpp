//===- OutlineKernels.cpp - from attn.sdpa to kernels and calls -----------===//

#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNOUTLINEKERNELS
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// The name of the module of kernels.
static constexpr StringLiteral kKernelsName = "attn_kernels";

/// Fails, with an error, if a launch cannot say how the buffer lies in memory.
/// \param needsRows  whether the last dimension must be contiguous
static LogicalResult checkBuffer(SdpaOp op, StringRef name, Value value,
                                 bool needsRows = true) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type)
    return op.emitOpError() << "is on tensors, and kernels are on buffers; run "
                               "--one-shot-bufferize before";
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return op.emitOpError()
           << name << " must have a strided layout, found " << type;
  if (needsRows && strides.back() != 1)
    return op.emitOpError()
           << "the last stride of " << name << " must be 1, found "
           << (ShapedType::isDynamic(strides.back())
                   ? std::string("a dynamic one; bufferize with "
                                 "function-boundary-type-conversion=identity-"
                                 "layout-map, or copy it")
                   : std::to_string(strides.back()) + "; copy it");
  for (int64_t stride : strides)
    if (!ShapedType::isDynamic(stride) && stride < 0)
      return op.emitOpError() << "strides of " << name
                              << " must not be negative, found " << stride;
  if (type.getMemorySpace())
    return op.emitOpError()
           << name << " must be in the default memory space, found "
           << type.getMemorySpace();
  return success();
}

/// All extents but the last of a row, and all strides but the last, are known
/// at the launch alone, so that one kernel serves all calls.
static MemRefType argumentType(Value value, bool isRow, int64_t offset) {
  auto type = cast<MemRefType>(value.getType());
  SmallVector<int64_t> shape(type.getRank(), ShapedType::kDynamic);
  SmallVector<int64_t> strides = shape;
  if (isRow)
    shape.back() = type.getShape().back();
  strides.back() = 1;
  return MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), offset, strides));
}

/// A mask is captured with the problem's extents, and so repeats by strides of
/// 0, whatever they are.
static MemRefType maskType(Value mask, int64_t offset) {
  auto type = cast<MemRefType>(mask.getType());
  const SmallVector<int64_t> dynamic(type.getRank(), ShapedType::kDynamic);
  return MemRefType::get(
      dynamic, type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), offset, dynamic));
}

/// The op's mask as `maskType`.
static Value maskOf(ImplicitLocOpBuilder &b, SdpaOp op) {
  Value mask = op.getMask();
  const ArrayRef<int64_t> shape = cast<MemRefType>(mask.getType()).getShape();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, mask);
  const std::pair<Value, int64_t> extents[] = {
      {op.getQ(), 0}, {op.getQ(), 1}, {op.getQ(), 2}, {op.getK(), 2}};
  SmallVector<OpFoldResult> sizes, strides;
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    sizes.push_back(
        memref::DimOp::create(b, extent.first, extent.second).getResult());
    if (shape[dim] == 1)
      strides.push_back(b.getIndexAttr(0));
    else
      strides.push_back(metadata.getStrides()[dim]);
  }
  return memref::ReinterpretCastOp::create(
      b, maskType(mask, ShapedType::kDynamic), metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), sizes, strides);
}

/// What the library's programs `bias_strided` and `bias_bool_strided` do, ahead
/// of the op's own program.
static void addMask(SdpaOp op, ForwardOp forward) {
  ImplicitLocOpBuilder b(op.getLoc(), op.getContext());
  Region &program = forward.getScore();
  Type mask = forward.getCaptures().front().getType();
  if (program.empty()) {
    Block *block = b.createBlock(&program);
    block->addArgument(b.getF32Type(), b.getLoc());
    for (unsigned i = 1; i != kScoreArguments; ++i)
      block->addArgument(b.getI32Type(), b.getLoc());
    YieldOp::create(b, block->getArgument(0));
  }
  Block &block = program.front();
  auto argument = [&](ScoreArgument of) -> Value {
    return block.getArgument(unsigned(of));
  };
  Value table = block.addArgument(mask, b.getLoc());
  b.setInsertionPointToStart(&block);
  Value score = argument(ScoreArgument::Score);
  auto element = AtOp::create(
      b, table,
      ValueRange{argument(ScoreArgument::Batch), argument(ScoreArgument::Head),
                 argument(ScoreArgument::Query), argument(ScoreArgument::Key)});
  if (element.getType().isInteger(1)) {
    YieldOp yield = yieldOf(program);
    b.setInsertionPoint(yield);
    if (Value own = yield.getSeen())
      yield.setOperand(1, arith::AndIOp::create(b, own, element));
    else
      yield->insertOperands(1, element.getElement());
    return;
  }
  auto biased = arith::AddFOp::create(b, score, element);
  score.replaceAllUsesExcept(biased, biased);
}

namespace {
class Outliner {
public:
  explicit Outliner(ModuleOp root) : root(root) {}
  LogicalResult outline(SdpaOp op);

private:
  /// The kernel of such an op: one that is there, or a new one. Null, with an
  /// error, if there is none.
  func::FuncOp kernelOf(SdpaOp op);
  ModuleOp kernels();

  ModuleOp root;
};
} // namespace

ModuleOp Outliner::kernels() {
  for (auto module : root.getOps<ModuleOp>())
    if (module->hasAttr(kKernelsAttrName))
      return module;
  auto module = ModuleOp::create(root.getLoc(), kKernelsName);
  module->setAttr(kKernelsAttrName, UnitAttr::get(root.getContext()));
  SymbolTable(root).insert(module); // renames it if need be
  return module;
}

/// The name of a key's kernel: the key itself, of characters of names.
static std::string nameOf(const ProblemKey &key) {
  std::string name = key.str();
  for (char &c : name)
    c = llvm::isAlnum(c) ? c : '_';
  return name;
}

func::FuncOp Outliner::kernelOf(SdpaOp op) {
  Location loc = op.getLoc();
  ImplicitLocOpBuilder b(loc, op.getContext());
  SmallVector<Type> types;
  for (Value value : {op.getQ(), op.getK(), op.getV(), op.getOut()})
    types.push_back(argumentType(value, /*isRow=*/true, /*offset=*/0));
  // Whoever does not want the log-sum-exp passes null.
  constexpr int64_t dynamic = ShapedType::kDynamic;
  types.push_back(MemRefType::get(
      {dynamic, dynamic, dynamic}, b.getF32Type(),
      StridedLayoutAttr::get(op.getContext(), 0, {dynamic, dynamic, 1})));
  types.push_back(b.getF32Type());
  llvm::append_range(types, op.getBounds().getTypes());
  if (op.getMask())
    types.push_back(maskType(op.getMask(), /*offset=*/0));

  auto kernel = func::FuncOp::create(b, "kernel", b.getFunctionType(types, {}));
  b.setInsertionPointToStart(kernel.addEntryBlock());
  ValueRange args = kernel.getArguments();
  auto forward = ForwardOp::create(
      b, args[0], args[1], args[2], args[3], args[4], args[5],
      args.slice(6, op.getBounds().size()), /*sinks=*/nullptr,
      /*lists=*/ValueRange(), /*sequences=*/ValueRange(),
      /*dropout=*/ValueRange(), /*head_dims=*/ValueRange(),
      /*captures=*/args.drop_front(6 + op.getBounds().size()),
      op.getVisibilityAttr(), /*schedule=*/nullptr, /*combine=*/nullptr);
  IRMapping mapping;
  op.getScore().cloneInto(&forward.getScore(), mapping);
  if (op.getMask())
    addMask(op, forward);
  func::ReturnOp::create(b);

  FailureOr<ProblemKey> key = keyOf(forward);
  if (failed(key)) {
    kernel.erase();
    return nullptr;
  }
  kernel.setName(nameOf(*key));
  kernel->setAttr(kKeyAttrName, b.getStringAttr(key->str()));
  ModuleOp module = kernels();
  for (auto other : module.getOps<func::FuncOp>())
    if (other.getFunctionType() == kernel.getFunctionType() &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &kernel.getBody(),
            OperationEquivalence::IgnoreLocations)) {
      kernel.erase();
      return other;
    }
  SymbolTable(module).insert(kernel);
  return kernel;
}

LogicalResult Outliner::outline(SdpaOp op) {
  SmallVector<std::pair<StringRef, Value>> buffers = {{"q", op.getQ()},
                                                      {"k", op.getK()},
                                                      {"v", op.getV()},
                                                      {"out", op.getOut()}};
  if (op.getLse())
    buffers.push_back({"lse", op.getLse()});
  for (auto [name, value] : buffers)
    if (failed(checkBuffer(op, name, value)))
      return failure();
  if (op.getMask() &&
      failed(checkBuffer(op, "mask", op.getMask(), /*needsRows=*/false)))
    return failure();
  auto module = op->getParentOfType<ModuleOp>();
  func::FuncOp kernel = kernelOf(op);
  if (!kernel)
    return failure();

  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> operands;
  for (auto [name, value] : buffers) {
    MemRefType type =
        argumentType(value, /*isRow=*/name != "lse", ShapedType::kDynamic);
    operands.push_back(value.getType() == type
                           ? value
                           : memref::CastOp::create(b, type, value));
  }
  operands.push_back(op.getScale());
  llvm::append_range(operands, op.getBounds());
  if (op.getMask())
    operands.push_back(maskOf(b, op));

  SymbolTable symbols(module);
  std::string name = (kernel.getName() + (op.getLse() ? "_lse" : "")).str();
  auto type = b.getFunctionType(TypeRange(ValueRange(operands)), {});
  auto callee = symbols.lookup<func::FuncOp>(name);
  if (symbols.lookup(name) && !(callee && callee->hasAttr(kKernelAttrName) &&
                                callee.getFunctionType() == type))
    return op.emitOpError("is to be a call of '")
           << name << "', a symbol that stands for something else; rename that";
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    callee = func::FuncOp::create(b, name, type);
    callee.setPrivate();
    callee->setAttr(
        kKernelAttrName,
        SymbolRefAttr::get(kernel->getParentOfType<ModuleOp>().getSymNameAttr(),
                           FlatSymbolRefAttr::get(kernel.getSymNameAttr())));
    if (Attribute key = kernel->getAttr(kKeyAttrName))
      callee->setAttr(kKeyAttrName, key);
    callee->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  }
  func::CallOp::create(b, callee, operands);
  op.erase();
  return success();
}

namespace {
struct OutlineKernels
    : fovea::attn::impl::AttnOutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    SmallVector<SdpaOp> ops;
    getOperation().walk([&](SdpaOp op) { ops.push_back(op); });
    Outliner outliner(getOperation());
    for (SdpaOp op : ops)
      if (failed(outliner.outline(op)))
        return signalPassFailure();
  }
};
} // namespace
