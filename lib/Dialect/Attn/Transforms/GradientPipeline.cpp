//===- GradientPipeline.cpp - pipelines of the gradient kernels -----------===//

#include "GradientPipeline.h"

using namespace fovea::attn;
using Step = GradientStep;
using Slot = GradientSlot;
using Place = GradientPipeline::Place;
using StepRow = GradientPipeline::StepRow;

static constexpr Slot kScoredRows[] = {Slot::ScoredRows},
                      kPair[] = {Slot::ScoredRows, Slot::OtherRows},
                      kQueryRows[] = {Slot::ScoredRows, Slot::OtherRows,
                                      Slot::LogSumRows, Slot::DeltaRows},
                      kScored[] = {Slot::Scored}, kScores[] = {Slot::Scores},
                      kNumberedScores[] = {Slot::Scores, Slot::Number},
                      kLogSums[] = {Slot::LogSums},
                      kExponents[] = {Slot::Scores, Slot::LogSums},
                      kWeights[] = {Slot::Weights},
                      kRounded[] = {Slot::Rounded},
                      kTurnedOther[] = {Slot::TurnedOther},
                      kValueProduct[] = {Slot::TurnedOther, Slot::Rounded},
                      kOther[] = {Slot::Other},
                      kWeightGradients[] = {Slot::WeightGradients},
                      kDeltas[] = {Slot::Deltas}, kFetched[] = {Slot::Fetched},
                      kToMask[] = {Slot::Scores, Slot::Fetched},
                      kMasked[] = {Slot::Scores, Slot::Slopes},
                      kOfWeights[] = {Slot::Weights, Slot::WeightGradients,
                                      Slot::Slopes},
                      kOfQueries[] = {Slot::Weights, Slot::WeightGradients,
                                      Slot::Deltas, Slot::Slopes},
                      kScoreGradients[] = {Slot::ScoreGradients},
                      kTurned[] = {Slot::Turned},
                      kProduct[] = {Slot::Turned, Slot::ScoreGradients},
                      kScoreGradientRows[] = {Slot::ScoreGradientRows},
                      kSums[] = {Slot::QueryGradients, Slot::Number},
                      kQueryGradients[] = {Slot::QueryGradients},
                      kSumsOfChunks[] = {Slot::Scores, Slot::WeightGradients};

// The queries' terms are owned.
static const StepRow kQuerySteps[] = {
    {Step::Load, GradientPipeline::Memory, {}, kPair},
    {Step::Store, GradientPipeline::Lds, kPair, {}},
    {Step::ReadScored, GradientPipeline::Lds, {}, kScored},
    {Step::Scores, GradientPipeline::Products, kScored, kScores},
    {Step::Fetch, GradientPipeline::Memory, {}, kFetched},
    {Step::Mask, GradientPipeline::Products, kToMask, kMasked},
    {Step::Weigh, GradientPipeline::Vectors, kScores, kWeights},
    {Step::ReadOther, GradientPipeline::Lds, {}, kOther},
    {Step::WeightGradients, GradientPipeline::Products, kOther,
     kWeightGradients},
    {Step::ScoreGradients, GradientPipeline::Vectors, kOfWeights,
     kScoreGradients},
    {Step::ReadTurned, GradientPipeline::Lds, {}, kTurned},
    {Step::Accumulate, GradientPipeline::Products, kProduct, {}},
    {Step::LoadAgain, GradientPipeline::Memory, {}, kScoredRows},
    {Step::StoreTurned, GradientPipeline::Lds, kScoredRows, {}},
};

