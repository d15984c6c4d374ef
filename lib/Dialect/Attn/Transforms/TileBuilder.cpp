//===- TileBuilder.cpp - vocabulary of tile programs ----------------------===//

#include "TileBuilder.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Package/Keys.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

StringRef KernelArguments::passedAs(StringRef tensor) const {
  auto same = sameAs.find(tensor);
  return same == sameAs.end() ? tensor : StringRef(same->second);
}

std::optional<unsigned> KernelArguments::find(StringRef name) const {
  name = passedAs(name);
  for (auto [number, argument] : llvm::enumerate(signature.arguments))
    if (name == argument.name)
      return number;
  return std::nullopt;
}

FailureOr<KernelArguments> fovea::attn::argumentsOf(AttentionOpInterface op) {
  FailureOr<ProblemKey> key = keyOf(op);
  if (failed(key))
    return failure();
  KernelArguments result;
  llvm::SmallDenseMap<Value, StringRef> names;
  for (const spec::TensorSpec &tensor :
       spec::specOf(op.getOperationKind()).base.tensors)
    if (Value value = op.getTensor(tensor.name)) {
      auto [at, isNew] = names.try_emplace(value, tensor.name);
      if (!isNew)
        result.sameAs[tensor.name] = at->second.str();
    }
  const spec::AlgorithmSpec *algorithm = nullptr;
  if (auto forward = dyn_cast<ForwardOp>(op.getOperation()))
    algorithm = &forward.getAlgorithm();
  result.signature = spec::signatureOf(*key, tensorsOf(op), algorithm,
                                       capturesOf(op.getScore()));
  return result;
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
                                       const KernelArguments &arguments,
                                       ScheduleAttr schedule) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
  SmallVector<Type> types;
  SmallVector<Attribute> names;
  for (const spec::Argument &info : arguments.signature.arguments) {
    types.push_back(scalarType(builder.getContext(), info.kind));
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
  auto problem = cast<AttentionOpInterface>(op);
  const fovea::OpKind kind = problem.getOperationKind();
  SmallVector<const spec::TensorSpec *> tensors;
  auto add = [&](const spec::GroupSpec &group) {
    for (const spec::TensorSpec &tensor : group.tensors)
      if (group.isOf(kind) && problem.getTensor(tensor.name))
        tensors.push_back(&tensor);
  };
  add(spec::specOf(kind).base);
  llvm::for_each(spec::featureGroups(), add);
  for (const spec::TensorSpec *written : tensors) {
    if (!written->written)
      continue;
    Value value = problem.getTensor(written->name);
    for (const spec::TensorSpec *other : tensors)
      if (other != written && problem.getTensor(other->name) == value)
        return op->emitOpError("writes ")
               << written->name << ", which is its operand " << other->name
               << " too; kernels read while they write: give it a tensor of "
                  "its own";
    if (llvm::is_contained(problem.getCaptures(), value))
      return op->emitOpError("writes ")
             << written->name
             << ", which it captures too; give it a tensor of "
                "its own";
  }
  if (auto backward = dyn_cast<BackwardOp>(op))
    for (auto [number, gradient] :
         llvm::zip_equal(backward.getGradientsOf(), backward.getGradients()))
      if (llvm::count(op->getOperands(), gradient) > 1)
        return op->emitOpError("adds the gradient of capture ")
               << number
               << " to a tensor that it takes as another operand too; give it "
                  "a tensor of its own";
  for (BlockArgument argument : func.getArguments()) {
    auto uses = llvm::range_size(argument.getUses());
    if (uses == 0)
      return func.emitError("argument ")
             << argument.getArgNumber() << " is no operand of " << op->getName()
             << ", and its kernels would not have it; take it out";
    if (uses > 1 && !isa<MemRefType>(argument.getType()))
      return op->emitOpError("takes the function's argument ")
             << argument.getArgNumber() << " " << uses
             << " times; of scalars each is an argument of its own";
  }
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
  llvm::SmallString<32> text;
  std::optional<unsigned> number = arguments.find(name.toStringRef(text));
  assert(number && "the operation's table has no argument of that name");
  return kernel.getArgument(*number);
}

