//===- AttnOps.cpp - problem-level ops of the attn dialect ----------------===//

#include "ProblemChecks.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

LogicalResult fovea::attn::checkSameExtent(Operation *op, StringRef constraint,
                                           StringRef extent, Named a, int dimA,
                                           Named b, int dimB) {
  int64_t x = a.type.getDimSize(dimA), y = b.type.getDimSize(dimB);
  if (x == y || ShapedType::isDynamic(x) || ShapedType::isDynamic(y))
    return success();
  return op->emitOpError() << "(" << constraint << ") " << extent << " of "
                           << b.name << " is " << y << ", but that of "
                           << a.name << " is " << x;
}

static LogicalResult checkStrides(Operation *op, Named tensor) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(tensor.type);
  if (failed(type.getStridesAndOffset(strides, offset)))
    return op->emitOpError()
           << "(C8) " << tensor.name << " must have a strided layout, found "
           << tensor.type;
  if (strides.back() != 1)
    return op->emitOpError()
           << "(C8) the last stride of " << tensor.name << " must be 1, found "
           << (ShapedType::isDynamic(strides.back())
                   ? std::string("a dynamic one")
                   : std::to_string(strides.back()));
  for (int64_t stride : strides)
    if (!ShapedType::isDynamic(stride) && stride < 0)
      return op->emitOpError() << "(C8) strides of " << tensor.name
                               << " must not be negative, found " << stride;
  if (type.getMemorySpace())
    return op->emitOpError() << "(C8) " << tensor.name
                             << " must be in the default memory space, found "
                             << type.getMemorySpace();
  if (offset != 0)
    return op->emitOpError() << "(C8) the offset of " << tensor.name
                             << " must be 0; put it into the address";
  return success();
}

/// Of the shape of k, and of that of q, beside q.
static SmallVector<Named> besideQ(Named k, ArrayRef<Named> likeQ,
                                  ArrayRef<Named> likeK) {
  SmallVector<Named> others = {k};
  llvm::append_range(others, likeK);
  llvm::append_range(others, likeQ);
  return others;
}

/// Whether rows of a tensor have the head dimension of v.
static bool isOfV(StringRef name) {
  return llvm::any_of(spec::specOf(fovea::OpKind::Backward).base.tensors,
                      [&](const spec::TensorSpec &tensor) {
                        return name == tensor.name &&
                               tensor.columns == spec::Extent::HeadDimV;
                      });
}

LogicalResult fovea::attn::checkShapes(Operation *op, Named q, Named k,
                                       ArrayRef<Named> likeQ,
                                       ArrayRef<Named> likeK) {
  SmallVector<Named> others = besideQ(k, likeQ, likeK);
  Type element = q.type.getElementType();
  for (Named tensor : others)
    if (tensor.type.getElementType() != element)
      return op->emitOpError() << "(C1) element type of " << tensor.name
                               << " is " << tensor.type.getElementType()
                               << ", but that of q is " << element;

  for (Named tensor : others)
    if (failed(checkSameExtent(op, "C2", "batch", q, 0, tensor, 0)))
      return failure();

  int64_t headsQ = q.type.getDimSize(1), headsK = k.type.getDimSize(1);
  if (!ShapedType::isDynamic(headsQ) && !ShapedType::isDynamic(headsK) &&
      (headsK == 0 || headsQ % headsK != 0))
    return op->emitOpError()
           << "(C3) query heads (" << headsQ
           << ") must be a multiple of key heads (" << headsK << ")";

  for (Named tensor : likeK)
    if (failed(checkSameExtent(op, "C4", "heads", k, 1, tensor, 1)) ||
        failed(checkSameExtent(op, "C4", "sequence length", k, 2, tensor, 2)))
      return failure();

  for (auto [of, name, most] :
       {std::tuple(q, "head_dim", kMaxHeadDim),
        {likeK.front(), "head_dim_v", kMaxHeadDimV}}) {
    const int64_t headDim = of.type.getDimSize(3);
    if (ShapedType::isDynamic(headDim))
      return op->emitOpError() << "(C5) " << name << " must be static";
    if (headDim < kMinHeadDim || headDim > most ||
        headDim % kHeadDimStep != 0)
      return op->emitOpError()
             << "(C5) " << name << " must be a multiple of " << kHeadDimStep
             << " in [" << kMinHeadDim << ", " << most << "], found "
             << headDim;
    for (Named tensor : others)
      if (isOfV(tensor.name) == isOfV(of.name) &&
          tensor.type.getDimSize(3) != headDim)
        return op->emitOpError()
               << "(C5) " << name << " of " << tensor.name
               << " must be that of " << of.name << " (" << headDim
               << "), found " << tensor.type;
  }

  for (Named tensor : likeQ)
    for (auto [dim, name] : {std::pair(1, "heads"), {2, "sequence length"}})
      if (failed(checkSameExtent(op, "C6", name, q, dim, tensor, dim)))
        return failure();
  return success();
}

