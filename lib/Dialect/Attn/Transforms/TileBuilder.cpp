//===- TileBuilder.cpp - vocabulary of tile programs ----------------------===//

#include "TileBuilder.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static Type argumentType(Builder &b, abi::ArgKind kind) {
  switch (kind) {
  case abi::ArgKind::Pointer:
    return LLVM::LLVMPointerType::get(b.getContext(), 1);
  case abi::ArgKind::I64:
    return b.getI64Type();
  case abi::ArgKind::I32:
    return b.getI32Type();
  case abi::ArgKind::F32:
    return b.getF32Type();
  }
  llvm_unreachable("all kinds are listed");
}

gpu::GPUModuleOp fovea::attn::makeKernelModule(func::FuncOp func) {
  OpBuilder builder(func);
  // The module takes the function's place and its name.
  auto module =
      gpu::GPUModuleOp::create(builder, func.getLoc(), func.getName());
  module->setAttr(kTargetAttrName, func->getAttr(kTargetAttrName));
  return module;
}

gpu::GPUFuncOp fovea::attn::makeKernel(gpu::GPUModuleOp module, StringRef name,
                                       ArrayRef<abi::ArgInfo> arguments,
                                       ScheduleAttr schedule) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
  SmallVector<Type> types;
  SmallVector<Attribute> names;
  for (const abi::ArgInfo &info : arguments) {
    types.push_back(argumentType(builder, info.kind));
    names.push_back(builder.getStringAttr(info.name));
  }
  auto kernel =
      gpu::GPUFuncOp::create(builder, module.getLoc(), name,
                             builder.getFunctionType(types, TypeRange()));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  kernel->setAttr(kScheduleAttrName, schedule);
  kernel->setAttr(hsaco::kArgumentNamesAttrName, builder.getArrayAttr(names));
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr(
      {int32_t(schedule.getWaves() * target.getInfo().waveSize), 1, 1}));
  return kernel;
}

/// Checks that `func` is nothing but `op`; see findProblem().
static LogicalResult checkProblemFunction(func::FuncOp func, Operation *op) {
  if (op->getParentOp() != func)
    return op->emitOpError("stands inside '")
           << op->getParentOp()->getName()
           << "'; it must stand in the body of its function";
  if (!func.getBody().hasOneBlock() || func.getNumResults() != 0)
    return func.emitError("a function with ")
           << op->getName()
           << " becomes a kernel, and so has one block and no "
              "results";
  if (!func->hasAttrOfType<TargetAttr>(kTargetAttrName) ||
      !op->hasAttr("schedule"))
    return op->emitOpError("has no target or schedule; run "
                           "attn-choose-schedule first");
  for (Value operand : op->getOperands())
    if (!isa<BlockArgument>(operand))
      return op->emitOpError("must take its operands from the function's "
                             "arguments");
  for (Operation &sibling : *func->getBlock())
    if (auto symbol = dyn_cast<SymbolOpInterface>(&sibling);
        symbol && symbol != func && symbol.getName() == func.getName())
      return func.emitError("its gpu.module would have the name of another "
                            "symbol, '")
             << func.getName() << "'; rename the function";
  for (Operation &other : func.getBody().front().without_terminator())
    if (&other != op)
      return other.emitOpError("stands beside ")
             << op->getName() << "; a kernel function holds nothing else";
  return success();
}

FailureOr<Operation *> fovea::attn::findProblem(func::FuncOp func,
                                                StringRef name) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (op->getName().getStringRef() == name)
      ops.push_back(op);
  });
  if (ops.empty())
    return nullptr;
  if (ops.size() > 1) {
    InFlightDiagnostic diagnostic =
        ops[1]->emitOpError("is the second of its function; a function holds "
                            "one");
    diagnostic.attachNote(ops[0]->getLoc()) << "the first is here";
    return diagnostic;
  }
  if (failed(checkProblemFunction(func, ops.front())))
    return failure();
  return ops.front();
}

//===----------------------------------------------------------------------===//
// TileBuilder
//===----------------------------------------------------------------------===//

Value TileBuilder::arg(const Twine &name) {
  std::string wanted = name.str();
  for (auto [info, argument] :
       llvm::zip_first(arguments, kernel.getArguments()))
    if (wanted == info.name)
      return argument;
  llvm_unreachable("not a kernel argument");
}

Rows TileBuilder::rowsOf(StringRef name, Value head, StringRef seqlen) {
  auto stride = [&](StringRef dim) { return arg(name + "_stride_" + dim); };
  Value offset =
      add(mul(i64(batch), stride("batch")), mul(i64(head), stride("head")));
  Value count = arg(seqlen);
  // A single row has no distance to the next; a tensor with one row may carry
  // any stride there, 0 included, and that must not bring further rows within
  // bounds.
  Value single =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sle, count, i32(1));
  Value rowStride = select(
      single, i32(headDim),
      arith::TruncIOp::create(b, b.getI32Type(), stride("seq")).getResult());
  return {arg(name), offset, rowStride, count};
}

