//===- GradientBuilder.cpp - what gradient kernels share ------------------===//

#include "GradientBuilder.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;

Value BlockViews::load(ImplicitLocOpBuilder &b, Value number, bool ofOther,
                       const ForwardTiles &tiles, int64_t chunk, int64_t behind,
                       llvm::function_ref<Value(bool ofOther)> makeView) {
  Known &known = ofBoth[ofOther];
  if (behind == 0 && known.number != number)
    known = {number, makeView(ofOther)};
  auto view = cast<TypedValue<ViewType>>(known.view);
  auto type = RankedTensorType::get({tiles.blockN, tiles.ldsDim},
                                    view.getType().getElementType());
  return LoadOp::create(b, type, view, chunk * tiles.columns,
                        behind * tiles.blockN);
}

template <typename Base>
Value GradientBuilder<Base>::factorTile(Value lds, int64_t rows,
                                        int64_t columns) {
  return LoadLdsOp::create(b, this->tile(rows, columns, this->elementType),
                           lds);
}

template <typename Base>
Columns GradientBuilder<Base>::columnsOf(int64_t chunk, int64_t width) const {
  if (tiles.chunks == 1)
    return {0, width};
  const int64_t first = chunk * tiles.columns;
  return {first, std::clamp<int64_t>(width - first, 0, tiles.columns)};
}

/// Of rows whose columns are those of q and k, or of v and out.
template <typename Base>
const ForwardTiles &GradientBuilder<Base>::tilesOf(const Rows &rows) const {
  return rows.width == this->headDim ? tiles : tilesV;
}

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

template <typename Base>
auto GradientBuilder<Base>::makeResidents(
    const Rows &rows, Value first, bool isInLds,
    std::function<Value(const Rows &rows, Value first, int64_t columns,
                        int64_t column)>
        load) -> Residents {
  Residents residents;
  const int64_t columns = tilesOf(rows).scoreDim;
  for (int64_t chunk = 0; chunk != tiles.chunks; ++chunk) {
    const int64_t column = columnsOf(chunk).first;
    if (readsAnew()) {
      residents.push_back({nullptr, nullptr,
                           [=](Value further) {
                             return load(
                                 this->fromColumn(this->anew(rows), further),
                                 this->opaque(first), columns, column);
                           },
                           columns});
      continue;
    }
    Value tile = load(rows, first, columns, column);
    if (!isInLds) {
      residents.push_back({this->transpose(tile), nullptr, nullptr, columns});
      continue;
    }
    const int64_t stored = cast<RankedTensorType>(tile.getType()).getDimSize(1);
    Value lds = this->ldsTile(tiles.blockM, stored, this->elementType);
    StoreLdsOp::create(b, tile, lds);
    residents.push_back({nullptr, lds, nullptr, columns});
  }
  return residents;
}

template <typename Base>
Value GradientBuilder<Base>::get(const Resident &resident) {
  if (resident.load)
    return fetched;
  if (!resident.lds)
    return resident.tile;
  return this->transpose(
      factorTile(resident.lds, tiles.blockM, resident.columns));
}

//===----------------------------------------------------------------------===//
// What is visited
//===----------------------------------------------------------------------===//

template <typename Base>
void GradientBuilder<Base>::allocVisited(ArrayRef<Visited *> all,
                                         ArrayRef<Visited *> turned,
                                         int buffers) {
  for (Visited *tile : all)
    tile->rows = this->ldsTile(tiles.blockN, tile->tiles.ldsDim,
                               this->elementType, buffers);
  if (turnsReads(this->target, this->elementType))
    return;
  for (Visited *tile : turned)
    tile->turned = this->ldsTile(tile->tiles.ldsDim, tiles.blockN,
                                 this->elementType, buffers);
}

template <typename Base>
void GradientBuilder<Base>::storeVisited(Value rows, const Visited &tile,
                                         In in) {
  // Chunks come once more, to be turned.
  if (tile.turned && tiles.chunks == 1)
    StoreLdsOp::create(b, this->transpose(rows), in(tile.turned));
  StoreLdsOp::create(b, rows, in(tile.rows));
}

template <typename Base>
void GradientBuilder<Base>::storeTurned(Value rows, const Visited &tile,
                                        In in) {
  if (tile.turned)
    StoreLdsOp::create(b, this->transpose(rows), in(tile.turned));
  else
    StoreLdsOp::create(b, rows, in(tile.rows));
}

