//===- TileForward.cpp - attn-tile-forward --------------------------------===//
//
// Writes the tile program of the forward kernel: what moves K and V, the
// pipeline, and what is before and behind the loops.
//
//===----------------------------------------------------------------------===//

#include "ForwardTiler.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace fovea::attn {
#define GEN_PASS_DEF_ATTNTILEFORWARD
#include "fovea/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace fovea::attn

Value ForwardTiler::readK(KeyBlock block) {
  return LoadLdsOp::create(b, tile(partRows(), tiles.scoreDim, elementType),
                           bufferOf(ldsK, block));
}

Value ForwardTiler::readV(KeyBlock block) {
  int64_t rows = tiles.valueDim, columns = partRows();
  if (turnsValues())
    std::swap(rows, columns);
  Value values = LoadLdsOp::create(b, tile(rows, columns, elementType),
                                   bufferOf(ldsV, block));
  return turnsValues() ? transpose(values) : values;
}

/// S^T = K Q^T, unscaled: [block_n, block_m].
Value ForwardTiler::scores(Value keys) {
  Value q = queries;
  if (ldsQ)
    q = transpose(LoadLdsOp::create(
        b, tile(tiles.blockM, tiles.scoreDim, elementType), ldsQ));
  RankedTensorType type = f32Tile(partRows(), tiles.blockM);
  if (beginsBelow)
    return DotOp::create(b, type, keys, q, sums.start, schedule.getInst(),
                         /*split_rows=*/false, /*column_waves=*/nullptr,
                         /*rows_alike=*/true);
  return DotOp::create(b, keys, q, splat(type, 0.0f), schedule.getInst());
}

/// Keys that are not read at once lie in chunks of columns, each a buffer.
void ForwardTiler::storeChunksOfK(KeyBlock block) {
  const int64_t columns = schedule.getColumnChunk();
  auto type = tile(partRows(), columns, elementType);
  for (int64_t chunk : llvm::seq(chunksOfScores())) {
    Value rows = LoadOp::create(
        b, type, viewKeys(/*values=*/false, block.number), chunk * columns);
    StoreLdsOp::create(b,
                       cut(rowsOfKeys(/*values=*/false), rows, chunk * columns),
                       LdsBufferOp::create(b, ldsK, i32(chunk)));
  }
}

/// The same scores, with the queries of each chunk read from memory before it.
/// Barriers keep LLVM from reading all at once, and what is opaque from making
/// addresses, and what is cut of each column, ahead of the loops. Where rows lie
/// in runs their places are found there, once.
Value ForwardTiler::scoresOfChunks() {
  const int64_t columns = schedule.getColumnChunk();
  auto fence = [&] {
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  };
  Value sum = splat(f32Tile(partRows(), tiles.blockM), 0.0f);
  for (int64_t chunk : llvm::seq(chunksOfScores())) {
    Rows rows = anew(q);
    fence();
    Value queries = transpose(
        NegateIfOp::create(b,
                           loadTile(rows, q.heads ? firstRow : opaque(firstRow),
                                    tiles.blockM, columns, chunk * columns),
                           scaleIsNegative()));
    fence();
    Value keys = LoadLdsOp::create(b, tile(partRows(), columns, elementType),
                                   LdsBufferOp::create(b, ldsK, i32(chunk)));
    sum = DotOp::create(b, keys, queries, sum, schedule.getInst());
  }
  return sum;
}

/// Those of all parts of the block.
SmallVector<Value *> ForwardTiler::allScores() {
  return llvm::map_to_vector(llvm::seq(0, pipeline.parts), [&](int part) {
    return &slotOf(Slot::Scores, part);
  });
}

KeyBlock ForwardTiler::after(KeyBlock block, int distance) {
  KeyBlock result = {add(block.number, i32(distance)), std::nullopt};
  if (block.parity)
    result.parity = (*block.parity + distance) & 1;
  return result;
}

/// Starts to copy the rows of a block of K or V to LDS, past the registers.
void ForwardTiler::copy(bool values, KeyBlock block) {
  CopyLdsOp::create(b, viewKeys(values, block.number, part * partRows()),
                    bufferOf(values ? ldsV : ldsK, block),
                    /*layout=*/nullptr);
}