/// (C1) to (C6) and (C8).
static LogicalResult checkTensors(Operation *op, Named q, Named k,
                                  ArrayRef<Named> likeQ,
                                  ArrayRef<Named> likeK) {
  if (failed(checkShapes(op, q, k, likeQ, likeK)) ||
      failed(checkStrides(op, q)))
    return failure();
  for (Named tensor : besideQ(k, likeQ, likeK))
    if (failed(checkStrides(op, tensor)))
      return failure();
  return success();
}

LogicalResult fovea::attn::checkLseShape(Operation *op, Named q, Named lse) {
  for (auto [dim, name] :
       {std::pair(0, "batch"), {1, "heads"}, {2, "sequence length"}})
    if (failed(checkSameExtent(op, "C7", name, q, dim, lse, dim)))
      return failure();
  return success();
}

/// (C7) and (C8) of the log-sum-exp, or of its gradient.
static LogicalResult checkLse(Operation *op, Named q, Value value,
                              StringRef name = "lse") {
  Named lse = {name, cast<MemRefType>(value.getType())};
  if (failed(checkLseShape(op, q, lse)))
    return failure();
  return checkStrides(op, lse);
}

/// (C14) of sinks, or of their gradient.
static LogicalResult checkSinks(Operation *op, Named q, Value value,
                                StringRef name = "sinks") {
  auto type = cast<MemRefType>(value.getType());
  if (failed(checkSameExtent(op, "C14", "heads", q, 1, {name, type}, 0)))
    return failure();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || offset != 0 ||
      type.getMemorySpace() ||
      (!ShapedType::isDynamic(strides[0]) && strides[0] < 0))
    return op->emitOpError()
           << "(C14) " << name
           << " must have a stride that is not negative, no offset and the "
              "default memory space, found "
           << type;
  return success();
}

static constexpr OperandGroup kOperandGroups[] = {
    {"blocks", "blocks", "C15",
     [](AttentionOpInterface op) { return op.getLists(); }},
    {"varlen", "sequences", "C17",
     [](AttentionOpInterface op) { return op.getSequences(); }},
    {"dropout", "dropout", "C18",
     [](AttentionOpInterface op) { return op.getDropout(); }},
    {"head_dims", "head_dims", "C19",
     [](AttentionOpInterface op) { return op.getHeadDims(); }},
};

const OperandGroup *fovea::attn::findOperandGroup(StringRef name) {
  const auto *row = llvm::find_if(kOperandGroups, [&](const OperandGroup &row) {
    return row.name == name;
  });
  return row == std::end(kOperandGroups) ? nullptr : row;
}

/// What the package's table says of such a group.
static const spec::GroupSpec &groupOf(const OperandGroup &group) {
  const int row = spec::findGroup(group.name);
  assert(row >= 0 && "the table of feature groups has the row");
  return spec::featureGroups()[row];
}