Value TileBuilder::divOfLaunch(Value x, Value y) {
  auto real = [&](Value value) -> Value {
    return arith::UIToFPOp::create(b, b.getF32Type(), value);
  };
  Value inverse = LLVM::CallIntrinsicOp::create(
                      b, b.getF32Type(), b.getStringAttr("llvm.amdgcn.rcp"),
                      ValueRange(real(y)))
                      .getResult(0);
  Value quotient = fmul(fadd(real(x), f32(0.5f)), inverse);
  Value whole = arith::FPToUIOp::create(b, b.getI32Type(), quotient);
  // LLVM would read the lane ahead of the conversion, which vector instructions
  // do, and hold what follows for vectors.
  whole = LLVM::InlineAsmOp::create(
              b, whole.getType(), ValueRange{whole}, /*asm_string=*/"",
              /*constraints=*/"=v,0", /*has_side_effects=*/false,
              /*is_align_stack=*/false, LLVM::TailCallKind::None,
              LLVM::AsmDialectAttr(), ArrayAttr())
              .getResult(0);
  return firstLane(b, whole);
}

std::pair<Value, Value> TileBuilder::blockOf(const GridPlace &place,
                                             Sequences::Block ofGrid,
                                             int64_t rows, bool ofKeys,
                                             bool fromTheEnd) {
  auto [sequence, block] =
      sequences.find(place.block, ofGrid, rows, ofKeys, fromTheEnd);
  return {sequence, block};
}

void TileBuilder::enterSequence(Value first, bool ownsKeys) {
  if (!sequences.differ())
    return;
  sequences.enter(batch);
  setLengths();
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, first,
                                        ownsKeys ? seqlenK() : rowsOfHeads());
  entered = scf::IfOp::create(b, isThere, /*withElseRegion=*/false);
  entered->setAttr(kTextAttrName, b.getUnitAttr());
  b.setInsertionPointToStart(entered.thenBlock());
}

void TileBuilder::finish() {
  if (entered)
    b.setInsertionPointAfter(entered);
  gpu::ReturnOp::create(b);
}

Rows TileBuilder::rowsOf(StringRef name, Value head, Value count) {
  name = arguments.passedAs(name);
  const spec::Signature &signature = arguments.signature;
  const int number = signature.tensor(name.str());
  const spec::TensorSpec &tensor = *signature.tensors[size_t(number)];
  const Sequences::Side &side =
      tensor.rows == spec::Extent::SeqlenK ? sequences.k : sequences.q;
  if (!count)
    count = side.length;
  auto stride = [&](StringRef dim) { return arg(name + "_stride_" + dim); };
  Value offset =
      add(mul(i64(batch), stride("batch")), mul(i64(head), stride("head")));
  if (side.start)
    offset = add(offset, mul(side.start, stride("seq")));
  // A single row has no distance to the next; a tensor with one row may carry
  // any stride there, 0 included, and that must not bring further rows within
  // bounds.
  Value single =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sle, count, i32(1));
  const bool isOfV = tensor.columns == spec::Extent::HeadDimV;
  const int64_t width = isOfV ? headDimV : headDim;
  Value rowStride = select(
      single, i32(width),
      arith::TruncIOp::create(b, b.getI32Type(), stride("seq")).getResult());
  auto [columns, again] = isOfV ? ofV : ofQk;
  if (again) // columns from the one that is seen again on are in their place
    offset = sub(offset, i64(again));
  Rows rows{arg(name),         offset, rowStride, count, columns, again,
            /*isLoose=*/false, width};
  // Where loops and the stores behind them share the number, LLVM's allocator
  // spills dozens of registers that it has without.
  return tensor.written ? anew(rows) : rows;
}

void TileBuilder::setHeadDims(AttentionOpInterface op) {
  if (op.getHeadDims().empty())
    return;
  ofQk = rowEnd("head_dim_qk", headDim);
  ofV = rowEnd("head_dim_v", headDimV);
}

bool TileBuilder::isElementwise(int64_t width) const {
  return bytesOf(elementType) < 4 && width <= kElementwiseColumns;
}

