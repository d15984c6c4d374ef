//===- Dropout.cpp - weights dropped by chance ----------------------------===//

#include "Dropout.h"
#include "ConstantMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

Dropout::Dropout(AttentionOpInterface op, ImplicitLocOpBuilder &b,
                 llvm::function_ref<Value(StringRef)> argument)
    : b(b) {
  if (op.getDropout().empty())
    return;
  seedPointer = argument("philox_seed");
  offsetPointer = argument("philox_offset");
  seedOut = argument("philox_seed_out");
  offsetOut = argument("philox_offset_out");
  threshold = argument("dropout_threshold");
  scale = argument("dropout_scale");
  flags = argument("dropout_flags");
  seed = argument("dropout_seed");
  offset = argument("dropout_offset");
  headsQ = argument("heads_q");
  seqlenQ = argument("seqlen_q");
  seqlenK = argument("seqlen_k");
}

Value Dropout::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// Of a number that is not negative.
Value Dropout::i64(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

/// The number, and what a pointer points to.
Value Dropout::addIfThere(Value pointer, Value number) {
  Value address = addressOf(b, pointer);
  Value isNull =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, address,
                            arith::ConstantIntOp::create(b, 0, 64).getResult());
  Value from = arith::SelectOp::create(b, isNull, readableAddress(b), address);
  Value there = loadConstant(b, from, b.getI64Type());
  Value zero = arith::ConstantIntOp::create(b, 0, 64);
  return arith::AddIOp::create(b, number,
                               arith::SelectOp::create(b, isNull, zero, there));
}

void Dropout::prepare() {
  if (!isThere())
    return;
  seed = addIfThere(seedPointer, seed);
  offset = addIfThere(offsetPointer, offset);
  groups = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, seqlenK, i32(kKeyStep - 1)), i32(kKeyStep));
}

void Dropout::store() {
  if (!isThere())
    return;
  // By every workgroup that is the first of its grid: one.
  Value sum;
  for (auto dim : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z}) {
    Value id = arith::IndexCastOp::create(b, b.getI32Type(),
                                          gpu::BlockIdOp::create(b, dim));
    sum = sum ? arith::OrIOp::create(b, sum, id).getResult() : id;
  }
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, sum, i32(0));
  for (auto [pointer, value] :
       {std::pair(seedOut, seed), {offsetOut, offset}}) {
    Value isWanted = isGiven(b, pointer);
    auto branch =
        scf::IfOp::create(b, arith::AndIOp::create(b, isFirst, isWanted),
                          /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    LLVM::StoreOp::create(b, value, pointer, /*alignment=*/8);
  }
}

Value Dropout::apply(Value weights, const Place &place, bool negates) {
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  Value head = add(mul(i64(place.batch), i64(headsQ)), i64(place.head));
  Value query = add(mul(head, i64(seqlenQ)), i64(place.query));
  Value counter = add(offset, mul(query, i64(groups)));
  // Here, or it would be a bit of each lane throughout a loop.
  Value swaps = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                      makeOpaque(b, b.getLoc(), flags), i32(0));
  return DropoutOp::create(b, weights, seed, counter, groups, place.key,
                           threshold, swaps, place.queriesAreRows, negates);
}