template <typename Base>
Value GradientBuilder<Base>::readRows(Value lds, const Resident &right,
                                      Value further) {
  if (right.load) {
    fetched = this->transpose(right.load(further));
    separateLdsReads();
  }
  return factorTile(lds, tiles.blockN, right.columns);
}

template <typename Base>
Value GradientBuilder<Base>::readTurned(const Visited &tile, In in) {
  if (tile.turned)
    return factorTile(in(tile.turned), tile.tiles.valueDim, tiles.blockN);
  return this->transpose(
      factorTile(in(tile.rows), tiles.blockN, tile.tiles.valueDim));
}

template <typename Base>
Value GradientBuilder<Base>::bufferOf(Value lds, Value number, int buffers) {
  if (buffers == 1)
    return lds;
  return LdsBufferOp::create(
      b, lds, arith::AndIOp::create(b, number, this->i32(buffers - 1)));
}

template <typename Base>
Value GradientBuilder<Base>::noBlock(GradientSlot slot) {
  switch (slot) {
  case GradientSlot::Turned:
    return this->splat(
        this->tile(tiles.valueDim, tiles.blockN, this->elementType), 0.0f);
  case GradientSlot::Scores:
  case GradientSlot::WeightGradients: // before the first chunk
    return this->splat(this->f32Tile(tiles.blockN, tiles.blockM), 0.0f);
  case GradientSlot::ScoreGradients:
    return this->splat(
        this->tile(tiles.blockN, tiles.blockM, this->elementType), 0.0f);
  default:
    llvm_unreachable("no pipeline leaves that behind");
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

template <typename Base>
Value GradientBuilder<Base>::product(Value rows, const Resident &right,
                                     Value acc) {
  RankedTensorType type = this->f32Tile(tiles.blockN, tiles.blockM);
  return DotOp::create(b, rows, get(right), acc ? acc : this->splat(type, 0.0f),
                       schedule.getInst(), /*split_rows=*/false);
}

template <typename Base>
Value GradientBuilder<Base>::accumulate(Value left, Value right, Value acc) {
  Value sum = DotOp::create(b, left, right, acc, schedule.getInst(),
                            /*split_rows=*/schedule.getValueSplit() > 1);
  // LLVM would add up one chunk after the other behind the reads of all.
  return loopsOverChunks() ? PinOp::create(b, sum).getResult() : sum;
}

template <typename Base>
void GradientBuilder<Base>::separateLdsReads() {
  if (schedule.keepsQueriesInRegisters() || schedule.getStages() >= 4)
    return; // or segments say where they stay
  amdgpu::SchedBarrierOp::create(b, amdgpu::sched_barrier_opt_enum::none);
}

template <typename Base>
void GradientBuilder<Base>::separateChunks() {
  if (tiles.chunks > 1)
    separateLdsReads();
}

//===----------------------------------------------------------------------===//
// Weights and their gradients
//===----------------------------------------------------------------------===//

static constexpr float kMinusLog2E = -1.44269504088896340736f;

template <typename Base>
Value GradientBuilder<Base>::negated(Value lse) {
  auto type = cast<RankedTensorType>(lse.getType());
  float infinity = std::numeric_limits<float>::infinity();
  Value negated = this->fmul(lse, this->splat(type, kMinusLog2E));
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, negated,
                                     this->splat(type, infinity));
  return this->select(none, this->splat(type, -infinity), negated);
}

template <typename Base>
Value GradientBuilder<Base>::negatedWhereSeen(Value lse, Value delta) {
  auto type = cast<RankedTensorType>(lse.getType());
  return this->select(
      isPositiveZero(delta),
      this->splat(type, -std::numeric_limits<float>::infinity()),
      this->fmul(lse, this->splat(type, kMinusLog2E)));
}

template <typename Base>
Value GradientBuilder<Base>::isPositiveZero(Value values) {
  auto type = cast<RankedTensorType>(values.getType());
  auto bits = type.clone(b.getI32Type());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               arith::BitcastOp::create(b, bits, values),
                               this->splat(bits, 0));
}

template <typename Base>
Value GradientBuilder<Base>::probabilities(Value scores, Value negatedLse) {
  auto type = cast<RankedTensorType>(scores.getType());
  return SaturateOp::create(
      b, this->exp2(math::FmaOp::create(b, scores, this->splat(type, factor),
                                        negatedLse)));
}