TileBuilder::RowEnd TileBuilder::rowEnd(StringRef dim, int64_t width) {
  Value elements = min(arg(dim), i32(width));
  // What is read beginning and ending where rows do.
  if (bytesOf(elementType) >= 4 || isElementwise(width))
    return {elements};
  // The sign: of a condition LLVM makes a vector instruction, here and there,
  // and then has no scalar to pass.
  Value isLong = arith::ShRUIOp::create(
      b, sub(i32(ViewOp::kColumnSeenAgain), elements), i32(31));
  Value again = arith::AndIOp::create(b, elements, isLong);
  return {add(elements, again), again};
}

Rows TileBuilder::anew(Rows rows) {
  for (Value *known : {&rows.columns, &rows.again})
    if (*known)
      *known = opaque(*known);
  return rows;
}

Rows TileBuilder::fromColumn(Rows rows, Value column) {
  if (!column)
    return rows;
  rows.offset = add(rows.offset, i64(column));
  if (rows.columns)
    rows.columns = max(sub(rows.columns, column), i32(0));
  return rows;
}

Value TileBuilder::view(const Rows &rows, Value first, int64_t columns,
                        Type type) {
  Value start = first;
  SmallVector<Value> runs;
  if (rows.heads) {
    // Rows of one head may be many, and lie as rows of a tile do.
    Value isOne =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rows.heads, i32(1));
    start = select(isOne, first, i32(0));
    Value length = select(isOne, min(sub(rows.count, first), i32(256)),
                          rows.headRows);
    runs = {sub(first, start), max(length, i32(1)), rows.heads,
            rows.headStride};
  }
  Value offset = add(rows.offset, mul(i64(start), i64(rows.stride)));
  return ViewOp::create(
      b, ViewType::get(b.getContext(), columns, type ? type : elementType),
      rows.base, offset, sub(rows.count, first), rows.stride, runs,
      rows.columns, rows.again, rows.from ? sub(rows.from, first) : Value(),
      rows.columns && rows.isLoose, rows.columns && isElementwise(rows.width));
}

Value TileBuilder::view(const Rows &rows, Value first, Columns columns,
                        Type type) {
  Rows moved = rows;
  moved.columns = columnsFrom(rows, columns.first);
  if (columns.first != 0) {
    moved.offset =
        add(rows.offset,
            arith::ConstantIntOp::create(b, columns.first, 64).getResult());
    moved.again = nullptr;
  }
  return view(moved, first, columns.count, type);
}

Value TileBuilder::loadTile(const Rows &rows, Value first, int64_t count,
                            int64_t columns, int64_t column) {
  Value loaded = LoadOp::create(b, tile(count, columns, elementType),
                                view(rows, first), column);
  return cut(rows, loaded, column);
}

Value TileBuilder::columnsFrom(const Rows &rows, int64_t column) {
  if (!rows.columns || column == 0)
    return rows.columns;
  return max(sub(rows.columns, i32(column)), i32(0));
}

Value TileBuilder::cut(const Rows &rows, Value tile, int64_t column) {
  if (!rows.columns)
    return tile;
  return CutOp::create(b, tile, columnsFrom(rows, column),
                       column == 0 ? rows.again : Value());
}

Rows TileBuilder::rowValues(StringRef name, Value head) {
  Value offset = add(mul(i64(batch), arg(name + "_stride_batch")),
                     mul(i64(head), arg(name + "_stride_head")));
  if (!sequences.differ())
    return {arg(name), offset, i32(1), seqlenQ()};
  Value before = mul(sequences.lseStart, i64(sequences.lseStride));
  return {arg(name), add(offset, before), sequences.lseStride, seqlenQ()};
}

Value TileBuilder::sinkOf(Value head) {
  Value address = arg("sinks");
  auto branch = scf::IfOp::create(b, b.getF32Type(), isNull(address),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, f32(-std::numeric_limits<float>::infinity()));
  b.setInsertionPointToStart(branch.elseBlock());
  Value offset = mul(i64(head), arg("sinks_stride_head"));
  Value element = LLVM::GEPOp::create(b, address.getType(), b.getF32Type(),
                                      address, ValueRange(offset));
  Value logit = LLVM::LoadOp::create(b, b.getF32Type(), element,
                                     /*alignment=*/4, /*isVolatile=*/false,
                                     /*isNonTemporal=*/false,
                                     /*isInvariant=*/true);
  scf::YieldOp::create(b, logit);
  return branch.getResult(0);
}