Value TileBuilder::view(const Rows &rows, Value first, int64_t columns,
                        Type type) {
  Value offset = add(rows.offset, mul(i64(first), i64(rows.stride)));
  return ViewOp::create(
      b, ViewType::get(b.getContext(), columns, type ? type : elementType),
      rows.base, offset, sub(rows.count, first), rows.stride);
}

Value TileBuilder::loadTile(const Rows &rows, Value first, int64_t count,
                            int64_t columns) {
  return LoadOp::create(b, tile(count, columns, elementType),
                        view(rows, first, headDim));
}

Value TileBuilder::rowValuesView(Value base, Value head, Value first) {
  Value offset = add(add(mul(i64(batch), arg("lse_stride_batch")),
                         mul(i64(head), arg("lse_stride_head"))),
                     i64(first));
  return ViewOp::create(b, ViewType::get(b.getContext(), 1, b.getF32Type()),
                        base, offset, sub(arg("seqlen_q"), first), i32(1));
}

Value TileBuilder::causalShift(MaskKind mask) {
  switch (mask) {
  case MaskKind::None:
    return nullptr;
  case MaskKind::CausalTopLeft:
    return i32(0);
  case MaskKind::CausalBottomRight:
    return sub(arg("seqlen_k"), arg("seqlen_q"));
  }
  llvm_unreachable("all masks are listed");
}

Value TileBuilder::headOf(Value x, Value heads) {
  if (target.xcds <= 1)
    return x;
  Value xcds = i32(target.xcds);
  Value perXcd = div(heads, xcds);
  Value even = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                     mul(perXcd, xcds), heads);
  Value regrouped =
      add(mul(arith::RemUIOp::create(b, x, xcds), perXcd), div(x, xcds));
  return select(even, regrouped, x);
}

Value TileBuilder::softmaxFactor() {
  Value size = math::AbsFOp::create(b, arg("scale"));
  return fmax(fmul(size, f32(1.44269504088896340736f)),
              f32(std::numeric_limits<float>::min()));
}

Value TileBuilder::scaleIsNegative() {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, arg("scale"),
                               f32(0.0f));
}

Value TileBuilder::round(Value values) {
  Rounding rounding =
      hasConversion(target, lookupElementType(elementType)->type)
          ? Rounding::NearestEven
          : Rounding::NearestAway;
  auto type = cast<RankedTensorType>(values.getType());
  return RoundOp::create(b, type.clone(elementType), values, rounding);
}

//===----------------------------------------------------------------------===//
// QueryBlockBuilder
//===----------------------------------------------------------------------===//

void QueryBlockBuilder::placeWorkgroup(MaskKind mask, int64_t blockM) {
  batch = blockId(gpu::Dimension::z);
  headQ = headOf(blockId(gpu::Dimension::x), arg("heads_q"));
  headK = div(headQ, arg("group_size"));
  Value block = blockId(gpu::Dimension::y);
  if (mask != MaskKind::None)
    // Later rows see more keys: start with the longest.
    block = sub(sub(blocksOf(arg("seqlen_q"), blockM), i32(1)), block);
  firstRow = mul(block, i32(blockM));
}

void QueryBlockBuilder::keyRange(MaskKind mask, int64_t blockM,
                                 int64_t blockN) {
  Value seqlenQ = arg("seqlen_q"), seqlenK = arg("seqlen_k");
  Value keysFull = seqlenK, keysEnd = seqlenK;
  shift = causalShift(mask);
  if (shift) {
    Value zero = i32(0);
    auto keysSeenBy = [&](Value query) {
      return max(zero, min(seqlenK, add(add(query, shift), i32(1))));
    };
    keysFull = keysSeenBy(firstRow);
    keysEnd = keysSeenBy(sub(min(add(firstRow, i32(blockM)), seqlenQ), i32(1)));
  }
  // Keys that no row of this workgroup sees are out of bounds, and so read as
  // zeros: nothing that they hold can meet a weight of 0.
  k.count = v.count = keysEnd;
  blocksFull = div(keysFull, i32(blockN));
  blocksEnd = blocksOf(keysEnd, blockN);
}

Value QueryBlockBuilder::lastKeys(MaskKind mask, int64_t blockM) {
  RankedTensorType row = tile(1, blockM, b.getI32Type());
  Value last = splat(row, sub(arg("seqlen_k"), i32(1)));
  if (mask == MaskKind::None)
    return last;
  Value query =
      add(ColumnIndexOp::create(b, row), splat(row, add(firstRow, shift)));
  return min(last, query);
}
