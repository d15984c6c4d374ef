//===- TileDropoutMask.cpp - attn-tile-dropout-mask -----------------------===//
//
// Writes which weights a kernel of attention would drop, by the ops with which
// that drops them, so that there is one map from places to words.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace fovea;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEDROPOUTMASK
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

namespace {
using namespace fovea::attn;

class DropoutMaskTiler : public TileBuilder {
public:
  DropoutMaskTiler(DropoutMaskOp op, gpu::GPUFuncOp kernel,
                   const target::TargetInfo &target,
                   const KernelArguments &arguments, ScheduleAttr schedule)
      : TileBuilder(op, kernel, target, arguments),
        whole(f32Tile(schedule.getBlockM(), schedule.getBlockN())) {}
  void build();

private:
  void storeBlock(Value key);
  /// A scalar as a tile.
  Value spread(Value value) {
    return splat(whole.clone(value.getType()), value);
  }

  RankedTensorType whole; ///< queries and keys of an iteration
  Value head, firstRow, rows, rowStride;
  Value offset; ///< i64 elements before the block's first query
  Value row, column;
};

void DropoutMaskTiler::build() {
  const int64_t blockM = whole.getDimSize(0), blockN = whole.getDimSize(1);
  batch = blockId(gpu::Dimension::z);
  head = blockId(gpu::Dimension::x);
  firstRow = mul(blockId(gpu::Dimension::y), i32(blockM));
  dropout.prepare();
  rows = min(sub(seqlenQ(), firstRow), i32(blockM));
  Value stride = arg("mask_stride_seq");
  rowStride = arith::TruncIOp::create(b, b.getI32Type(), stride);
  offset = add(add(mul(i64(batch), arg("mask_stride_batch")),
                   mul(i64(head), arg("mask_stride_head"))),
               mul(i64(firstRow), stride));
  RankedTensorType numbers = whole.clone(b.getI32Type());
  row = RowIndexOp::create(b, numbers);
  column = broadcast(ColumnIndexOp::create(b, tile(1, blockN, b.getI32Type())),
                     numbers);
  auto keys = scf::ForOp::create(b, i32(0), seqlenK(), i32(blockN));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(keys.getBody());
    storeBlock(keys.getInductionVar());
  }
  finish();
}

void DropoutMaskTiler::storeBlock(Value key) {
  Value mask = dropout.apply(
      splat(whole, 0.5f), {batch, head, firstRow, key, /*queriesAreRows=*/true},
      /*negates=*/true);
  if (!elementType.isF32())
    mask = arith::TruncFOp::create(b, whole.clone(elementType), mask);
  Value count = min(sub(seqlenK(), key), i32(whole.getDimSize(1)));
  Value isThere = arith::AndIOp::create(
      b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, spread(rows)),
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                            spread(count)));
  Value index = select(isThere, add(mul(row, spread(rowStride)), column),
                       spread(i32(-1)));
  Value size = add(mul(sub(rows, i32(1)), rowStride), count);
  ScatterOp::create(b, mask, arg("mask"), add(offset, i64(key)), size, index);
}

struct TileDropoutMask
    : public fovea::attn::impl::AttnTileDropoutMaskBase<TileDropoutMask> {
  void runOnOperation() override {
    if (failed(tileFunctions<DropoutMaskOp>(getOperation(), tileFunction)))
      signalPassFailure();
  }

private:
  static LogicalResult tileFunction(func::FuncOp func, DropoutMaskOp op,
                                    const target::TargetInfo &target) {
    FailureOr<KernelArguments> arguments = argumentsOf(op);
    if (failed(arguments))
      return failure();
    gpu::GPUModuleOp module = makeKernelModule(func);
    ScheduleAttr schedule = *op.getSchedule();
    DropoutMaskTiler(op,
                     makeKernel(module, module.getName(), *arguments, schedule),
                     target, *arguments, schedule)
        .build();
    return success();
  }
};
} // namespace
