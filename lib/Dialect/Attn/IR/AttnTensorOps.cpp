//===- AttnTensorOps.cpp - attention on tensors ---------------------------===//

#include "ProblemChecks.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

//===----------------------------------------------------------------------===//
// SdpaOp
//===----------------------------------------------------------------------===//

/// (C13).
static LogicalResult checkOuts(SdpaOp op) {
  if (op.getOuts().empty() || op.getOuts().size() > 2)
    return op.emitOpError("(C13) has one destination or, with the log-sum-exp, "
                          "two, found ")
           << op.getOuts().size();
  if (auto out = cast<ShapedType>(op.getOut().getType()); out.getRank() != 4)
    return op.emitOpError("(C13) its first destination must be of rank 4 as q "
                          "is, found ")
           << out;
  if (!op.getLse())
    return success();
  auto lse = cast<ShapedType>(op.getLse().getType());
  if (lse.getRank() != 3 || !lse.getElementType().isF32())
    return op.emitOpError("(C13) its second destination, the log-sum-exp, must "
                          "be of rank 3 in f32, found ")
           << lse;
  return success();
}

/// (C15).
static LogicalResult checkMask(SdpaOp op, Named q, Named k) {
  Named mask = {"mask", cast<ShapedType>(op.getMask().getType())};
  struct {
    const char *name;
    Named like;
    int dim;
  } const rows[] = {{"batch", q, 0},
                    {"heads", q, 1},
                    {"query length", q, 2},
                    {"key length", k, 2}};
  for (auto [dim, row] : llvm::enumerate(rows))
    if (mask.type.getDimSize(dim) != 1 &&
        failed(checkSameExtent(op, "C15", row.name, row.like, row.dim, mask,
                               int(dim))))
      return failure();
  return success();
}

LogicalResult SdpaOp::verify() {
  if (failed(checkOuts(*this)))
    return failure();
  for (Value operand : getOperands())
    if (isa<ShapedType>(operand.getType()) &&
        isa<MemRefType>(operand.getType()) != isa<MemRefType>(getQ().getType()))
      return emitOpError("(C14) is on tensors or on memrefs, found both ")
             << getQ().getType() << " and " << operand.getType();
  if (failed(checkBounds(*this, getVisibilityAttr(), getBounds())))
    return failure();
  auto named = [](StringRef name, Value value) {
    return Named{name, cast<ShapedType>(value.getType())};
  };
  Named q = named("q", getQ()), k = named("k", getK());
  if (failed(checkShapes(*this, q, k, {named("out", getOut())},
                         {named("v", getV())})))
    return failure();
  if (getLse() && failed(checkLseShape(*this, q, named("lse", getLse()))))
    return failure();
  return getMask() ? checkMask(*this, q, k) : success();
}

LogicalResult SdpaOp::verifyRegions() {
  return verifyScoreProgram(*this, getScore(), /*captures=*/{},
                            /*derivatives=*/0);
}

void SdpaOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (isa<MemRefType>(operand.get().getType()))
      effects.emplace_back(isDpsInit(&operand)
                               ? static_cast<MemoryEffects::Effect *>(
                                     MemoryEffects::Write::get())
                               : MemoryEffects::Read::get(),
                           &operand, SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// Bufferization
//===----------------------------------------------------------------------===//

namespace {
struct SdpaBufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<SdpaBufferization,
                                                             SdpaOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return !cast<SdpaOp>(op).isDpsInit(&operand); // those are overwritten
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto sdpa = cast<SdpaOp>(op);
    if (sdpa.hasPureBufferSemantics())
      return success();
    SmallVector<Value> operands, outs;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer =
            bufferization::getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
      }
      operands.push_back(value);
      if (sdpa.isDpsInit(&operand))
        outs.push_back(value);
    }
    rewriter.setInsertionPoint(op);
    OperationState made(op->getLoc(), op->getName(), operands,
                        /*types=*/TypeRange(), op->getAttrs());
    made.propertiesAttr = op->getPropertiesAsAttribute();
    made.addRegion()->takeBody(sdpa.getScore());
    rewriter.create(made);
    bufferization::replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }
};
} // namespace

void fovea::attn::registerBufferizationModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    SdpaOp::attachInterface<SdpaBufferization>(*context);
  });
}