/// The buffer that holds this part of a block: with two, blocks take turns.
Value ForwardTiler::bufferOf(Value lds, KeyBlock block) {
  if (tiles.ldsBuffers == 1)
    return lds;
  int parts = pipeline.parts;
  if (block.parity)
    return LdsBufferOp::create(b, lds, i32(*block.parity * parts + part));
  Value number = arith::AndIOp::create(b, block.number, i32(1));
  if (parts > 1)
    number = add(mul(number, i32(parts)), i32(part));
  return LdsBufferOp::create(b, lds, number);
}

/// Loads of a wave that copy a block of K or V.
int64_t ForwardTiler::copiesOfBlock(bool values) const {
  int64_t bytes = int64_t(tiles.blockN) * ldsDim(values) * tiles.elementBytes;
  return bytes / (int64_t(schedule.getWaves()) * inst.waveSize * kCopyBytes);
}

/// \param underWay  loads of this wave that may be
/// \param withLds  LLVM takes what a wait leaves out for "at most 15", and may
///   leave out its own wait for an earlier read
void ForwardTiler::waitForCopies(int64_t underWay, bool withLds) {
  IntegerAttr lds = withLds ? b.getI32IntegerAttr(0) : nullptr;
  amdgpu::MemoryCounterWaitOp::create(b, /*load=*/b.getI32IntegerAttr(underWay),
                                      /*store=*/nullptr, /*ds=*/lds,
                                      /*exp=*/nullptr, /*tensor=*/nullptr);
}

