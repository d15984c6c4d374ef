//===- KeyGradients.cpp - the kernel of dK and dV -------------------------===//

#include "GradientBuilder.h"
#include "GradientKernels.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

namespace {

/// One block of keys; S = Q K^T, dP = dO V^T, dV^T += dO^T P, dK^T += Q^T dS,
/// over the queries of all heads of the group. With the algorithm that adds dQ
/// up in memory also dQ += dS K: there dS sums over keys, which are spread over
/// lanes and waves, so it goes through LDS to be a left operand.
class KeyGradients : public GradientBuilder<TileBuilder>,
                     PipelineRunner<GradientStep, GradientSlot> {
public:
  KeyGradients(BackwardOp op, gpu::GPUFuncOp kernel,
               const target::TargetInfo &target,
               const KernelArguments &arguments, ScheduleAttr schedule)
      : GradientBuilder(op, kernel, target, arguments, schedule),
        PipelineRunner(b, gradientPipeline(isAtomic() ? GradientKernel::All
                                                      : GradientKernel::Keys,
                                           schedule, tiles.chunks,
                                           loopsOverChunks())) {}
  void build();

private:
  using Value = mlir::Value; // both bases have one
  using Values = llvm::SmallVector<Value, 1>;

  struct Head {
    Value number;
    Rows q, dout, lse, delta;
    Rows sums; ///< of dQ, where they are taken
  };
  void take(GradientStep step, Value number) override;
  SmallVector<Value *> sums() override;
  Value nothing(GradientSlot slot) override;
  Values nothingsOf(GradientSlot slot) override {
    return slot == GradientSlot::Fetched ? nothingFetched()
                                         : Values{nothing(slot)};
  }
  void load(Value number, Value block, bool isAgain);
  /// What was loaded so, without columns that are not there.
  Value cutChunk(const Rows &rows, Value tile) {
    return cut(fromColumn(tiles.chunks > 1 ? anew(rows) : rows,
                          columnOfLoop(chunkOfLoop)),
               tile,
               chunk * tiles.columns);
  }
  ScorePlace placeOf(Value block);
  Score::Fetched fetchScore(Value block);
  Score::Result scoresOf(Value products, Value block,
                         const Score::Fetched &fetched);
  Value maskedScores(Value scores, Value block);
  Value ofEachQuery(Value lds);
  void prepareQuerySums(const Rows &k);
  /// Whether the keys lie in LDS once for both of their products.
  bool sharesKeys() const {
    return schedule.keepsQueriesInLds() && turnsReads(target, elementType);
  }
  /// As they are, or turned where reads turn them back: a lane has neighbouring
  /// queries of a key.
  void storeScoreGradients(Value ds, Value lds) {
    if (turnsReads(target, elementType))
      ds = transpose(ds);
    StoreLdsOp::create(b, ds, lds);
  }
  Value queryGradients(Value ds, const Resident &own);
  Value maskedBlock(Value number);
  Value fullBlock(Value number);
  /// Whether the loop over full blocks takes them in turns: of each buffer one.
  /// What is left over goes with those that are masked, which all kernels with
  /// such a pipeline have a loop for.
  bool goesInTurns() const {
    return pipeline.goesInTurns && !lists.isThere();
  }
  Value buffer(Value lds, Value number);
  /// Whether what keys past the last have of dS counts: in sums of dQ, and in
  /// gradients of captures.
  bool sumsOverKeys() const { return query || score.hasGradients(); }
  bool isCounted() const { return queries.hasTail && pipeline.buffers > 1; }
  Bounds seenByKeys();
  Rows sumsOf(Value head);
  Value loadOwn(Rows rows, Value first, int64_t columns, int64_t column);
  void findListed();
  void visitQueries();

  SmallVector<Value> accV, accK; ///< dV^T, dK^T
  Value power;                   ///< of two, that is in the latter; null: none
  /// Of gradients of captures, over the queries of a head; none between heads.
  SmallVector<Value> captureSums;
  Value firstKey;
  Value firstSeen;  ///< key that any query sees; null: the first of all
  Segments queries; ///< that see these keys
  BlockList list;   ///< of a kernel that reads lists: likewise, of the head
  Value isTail;     ///< i1: some keys are past the last; where it matters
  Value spareBlock; ///< behind all of the head, for sums in pairs
  Value tailBlocks, maskedBlocks; ///< the latter with the head
  Residents keys, values;
  BlockViews views;
  struct {
    Value lse, delta;
  } valueViews; ///< of the block that was last loaded
  Visited ldsQ{tiles}, ldsDout{tilesV};
  Value ldsLse, ldsDelta;
  // Of the sums of dQ; nothing where they are not taken.
  std::optional<QueryProduct> query;
  Residents queryKeys; ///< [block_m, columns]
  Value ldsDs;
  Value scale; ///< of sums in pairs
  // Of the loop that is being emitted.
  Head head;
  bool isMasked = false;
  Score::Result scored; ///< of the block whose scores were last made
};

SmallVector<Value *> KeyGradients::sums() {
  SmallVector<Value *> sums;
  for (SmallVector<Value> *ofChunks : {&accV, &accK})
    for (Value &ofChunk : *ofChunks)
      sums.push_back(&ofChunk);
  if (power)
    sums.push_back(&power);
  for (Value &sum : captureSums)
    sums.push_back(&sum);
  return sums;
}

Value KeyGradients::nothing(GradientSlot slot) {
  if (slot == GradientSlot::Number) // past the last, where nothing is added
    return spareBlock ? spareBlock
                      : i32(std::numeric_limits<int32_t>::max() / tiles.blockN);
  return noBlock(slot);
}

/// The keys once more, as the right operand of a sum over keys.
void KeyGradients::prepareQuerySums(const Rows &k) {
  ldsDs = turnsReads(target, elementType)
              ? ldsTile(tiles.blockM, tiles.blockN, elementType, pipeline.buffers)
              : ldsTile(tiles.blockN, tiles.blockM, elementType, pipeline.buffers);
  for (int64_t number = 0; number != tiles.chunks; ++number) {
    const int64_t column = columnsOf(number).first;
    if (readsAnew()) {
      queryKeys.push_back({nullptr, nullptr,
                           [=](Value) {
                             return loadOwn(anew(k), opaque(firstKey),
                                            query->columns, column);
                           },
                           query->columns});
      continue;
    }
    if (schedule.keepsQueriesInRegisters()) {
      queryKeys.push_back(
          {loadOwn(k, firstKey, query->columns, column), nullptr, nullptr,
           query->columns});
      continue;
    }
    if (sharesKeys()) {
      queryKeys.push_back(
          {nullptr, keys[number].lds, nullptr, query->columns});
      continue;
    }
    Value lds = ldsTile(tiles.ldsDim, tiles.blockM, elementType);
    StoreLdsOp::create(b, transpose(loadOwn(k, firstKey, tiles.ldsDim, column)),
                       lds);
    queryKeys.push_back({nullptr, lds, nullptr, query->columns});
  }
}

/// dS [block_n, block_m] times the keys: [block_n, columns].
Value KeyGradients::queryGradients(Value ds, const Resident &own) {
  Value right = own.tile;
  if (own.load)
    right = own.load(/*further=*/nullptr);
  else if (sharesKeys())
    right = factorTile(own.lds, tiles.blockM, query->columns);
  else if (own.lds)
    right = transpose(factorTile(own.lds, query->columns, tiles.blockM));
  Value zero = splat(f32Tile(tiles.blockN, query->columns), 0.0f);
  auto inst = InstAttr::get(b.getContext(), query->inst->name);
  return DotOp::create(b, ds, right, zero, inst, /*split_rows=*/false,
                       b.getI32IntegerAttr(query->columnWaves));
}

void KeyGradients::load(Value number, Value block, bool isAgain) {
  using Slot = GradientSlot;
  // Blocks that go in turns are neighbours, and those behind the first are rows
  // of its views.
  const int64_t behind = turnOfIteration.value_or(0);
  Value first;
  auto firstRow = [&] {
    // LLVM would carry the address of each tensor through both loops.
    if (!first)
      first = mul(opaque(block), i32(tiles.blockN));
    return first;
  };
  auto view = [&](bool ofDout) {
    const Rows &rows = ofDout ? head.dout : head.q;
    return TileBuilder::view(fromColumn(loopsOverChunks() ? anew(rows) : rows,
                                        columnOfLoop(chunkOfLoop)),
                             firstRow());
  };
  if (loopsOverChunks())
    views = {}; // of some in the loop, or behind it
  slot(Slot::ScoredRows) =
      views.load(b, number, false, tiles, chunk, behind, view);
  slot(Slot::OtherRows) =
      views.load(b, number, true, tilesV, chunk, behind, view);
  if (isAgain || chunk != 0)
    return;
  if (behind == 0)
    valueViews = {viewValues(head.lse, firstRow()),
                  viewValues(head.delta, firstRow())};
  auto values = [&](Value view) {
    return loadValues(view, behind * tiles.blockN, tiles.blockN);
  };
  slot(Slot::LogSumRows) = values(valueViews.lse);
  slot(Slot::DeltaRows) = values(valueViews.delta);
}

ScorePlace KeyGradients::placeOf(Value block) {
  Value row = add(queries.origin, mul(block, i32(tiles.blockN)));
  return {batch,
          head.number,
          row,
          firstKey,
          /*hasKeyRows=*/false,
          /*isSeen=*/lists.isThere() && !isMasked,
          /*isUnaligned=*/queries.hasHead && isMasked};
}

/// For a later iteration, which may be the next loop's: as much in each.
Score::Fetched KeyGradients::fetchScore(Value block) {
  if (!score.isProgram())
    return Score::Fetched();
  ScorePlace place = placeOf(block);
  place.isSeen = true;
  place.isUnaligned = queries.hasHead;
  return score.fetch(f32Tile(tiles.blockN, tiles.blockM), place,
                     /*elementwise=*/true);
}

/// Of products of Q and K, [block_n, block_m].
Score::Result KeyGradients::scoresOf(Value products, Value block,
                                     const Score::Fetched &fetched) {
  if (!score.isProgram())
    return {products};
  Value scale = math::AbsFOp::create(b, arg("scale"));
  return score.apply(products, scale, placeOf(block), fetched);
}

Value KeyGradients::maskedScores(Value scores, Value block) {
  if (!isMasked)
    return scores;
  // Comparisons ahead of the scores would hold a pair of SGPRs each.
  if (target.waveSize == 64)
    amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
  // Here, so that bounds take no registers while they are not needed.
  return visibility.apply(scores, seenByKeys(), mul(block, i32(tiles.blockN)));
}

/// [block_n, block_m]: a value of each query that is visited.
Value KeyGradients::ofEachQuery(Value lds) {
  Value row = LoadLdsOp::create(b, f32Tile(1, tiles.blockN), lds);
  return transpose(broadcast(row, f32Tile(tiles.blockM, tiles.blockN)));
}

void KeyGradients::take(GradientStep step, Value number) {
  using Step = GradientStep;
  using Slot = GradientSlot;
  auto block = [&] {
    return isMasked ? maskedBlock(number) : fullBlock(number);
  };
  auto in = [&](Value lds) { return buffer(lds, number); };
  switch (step) {
  case Step::Load:
    return load(number, block(), /*isAgain=*/false);
  case Step::LoadAgain:
    return load(number, block(), /*isAgain=*/true);
  case Step::StoreTurned:
    storeTurned(cutChunk(head.q, slot(Slot::ScoredRows)), ldsQ, in);
    storeTurned(cutChunk(head.dout, slot(Slot::OtherRows)), ldsDout, in);
    return;
  case Step::Store: {
    Value logSums = chunk ? Value()
                          : negatedWhereSeen(slot(Slot::LogSumRows),
                                             slot(Slot::DeltaRows));
    storeVisited(cutChunk(head.q, slot(Slot::ScoredRows)), ldsQ, in);
    storeVisited(cutChunk(head.dout, slot(Slot::OtherRows)), ldsDout, in);
    if (!logSums)
      return;
    StoreLdsOp::create(b, logSums, in(ldsLse));
    StoreLdsOp::create(b, slot(Slot::DeltaRows), in(ldsDelta));
    return;
  }
  case Step::ReadScored:
    separateChunks();
    slot(Slot::Scored) =
        readRows(in(ldsQ.rows), keys[chunk], columnOfLoop(chunkOfLoop));
    return;
  case Step::Scores:
    if (isFirstChunk())
      slot(Slot::Number) = block();
    slot(Slot::Scores) = product(slot(Slot::Scored), keys[chunk],
                                 isFirstChunk() ? Value() : slot(Slot::Scores));
    return;
  case Step::Fetch:
    valuesOf(Slot::Fetched) = toCarry(fetchScore(block()));
    return;
  case Step::Mask: {
    separateChunks();
    if (loopsOverChunks())
      slot(Slot::Number) = block();
    scored = scoresOf(slot(Slot::Scores), slot(Slot::Number),
                      fetchedIn(valuesOf(Slot::Fetched)));
    slot(Slot::Scores) = maskedScores(scored.score, slot(Slot::Number));
    slot(Slot::Slopes) =
        slopesOfSeen(scored, isMasked ? slot(Slot::Scores) : Value());
    return;
  }
  case Step::ReadLogSums:
    slot(Slot::LogSums) = ofEachQuery(in(ldsLse));
    return;
  case Step::Weigh:
    slot(Slot::Weights) =
        probabilities(slot(Slot::Scores), slot(Slot::LogSums));
    if (dropout.isThere()) {
      Value row =
          add(queries.origin, mul(slot(Slot::Number), i32(tiles.blockN)));
      slot(Slot::Weights) = dropout.apply(
          slot(Slot::Weights),
          {batch, head.number, row, firstKey, /*queriesAreRows=*/true},
          /*negates=*/true);
    }
    return;
  case Step::Round:
    slot(Slot::Rounded) = roundProbabilities(slot(Slot::Weights));
    return;
  case Step::ReadTurnedOther:
    separateChunks();
    slot(Slot::TurnedOther) = readTurned(ldsDout, in);
    return;
  case Step::AccumulateValues:
    accV[chunk] =
        accumulate(slot(Slot::TurnedOther), slot(Slot::Rounded), accV[chunk]);
    return;
  case Step::ReadOther:
    separateLdsReads();
    slot(Slot::Other) =
        readRows(in(ldsDout.rows), values[chunk], columnOfLoop(chunkOfLoop));
    return;
  case Step::WeightGradients:
    slot(Slot::WeightGradients) =
        product(slot(Slot::Other), values[chunk],
                isFirstChunk() ? Value() : slot(Slot::WeightGradients));
    return;
  case Step::ReadDeltas:
    slot(Slot::Deltas) = ofEachQuery(in(ldsDelta));
    return;
  case Step::ScoreGradients: {
    Value p = slot(Slot::Weights);
    Value ds =
        scoreGradients(p, slot(Slot::WeightGradients), slot(Slot::Deltas));
    if (score.hasGradients())
      score.addGradients(scored, ds,
                         isMasked || scored.seen ? isZero(p) : Value(),
                         captureSums);
    ds = timesSlopes(ds, slot(Slot::Slopes));
    slot(Slot::ScoreGradients) = roundScoreGradients(ds, power, accK);
    return;
  }
  case Step::ReadTurned:
    separateChunks();
    slot(Slot::Turned) = readTurned(ldsQ, in);
    return;
  case Step::Accumulate:
    accK[chunk] =
        accumulate(slot(Slot::Turned), slot(Slot::ScoreGradients), accK[chunk]);
    return;
  case Step::StoreScoreGradients:
    storeScoreGradients(slot(Slot::ScoreGradients), in(ldsDs));
    return;
  case Step::ReadScoreGradients:
    slot(Slot::ScoreGradientRows) = turnsReads(target, elementType)
        ? transpose(factorTile(in(ldsDs), tiles.blockM, tiles.blockN))
        : factorTile(in(ldsDs), tiles.blockN, tiles.blockM);
    return;
  case Step::QueryGradients:
    slot(Slot::QueryGradients) =
        queryGradients(slot(Slot::ScoreGradientRows), queryKeys[chunk]);
    return;
  case Step::AddQueryGradients: {
    const Columns columns = columnsOf(chunk);
    if (columns.count == 0)
      return;
    Value parts = slot(Slot::QueryGradients);
    // Its range is that of dQ only when it is scaled.
    if (!sumsPairs() && sharesKeys()) // whose sign the keys have
      parts = NegateIfOp::create(b, parts, scaleIsNegative());
    if (sumsPairs())
      parts = round(
          fmul(parts, splat(cast<RankedTensorType>(parts.getType()), scale)));
    AtomicAddOp::create(
        b, parts,
        sumsView(head.sums, mul(opaque(slot(Slot::Number)), i32(tiles.blockN)),
                 columns));
    return;
  }
  }
  llvm_unreachable("all steps are listed");
}

/// The block that is masked as the one of a number: those of the tail come
/// first, then those of the head, then, as one that is fetched ahead, the first
/// full one.
Value KeyGradients::maskedBlock(Value number) {
  if (lists.isThere())
    return lists.blockOf(list, number);
  if (!queries.hasTail)
    return number;
  Value isTail =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, tailBlocks);
  return select(isTail, add(number, queries.full), sub(number, tailBlocks));
}

