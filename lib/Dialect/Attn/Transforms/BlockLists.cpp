//===- BlockLists.cpp - which blocks lists name ---------------------------===//

#include "BlockLists.h"
#include "ConstantMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

BlockLists::BlockLists(AttentionOpInterface op, ImplicitLocOpBuilder &b,
                       llvm::function_ref<Value(StringRef)> argument)
    : b(b) {
  if (op.getLists().empty())
    return;
  auto tensors = [&](const std::string &counts, const std::string &entries,
                     StringRef size) -> Tensors {
    return {
        addressOf(b, argument(counts)),      addressOf(b, argument(entries)),
        argument(counts + "_stride_batch"),  argument(counts + "_stride_head"),
        argument(entries + "_stride_batch"), argument(entries + "_stride_head"),
        argument(entries + "_stride_block"), argument(size)};
  };
  keys = {argument("kv_block"), nullptr,
          tensors("kv_num_blocks", "kv_indices", "kv_entries"),
          tensors("full_kv_num_blocks", "full_kv_indices", "full_kv_entries")};
  queries = {argument("q_block"), nullptr,
             tensors("q_num_blocks", "q_indices", "q_entries"),
             tensors("full_q_num_blocks", "full_q_indices", "full_q_entries")};
  address = readableAddress(b);
}

void BlockLists::setLengths(Value seqlenQ, Value seqlenK) {
  queries.length = seqlenQ;
  keys.length = seqlenK;
}

Value BlockLists::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// Of a number that is not negative.
Value BlockLists::i64(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

/// The vector unit divides, in all lanes the same.
Value BlockLists::divide(Value number, Value by) {
  return firstLane(b, arith::DivUIOp::create(b, number, by));
}

BlockList BlockLists::keysOf(Value batch, Value head, Value row,
                             int64_t block) {
  return listOf(keys, batch, head, divide(row, queries.block), block,
                /*isFullFirst=*/true);
}

BlockList BlockLists::queriesOf(Value batch, Value head, Value key,
                                int64_t block) {
  return listOf(queries, batch, head, divide(key, keys.block), block,
                /*isFullFirst=*/false);
}

BlockList BlockLists::listOf(const Side &listed, Value batch, Value head,
                             Value ownBlock, int64_t block, bool isFullFirst) {
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, condition, x, y);
  };
  /// Of elements of 4 bytes.
  auto at = [&](Value address, Value elements) {
    return add(address, mul(elements, arith::ConstantIntOp::create(b, 4, 64)));
  };
  Value wide[] = {i64(batch), i64(head), i64(ownBlock)};
  Value none = arith::ConstantIntOp::create(b, 0, 64).getResult(),
        zero = i32(0);
  auto isNull = [&](const Tensors &tensors) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, tensors.counts,
                                 none);
  };
  struct Row {
    Value address, count;
  };
  auto rowOf = [&](const Tensors &tensors) -> Row {
    Value count = at(tensors.counts, add(add(mul(wide[0], tensors.countsBatch),
                                             mul(wide[1], tensors.countsHead)),
                                         wide[2]));
    Value isMissing = isNull(tensors);
    count = loadConstant(b, select(isMissing, address, count));
    count = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, count, zero),
                                   tensors.size);
    Value row =
        add(add(mul(wide[0], tensors.batch), mul(wide[1], tensors.head)),
            mul(wide[2], tensors.block));
    return {at(tensors.entries, row), select(isMissing, zero, count)};
  };
  auto blocksOf = [&](Value length, Value block) -> Value {
    Value less = arith::SubIOp::create(b, block, i32(1));
    return divide(add(length, less), block);
  };
  BlockList list;
  list.ratio =
      arith::ShRUIOp::create(b, listed.block, i32(llvm::Log2_64(block)));
  list.inverse = blocksOf(i32(std::numeric_limits<int32_t>::min()), list.ratio);
  list.listedPast = blocksOf(listed.length, listed.block);
  list.past = blocksOf(listed.length, i32(block));
  Value isAll = isNull(listed.part);
  Row part = rowOf(listed.part), full = rowOf(listed.full);
  part.count = select(isAll, list.listedPast, part.count);
  full.count = select(isAll, zero, full.count);
  const Row &front = isFullFirst ? full : part,
            &back = isFullFirst ? part : full;
  list.first = mul(front.count, list.ratio);
  list.end = mul(add(front.count, back.count), list.ratio);
  list.looked = select(isAll, zero, list.end);
  list.beyond = select(isAll, zero, i32(-1));
  list.addresses[0] = front.address;
  list.addresses[1] = arith::SubIOp::create(
      b, back.address,
      mul(i64(front.count), arith::ConstantIntOp::create(b, 4, 64)));
  return list;
}

Value BlockLists::blockOf(const BlockList &list, Value number) {
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, condition, x, y);
  };
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
  };
  // number / ratio: of numbers that lists may have exact, and of negative ones
  // large.
  auto product = arith::MulUIExtendedOp::create(
      b, arith::ShLIOp::create(b, number, i32(1)), list.inverse);
  Value index = product.getHigh();
  Value isLooked = isBelow(number, list.looked);
  Value from = arith::AddIOp::create(
      b,
      select(isBelow(number, list.first), list.addresses[0], list.addresses[1]),
      arith::MulIOp::create(b, i64(index),
                            arith::ConstantIntOp::create(b, 4, 64)));
  Value entry =
      select(isLooked, loadConstant(b, select(isLooked, from, address)),
             arith::OrIOp::create(b, index, list.beyond));
  // Beyond the last whatever it is; negative numbers are large ones.
  entry = arith::MinUIOp::create(b, entry, list.listedPast);
  auto times = [&](Value blocks) -> Value {
    return arith::MulIOp::create(b, blocks, list.ratio);
  };
  Value within = arith::SubIOp::create(b, number, times(index));
  Value block = arith::AddIOp::create(b, times(entry), within);
  return arith::MinUIOp::create(b, block, list.past);
}