/// A tile where weights are kept, and zeros. By their signs: comparisons
/// would hold a pair of scalar registers each.
template <typename Base>
Value GradientBuilder<Base>::whereKept(Value p, Value values) {
  auto type = cast<RankedTensorType>(p.getType());
  auto bits = type.clone(b.getI32Type());
  auto bitsOf = [&](Value values) {
    return arith::BitcastOp::create(b, bits, values);
  };
  Value dropped = arith::ShRSIOp::create(b, bitsOf(p), this->splat(bits, 31));
  Value kept = arith::XOrIOp::create(b, dropped, this->splat(bits, -1));
  return arith::BitcastOp::create(
      b, type, arith::AndIOp::create(b, bitsOf(values), kept));
}

/// Those that count for dV.
template <typename Base>
Value GradientBuilder<Base>::keptProbabilities(Value p) {
  if (!this->dropout.isThere())
    return p;
  // As whereKept(p, p), of which LLVM would hold the comparisons from here to the
  // gradients of the scores, which have the same ones.
  auto type = cast<RankedTensorType>(p.getType());
  auto bits = type.clone(b.getI32Type());
  Value positive = arith::MaxSIOp::create(
      b, arith::BitcastOp::create(b, bits, p), this->splat(bits, 0));
  return arith::BitcastOp::create(b, type, positive);
}

template <typename Base>
Value GradientBuilder<Base>::scoreGradients(Value p, Value dp, Value delta) {
  if (!this->dropout.isThere())
    return this->fmul(p, this->fsub(dp, delta));
  auto type = cast<RankedTensorType>(p.getType());
  Value difference = math::FmaOp::create(b, whereKept(p, dp),
                                         this->splat(type, this->dropout.scale),
                                         arith::NegFOp::create(b, delta));
  return this->fmul(math::AbsFOp::create(b, p), difference);
}

template <typename Base>
Value GradientBuilder<Base>::slopesOfSeen(const Score::Result &result,
                                          Value masked) {
  if (!result.slope || (!masked && !result.seen))
    return result.slope;
  auto type = cast<RankedTensorType>(result.slope.getType());
  Value zeros = this->splat(type, 0.0f);
  if (!masked)
    return this->select(result.seen, result.slope, zeros);
  // What the predicate hides is -infinity too.
  Value none = this->splat(type, -std::numeric_limits<float>::infinity());
  Value hidden =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, masked, none);
  return this->select(hidden, zeros, result.slope);
}

template <typename Base>
Value GradientBuilder<Base>::isZero(Value p) {
  auto type = cast<RankedTensorType>(p.getType());
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, p,
                               this->splat(type, 0.0f));
}

//===----------------------------------------------------------------------===//
// What score programs read
//===----------------------------------------------------------------------===//

template <typename Base>
auto GradientBuilder<Base>::toCarry(const Score::Fetched &tiles) -> Values {
  if (!tiles.empty())
    tilesOfScore = tiles;
  return llvm::to_vector<1>(llvm::make_second_range(tiles));
}

template <typename Base>
Score::Fetched GradientBuilder<Base>::fetchedIn(ArrayRef<Value> tiles) const {
  Score::Fetched result;
  if (!tiles.empty())
    for (auto [known, tile] : llvm::zip_equal(tilesOfScore, tiles))
      result[known.first] = tile;
  return result;
}

template <typename Base>
auto GradientBuilder<Base>::nothingFetched() -> Values {
  return llvm::map_to_vector<1>(tilesOfScore, [&](const auto &known) -> Value {
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(b.getZeroAttr(known.second.getType())));
  });
}

//===----------------------------------------------------------------------===//
// Subnormal operands
//===----------------------------------------------------------------------===//

static float powerOfTwo(int exponent) { return std::ldexp(1.0f, exponent); }

template <typename Base>
Value GradientBuilder<Base>::roundProbabilities(Value p) {
  p = keptProbabilities(p);
  if (this->raisesProbabilities()) {
    Value power = this->splat(this->f32Tile(1, tiles.blockM),
                              powerOfTwo(Base::kLargestExponent));
    if (isAtomic()) // has no scalar register left for the loop
      power = ToVectorsOp::create(b, power);
    p = this->fmul(p,
                   this->broadcast(power, cast<RankedTensorType>(p.getType())));
  }
  return this->round(p);
}

template <typename Base>
Value GradientBuilder<Base>::loweredProbabilities() {
  Value factor = this->dropout.scale;
  if (!this->raisesProbabilities())
    return factor;
  Value power = this->f32(powerOfTwo(-Base::kLargestExponent));
  return factor ? this->fmul(power, factor) : power;
}