/// The tensor of a name among those of such groups; null: there is none.
static Value groupTensor(AttentionOpInterface op, StringRef name) {
  for (const OperandGroup &group : kOperandGroups)
    if (OperandRange operands = group.operandsOf(op); !operands.empty())
      for (auto [info, value] : llvm::zip(groupOf(group).tensors, operands))
        if (name == info.name)
          return value;
  return nullptr;
}

Type fovea::attn::scalarType(MLIRContext *context, spec::ArgKind kind) {
  switch (kind) {
  case spec::ArgKind::I32:
    return IntegerType::get(context, 32);
  case spec::ArgKind::I64:
    return IntegerType::get(context, 64);
  case spec::ArgKind::F32:
    return Float32Type::get(context);
  case spec::ArgKind::Pointer:
    return LLVM::LLVMPointerType::get(context, 1);
  }
  llvm_unreachable("all kinds are listed");
}

/// That the operands of such a group, if there are any, are its tensors and its
/// scalars.
static LogicalResult checkGroup(AttentionOpInterface op,
                                const OperandGroup &group) {
  OperandRange operands = group.operandsOf(op);
  if (operands.empty())
    return success();
  const spec::GroupSpec &row = groupOf(group);
  const size_t tensors = row.tensors.size(), all = row.scalars.size() + tensors;
  if (operands.size() != all)
    return op->emitOpError()
           << "(" << group.constraint << ") " << group.clause << " are "
           << tensors << " tensors and " << row.scalars.size()
           << " scalars, found " << operands.size();
  for (auto [number, value] : llvm::enumerate(operands)) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (number >= tensors) {
      const spec::ScalarSpec &scalar = row.scalars[number - tensors];
      if (Type wanted = scalarType(op->getContext(), scalar.kind);
          value.getType() != wanted)
        return op->emitOpError()
               << "(" << group.constraint << ") " << scalar.name << " of "
               << group.clause << " must be " << wanted << ", found "
               << value.getType();
      continue;
    }
    const spec::TensorSpec &info = row.tensors[number];
    const int64_t rank = info.shape == spec::Shape::BlockLists    ? 4
                         : info.shape == spec::Shape::BlockCounts ? 3
                                                                  : 1;
    const unsigned width = info.elements == spec::Elements::I64 ? 64 : 32;
    if (!type || type.getRank() != rank ||
        !type.getElementType().isInteger(width))
      return op->emitOpError()
             << "(" << group.constraint << ") " << info.name << " of "
             << group.clause << " must be " << spec::shapeOf(info) << " of "
             << (info.elements == spec::Elements::I64 ? "i64" : "i32")
             << ", found " << value.getType();
    if (failed(checkStrides(op, {info.name, type})))
      return failure();
  }
  return success();
}

static LogicalResult checkGroups(AttentionOpInterface op) {
  return success(llvm::all_of(kOperandGroups, [&](const OperandGroup &group) {
    return succeeded(checkGroup(op, group));
  }));
}