/// The block that is not masked as the one of a number. Where buffers take
/// turns numbers follow those of maskedBlock(); elsewhere they are the blocks',
/// which takes no register for the difference.
Value KeyGradients::fullBlock(Value number) {
  if (lists.isThere())
    return lists.blockOf(list, number);
  return isCounted() ? sub(number, tailBlocks) : number;
}

/// The buffer of the block of a number. Where the last loop takes blocks in
/// turns they are counted from its end, so that it knows which is first.
Value KeyGradients::buffer(Value lds, Value number) {
  if (turn)
    return LdsBufferOp::create(b, lds, i32(*turn & (pipeline.buffers - 1)));
  return bufferOf(lds, goesInTurns() ? add(number, queries.end) : number,
                  pipeline.buffers);
}

/// The sums of dQ of a query head from the segment's origin on.
Rows KeyGradients::sumsOf(Value head) {
  Rows rows = sumsRows(head);
  if (!sumsPairs())
    return within(rows, queries);
  Segments pairs = queries;
  pairs.origin = div(queries.origin, i32(2));
  pairs.count = sub(rows.count, pairs.origin);
  return within(rows, pairs);
}

/// The rows of this workgroup's keys, zeros where no query sees them.
Value KeyGradients::loadOwn(Rows rows, Value first, int64_t columns,
                            int64_t column) {
  rows.from = firstSeen;
  return loadTile(rows, first, tiles.blockM, columns, column);
}