template <typename Base>
Value GradientBuilder<Base>::initialDsPower() {
  if (!this->raisesProbabilities() || isAtomic())
    return nullptr;
  return this->splat(this->f32Tile(1, tiles.blockM), powerOfTwo(120));
}

/// The power, at most `power`, that takes the largest of each column to
/// [2^13, 2^14): room for it to grow fourfold.
template <typename Base>
Value GradientBuilder<Base>::powerFor(Value partial, Value power) {
  auto row = cast<RankedTensorType>(power.getType());
  auto bits = row.clone(b.getI32Type());
  // The exponent is taken as it lies in the number. What is smaller than this
  // bound has a power beyond any that is in use.
  Value largest = this->fmax(ReduceOp::create(b, row, ReduceKind::Max, partial),
                             this->splat(row, powerOfTwo(-100)));
  Value exponent =
      arith::AndIOp::create(b, arith::BitcastOp::create(b, bits, largest),
                            this->splat(bits, 0x7f800000));
  constexpr int bias = 127;
  constexpr auto both = int32_t(uint32_t(2 * bias + 13) << 23);
  Value wanted = arith::BitcastOp::create(
      b, row, this->sub(this->splat(bits, both), exponent));
  return arith::MinNumFOp::create(b, wanted, power);
}

template <typename Base>
Value GradientBuilder<Base>::roundScoreGradients(Value ds, Value &power,
                                                 MutableArrayRef<Value> sums) {
  if (!power)
    return this->round(ds);
  auto full = cast<RankedTensorType>(ds.getType());
  RankedTensorType partial = this->f32Tile(tiles.rowGroups, tiles.blockM);
  Value largest = ReduceOp::create(b, partial, ReduceKind::Max,
                                   math::AbsFOp::create(b, ds));
  Value outgrown = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OGT,
      this->fmul(largest, this->broadcast(power, partial)),
      this->splat(partial, powerOfTwo(Base::kLargestExponent)));
  Value any = WaveAnyOp::create(b, b.getI1Type(), outgrown);
  SmallVector<Value> same = {power};
  llvm::append_range(same, sums);
  auto change = scf::IfOp::create(b, TypeRange(ValueRange(same)), any,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(change.thenBlock());
    Value smaller = powerFor(largest, power);
    Value alpha = arith::DivFOp::create(b, smaller, power);
    SmallVector<Value> changed = {smaller};
    for (Value sum : sums)
      changed.push_back(this->fmul(
          sum, this->broadcast(alpha, cast<RankedTensorType>(sum.getType()))));
    scf::YieldOp::create(b, changed);
    b.setInsertionPointToStart(change.elseBlock());
    scf::YieldOp::create(b, same);
  }
  power = change.getResult(0);
  llvm::copy(change.getResults().drop_front(), sums.begin());
  return this->round(this->fmul(ds, this->broadcast(power, full)));
}

template <typename Base>
Value GradientBuilder<Base>::loweredScoreGradients(Value factor, Value power) {
  if (!power)
    return factor;
  auto row = cast<RankedTensorType>(power.getType());
  return arith::DivFOp::create(b, this->splat(row, factor), power);
}

//===----------------------------------------------------------------------===//
// The workspace
//===----------------------------------------------------------------------===//

/// The rows of a query head in the workspace, which has the batch's at
/// `offset` elements, dense, with `columns` f32 each. In pairs of rows each
/// sequence has a batch of its own, packed or not: none may have rows of two.
template <typename Base>
Rows GradientBuilder<Base>::workspaceRows(Value offset, int64_t columns,
                                          Value head) {
  Value before = this->mul(this->i64(head), workspaceRowsOfHead());
  Value start = this->sequences.workspaceStart;
  if (start && !sumsPairs())
    before = this->add(before, start);
  return {this->arg("workspace"),
          this->add(offset, this->mul(before, i64Constant(columns))),
          this->i32(columns), this->seqlenQ()};
}

/// i64 rows of a head, and of a batch, in the workspace; the algorithm's
/// table describes it.
template <typename Base>
Value GradientBuilder<Base>::workspaceRowsOfHead() {
  const spec::WorkspaceSpec &workspace = algorithm().workspace;
  Value rows = this->sequences.workspaceRows;
  if (rows && !sumsPairs())
    return rows;
  Value seqlen = this->i64(this->arg("seqlen_q"));
  if (!workspace.pairStep)
    return seqlen;
  return this->add(padded(seqlen, workspace.rowStep),
                   i64Constant(workspace.spareRows));
}

