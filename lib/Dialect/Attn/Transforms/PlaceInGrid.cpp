//===- PlaceInGrid.cpp - which workgroup does what ------------------------===//
//
// The grid is by heads, blocks of rows and batches. Which of them a workgroup
// takes decides what starts together: whose keys are in a cache, and which
// blocks are the last.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

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

Value TileBuilder::gridSize(gpu::Dimension dimension) {
  // hsa_kernel_dispatch_packet_t: work-items of the grid, of which a workgroup
  // has one in this dimension.
  constexpr int32_t kGridSizeX = 12, kConstantAddressSpace = 4;
  auto pointer =
      LLVM::LLVMPointerType::get(b.getContext(), kConstantAddressSpace);
  Value packet =
      LLVM::CallIntrinsicOp::create(
          b, pointer, b.getStringAttr("llvm.amdgcn.dispatch.ptr"), ValueRange())
          .getResult(0);
  Value address = LLVM::GEPOp::create(
      b, pointer, b.getI8Type(), packet,
      ArrayRef<LLVM::GEPArg>{kGridSizeX + 4 * int32_t(dimension)});
  return LLVM::LoadOp::create(b, b.getI32Type(), address, /*alignment=*/4,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

/// How many leading zeros a number has more than \p least; none where it is
/// larger. The smaller number is taken, and not the larger difference: that
/// saturates, which no scalar instruction does, and LLVM 22 hands what follows
/// of vector registers to inline assembly that takes scalar ones (`opaque`), an
/// illegal copy.
static Value zerosBeyond(ImplicitLocOpBuilder &b, Value number,
                         uint32_t least) {
  const int zeros = llvm::countl_zero(least);
  auto i32 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32).getResult();
  };
  Value bounded = arith::MinUIOp::create(
      b, number, i32(int32_t(llvm::maskTrailingOnes<uint32_t>(32 - zeros))));
  return arith::SubIOp::create(b, math::CountLeadingZerosOp::create(b, bounded),
                               i32(zeros));
}

TileBuilder::GridPlace TileBuilder::placeInGrid(Value heads, Value rows,
                                                int64_t rowsOfBlock,
                                                ScheduleAttr schedule) {
  Value x = blockId(gpu::Dimension::x), y = blockId(gpu::Dimension::y);
  if (!schedule || !target.has(target::kFewHeadsAtOnce))
    return {headOf(x, heads), y};
  // Of lengths y may count the blocks of all sequences.
  Value blocks = sequences.differ() ? gridSize(gpu::Dimension::y)
                                    : blocksOf(rows, rowsOfBlock);
  Value number = add(x, mul(y, heads));
  // Divided by vector instructions; what follows is to be uniform all the same.
  if (!isUneven()) {
    Value head = firstLane(b, div(number, blocks));
    return {head, sub(number, mul(head, blocks))};
  }
  // A power of two that divides the heads, so that there is but one division.
  // Four rounds of gfx1151 are as many workgroups, and not a number of the
  // chip's: chips of a family have the same code.
  constexpr uint32_t kWorkgroups = 512;
  Value shift = min(zerosBeyond(b, blocks, kWorkgroups),
                    math::CountTrailingZerosOp::create(b, heads));
  auto shl = [&](Value value) -> Value {
    return arith::ShLIOp::create(b, value, shift);
  };
  Value together = firstLane(b, div(number, shl(blocks)));
  Value place = sub(number, mul(together, shl(blocks)));
  Value block = arith::ShRUIOp::create(b, place, shift);
  return {add(shl(together), sub(place, shl(block))), block};
}

void TileBuilder::orderBatches(Value &block, Value blocks, Value heads,
                               ScheduleAttr schedule) {
  if (!isUneven() || target.xcds <= 1)
    return;
  // A later batch's longest would start when the shortest are done, and end
  // alone. More together leave less of each in caches. A power of two, so that
  // only what is left has to be divided.
  constexpr int32_t kRounds = 4, kMostLog2 = 3;
  const int32_t waves = schedule.getWavesPerSimd() * target.simdsPerCu;
  const int32_t atATime =
      target.computeUnits * std::max(1, waves / schedule.getWaves());
  Value shift = min(
      zerosBeyond(b, mul(heads, blocks), uint32_t(kRounds) * uint32_t(atATime)),
      i32(kMostLog2));
  auto shifted = [&](Value value) -> Value {
    return arith::ShLIOp::create(b, value, shift);
  };
  Value first = shifted(arith::ShRUIOp::create(b, batch, shift));
  Value together =
      min(shifted(i32(1)), sub(gridSize(gpu::Dimension::z), first));
  Value place = add(mul(sub(batch, first), blocks), block);
  block = div(place, together);
  batch = add(first, sub(place, mul(block, together)));
}