/// The queries that see each key: none one past the last, where that matters.
Bounds KeyGradients::seenByKeys() {
  // Or LLVM would make them ahead of the loops.
  const Value first = opaque(firstKey);
  Bounds seen = visibility.rowsOfEachKey(queries, first, tiles.blockM);
  if (score.isProgram()) {
    RankedTensorType row = tile(1, tiles.blockM, b.getI32Type());
    Value count = splat(row, queries.count);
    seen.end = seen.end ? min(seen.end, count) : count;
  }
  if (!sumsOverKeys())
    return seen;
  RankedTensorType row = tile(1, tiles.blockM, b.getI32Type());
  Value count =
      splat(row, sub(seqlenK(), score.hasGradients() ? first : firstKey));
  Value isKey = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                      ColumnIndexOp::create(b, row), count);
  Value none = splat(row, 0);
  // By the end, or by a beginning behind the last query: whichever there is.
  if (seen.end || !seen.begin)
    seen.end =
        select(isKey, seen.end ? seen.end : splat(row, queries.count), none);
  else
    seen.begin = select(isKey, seen.begin, splat(row, queries.count));
  return seen;
}

void KeyGradients::build() {
  allocVisited({&ldsQ, &ldsDout}, {&ldsQ, &ldsDout}, pipeline.buffers);
  ldsLse = ldsTile(1, tiles.blockN, b.getF32Type(), pipeline.buffers);
  ldsDelta = ldsTile(1, tiles.blockN, b.getF32Type(), pipeline.buffers);

  batch = blockId(gpu::Dimension::z);
  Value group = arg("group_size"), headsQ = arg("heads_q");
  Value headsK = div(headsQ, group);
  const GridPlace place =
      placeInGrid(headsK, arg("seqlen_k"), tiles.blockM, schedule);
  Value headK = place.head, block = place.block;
  Value zero = i32(0);
  orderBatches(block, blocksOf(arg("seqlen_k"), tiles.blockM), headsK,
               schedule);
  if (sequences.differ())
    std::tie(batch, block) = blockOf(place, {batch, block}, tiles.blockM,
                                     /*ofKeys=*/true, /*fromTheEnd=*/false);
  firstKey = mul(block, i32(tiles.blockM));
  dropout.prepare();
  enterSequence(firstKey, /*ownsKeys=*/true);
  Value seqlenK = this->seqlenK();
  factor = softmaxFactor();
  Rows k = rowsOf("k", headK), v = rowsOf("v", headK);
  // Keys that no query sees are zeros, so that nothing that they hold can meet
  // a weight of 0: those past the last one that is seen are out of bounds.
  Bounds seen = visibility.seenKeys();
  k.count = v.count = seen.end;
  firstSeen = seen.begin;
  if (isAtomic())
    query = queryProduct(target, elementType, HeadDims(op), schedule);
  keys = makeResidents(
      k, firstKey, schedule.keepsQueriesInLds(),
      [=](const Rows &rows, Value first, int64_t columns,
          int64_t column) -> Value {
        return NegateIfOp::create(
            b,
            loadOwn(rows, first,
                    query && sharesKeys() ? tiles.ldsDim : columns, column),
            scaleIsNegative());
      });
  values = makeResidents(
      v, firstKey, schedule.keepsOtherInLds(),
      [=](const Rows &rows, Value first, int64_t columns, int64_t column) {
        return loadOwn(rows, first, columns, column);
      });

  if (isAtomic())
    prepareQuerySums(k);

  Value last = sub(min(add(firstKey, i32(tiles.blockM)), seqlenK), i32(1));
  // Of sums in pairs a block is one of the workspace's.
  if (lists.isThere()) // of each head its own; places are counted from query 0
    queries = {zero,
               seqlenQ(),
               zero,
               zero,
               zero,
               /*hasHead=*/false,
               /*hasTail=*/true};
  else
    queries = visibility.rowsOfKeys(firstKey, last, tiles.blockN,
                                    sumsPairs() ? tiles.blockN : 1);
  // Loops look at no row alone: queries hold numbers, seen by a key or not.
  queries.hidden = nullptr;
  if (sumsPairs()) {
    spareBlock = sub(blocksOf(seqlenQ(), tiles.blockN),
                     div(queries.origin, i32(tiles.blockN)));
    scale = arg("scale");
    if (sharesKeys()) // whose sign the keys have
      scale = math::AbsFOp::create(b, scale);
  }
  if (sumsOverKeys()) {
    // A block of keys with some past the last is masked throughout: their
    // columns of dS are summed over, whatever exp2 made of them.
    isTail = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                   add(firstKey, i32(tiles.blockM)), seqlenK);
    queries.head = select(isTail, queries.end, queries.head);
    queries.full = select(isTail, queries.end, queries.full);
    queries.hasHead = true;
  }

  // Queries past the last one are zeros, which add nothing: where no key is
  // seen too early, the block that ends with them is as good as full. Unless a
  // program makes something of zeros.
  queries.hasTail |= score.isProgram();
  if (!queries.hasTail)
    queries.full = queries.end;
  tailBlocks = sub(queries.end, queries.full);
  maskedBlocks = add(tailBlocks, queries.head);
  if (query && pipeline.behind() > 0) // nothing lies there yet
    storeScoreGradients(
        splat(tile(tiles.blockN, tiles.blockM, elementType), 0.0f),
        buffer(ldsDs, i32(-1)));

  accV = noSumsOfChunks(tilesV);
  accK = noSumsOfChunks(tiles);
  power = initialDsPower();
  auto heads = scf::ForOp::create(b, zero, group, i32(1), sumValues());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(heads.getBody());
    setSums(heads.getRegionIterArgs());
    head.number = add(mul(headK, group), heads.getInductionVar());
    head.q = within(rowsOf("q", head.number), queries);
    head.dout = within(rowsOf("dout", head.number), queries);
    head.lse = within(rowValues("lse", head.number), queries);
    head.delta = within(deltaRows(head.number), queries);
    if (query)
      head.sums = sumsOf(head.number);
    captureSums.assign(score.countSums(),
                       splat(f32Tile(tiles.rowGroups, tiles.blockM), 0.0f));
    if (lists.isThere())
      findListed();
    visitQueries();
    score.addSums(captureSums, {batch, head.number, /*row=*/nullptr, firstKey,
                                /*hasKeyRows=*/false});
    captureSums.clear();
    scf::YieldOp::create(b, sumValues());
  }
  setSums(heads.getResults());
  // What is compared with the length here is not to live through the loops.
  Value count = opaque(seqlenK);
  storeGradient(accV, loweredProbabilities(), rowsOf("dv", headK, count),
                firstKey);
  storeGradient(accK, loweredScoreGradients(arg("scale"), power),
                rowsOf("dk", headK, count), firstKey);
  finish();
}