static const StepRow kKeySteps[] = {
    {Step::Load, GradientPipeline::Memory, {}, kQueryRows},
    {Step::Store, GradientPipeline::Lds, kQueryRows, {}},
    {Step::ReadScored, GradientPipeline::Lds, {}, kScored},
    {Step::Scores, GradientPipeline::Products, kScored, kNumberedScores},
    {Step::Fetch, GradientPipeline::Memory, {}, kFetched},
    {Step::Mask, GradientPipeline::Products, kToMask, kMasked},
    {Step::ReadLogSums, GradientPipeline::Lds, {}, kLogSums},
    {Step::Weigh, GradientPipeline::Vectors, kExponents, kWeights},
    {Step::Round, GradientPipeline::Vectors, kWeights, kRounded},
    {Step::ReadTurnedOther, GradientPipeline::Lds, {}, kTurnedOther},
    {Step::AccumulateValues, GradientPipeline::Products, kValueProduct, {}},
    {Step::ReadOther, GradientPipeline::Lds, {}, kOther},
    {Step::WeightGradients, GradientPipeline::Products, kOther,
     kWeightGradients},
    {Step::ReadDeltas, GradientPipeline::Lds, {}, kDeltas},
    {Step::ScoreGradients, GradientPipeline::Vectors, kOfQueries,
     kScoreGradients},
    {Step::ReadTurned, GradientPipeline::Lds, {}, kTurned},
    {Step::Accumulate, GradientPipeline::Products, kProduct, {}},
    {Step::StoreScoreGradients, GradientPipeline::Lds, kScoreGradients, {}},
    {Step::ReadScoreGradients, GradientPipeline::Lds, {}, kScoreGradientRows},
    {Step::QueryGradients, GradientPipeline::Products, kScoreGradientRows,
     kQueryGradients},
    {Step::AddQueryGradients, GradientPipeline::Memory, kSums, {}},
    {Step::LoadAgain, GradientPipeline::Memory, {}, kPair},
    {Step::StoreTurned, GradientPipeline::Lds, kPair, {}},
};

// One block after the other.
// clang-format off: a line is a segment, up to a barrier or a mix.
static constexpr Place kQueriesOneStage[] = {
    Order::Barrier,
    Step::Load, Step::Store,
    Order::Barrier,
    Step::ReadScored, Step::Scores, Step::Mask, Step::Weigh, Step::ReadOther,
        Step::WeightGradients, Step::ScoreGradients, Step::ReadTurned, Step::Accumulate};
// The next one is on its way to registers meanwhile, and so is what a score
// program reads, from where registers hold it no more.
static constexpr Place kQueriesTwoStages[] = {
    Order::Barrier,
    Step::Store,
    Order::Barrier,
    {Step::Load, 1}, Step::ReadScored, Step::Scores, Step::Mask, {Step::Fetch, 1},
        Step::Weigh, Step::ReadOther, Step::WeightGradients, Step::ScoreGradients,
        Step::ReadTurned, Step::Accumulate};

static constexpr Place kKeysOneStage[] = {
    Order::Barrier,
    Step::Load, Step::Store,
    Order::Barrier,
    Step::ReadScored, Step::Scores, Step::Mask, Step::ReadLogSums, Step::Weigh, Step::Round,
        Step::ReadTurnedOther, Step::AccumulateValues, Step::ReadOther,
        Step::WeightGradients, Step::ReadDeltas, Step::ScoreGradients, Step::ReadTurned,
        Step::Accumulate};
static constexpr Place kKeysTwoStages[] = {
    Order::Barrier,
    Step::Store,
    Order::Barrier,
    {Step::Load, 1}, Step::ReadScored, Step::Scores, Step::Mask, {Step::Fetch, 1},
        Step::ReadLogSums, Step::Weigh, Step::Round, Step::ReadTurnedOther,
        Step::AccumulateValues, Step::ReadOther, Step::WeightGradients, Step::ReadDeltas,
        Step::ScoreGradients, Step::ReadTurned, Step::Accumulate};

// The barrier behind dS is between reads of a block and what is stored of the
// next, too.
static constexpr Place kAllOneStage[] = {
    Step::Load, Step::Store,
    Order::Barrier,
    Step::ReadScored, Step::Scores, Step::Mask, Step::ReadLogSums, Step::Weigh, Step::Round,
        Step::ReadTurnedOther, Step::AccumulateValues, Step::ReadOther,
        Step::WeightGradients, Step::ReadDeltas, Step::ScoreGradients,
        Step::StoreScoreGradients, Step::ReadTurned, Step::Accumulate,
    Order::Barrier,
    Step::ReadScoreGradients, Step::QueryGradients, Step::AddQueryGradients};
static constexpr Place kAllTwoStages[] = {
    Step::Store,
    Order::Barrier,
    {Step::Load, 1}, Step::ReadScored, Step::Scores, Step::Mask, {Step::Fetch, 1},
        Step::ReadLogSums, Step::Weigh, Step::Round, Step::ReadTurnedOther,
        Step::AccumulateValues, Step::ReadOther, Step::WeightGradients, Step::ReadDeltas,
        Step::ScoreGradients, Step::StoreScoreGradients, Step::ReadTurned,
        Step::Accumulate,
    Order::Barrier,
    Step::ReadScoreGradients, Step::QueryGradients, Step::AddQueryGradients};

