//===- GradientPipeline.cpp - pipelines of the gradient kernels -----------===//

#include "GradientPipeline.h"

using namespace fovea::attn;
using Step = GradientStep;
using Slot = GradientSlot;
using Place = GradientPipeline::Place;
using StepRow = GradientPipeline::StepRow;

static constexpr Slot kPair[] = {Slot::ScoredRows, Slot::OtherRows},
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
                      kDeltas[] = {Slot::Deltas},
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
                      kQueryGradients[] = {Slot::QueryGradients};

// The queries' terms are owned.
static const StepRow kQuerySteps[] = {
    {Step::Load, GradientPipeline::Memory, {}, kPair},
    {Step::Store, GradientPipeline::Lds, kPair, {}},
    {Step::ReadScored, GradientPipeline::Lds, {}, kScored},
    {Step::Scores, GradientPipeline::Products, kScored, kScores},
    {Step::Mask, GradientPipeline::Products, kScores, kMasked},
    {Step::Weigh, GradientPipeline::Vectors, kScores, kWeights},
    {Step::ReadOther, GradientPipeline::Lds, {}, kOther},
    {Step::WeightGradients, GradientPipeline::Products, kOther,
     kWeightGradients},
    {Step::ScoreGradients, GradientPipeline::Vectors, kOfWeights,
     kScoreGradients},
    {Step::ReadTurned, GradientPipeline::Lds, {}, kTurned},
    {Step::Accumulate, GradientPipeline::Products, kProduct, {}},
};

static const StepRow kKeySteps[] = {
    {Step::Load, GradientPipeline::Memory, {}, kQueryRows},
    {Step::Store, GradientPipeline::Lds, kQueryRows, {}},
    {Step::ReadScored, GradientPipeline::Lds, {}, kScored},
    {Step::Scores, GradientPipeline::Products, kScored, kNumberedScores},
    {Step::Mask, GradientPipeline::Products, kScores, kMasked},
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
};

// One block after the other.
static constexpr Place kQueriesOneStage[] = {
    Order::Barrier,       Step::Load,
    Step::Store,          Order::Barrier,
    Step::ReadScored,     Step::Scores,
    Step::Mask,           Step::Weigh,
    Step::ReadOther,      Step::WeightGradients,
    Step::ScoreGradients, Step::ReadTurned,
    Step::Accumulate};
// The next one is on its way to registers meanwhile.
static constexpr Place kQueriesTwoStages[] = {
    Order::Barrier,       Step::Store,
    Order::Barrier,       {Step::Load, 1},
    Step::ReadScored,     Step::Scores,
    Step::Mask,           Step::Weigh,
    Step::ReadOther,      Step::WeightGradients,
    Step::ScoreGradients, Step::ReadTurned,
    Step::Accumulate};

static constexpr Place kKeysOneStage[] = {Order::Barrier,
                                          Step::Load,
                                          Step::Store,
                                          Order::Barrier,
                                          Step::ReadScored,
                                          Step::Scores,
                                          Step::Mask,
                                          Step::ReadLogSums,
                                          Step::Weigh,
                                          Step::Round,
                                          Step::ReadTurnedOther,
                                          Step::AccumulateValues,
                                          Step::ReadOther,
                                          Step::WeightGradients,
                                          Step::ReadDeltas,
                                          Step::ScoreGradients,
                                          Step::ReadTurned,
                                          Step::Accumulate};
static constexpr Place kKeysTwoStages[] = {
    Order::Barrier,       Step::Store,           Order::Barrier,
    {Step::Load, 1},      Step::ReadScored,      Step::Scores,
    Step::Mask,           Step::ReadLogSums,     Step::Weigh,
    Step::Round,          Step::ReadTurnedOther, Step::AccumulateValues,
    Step::ReadOther,      Step::WeightGradients, Step::ReadDeltas,
    Step::ScoreGradients, Step::ReadTurned,      Step::Accumulate};