/// The blocks of queries of a head that are listed to see these keys.
void KeyGradients::findListed() {
  list = lists.queriesOf(batch, head.number, firstKey, tiles.blockN);
  queries.full = maskedBlocks =
      isTail ? select(isTail, list.end, list.first) : list.first;
  queries.end = list.end;
}

/// All blocks of queries of a head. Tail and head are one loop: a third would
/// take more registers than gfx908 has. It comes first, since the head leads to
/// the full blocks.
void KeyGradients::visitQueries() {
  isMasked = queries.hasHead || queries.hasTail;
  Value maskedEnd = maskedBlocks;
  if (goesInTurns()) // the rest is whole turns
    maskedEnd = add(maskedEnd,
                    arith::AndIOp::create(b, sub(queries.end, maskedEnd),
                                          i32(pipeline.buffers - 1)));
  if (pipeline.buffers > 1) // others may still read what the prologue fills
    barrier();
  prologue();
  if (isMasked)
    loop(i32(0), maskedEnd);
  isMasked = false;
  Value from = isCounted() ? maskedBlocks : queries.head;
  Value end = isCounted() ? add(queries.full, tailBlocks) : queries.full;
  if (lists.isThere()) { // whose numbers go on
    from = maskedBlocks;
    end = queries.end;
  }
  if (goesInTurns())
    loop(maskedEnd, end, pipeline.buffers);
  else
    loop(from, end);
  drain(end);
}

} // namespace

void fovea::attn::buildKeyGradients(BackwardOp op, gpu::GPUFuncOp kernel,
                                    const target::TargetInfo &target,
                                    const KernelArguments &arguments,
                                    ScheduleAttr schedule) {
  KeyGradients(op, kernel, target, arguments, schedule).build();
}