// One barrier a block, between buffers that take turns. Each segment has a
// product, whose operands were read before, and what there is time for beside
// it; the first one needs nothing that is behind the barrier.
static constexpr Place kQueriesSegments[] = {
    Order::Barrier,
    Step::ReadScored, {Step::Accumulate, -1}, Order::Mix,
    Step::ReadOther, {Step::Store, 1}, {Step::Load, 2}, Step::Scores, Order::Mix,
    Step::ReadTurned, Step::Mask, {Step::Fetch, 1}, Step::Weigh, Step::WeightGradients,
        Step::ScoreGradients, Order::Mix};
static constexpr Place kKeysSegments[] = {
    Order::Barrier,
    Step::ReadLogSums, Step::ReadScored, {Step::Store, 1}, {Step::Accumulate, -1},
        Order::Mix,
    Step::ReadOther, {Step::Load, 2}, Step::Scores, Order::Mix,
    Step::ReadTurned, Step::ReadTurnedOther, Step::Mask, {Step::Fetch, 1}, Step::Weigh,
        Step::Round, Step::WeightGradients, Order::Mix,
    Step::ReadDeltas, Step::ScoreGradients, Step::AccumulateValues, Order::Mix};
// dQ needs dS of all waves: it is a block late, behind the barrier. Carrying
// what dK needs from one block to the next as well would take more registers
// than there are.
static constexpr Place kAllSegments[] = {
    Order::Barrier,
    {Step::ReadScoreGradients, -1}, Step::ReadScored, {Step::QueryGradients, -1},
        Order::Mix,
    Step::ReadLogSums, Step::ReadOther, {Step::AddQueryGradients, -1}, {Step::Store, 1},
        Step::Scores, Order::Mix,
    Step::ReadTurnedOther, Step::Mask, {Step::Fetch, 1}, Step::Weigh,
        Step::WeightGradients, Order::Mix,
    Step::ReadDeltas, Step::Round, Step::AccumulateValues, Step::ScoreGradients,
        Step::StoreScoreGradients, Order::Mix,
    Step::ReadTurned, {Step::Load, 2}, Step::Accumulate, Order::Mix};

// dK too, whose operands are in registers then: products that need nothing from
// behind the barrier are beside the reads there.
static constexpr Place kAllLate[] = {
    Order::Barrier,
    {Step::ReadScoreGradients, -1}, Step::ReadScored, {Step::Accumulate, -1}, Order::Mix,
    Step::ReadLogSums, {Step::QueryGradients, -1}, Order::Mix,
    Step::ReadOther, {Step::AddQueryGradients, -1}, {Step::Store, 1}, Step::Scores,
        Order::Mix,
    Step::ReadTurnedOther, Step::Mask, {Step::Fetch, 1}, Step::Weigh,
        Step::WeightGradients, Order::Mix,
    Step::ReadDeltas, Step::Round, {Step::Load, 2}, Step::AccumulateValues,
        Step::ScoreGradients, Step::StoreScoreGradients, Step::ReadTurned, Order::Mix};
// clang-format on

namespace {
struct PipelineRow {
  GradientKernel kernel;
  int stages;
  llvm::ArrayRef<StepRow> steps;
  llvm::ArrayRef<Place> places;
  int buffers = 1;
  bool goesInTurns = false;
};
} // namespace

static const PipelineRow kPipelines[] = {
    {GradientKernel::Queries, 1, kQuerySteps, kQueriesOneStage},
    {GradientKernel::Queries, 2, kQuerySteps, kQueriesTwoStages},
    {GradientKernel::Keys, 1, kKeySteps, kKeysOneStage},
    {GradientKernel::Keys, 2, kKeySteps, kKeysTwoStages},
    {GradientKernel::All, 1, kKeySteps, kAllOneStage},
    {GradientKernel::All, 2, kKeySteps, kAllTwoStages},
    {GradientKernel::Queries, 4, kQuerySteps, kQueriesSegments, 2},
    {GradientKernel::Keys, 4, kKeySteps, kKeysSegments, 2},
    {GradientKernel::All, 4, kKeySteps, kAllSegments, 2},
    {GradientKernel::All, 5, kKeySteps, kAllLate, 2, /*goesInTurns=*/true},
};