/// Has the blocks of rows that read the same keys start on one die, one after
/// the other, where heads alone would deal them to several: its L2 then fetches
/// them once. Places are traded among the blocks and shares of a head and
/// batch, so that nothing but which workgroup does what changes.
/// \param place   block of rows and share, in the order of the grid
/// \param counts  of both that there are
/// \param heads   that the grid has of a batch
static std::pair<Value, Value> orderShares(ImplicitLocOpBuilder &b, int xcds,
                                           std::pair<Value, Value> place,
                                           std::pair<Value, Value> counts,
                                           Value heads) {
  if (xcds <= 1)
    return place;
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32).getResult();
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  // From a share to the next one that is dealt to its die there are 2^bits. So
  // many trade places with blocks; a last run of fewer would not stay on a die.
  Value most = constant(llvm::Log2_32(uint32_t(xcds)));
  Value headBits = math::CountTrailingZerosOp::create(b, heads);
  Value bits = sub(most, arith::MinSIOp::create(b, headBits, most));
  auto shl = [&](Value x) -> Value {
    return arith::ShLIOp::create(b, x, bits);
  };
  auto shr = [&](Value x) -> Value {
    return arith::ShRUIOp::create(b, x, bits);
  };
  auto [block, share] = place;
  Value first = shl(shr(share));
  Value within = arith::MulIOp::create(b, counts.first, sub(share, first));
  Value number = add(block, within), blockOfRun = shr(number);
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                            add(first, shl(constant(1))), counts.second);
  auto choose = [&](Value traded, Value own) -> Value {
    return arith::SelectOp::create(b, isWhole, traded, own);
  };
  return {choose(blockOfRun, block),
          choose(add(first, sub(number, shl(blockOfRun))), share)};
}

void QueryBlockBuilder::placeWorkgroup(int64_t blockM, bool fromTheEnd,
                                       ScheduleAttr schedule, bool sharesKeys,
                                       bool packs) {
  batch = blockId(gpu::Dimension::z);
  Value rows = arg("seqlen_q"), heads = arg("heads_q");
  if (packs) {
    packedHeads = arg("packed_heads");
    heads = divOfLaunch(heads, packedHeads);
    rows = mul(rows, packedHeads);
  }
  const GridPlace place = placeInGrid(heads, rows, blockM, schedule);
  Value block = place.block;
  headQ = packs ? mul(place.head, packedHeads) : place.head;
  headK = packs ? divOfLaunch(headQ, arg("group_size"))
                : div(headQ, arg("group_size"));
  if (packs) {
    placeShare();
    std::tie(block, share) =
        orderShares(b, target.xcds, {block, share},
                    {blocksOf(rows, blockM), arg("splits")}, heads);
  }
  if (schedule)
    orderBatches(block, blocksOf(arg("seqlen_q"), blockM), arg("heads_q"),
                 schedule);
  if (fromTheEnd)
    block = sub(sub(blocksOf(rows, blockM), i32(1)), block);
  if (sequences.differ() && !sharesKeys)
    std::tie(batch, block) =
        blockOf(place, {batch, block}, blockM, /*ofKeys=*/false, fromTheEnd);
  firstRow = mul(block, i32(blockM));
}

void QueryBlockBuilder::placeShare() {
  Value splits = arg("splits"), both = batch;
  batch = divOfLaunch(both, splits);
  share = sub(both, mul(batch, splits));
}

/// Shares are runs of whole groups of blocks, as even as these allow. One that
/// has none begins behind the last block.
Segments QueryBlockBuilder::shareOf(const Segments &all, int64_t group) {
  Value groups = blocksOf(all.end, group), splits = arg("splits");
  Value least = divOfLaunch(groups, splits);
  Value more = sub(groups, mul(least, splits));
  auto before = [&](Value share) {
    Value first = add(mul(least, share), min(share, more));
    return min(mul(first, i32(group)), all.end);
  };
  Value first = before(share), end = before(add(share, i32(1)));
  Value zero = i32(0), size = sub(end, first);
  auto within = [&](Value block) {
    return max(zero, min(sub(block, first), size));
  };
  Segments part = all;
  if (lists.isThere()) {
    listStart = first;
  } else {
    Value keysBefore = mul(first, i32(blockN));
    part.origin = add(all.origin, keysBefore);
    part.count = sub(min(all.count, mul(end, i32(blockN))), keysBefore);
    part.count = max(zero, part.count);
    if (part.hidden)
      part.hidden = sub(part.hidden, keysBefore);
  }
  if (all.hasHead)
    part.head = within(all.head);
  part.full = within(all.full);
  part.end = size;
  return part;
}