/// A barrier. Where copies are counted, none that waits for those under way.
void ForwardTiler::meet() {
  if (!pipeline.countsCopies())
    return barrier();
  auto fence = [&] {
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  };
  fence();
  amdgpu::MemoryCounterWaitOp::create(b, /*load=*/nullptr, /*store=*/nullptr,
                                      /*ds=*/b.getI32IntegerAttr(0),
                                      /*exp=*/nullptr, /*tensor=*/nullptr);
  LLVM::InlineAsmOp::create(b, TypeRange{}, ValueRange{}, "s_barrier",
                            "~{memory}", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
  fence();
}

/// Half of the waves go a segment behind the others, which share their SIMDs:
/// one half moves data while the other computes.
bool ForwardTiler::isStaggered() const {
  return pipeline.countsCopies() && schedule.getWaves() > target.simdsPerCu;
}

/// A barrier that half of the waves take: the others find it in their next one.
void ForwardTiler::barrierOf(bool late) {
  Value takes = IsLateWaveOp::create(b, b.getI1Type());
  if (!late)
    takes = arith::XOrIOp::create(
        b, takes, arith::ConstantIntOp::create(b, 1, 1).getResult());
  auto branch = scf::IfOp::create(b, takes, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  meet();
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

void ForwardTiler::take(Step step, KeyBlock block, Mask mask) {
  switch (step) {
  case Step::LoadK:
  case Step::LoadV: {
    bool values = step == Step::LoadV;
    if (!values && schedule.getColumnChunk())
      return; // goes to LDS at once, chunk by chunk
    slot(values ? Slot::VRows : Slot::KRows) =
        loadKeys(values, block.number, ldsDim(values));
    return;
  }
  case Step::StoreK:
    if (schedule.getColumnChunk())
      return storeChunksOfK(block);
    StoreLdsOp::create(b, cutKeys(/*values=*/false, slot(Slot::KRows)),
                       bufferOf(ldsK, block));
    return;
  case Step::StoreV:
    StoreLdsOp::create(
        b, turnsValues() ? slot(Slot::VRows) : transpose(slot(Slot::VRows)),
        bufferOf(ldsV, block));
    return;
  case Step::CopyK:
  case Step::CopyV:
    return copy(step == Step::CopyV, block);
  case Step::ReadK:
    if (schedule.getColumnChunk())
      return;
    slot(Slot::Keys) = readK(block);
    return;
  case Step::ReadV:
    slot(Slot::Values) = readV(block);
    return;
  case Step::Scores:
    slot(Slot::Scores) =
        schedule.getColumnChunk() ? scoresOfChunks() : scores(slot(Slot::Keys));
    return;
  case Step::Fetch:
    fetched[part] = fetchScore(block.number, partRows(), part * partRows());
    return;
  case Step::Mask:
    slot(Slot::Scores) = mask(scoresOf(slot(Slot::Scores), block.number,
                                       part * partRows(), fetched[part])
                                  .score,
                              block.number, part * partRows());
    return;
  case Step::Refer:
    return refer(/*rescales=*/false);
  case Step::ReferAll:
    return beginsBelow ? referBelow() : refer(/*rescales=*/true);
  case Step::Rescale:
    return rescale();
  case Step::Weigh:
    slot(Slot::Weights) = weigh(slot(Slot::Scores), slot(Slot::Reference));
    made.push_back(&slot(Slot::Weights));
    // For the other part LLVM would negate it in advance, on ways past loops
    // too, and keep the sums twice for the sake of these.
    if (pipeline.parts > 1 && part == 0)
      made.push_back(&slot(Slot::Reference));
    return;
  case Step::Round:
    slot(Slot::Rounded) = sumAndRound(slot(Slot::Weights), block);
    made.append({&slot(Slot::Rounded), &sums.rowSum});
    // Sums of what is rounded, behind products, would hold the registers into
    // which these read V.
    if (beginsBelow && elementType.isF16()) {
      using Crossing = amdgpu::sched_barrier_opt_enum;
      amdgpu::SchedBarrierOp::create(b, Crossing::salu | Crossing::all_vmem |
                                            Crossing::all_ds);
    }
    if (sums.rowTotal)
      made.push_back(&sums.rowTotal);
    return;
  case Step::Accumulate:
    sums.acc = DotOp::create(b, slot(Slot::Values), slot(Slot::Rounded),
                             sums.acc, schedule.getInst(),
                             /*split_rows=*/schedule.getValueSplit() > 1);
    return;
  case Step::AwaitK:
  case Step::AwaitV:
    llvm_unreachable("takePlaces() knows how many copies are behind");
  case Step::Barrier:
    return meet();
  case Step::AwaitCopies:
    return waitForCopies();
  case Step::Urgent:
    made.clear();
    ROCDL::SetPrioOp::create(b, 1);
    return;
  case Step::Usual:
    pin();
    ROCDL::SetPrioOp::create(b, 0);
    return;
  case Step::Pin:
    return pin();
  case Step::Fence:
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
    return;
  case Step::Mix:
    InterleaveOp::create(b, /*has_loads=*/pipeline.isAlone() &&
                                !pipeline.directCopy);
    return;
  }
  llvm_unreachable("all steps are listed");
}

static bool isCopy(Step step) {
  return step == Step::CopyK || step == Step::CopyV;
}

/// One iteration.
/// \param iteration  of those that the loop's body holds, for slots
/// \param first      the block that is 0 ahead in it
/// \param includes   whether to do what is so far ahead; null: all of it.
///   Otherwise what orders work is left out where nothing has touched LDS.
void ForwardTiler::takePlaces(int iteration, KeyBlock first, Mask mask,
                              llvm::function_ref<bool(int ahead)> includes) {
  bool isLoop = !includes;
  for (auto [i, place] : llvm::enumerate(pipeline.places)) {
    if (!isOfBlock(place.step)) {
      if (isLoop || (isLdsTouched && !isOfLoop(place.step)))
        take(place.step, first, mask);
      // Who is behind counts on each of them.
      if (place.step == Step::Barrier && !isApart)
        isLdsTouched = false;
      continue;
    }
    if (!isLoop && !includes(place.ahead))
      continue;
    if (!isLoop && isBegun(place.step, iteration))
      continue;
    // Of what is copied nothing is there before the wait.
    isLdsTouched |=
        pipeline.countsCopies() ? isAwait(place.step) : touchesLds(place.step);
    if (isAwait(place.step)) {
      if (!isLoop && arriving)
        receiveQueries();
      std::optional<int> ahead;
      if (!isLoop)
        ahead = iteration;
      int64_t underWay = 0;
      if (isLoop || iteration < 0)
        for (bool values : {false, true})
          underWay += pipeline.copiesBehind(i, values, ahead) *
                      copiesOfBlock(values);
      if (!isLoop)
        for (const Place &later : pipeline.places.drop_front(i))
          if (isBegun(later.step, iteration) && includes(later.ahead))
            underWay += copiesOfBlock(later.step == Step::CopyV);
      waitForCopies(underWay, /*withLds=*/pipeline.isAlone());
      continue;
    }
    takePlace(place, iteration, first, mask);
  }
}

/// Whether ahead of the loops beginShare() has done this.
bool ForwardTiler::isBegun(Step step, int iteration) const {
  return beginsAtOnce() && iteration < 0 &&
         (isCopy(step) ||
          (step == Step::LoadK && iteration == -pipeline.ahead()));
}

/// A place that is of a block, for those parts that it is about.
void ForwardTiler::takePlace(const Place &place, int iteration, KeyBlock first,
                             Mask mask) {
  current = iteration + place.ahead;
  int from = std::max(place.part, 0);
  int to = place.part >= 0 || isWhole(place.step) ? from + 1 : pipeline.parts;
  for (part = from; part < to; ++part)
    take(place.step, place.ahead ? after(first, place.ahead) : first, mask);
  part = 0;
}

/// Asks for the first keys, for the queries and, where nothing but LDS takes
/// them, for all others that the loops find, so that memory has work while the
/// first are on their way.
void ForwardTiler::beginShare() {
  bool hasQueries = false;
  for (int iteration = -pipeline.ahead(); iteration < 0; ++iteration)
    for (const Place &place : pipeline.places) {
      if (iteration + place.ahead < 0 || !isBegun(place.step, iteration))
        continue;
      takePlace(place, iteration, {i32(iteration), iteration & 1},
                /*mask=*/nullptr);
      isLdsTouched |= !pipeline.countsCopies() && touchesLds(place.step);
      if (std::exchange(hasQueries, true))
        continue;
      loadQueries();
      // The first keys that any wave asks for come before others of all.
      if (pipeline.countsCopies())
        meet();
    }
  if (pipeline.countsCopies())
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  prepareShare();
}

/// Behind the copies that go with them, which do not wait for them.
void ForwardTiler::receiveQueries() {
  amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  Value signedRows = NegateIfOp::create(b, arriving, scaleIsNegative());
  // Where a wave has all registers, vector instructions can name half of them.
  queries = PinOp::create(b, transpose(signedRows),
                          /*accumulators=*/pipeline.isAlone());
  arriving = nullptr;
}

/// What a slot holds of a block before the first.
Value ForwardTiler::nothing(Slot slot) {
  switch (slot) {
  case Slot::VRows:
    return splat(tile(tiles.blockN, tiles.ldsDimV, elementType), 0.0f);
  case Slot::Weights:
    return splat(f32Tile(partRows(), tiles.blockM), 0.0f);
  case Slot::Scores: // whose weights are 0
    return splat(f32Tile(partRows(), tiles.blockM),
                 -std::numeric_limits<float>::infinity());
  case Slot::Reference:
    return splat(f32Tile(1, tiles.blockM), 0.0f);
  case Slot::Rounded:
    return splat(tile(partRows(), tiles.blockM, elementType), 0.0f);
  default:
    llvm_unreachable("no pipeline has that behind");
  }
}

/// What is carried on from `iterations` of a loop's body.
SmallVector<Value> ForwardTiler::packSlots(int iterations) {
  return llvm::map_to_vector(pipeline.carried(), [&](auto key) {
    auto found = slots.find({key.slot, key.part, key.block + iterations});
    return found == slots.end() ? nothing(key.slot) : found->second;
  });
}

void ForwardTiler::unpackSlots(ValueRange values) {
  slots.clear();
  for (auto [key, value] : llvm::zip_equal(pipeline.carried(), values))
    slots[key] = value;
}

/// What the segment that ends here has made for later ones is made in it.
void ForwardTiler::pin() {
  for (Value *value : made)
    *value = PinOp::create(b, *value);
  made.clear();
}

/// Q, to where products have it.
void ForwardTiler::loadQueries() {
  if (!schedule.getColumnChunk()) {
    Value rows = loadTile(q, firstRow, tiles.blockM, tiles.scoreDim);
    if (pipeline.countsCopies() && !schedule.keepsQueriesInLds()) {
      arriving = rows;
    } else if (Value signedRows =
                   NegateIfOp::create(b, rows, scaleIsNegative());
               schedule.keepsQueriesInLds()) {
      // The loop's first barrier comes before the first read.
      ldsQ = ldsTile(tiles.blockM, tiles.scoreDim, elementType);
      StoreLdsOp::create(b, signedRows, ldsQ);
    } else {
      queries = transpose(signedRows);
    }
  }
}

/// While the first rows of K and Q come: what loops and the stores behind them
/// need, which LLVM would do when these have come, or where it is used.
void ForwardTiler::prepareShare() {
  // Of a wave that has its SIMD to itself, whose sums are many, two workgroups
  // may fit a unit all the same, and would not with these.
  if (!pipeline.isAlone())
    for (Value *sum : {&sums.rowMax, &sums.rowSum, &sums.rowTotal, &sums.acc})
      if (*sum)
        *sum = PinOp::create(b, *sum);
  for (const ForwardPipeline::Key &key : pipeline.carried())
    if (key.block < 0)
      slots[key] = PinOp::create(b, nothing(key.slot));
  settleKeys();
  sumsRows = sumsOfShare(share);
  settle(sumsRows, firstRow, sumsType);
  termsRows = termsOfShare(share);
  settle(termsRows, firstRow);
}

/// What is ahead of the first iteration: blocks from 0 on.
void ForwardTiler::prologue() {
  if (beginsAtOnce())
    beginShare();
  // Values of the block before the first are read from LDS.
  if (pipeline.countsCopies() || pipeline.isAlone()) {
    // Turned as what follows is, or LDS would be laid out for both ways.
    Value none = splat(tile(partRows(), tiles.ldsDimV, elementType), 0.0f);
    for (part = 0; part < pipeline.parts; ++part)
      StoreLdsOp::create(b, turnsValues() ? none : transpose(none),
                         bufferOf(ldsV, {i32(-1), 1}));
    part = 0;
  }
  for (int iteration = -pipeline.ahead(); iteration < 0; ++iteration) {
    takePlaces(iteration, {i32(iteration), iteration & 1}, /*mask=*/nullptr,
               [&](int ahead) { return iteration + ahead >= 0; });
  }
  if (isStaggered()) {
    barrierOf(/*late=*/true);
    isApart = true;
  }
}

/// Blocks [from, to), so many an iteration.
void ForwardTiler::keyLoop(Value from, Value to, int64_t perIteration,
                           Mask mask) {
  SmallVector<Value> inits = sums.pack();
  llvm::append_range(inits, packSlots(0));
  auto loop = scf::ForOp::create(b, from, to, i32(perIteration), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  unpackSlots(sums.unpack(loop.getRegionIterArgs()));
  for (int which = 0; which < perIteration; ++which) {
    KeyBlock block = {loop.getInductionVar(), std::nullopt};
    // Where all go in pairs, a last one alone has an even number too.
    if (perIteration == 2 || pipeline.countsCopies())
      block.parity = 0;
    if (which > 0)
      block = after(block, which);
    takePlaces(which, block, mask);
  }
  SmallVector<Value> results = sums.pack();
  llvm::append_range(results, packSlots(perIteration));
  scf::YieldOp::create(b, results);
  unpackSlots(sums.unpack(loop.getResults()));
}

/// What is behind the last iteration.
void ForwardTiler::drain(Value to) {
  isLdsTouched = true;
  KeyBlock first = {to, std::nullopt};
  for (int iteration = 0; iteration < pipeline.behind(); ++iteration)
    takePlaces(iteration, after(first, iteration),
               /*mask=*/nullptr,
               [&](int ahead) { return iteration + ahead < 0; });
  if (isStaggered())
    barrierOf(/*late=*/false);
}

/// Leaves the sums to the kernel that combines them, and what they are relative
/// to.
void ForwardTiler::storeShare() {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  const bool isSettled = bool(sumsRows.base);
  Value first = isSettled ? i32(0) : firstRow;
  if (!isSettled) {
    sumsRows = sumsOfShare(share);
    termsRows = termsOfShare(share);
  }
  Value sum = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowSum);
  Value values = sums.acc;
  if (sumsAreRounded()) {
    // Of no key it is 0 times a finite number.
    Value inverse = arith::DivFOp::create(
        b, splat(row, 1.0f),
        fmax(sum, splat(row, std::numeric_limits<float>::min())),
        arith::FastMathFlags::afn);
    values = round(fmul(
        values, broadcast(inverse, cast<RankedTensorType>(values.getType()))));
  }
  StoreOp::create(b, transpose(values),
                  view(sumsRows, first, headDimV, sumsType), /*column=*/0,
                  /*lines=*/true);
  Value exact = splat(row, std::numeric_limits<float>::infinity());
  // Of a row's layout, which what is the same throughout has none of.
  Value reference = beginsBelow
                        ? fmax(sums.rowMax, exact)
                        : select(isLarge(), exact, referenceOf(sums.rowMax));
  Value terms = view(termsRows, first, kShareTerms, b.getF32Type());
  auto store = [&](ShareTerm term, Value value) {
    StoreOp::create(b, transpose(value), terms, uint32_t(term));
  };
  store(ShareTerm::Max, bounded(sums.rowMax));
  store(ShareTerm::Reference, reference);
  store(ShareTerm::Sum, sum);
  if (sums.rowTotal)
    store(ShareTerm::Total,
          ReduceOp::create(b, row, ReduceKind::Sum, sums.rowTotal));
}

/// Divides by the sums and stores the output and the log-sum-exp.
void ForwardTiler::epilogue() {
  RankedTensorType row = f32Tile(1, tiles.blockM);
  Value sum = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowSum);
  Value zero = splat(row, 0.0f), factorOfSums = splat(row, 1.0f);
  std::optional<Sink> sink;
  if (op.getSinks()) {
    sink = sinkBeside(sum, sums.rowMax, referenceOf(sums.rowMax), isLarge(),
                      zeroReference);
    sum = withSink(sum, *sink);
    factorOfSums = sink->factor;
  }
  if (dropout.isThere())
    factorOfSums = fmul(factorOfSums, splat(row, dropout.scale));
  Value positive =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum, zero);
  Value inverse = arith::SelectOp::create(
      b, positive, arith::DivFOp::create(b, factorOfSums, sum), zero);

  auto full = cast<RankedTensorType>(sums.acc.getType());
  Value result = fmul(sums.acc, broadcast(inverse, full));
  StoreOp::create(b, transpose(narrow(result)),
                  view(out, firstRow));

  Value lse = arg("lse");
  auto store = scf::IfOp::create(b, isGiven(b, lse), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(store.thenBlock());
  Value total = sum;
  if (sums.rowTotal) {
    total = ReduceOp::create(b, row, ReduceKind::Sum, sums.rowTotal);
    if (sink)
      total = withSink(total, *sink);
  }
  // log2(0) = -inf covers rows without a visible key.
  Value log2 = math::Log2Op::create(b, total);
  Value ln2 = splat(row, 0.693147180559945309417f);
  Value usual = fmul(fadd(referenceOf(sums.rowMax), log2), ln2);
  // What log2(e) * max would round, or make infinite.
  Value scale = softmaxScale();
  Value large =
      math::FmaOp::create(b, sums.rowMax, splat(row, scale),
                          fmul(fadd(log2, splat(row, zeroReference)), ln2));
  Value natural = select(isLarge(), large, usual);
  if (sink)
    natural = lseWithSink(natural, log2, *sink);
  StoreOp::create(b, transpose(natural),
                  view(rowValues("lse", headQ), firstRow, 1, b.getF32Type()));
}

void ForwardTiler::build() {
  int32_t buffers = tiles.ldsBuffers * pipeline.parts;
  const int64_t chunk = schedule.getColumnChunk();
  ldsK =
      chunk ? ldsTile(partRows(), chunk, elementType, int32_t(chunksOfScores()))
            : ldsTile(partRows(), tiles.ldsDim, elementType, buffers);
  ldsV = turnsValues()
             ? ldsTile(partRows(), tiles.ldsDimV, elementType, buffers)
             : ldsTile(tiles.ldsDimV, partRows(), elementType, buffers);
  placeWorkgroup(tiles.blockM, /*fromTheEnd=*/isUneven(),
                 op.getCombine() ? ScheduleAttr() : schedule,
                 /*sharesKeys=*/op.getCombine().has_value(),
                 /*packs=*/op.getCombine().has_value());
  dropout.prepare();
  dropout.store();
  enterSequence(firstRow, /*ownsKeys=*/false);
  q = queryRows();
  out = rowsOf("out", headQ);
  sumsColumnsOfV = false;
  visitKeys(tiles.blockM, tiles.blockN, pipeline.ahead(),
            /*group=*/pipeline.unroll, /*all=*/pipeline.countsCopies());
  factor = softmaxFactor();
  zeroReference = f32(float(-raised));
  if (raised != 0) // a constant would take a vector register
    zeroReference = opaque(zeroReference);

  if (!beginsAtOnce())
    loadQueries();

  sums.rowMax = splat(f32Tile(1, tiles.blockM), noMaximum());
  sums.rowSum = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  sums.threshold =
      i32(llvm::bit_cast<int32_t>(float(schedule.getRescaleThreshold())));
  if (beginsBelow) {
    // A scalar, which instructions that come in pairs share.
    factor = ROCDL::ReadfirstlaneOp::create(b, b.getF32Type(), factor);
    Value growth = arith::DivFOp::create(
        b, f32(float(schedule.getRescaleThreshold())), factor);
    growthThatRescales = arith::BitcastOp::create(b, b.getI32Type(), growth);
    growthThatRescales =
        ROCDL::ReadfirstlaneOp::create(b, b.getI32Type(), growthThatRescales);
    sums.threshold = i32(kAnyGrowth);
    sums.start = splat(f32Tile(partRows(), tiles.blockM), 0.0f);
  }
  if (elementType.isF16())
    sums.rowTotal = splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f);
  sums.acc = splat(f32Tile(tiles.valueDim, tiles.blockM), 0.0f);
  prologue();
  Value end;
  walkKeys([&](Value from, Value to, int64_t perIteration, Mask mask) {
    keyLoop(from, to, perIteration, mask);
    end = to;
  });
  drain(end);
  // LDS may belong to another workgroup as soon as this one ends.
  if (schedule.getDirectCopy())
    waitForCopies(/*underWay=*/0, /*withLds=*/pipeline.countsCopies());
  if (share)
    storeShare();
  else
    epilogue();
  finish();
}

namespace {
struct TileForward
    : public fovea::attn::impl::AttnTileForwardBase<TileForward> {
  void runOnOperation() override {
    if (failed(tileFunctions<ForwardOp>(getOperation(), tileFunction)))
      signalPassFailure();
  }

private:
  static LogicalResult tileFunction(func::FuncOp func, ForwardOp op,
                                    const target::TargetInfo &target) {
    if (failed(checkForwardSchedule([&] { return op.emitOpError(); }, target,
                                    op.getElementType(), HeadDims(op),
                                    *op.getSchedule())))
      return failure();
    FailureOr<KernelArguments> arguments = argumentsOf(op);
    if (failed(arguments))
      return failure();
    std::optional<ScheduleAttr> combine = op.getCombine();
    if (combine && failed(checkCombineSchedule([&] { return op.emitOpError(); },
                                               target, op.getElementType(),
                                               op.getHeadDimV(), *combine)))
      return failure();
    gpu::GPUModuleOp module = makeKernelModule(func);
    auto make = [&](const spec::LaunchSpec &launch, ScheduleAttr schedule) {
      StringRef suffix = launch.suffix;
      std::string name =
          (module.getName() + (suffix.empty() ? "" : "_") + suffix).str();
      return makeKernel(module, name, *arguments, schedule);
    };
    const spec::Rows<spec::LaunchSpec> launches = op.getAlgorithm().launches;
    ForwardTiler(op, make(launches[0], *op.getSchedule()), target, *arguments)
        .build();
    if (combine)
      buildCombine(op, make(launches[1], *combine), target, *arguments);
    return success();
  }
};
} // namespace