Rows TileBuilder::within(const Rows &rows, const Segments &segments) {
  Value before = mul(i64(segments.origin), i64(rows.stride));
  Rows part = rows;
  part.offset = add(rows.offset, before);
  part.count = segments.count;
  part.from = segments.hidden;
  return part;
}

Value TileBuilder::softmaxScale() {
  if (score.isScaled())
    return f32(1.0f);
  return math::AbsFOp::create(b, arg("scale"));
}

Value TileBuilder::softmaxFactor() {
  if (score.isScaled())
    return f32(1.44269504088896340736f);
  Value size = math::AbsFOp::create(b, arg("scale"));
  return fmax(fmul(size, f32(1.44269504088896340736f)),
              f32(std::numeric_limits<float>::min()));
}

Value TileBuilder::scaleIsNegative() {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, arg("scale"),
                               f32(0.0f));
}

Value TileBuilder::round(Value values) {
  if (elementType.isF32())
    return values;
  Rounding rounding =
      hasConversion(target, lookupElementType(elementType)->type)
          ? Rounding::NearestEven
          : Rounding::NearestAway;
  auto type = cast<RankedTensorType>(values.getType());
  return RoundOp::create(b, type.clone(elementType), values, rounding);
}

Value TileBuilder::narrow(Value values) {
  if (elementType.isF32())
    return values;
  auto type = cast<RankedTensorType>(values.getType());
  return arith::TruncFOp::create(b, type.clone(elementType), values);
}

//===----------------------------------------------------------------------===//
// QueryBlockBuilder
//===----------------------------------------------------------------------===//

Value QueryBlockBuilder::isPacked() {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, packedHeads,
                               i32(1));
}

Rows QueryBlockBuilder::queryRows() {
  Rows rows = rowsOf("q", headQ);
  if (!packedHeads)
    return rows;
  rows.count = rowsOfHeads();
  rows.heads = packedHeads;
  rows.headRows = seqlenQ();
  rows.headStride = arith::TruncIOp::create(
      b, b.getI32Type(), arg(arguments.passedAs("q") + "_stride_head"));
  return rows;
}

void QueryBlockBuilder::visitKeys(int64_t rowsOfBlock, int64_t keysOfBlock,
                                  int64_t ahead, int64_t group, bool all) {
  blockM = rowsOfBlock;
  blockN = keysOfBlock;
  Value first = firstRow;
  Value last = sub(min(add(firstRow, i32(blockM)), rowsOfHeads()), i32(1));
  if (packedHeads && visibility.isPartial()) {
    // There are no more rows of a head than of a block.
    Value isSeveral = isPacked();
    first = select(isSeveral, i32(0), first);
    last = select(isSeveral, sub(seqlenQ(), i32(1)), last);
  }
  if (lists.isThere()) {
    // Listed blocks lie anywhere: places are counted from the first key. What
    // no row sees by mask or window is out of bounds all the same.
    list = lists.keysOf(batch, headQ, firstRow, blockN);
    const Segments seen = visibility.keysOfRows(first, last, blockN);
    keys = {i32(0),           add(seen.origin, seen.count),
            i32(0),           list.first,
            list.end,         /*hasHead=*/false,
            /*hasTail=*/true, seen.hasHead ? seen.origin : Value()};
  } else {
    keys = visibility.keysOfRows(first, last, blockN,
                                 dropout.isThere() ? Dropout::kKeyStep : 1);
  }
  if (share)
    keys = shareOf(keys, group);
  full = keys.full;
  masked = keys.end;
  looksOn = all && keys.hasHead && ahead > 0;
  if (keys.hasHead) {
    seenWhole = sub(full, keys.head);
    masked = sub(masked, keys.head);
    full = seenWhole;
  }
  if (keys.hasHead && ahead > 0 && !looksOn) {
    // What is fetched ahead lies behind in memory: where there is a head, the
    // last full blocks are left to the tail, which looks where to go on.
    // Where blocks go in pairs, the loop over full ones looks itself.
    Value zero = i32(0);
    Value isHeadless =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, keys.head, zero);
    Value most = select(isHeadless, keys.end, sub(keys.end, i32(ahead)));
    full = max(zero, sub(min(keys.full, most), keys.head));
  }
  groupsOfFull = group;
  groupsOfAll = all ? group : 1;
  if (group > 1)
    full = inGroups(full);
  const StringRef names[] = {"k", "v"};
  for (auto [name, from, fromFull] : llvm::zip_equal(names, rows, fullRows)) {
    from = within(rowsOf(name, headK), keys);
    from.isLoose = name == "v" && !sumsColumnsOfV;
    fromFull = from;
    if (lists.isThere())
      fromFull.from = nullptr; // every row sees them; a look costs the loop
    if (!keys.hasHead)
      continue;
    Value before = mul(keys.head, i32(blockN));
    fromFull.offset = add(from.offset, mul(i64(before), i64(from.stride)));
    fromFull.count = sub(from.count, before);
    fromFull.from = nullptr; // they are of the head
  }
}