static constexpr Place kAllOneStage[] = {Order::Barrier,
                                         Step::Load,
                                         Step::Store,
                                         Order::Barrier,
                                         Step::ReadScored,
                                         Step::Scores,
                                         Step::Mask,
                                         Step::ReadLogSums,
                                         Step::Weigh,
                                         Step::Round,
                                         Step::ReadTurnedOther,
                                         Step::AccumulateValues,
                                         Step::ReadOther,
                                         Step::WeightGradients,
                                         Step::ReadDeltas,
                                         Step::ScoreGradients,
                                         Step::StoreScoreGradients,
                                         Step::ReadTurned,
                                         Step::Accumulate,
                                         Order::Barrier,
                                         Step::ReadScoreGradients,
                                         Step::QueryGradients,
                                         Step::AddQueryGradients};
static constexpr Place kAllTwoStages[] = {Order::Barrier,
                                          Step::Store,
                                          Order::Barrier,
                                          {Step::Load, 1},
                                          Step::ReadScored,
                                          Step::Scores,
                                          Step::Mask,
                                          Step::ReadLogSums,
                                          Step::Weigh,
                                          Step::Round,
                                          Step::ReadTurnedOther,
                                          Step::AccumulateValues,
                                          Step::ReadOther,
                                          Step::WeightGradients,
                                          Step::ReadDeltas,
                                          Step::ScoreGradients,
                                          Step::StoreScoreGradients,
                                          Step::ReadTurned,
                                          Step::Accumulate,
                                          Order::Barrier,
                                          Step::ReadScoreGradients,
                                          Step::QueryGradients,
                                          Step::AddQueryGradients};

// One barrier a block, between buffers that take turns. Each segment has a
// product, whose operands were read before, and what there is time for beside
// it; the first one needs nothing that is behind the barrier.
static constexpr Place kQueriesSegments[] = {Order::Barrier,
                                             Step::ReadScored,
                                             {Step::Accumulate, -1},
                                             Order::Mix,
                                             Step::ReadOther,
                                             {Step::Store, 1},
                                             {Step::Load, 2},
                                             Step::Scores,
                                             Order::Mix,
                                             Step::ReadTurned,
                                             Step::Mask,
                                             Step::Weigh,
                                             Step::WeightGradients,
                                             Step::ScoreGradients,
                                             Order::Mix};
static constexpr Place kKeysSegments[] = {Order::Barrier,
                                          Step::ReadLogSums,
                                          Step::ReadScored,
                                          {Step::Store, 1},
                                          {Step::Accumulate, -1},
                                          Order::Mix,
                                          Step::ReadOther,
                                          {Step::Load, 2},
                                          Step::Scores,
                                          Order::Mix,
                                          Step::ReadTurned,
                                          Step::ReadTurnedOther,
                                          Step::Mask,
                                          Step::Weigh,
                                          Step::Round,
                                          Step::WeightGradients,
                                          Order::Mix,
                                          Step::ReadDeltas,
                                          Step::ScoreGradients,
                                          Step::AccumulateValues,
                                          Order::Mix};
// dQ needs dS of all waves: it is a block late, behind the barrier. Carrying
// what dK needs from one block to the next as well would take more registers
// than there are.
static constexpr Place kAllSegments[] = {Order::Barrier,
                                         {Step::ReadScoreGradients, -1},
                                         Step::ReadScored,
                                         {Step::QueryGradients, -1},
                                         Order::Mix,
                                         Step::ReadLogSums,
                                         Step::ReadOther,
                                         {Step::AddQueryGradients, -1},
                                         {Step::Store, 1},
                                         Step::Scores,
                                         Order::Mix,
                                         Step::ReadTurnedOther,
                                         Step::Mask,
                                         Step::Weigh,
                                         Step::WeightGradients,
                                         Order::Mix,
                                         Step::ReadDeltas,
                                         Step::Round,
                                         Step::AccumulateValues,
                                         Step::ScoreGradients,
                                         Step::StoreScoreGradients,
                                         Order::Mix,
                                         Step::ReadTurned,
                                         {Step::Load, 2},
                                         Step::Accumulate,
                                         Order::Mix};

namespace {
struct PipelineRow {
  GradientKernel kernel;
  int stages;
  llvm::ArrayRef<StepRow> steps;
  llvm::ArrayRef<Place> places;
  int buffers = 1;
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
};

GradientPipeline fovea::attn::gradientPipeline(GradientKernel kernel,
                                               ScheduleAttr schedule) {
  for (const PipelineRow &row : kPipelines)
    if (row.kernel == kernel && row.stages == schedule.getStages())
      return {row.steps, row.places, row.buffers};
  llvm_unreachable("a checked schedule has a pipeline");
}
