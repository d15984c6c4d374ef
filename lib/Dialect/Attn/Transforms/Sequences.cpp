//===- Sequences.cpp - where each sequence lies ---------------------------===//

#include "Sequences.h"
#include "ConstantMemory.h"
#include "fovea/Package/OperationSpec.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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