/// (C15) of the extents of lists of blocks, which checkGroups() has seen, and
/// of the schedules of kernels that visit them.
static LogicalResult checkLists(Operation *op, Named q, OperandRange lists,
                                ArrayRef<ScheduleAttr> schedules) {
  if (lists.empty())
    return success();
  const OperandGroup &group = *findOperandGroup("blocks");
  for (auto [info, value] : llvm::zip(groupOf(group).tensors, lists)) {
    Named list = {info.name, cast<MemRefType>(value.getType())};
    if (failed(checkSameExtent(op, "C15", "batch", q, 0, list, 0)) ||
        failed(checkSameExtent(op, "C15", "heads", q, 1, list, 1)))
      return failure();
  }
  for (ScheduleAttr schedule : schedules)
    for (auto [name, size] : {std::pair("block_m", schedule.getBlockM()),
                              {"block_n", schedule.getBlockN()}})
      if (spec::kListBlockUnit % size != 0)
        return op->emitOpError()
               << "(C15) " << name << " of a kernel that reads lists of blocks "
               << "must divide " << spec::kListBlockUnit << ", found " << size;
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionOpInterface
//===----------------------------------------------------------------------===//

LogicalResult fovea::attn::checkBounds(Operation *op, ArrayAttr visibility,
                                       OperandRange bounds) {
  unsigned wanted = 0;
  if (visibility)
    for (Attribute part : visibility)
      wanted += boundsOf(cast<VisibilityAttrInterface>(part).getGroup()).size();
  if (bounds.size() != wanted)
    return op->emitOpError() << "(C9) its parts of visibility take " << wanted
                             << " bounds, found " << bounds.size();
  return success();
}

static LogicalResult checkCommon(AttentionOpInterface op) {
  return success(
      succeeded(checkBounds(op, op.getVisibilityAttr(), op.getBounds())) &&
      succeeded(checkGroups(op)));
}

fovea::OpKind ForwardOp::getOperationKind() { return fovea::OpKind::Forward; }
fovea::OpKind BackwardOp::getOperationKind() { return fovea::OpKind::Backward; }
fovea::OpKind DropoutMaskOp::getOperationKind() {
  return fovea::OpKind::DropoutMask;
}
int64_t DropoutMaskOp::getHeadDim() { return 0; }
int64_t DropoutMaskOp::getHeadDimV() { return 0; }
Type DropoutMaskOp::getElementType() {
  return getMask().getType().getElementType();
}
int64_t ForwardOp::getHeadDim() { return getQ().getType().getDimSize(3); }
int64_t BackwardOp::getHeadDim() { return getQ().getType().getDimSize(3); }
int64_t ForwardOp::getHeadDimV() { return getV().getType().getDimSize(3); }
int64_t BackwardOp::getHeadDimV() { return getV().getType().getDimSize(3); }
Type ForwardOp::getElementType() { return getQ().getType().getElementType(); }
Type BackwardOp::getElementType() { return getQ().getType().getElementType(); }

const spec::AlgorithmSpec &ForwardOp::getAlgorithm() {
  const spec::AlgorithmSpec *found =
      spec::specOf(fovea::OpKind::Forward)
          .findAlgorithm(getCombine() ? "split" : "flash");
  // A unit test asks for each.
  assert(found && "the operation's table has no row for the algorithm");
  return *found;
}

std::string ForwardOp::getScheduleKey() {
  std::string key = getSchedule()->getKey();
  if (!getCombine())
    return key;
  const spec::AlgorithmSpec &algorithm = getAlgorithm();
  return llvm::formatv("{0};{1}:{2};{3}:{4}", algorithm.name,
                       algorithm.launches[0].suffix, key,
                       algorithm.launches[1].suffix, getCombine()->getKey());
}

Value ForwardOp::getTensor(StringRef name) {
  return llvm::StringSwitch<Value>(name)
      .Case("q", getQ())
      .Case("k", getK())
      .Case("v", getV())
      .Case("out", getOut())
      .Case("lse", getLse())
      .Case("sinks", getSinks())
      .Default(groupTensor(*this, name));
}
Value BackwardOp::getTensor(StringRef name) {
  return llvm::StringSwitch<Value>(name)
      .Case("q", getQ())
      .Case("k", getK())
      .Case("v", getV())
      .Case("out", getOut())
      .Case("dout", getDout())
      .Case("lse", getLse())
      .Case("dq", getDq())
      .Case("dk", getDk())
      .Case("dv", getDv())
      .Case("workspace", getWorkspace())
      .Case("dlse", getDlse())
      .Case("sinks", getSinks())
      .Case("dsinks", getDsinks())
      .Default(groupTensor(*this, name));
}

Value DropoutMaskOp::getTensor(StringRef name) {
  return name == "mask" ? getMask() : groupTensor(*this, name);
}

std::vector<const spec::TensorSpec *>
fovea::attn::tensorsOf(AttentionOpInterface op) {
  SmallVector<std::pair<unsigned, const spec::TensorSpec *>> tensors;
  llvm::SmallDenseSet<Value> seen;
  for (const spec::TensorSpec &tensor :
       spec::specOf(op.getOperationKind()).base.tensors) {
    Value value = op.getTensor(tensor.name);
    if (value && !seen.insert(value).second)
      continue;
    auto argument = dyn_cast_or_null<BlockArgument>(value);
    tensors.push_back({argument ? argument.getArgNumber()
                                : std::numeric_limits<unsigned>::max(),
                       &tensor});
  }
  llvm::stable_sort(tensors, llvm::less_first());
  auto order = llvm::make_second_range(tensors);
  return {order.begin(), order.end()};
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult ForwardOp::verify() {
  if (getCombine() && !getSchedule())
    return emitOpError("has a schedule of the kernel that combines and none of "
                       "the one before it; give both or neither");
  if (failed(checkCommon(*this)))
    return failure();
  Named q = {"q", getQ().getType()};
  if (failed(checkTensors(*this, q, {"k", getK().getType()},
                          {{"out", getOut().getType()}},
                          {{"v", getV().getType()}})))
    return failure();
  if (getLse() && failed(checkLse(*this, q, getLse())))
    return failure();
  if (getSinks() && failed(checkSinks(*this, q, getSinks())))
    return failure();
  SmallVector<ScheduleAttr> schedules;
  if (getSchedule())
    schedules.push_back(*getSchedule());
  return checkLists(*this, q, getLists(), schedules);
}

LogicalResult DropoutMaskOp::verify() {
  if (getDropout().empty())
    return emitOpError("(C18) has no dropout, whose mask it is");
  if (failed(checkGroups(*this)))
    return failure();
  return checkStrides(*this, {"mask", getMask().getType()});
}

LogicalResult ForwardOp::verifyRegions() {
  return verifyScoreProgram(*this, getScore(), getCaptures().getTypes(),
                            /*derivatives=*/0);
}

LogicalResult BackwardOp::verifyRegions() {
  if (failed(verifyScoreProgram(*this, getScore(), getCaptures().getTypes(),
                                /*derivatives=*/1 + getGradients().size())))
    return failure();
  return verifyGradients(*this);
}

LogicalResult BackwardOp::verify() {
  if (failed(checkCommon(*this)))
    return failure();
  Named q = {"q", getQ().getType()};
  if (failed(checkTensors(*this, q, {"k", getK().getType()},
                          {{"out", getOut().getType()},
                           {"dout", getDout().getType()},
                           {"dq", getDq().getType()}},
                          {{"v", getV().getType()},
                           {"dk", getDk().getType()},
                           {"dv", getDv().getType()}})))
    return failure();
  if (failed(checkLse(*this, q, getLse())))
    return failure();
  if (getDlse() && failed(checkLse(*this, q, getDlse(), "dlse")))
    return failure();
  if (bool(getSinks()) != bool(getDsinks()))
    return emitOpError("(C14) has ")
           << (getSinks() ? "sinks and no dsinks to receive their gradient"
                          : "dsinks and no sinks, whose gradient they are")
           << "; give both or neither";
  if (getSinks() && (failed(checkSinks(*this, q, getSinks())) ||
                     failed(checkSinks(*this, q, getDsinks(), "dsinks"))))
    return failure();
  SmallVector<ScheduleAttr> schedules;
  if (getSchedule())
    for (auto [launch, schedule] :
         llvm::zip_equal(specOf(getSchedule()->getAlgorithm()).launches,
                         getSchedule()->getKernels()))
      if (launch.products > 0)
        schedules.push_back(schedule);
  return checkLists(*this, q, getLists(), schedules);
}
