//===- BlockLists.cpp - which blocks lists name ---------------------------===//

#include "BlockLists.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

/// Memory that nothing writes while the kernel runs: loads are scalar.
static constexpr unsigned kConstantAddressSpace = 4;

BlockLists::BlockLists(AttentionOpInterface op, ImplicitLocOpBuilder &b,
                       llvm::function_ref<Value(StringRef)> argument)
    : b(b) {
  if (op.getLists().empty())
    return;
  auto addressOf = [&](Value pointer) -> Value {
    return LLVM::PtrToIntOp::create(b, b.getI64Type(), pointer);
  };
  auto tensors = [&](const std::string &counts, const std::string &entries,
                     StringRef size) -> Tensors {
    return {
        addressOf(argument(counts)),         addressOf(argument(entries)),
        argument(counts + "_stride_batch"),  argument(counts + "_stride_head"),
        argument(entries + "_stride_batch"), argument(entries + "_stride_head"),
        argument(entries + "_stride_block"), argument(size)};
  };
  keys = {argument("kv_block_log2"), argument("seqlen_k"),
          tensors("kv_num_blocks", "kv_indices", "kv_entries"),
          tensors("full_kv_num_blocks", "full_kv_indices", "full_kv_entries")};
  queries = {argument("q_block_log2"), argument("seqlen_q"),
             tensors("q_num_blocks", "q_indices", "q_entries"),
             tensors("full_q_num_blocks", "full_q_indices", "full_q_entries")};
  // The kernel's own arguments.
  auto pointer =
      LLVM::LLVMPointerType::get(b.getContext(), kConstantAddressSpace);
  address = addressOf(LLVM::CallIntrinsicOp::create(
                          b, pointer,
                          b.getStringAttr("llvm.amdgcn.kernarg.segment.ptr"),
                          ValueRange())
                          .getResult(0));
}

Value BlockLists::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// Of a number that is not negative.
Value BlockLists::i64(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

Value BlockLists::load(Value from) {
  auto pointer =
      LLVM::LLVMPointerType::get(b.getContext(), kConstantAddressSpace);
  return LLVM::LoadOp::create(
      b, b.getI32Type(), LLVM::IntToPtrOp::create(b, pointer, from),
      /*alignment=*/4, /*isVolatile=*/false, /*isNonTemporal=*/false,
      /*isInvariant=*/true);
}

BlockList BlockLists::keysOf(Value batch, Value head, Value row,
                             int64_t block) {
  return listOf(keys, batch, head, arith::ShRUIOp::create(b, row, queries.log2),
                block,
                /*isFullFirst=*/true);
}

BlockList BlockLists::queriesOf(Value batch, Value head, Value key,
                                int64_t block) {
  return listOf(queries, batch, head, arith::ShRUIOp::create(b, key, keys.log2),
                block,
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
    count = load(select(isMissing, address, count));
    count = arith::MinSIOp::create(b, arith::MaxSIOp::create(b, count, zero),
                                   tensors.size);
    Value row =
        add(add(mul(wide[0], tensors.batch), mul(wide[1], tensors.head)),
            mul(wide[2], tensors.block));
    return {at(tensors.entries, row), select(isMissing, zero, count)};
  };
  auto shifted = [&](Value value, Value log2) -> Value {
    return arith::ShLIOp::create(b, value, log2);
  };
  auto ones = [&](Value log2) -> Value {
    Value one = i32(1);
    return arith::SubIOp::create(b, shifted(one, log2), one);
  };
  auto blocksOf = [&](Value log2) -> Value {
    return arith::ShRUIOp::create(b, add(listed.length, ones(log2)), log2);
  };
  BlockList list;
  const int64_t ownLog2 = llvm::Log2_64(block);
  list.log2 = arith::SubIOp::create(b, listed.log2, i32(ownLog2));
  list.within = ones(list.log2);
  list.listedPast = blocksOf(listed.log2);
  list.past = blocksOf(i32(ownLog2));
  Value isAll = isNull(listed.part);
  Row part = rowOf(listed.part), full = rowOf(listed.full);
  part.count = select(isAll, list.listedPast, part.count);
  full.count = select(isAll, zero, full.count);
  const Row &front = isFullFirst ? full : part,
            &back = isFullFirst ? part : full;
  list.first = shifted(front.count, list.log2);
  list.end = shifted(add(front.count, back.count), list.log2);
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
  Value index = arith::ShRUIOp::create(b, number, list.log2);
  Value isLooked = isBelow(number, list.looked);
  Value from = arith::AddIOp::create(
      b,
      select(isBelow(number, list.first), list.addresses[0], list.addresses[1]),
      arith::MulIOp::create(b, i64(index),
                            arith::ConstantIntOp::create(b, 4, 64)));
  Value entry = select(isLooked, load(select(isLooked, from, address)),
                       arith::OrIOp::create(b, index, list.beyond));
  // Beyond the last whatever it is; negative numbers are large ones.
  entry = arith::MinUIOp::create(b, entry, list.listedPast);
  Value block =
      arith::AddIOp::create(b, arith::ShLIOp::create(b, entry, list.log2),
                            arith::AndIOp::create(b, number, list.within));
  return arith::MinUIOp::create(b, block, list.past);
}