/// i64: by how many batches of the workspace this one is behind the first.
template <typename Base>
Value GradientBuilder<Base>::workspaceBatch() {
  Value batch = this->sequences.workspaceBatch;
  return batch && !sumsPairs() ? batch : this->i64(this->batch);
}

template <typename Base>
Value GradientBuilder<Base>::workspaceRowsOfBatch() {
  const spec::WorkspaceSpec &workspace = algorithm().workspace;
  Value rows =
      this->mul(this->i64(this->arg("heads_q")), workspaceRowsOfHead());
  return workspace.pairStep ? rows : padded(rows, workspace.rowStep);
}

template <typename Base>
Value GradientBuilder<Base>::padded(Value rows, int64_t step) {
  if (step == 1)
    return rows;
  Value size = i64Constant(step), last = i64Constant(step - 1);
  return this->mul(this->div(this->add(rows, last), size), size);
}

/// f32 of a row's sums in the workspace; of pairs of rows half of them.
template <typename Base>
int64_t GradientBuilder<Base>::sumColumns() {
  return (algorithm().workspace.bytesOfRow(this->headDim) - 4) / 4;
}

template <typename Base>
Rows GradientBuilder<Base>::deltaRows(Value head) {
  Value before = workspaceBatch();
  if (isAtomic()) // behind the batch's sums
    before = this->add(this->mul(before, i64Constant(sumColumns() + 1)),
                       i64Constant(sumColumns()));
  return workspaceRows(this->mul(before, workspaceRowsOfBatch()), 1, head);
}

template <typename Base>
Rows GradientBuilder<Base>::sumsRows(Value head) {
  Value before = this->mul(workspaceBatch(), i64Constant(sumColumns() + 1));
  Rows rows = workspaceRows(this->mul(before, workspaceRowsOfBatch()),
                            sumColumns(), head);
  if (!sumsPairs())
    return rows;
  Value all = arith::TruncIOp::create(b, b.getI32Type(), workspaceRowsOfHead());
  return {rows.base, rows.offset, this->i32(2 * sumColumns()),
          this->div(all, this->i32(2))};
}

template <typename Base>
Value GradientBuilder<Base>::sumsView(const Rows &sums, Value first,
                                      Columns columns) {
  if (!sumsPairs())
    return this->view(sums, first, columns, b.getF32Type());
  // To the end there is memory past the head dimension.
  if (columns.first + columns.count == this->headDim)
    columns.count = 2 * sumColumns() - columns.first;
  return this->view(sums, this->div(first, this->i32(2)), columns,
                    b.getI32Type());
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

template <typename Base>
Value GradientBuilder<Base>::loadValues(Value view, int64_t row,
                                        int64_t count) {
  return this->transpose(LoadOp::create(b, this->f32Tile(count, 1), view,
                                        /*column=*/0, row));
}

template <typename Base>
SmallVector<Value>
GradientBuilder<Base>::noSumsOfChunks(const ForwardTiles &tiles) {
  return SmallVector<Value>(
      tiles.chunks,
      this->splat(this->f32Tile(tiles.valueDim, tiles.blockM), 0.0f));
}

template <typename Base>
void GradientBuilder<Base>::storeGradient(ArrayRef<Value> sums, Value scale,
                                          const Rows &rows, Value first) {
  for (auto [chunk, acc] : llvm::enumerate(sums))
    if (const Columns columns = columnsOf(chunk, rows.width); columns.count > 0)
      StoreOp::create(b, this->transpose(scaledAndNarrow(acc, scale)),
                      this->view(rows, first, columns));
}

template <typename Base>
Value GradientBuilder<Base>::scaledAndNarrow(Value sums, Value scale) {
  auto type = cast<RankedTensorType>(sums.getType());
  if (scale)
    sums = this->fmul(sums, isa<RankedTensorType>(scale.getType())
                                ? this->broadcast(scale, type)
                                : this->splat(type, scale));
  return this->narrow(sums);
}

template <typename Base>
void GradientBuilder<Base>::storeRows(Value tile, const Rows &rows,
                                      Value first) {
  StoreOp::create(b, tile, this->view(rows, first));
}

template class fovea::attn::GradientBuilder<TileBuilder>;
template class fovea::attn::GradientBuilder<QueryBlockBuilder>;