void QueryBlockBuilder::settle(Rows &rows, Value first, Type type) {
  Value offset = rows.offset;
  if (first)
    offset = add(offset, mul(i64(first), i64(rows.stride)));
  settleAt(rows, first,
           opaque(LLVM::GEPOp::create(
               b, rows.base.getType(), type ? type : b.getF32Type(), rows.base,
               ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(offset)})));
}

void QueryBlockBuilder::settleAt(Rows &rows, Value first, Value address) {
  if (first)
    rows.count = sub(rows.count, first);
  rows.base = address;
  rows.offset = i64(i32(0));
}

void QueryBlockBuilder::settleKeys() {
  for (auto [from, fromFull] : llvm::zip_equal(rows, fullRows)) {
    settle(from, nullptr, elementType);
    if (keys.hasHead) {
      settle(fromFull, nullptr, elementType);
      continue;
    }
    const Value hidden = fromFull.from;
    fromFull = from;
    fromFull.from = hidden;
  }
}

Bounds QueryBlockBuilder::keysOfRows() {
  Value first = opaque(firstRow);
  if (!packedHeads || !visibility.isPartial())
    return visibility.keysOfEachRow(keys, first, blockM);
  auto type = RankedTensorType::get({1, blockM}, b.getI32Type());
  Value isSeveral = isPacked(), low = splat(type, int32_t(0xffff));
  auto narrow = [&](Value value) -> Value {
    return arith::AndIOp::create(b, value, low);
  };
  // Of the rows of one head none goes round, or is not stored.
  Value length = select(isSeveral, seqlenQ(), i32(0xffff));
  Value before = select(isSeveral, first, i32(0));
  Value number = narrow(
      add(ColumnIndexOp::create(b, type), splat(type, before)));
  Value row = arith::RemUIOp::create(b, number, narrow(splat(type, length)));
  return visibility.keysOfEachRow(keys, select(isSeveral, i32(0), first),
                                  blockM, row);
}

Value QueryBlockBuilder::inGroups(Value blocks) {
  return arith::AndIOp::create(b, blocks, i32(-groupsOfFull));
}

Value QueryBlockBuilder::rowOf(Value number) {
  if (lists.isThere()) {
    Value ofAll = listStart ? add(number, listStart) : number;
    return mul(lists.blockOf(list, ofAll), i32(blockN));
  }
  if (!keys.hasHead)
    return mul(number, i32(blockN));
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  // Past the last block lies nothing to fetch. The loop over full blocks does
  // not ask: what it fetches there in vain is a block that it has visited.
  Value past =
      isFull ? sub(number, masked)
             : select(isBelow(number, keys.end), sub(number, masked), keys.end);
  Value block = select(isBelow(number, masked), add(number, keys.head), past);
  return mul(block, i32(blockN));
}

Value QueryBlockBuilder::keyOf(Value number, int64_t row) {
  Value first = rowOf(number);
  if (isFull && !lists.isThere()) {
    first = mul(number, i32(blockN));
    if (keys.hasHead)
      first = add(first, mul(keys.head, i32(blockN)));
  }
  first = add(first, keys.origin);
  return row ? add(first, i32(row)) : first;
}