// Where columns come through LDS in chunks. Scores are sums over all of them,
// so what is summed up of P and dS takes them once more.
// clang-format off: a line is a segment, up to a barrier or a mix.
static constexpr Place kChunkOfScores[] = {
    Step::ReadScored, Step::Scores, Step::ReadOther, Step::WeightGradients};
static constexpr Place kQueriesWhole[] = {
    Step::Mask, Step::Weigh, Step::ScoreGradients};
static constexpr Place kQueriesChunk[] = {
    Step::ReadTurned, Step::Accumulate};
static constexpr Place kKeysWhole[] = {
    Step::Mask, Step::ReadLogSums, Step::Weigh, Step::Round, Step::ReadDeltas,
        Step::ScoreGradients};
static constexpr Place kKeysChunk[] = {
    Step::ReadTurnedOther, Step::AccumulateValues, Step::ReadTurned, Step::Accumulate};
static constexpr Place kAllWhole[] = {
    Step::Mask, Step::ReadLogSums, Step::Weigh, Step::Round, Step::ReadDeltas,
        Step::ScoreGradients, Step::StoreScoreGradients};
static constexpr Place kAllChunk[] = {
    Step::ReadTurnedOther, Step::AccumulateValues, Step::ReadTurned, Step::Accumulate,
        Step::ReadScoreGradients, Step::QueryGradients, Step::AddQueryGradients};
// clang-format on

namespace {
/// A pipeline of blocks that come in chunks: of each in turn kChunkOfScores,
/// then `whole`, then of each `chunk`.
struct ChunkedRow {
  GradientKernel kernel;
  llvm::ArrayRef<StepRow> steps;
  llvm::ArrayRef<Place> whole, chunk;
};
} // namespace

static const ChunkedRow kChunked[] = {
    {GradientKernel::Queries, kQuerySteps, kQueriesWhole, kQueriesChunk},
    {GradientKernel::Keys, kKeySteps, kKeysWhole, kKeysChunk},
    {GradientKernel::All, kKeySteps, kAllWhole, kAllChunk},
};

/// With two stages what LDS takes next is on its way to registers meanwhile,
/// last of all the first chunk of the next block.
/// \param loops  whether scores are a loop over their chunks
static GradientPipeline inChunks(const ChunkedRow &row, int stages, int chunks,
                                 bool loops) {
  GradientPipeline pipeline = {row.steps, {}};
  auto &places = pipeline.places;
  auto append = [&](llvm::ArrayRef<Place> steps, int chunk) {
    for (Place place : steps)
      places.push_back({*place.step, place.ahead, chunk});
  };
  // What is loaded in turn: all chunks, and all once more.
  auto load = [&](int number) -> Place {
    if (number == 2 * chunks)
      return {Step::Load, /*ahead=*/1, /*chunk=*/0};
    return {number < chunks ? Step::Load : Step::LoadAgain, /*ahead=*/0,
            number % chunks};
  };
  auto take = [&](int number) {
    const bool isAgain = number >= chunks;
    places.push_back(Order::Barrier);
    if (stages == 1)
      places.push_back(load(number));
    places.push_back({isAgain ? Step::StoreTurned : Step::Store, /*ahead=*/0,
                      number % chunks});
    places.push_back(Order::Barrier);
    if (stages == 2)
      places.push_back(load(number + 1));
    append(isAgain ? row.chunk : llvm::ArrayRef<Place>(kChunkOfScores),
           number % chunks);
  };
  for (int number = 0; number < (loops ? 1 : chunks); ++number)
    take(number);
  if (loops)
    pipeline.chunks = {0, places.size(), chunks, kSumsOfChunks};
  append(row.whole, /*chunk=*/0);
  for (int number = chunks; number < 2 * chunks; ++number)
    take(number);
  return pipeline;
}

GradientPipeline fovea::attn::gradientPipeline(GradientKernel kernel,
                                               ScheduleAttr schedule,
                                               int64_t chunks, bool loops) {
  if (chunks > 1) {
    const ChunkedRow &row = *llvm::find_if(
        kChunked, [&](const ChunkedRow &row) { return row.kernel == kernel; });
    return inChunks(row, schedule.getStages(), int(chunks), loops);
  }
  for (const PipelineRow &row : kPipelines)
    if (row.kernel == kernel && row.stages == schedule.getStages())
      return {row.steps, llvm::to_vector(row.places), row.buffers,
              row.goesInTurns};
  llvm_unreachable("a checked schedule has a pipeline");
}
