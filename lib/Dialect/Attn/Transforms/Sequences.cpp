//===- Sequences.cpp - where each sequence lies ---------------------------===//

#include "Sequences.h"
#include "ConstantMemory.h"
#include "fovea/Package/OperationSpec.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

Sequences::Sequences(AttentionOpInterface op, ImplicitLocOpBuilder &b,
                     llvm::function_ref<Value(StringRef)> argument)
    : q{argument("seqlen_q"), nullptr}, k{argument("seqlen_k"), nullptr}, b(b) {
  if (op.getSequences().empty())
    return;
  auto source = [&](StringRef lengths, StringRef starts, Value most,
                    int32_t cumulative) -> Source {
    return {addressOf(b, argument(lengths)), addressOf(b, argument(starts)),
            most, cumulative};
  };
  queries = source("seqlens_q", "starts_q", q.length, spec::kSeqlensQAreSums);
  keys = source("seqlens_k", "starts_k", k.length, spec::kSeqlensKAreSums);
  flags = argument("varlen_flags");
  packedRows = argument("packed_rows_q");
  lseStride = argument("lse_stride_seq");
  count = argument("sequences");
  memory = readableAddress(b);
}

Value Sequences::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// Of a number that is not negative.
Value Sequences::i64(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

Value Sequences::isZero(Value value) {
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value, zero);
}

Value Sequences::has(int32_t flag) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                               arith::AndIOp::create(b, flags, i32(flag)),
                               i32(0));
}

/// An element of i32, or whatever can be read.
Value Sequences::load(Value address, Value index, Value isNull) {
  Value bytes = arith::MulIOp::create(b, i64(index),
                                      arith::ConstantIntOp::create(b, 4, 64));
  Value at = arith::AddIOp::create(b, address, bytes);
  return loadConstant(b, arith::SelectOp::create(b, isNull, memory, at));
}

Sequences::Side Sequences::read(const Source &source, Value number) {
  Value all = isZero(source.lengths), sums = has(source.cumulative);
  Value first = load(source.lengths, number, all);
  Value next = arith::AddIOp::create(
      b, number, arith::ExtUIOp::create(b, b.getI32Type(), sums));
  Value length = load(source.lengths, next, all);
  length = arith::SelectOp::create(
      b, sums, arith::SubIOp::create(b, length, first), length);
  // What is there is believed no further than the call's length.
  length = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, length, i32(0)),
                                  source.most);
  length = arith::SelectOp::create(b, all, source.most, length);
  Value none = isZero(source.starts);
  Value start = arith::SelectOp::create(b, none, i32(0),
                                        load(source.starts, number, none));
  return {length, i64(start)};
}

void Sequences::enter(Value number) {
  if (!differ())
    return;
  number = firstLane(b, number);
  q = read(queries, number);
  k = read(keys, number);
  Value zero = arith::ConstantIntOp::create(b, 0, 64);
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, condition, x, y);
  };
  lseStart = select(has(spec::kLseHasStarts), q.start, zero);
  Value isBatched = isZero(packedRows);
  workspaceRows = select(isBatched, i64(queries.most), i64(packedRows));
  workspaceBatch = select(isBatched, i64(number), zero);
  workspaceStart = select(isBatched, zero, q.start);
}

Sequences::Block Sequences::find(Value y, Block ofGrid, int64_t rows,
                                 bool ofKeys, bool fromTheEnd) {
  const Source &source = ofKeys ? keys : queries;
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  auto div = [&](Value x) -> Value {
    return arith::DivUIOp::create(b, x, i32(rows));
  };
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, condition, x, y);
  };
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
  };
  Type type = b.getI32Type();
  auto branch = scf::IfOp::create(
      b, TypeRange{type, type},
      has(ofKeys ? spec::kGridIsPackedK : spec::kGridIsPackedQ),
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, ValueRange{ofGrid.sequence, ofGrid.block});

  b.setInsertionPointToStart(branch.thenBlock());
  Value isNone = arith::ConstantIntOp::create(b, 0, 1);
  auto sumOf = [&](Value sequence) {
    return load(source.lengths, sequence, isNone);
  };
  auto firstOf = [&](Value sequence) {
    return add(div(sumOf(sequence)), sequence);
  };
  // The last sequence whose first number is not above y, bit by bit.
  Value zero = i32(0), one = i32(1);
  Value bits = sub(i32(32), math::CountLeadingZerosOp::create(b, count));
  auto loop = scf::ForOp::create(b, zero, bits, one, ValueRange{zero});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value found = loop.getRegionIterArgs()[0];
    Value bit = sub(sub(bits, one), loop.getInductionVar());
    Value next = add(found, arith::ShLIOp::create(b, one, bit));
    Value there = isBelow(next, count);
    Value first = firstOf(select(there, next, zero));
    Value isLater = arith::AndIOp::create(
        b, there,
        arith::CmpIOp::create(b, arith::CmpIPredicate::ule, first, y));
    scf::YieldOp::create(b, ValueRange{select(isLater, next, found)});
  }
  Value sequence = loop.getResult(0);
  // Ahead of the first sequence it is negative, and so a large one.
  Value block = sub(y, firstOf(sequence));
  if (fromTheEnd) {
    Value length = sub(sumOf(add(sequence, one)), sumOf(sequence));
    Value blocks = div(add(length, i32(rows - 1)));
    block = select(isBelow(block, blocks), sub(sub(blocks, one), block), block);
  }
  scf::YieldOp::create(b, ValueRange{sequence, block});
  return {branch.getResult(0), branch.getResult(1)};
}