ScorePlace QueryBlockBuilder::placeOf(Value number, int64_t row) {
  // Of a full block nothing lies past the end.
  return {batch,
          headQ,
          keyOf(number, row),
          firstRow,
          /*hasKeyRows=*/true,
          /*isSeen=*/lists.isThere() && isFull,
          isUnaligned()};
}

Score::Result QueryBlockBuilder::scoresOf(Value products, Value number,
                                          int64_t row,
                                          const Score::Fetched &fetched) {
  if (!score.isProgram())
    return {products};
  Value scale = math::AbsFOp::create(b, arg("scale"));
  return score.apply(products, scale, placeOf(number, row), fetched);
}

Score::Fetched QueryBlockBuilder::fetchScore(Value number, int64_t rows,
                                             int64_t row) {
  if (!score.isProgram())
    return Score::Fetched();
  return score.fetch(f32Tile(rows, blockM), placeOf(number, row));
}

Score::Fetched QueryBlockBuilder::fetchScoreAhead(Value number) {
  if (!score.isProgram() || isUnaligned())
    return Score::Fetched();
  ScorePlace place = placeOf(number, /*row=*/0);
  place.isSeen = true; // in one of the loops, and each is to find as much
  return score.fetch(f32Tile(blockN, blockM), place, /*elementwise=*/true);
}

Value QueryBlockBuilder::viewKeys(bool values, Value number, int64_t row,
                                  Value column) {
  // In that loop only what is fetched ahead may be of another.
  bool isOwn =
      isFull && !lists.isThere() && (!looksOn || isa<BlockArgument>(number));
  Value first = isOwn ? mul(number, i32(blockN)) : rowOf(number);
  if (row != 0)
    first = add(first, i32(row));
  const bool isOfFull = isOwn || (isFull && lists.isThere());
  return view(fromColumn((isOfFull ? fullRows : rows)[values], column), first);
}

Value QueryBlockBuilder::loadKeys(bool values, Value number, int64_t columns) {
  return LoadOp::create(b, tile(blockN, columns, elementType),
                        viewKeys(values, number));
}

Value QueryBlockBuilder::unlessWhole(Value scores, Value number,
                                     llvm::function_ref<Value()> apply) {
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, seenWhole);
  auto branch = scf::IfOp::create(b, scores.getType(), isWhole,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, scores);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, apply());
  return branch.getResult(0);
}

void QueryBlockBuilder::walkKeys(
    llvm::function_ref<void(Value, Value, int64_t, Mask)> loop) {
  isFull = true;
  loop(i32(0), full, groupsOfFull,
       [](Value scores, Value, int64_t) { return scores; });
  isFull = false;
  auto walkMasked = [&](Value from, Value to, int64_t group, bool hasBegin) {
    Bounds seen = keysOfRows();
    if (!hasBegin)
      seen.begin = nullptr;
    loop(from, to, group, [&](Value scores, Value number, int64_t row) {
      auto apply = [&] {
        Value first = rowOf(number);
        if (row != 0)
          first = add(first, i32(row));
        return visibility.apply(scores, seen, first);
      };
      // RDNA has no registers for the scores of both ways.
      bool hasFull =
          keys.hasHead && !hasBegin && !looksOn && target.waveSize == 64;
      return hasFull ? unlessWhole(scores, number, apply) : apply();
    });
  };
  // Of the tail no key comes too early, unless there is no full block; of what
  // is listed any may.
  Value from = full;
  auto walkTo = [&](Value to, int64_t group, bool hasBegin) {
    walkMasked(from, to, group, hasBegin);
    from = to;
  };
  auto whole = [&](Value to) { return groupsOfAll > 1 ? inGroups(to) : to; };
  walkTo(whole(masked), groupsOfAll, /*hasBegin=*/lists.isThere());
  if (keys.hasHead)
    walkTo(whole(keys.end), groupsOfAll, /*hasBegin=*/true);
  if (groupsOfAll > 1)
    walkTo(keys.end, /*group=*/1, keys.hasHead || lists.isThere());
}
