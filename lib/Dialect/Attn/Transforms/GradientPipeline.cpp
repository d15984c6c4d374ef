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
                      kOfWeights[] = {Slot::Weights, Slot::WeightGradients},
                      kOfQueries[] = {Slot::Weights, Slot::WeightGradients,
                                      Slot::Deltas},
                      kScoreGradients[] = {Slot::ScoreGradients},
                      kTurned[] = {Slot::Turned},
                      kProduct[] = {Slot::Turned, Slot::ScoreGradients},
                      kScoreGradientRows[] = {Slot::ScoreGradientRows},
                      kSums[] = {Slot::QueryGradients, Slot::Number},
                      kQueryGradients[] = {Slot::QueryGradients};

// The queries' terms are owned.
static const StepRow kQuerySteps[] = {
    {Step::Load, {}, kPair},
    {Step::Store, kPair, {}, true},
    {Step::ReadScored, {}, kScored, true},
    {Step::Scores, kScored, kScores},
    {Step::Mask, kScores, kScores},
    {Step::Weigh, kScores, kWeights},
    {Step::ReadOther, {}, kOther, true},
    {Step::WeightGradients, kOther, kWeightGradients},
    {Step::ScoreGradients, kOfWeights, kScoreGradients},
    {Step::ReadTurned, {}, kTurned, true},
    {Step::Accumulate, kProduct, {}},
};

static const StepRow kKeySteps[] = {
    {Step::Load, {}, kQueryRows},
    {Step::Store, kQueryRows, {}, true},
    {Step::ReadScored, {}, kScored, true},
    {Step::Scores, kScored, kNumberedScores},
    {Step::Mask, kScores, kScores},
    {Step::ReadLogSums, {}, kLogSums, true},
    {Step::Weigh, kExponents, kWeights},
    {Step::Round, kWeights, kRounded},
    {Step::ReadTurnedOther, {}, kTurnedOther, true},
    {Step::AccumulateValues, kValueProduct, {}},
    {Step::ReadOther, {}, kOther, true},
    {Step::WeightGradients, kOther, kWeightGradients},
    {Step::ReadDeltas, {}, kDeltas, true},
    {Step::ScoreGradients, kOfQueries, kScoreGradients},
    {Step::ReadTurned, {}, kTurned, true},
    {Step::Accumulate, kProduct, {}},
    {Step::StoreScoreGradients, kScoreGradients, {}, true},
    {Step::ReadScoreGradients, {}, kScoreGradientRows, true},
    {Step::QueryGradients, kScoreGradientRows, kQueryGradients},
    {Step::AddQueryGradients, kSums, {}},
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

namespace {
struct PipelineRow {
  GradientKernel kernel;
  int stages;
  llvm::ArrayRef<StepRow> steps;
  llvm::ArrayRef<Place> places;
};
} // namespace

static const PipelineRow kPipelines[] = {
    {GradientKernel::Queries, 1, kQuerySteps, kQueriesOneStage},
    {GradientKernel::Queries, 2, kQuerySteps, kQueriesTwoStages},
    {GradientKernel::Keys, 1, kKeySteps, kKeysOneStage},
    {GradientKernel::Keys, 2, kKeySteps, kKeysTwoStages},
    {GradientKernel::All, 1, kKeySteps, kAllOneStage},
    {GradientKernel::All, 2, kKeySteps, kAllTwoStages},
};

GradientPipeline fovea::attn::gradientPipeline(GradientKernel kernel,
                                               ScheduleAttr schedule) {
  for (const PipelineRow &row : kPipelines)
    if (row.kernel == kernel && row.stages == schedule.getStages())
      return {row.steps, row.places};
  llvm_unreachable("a checked schedule has a pipeline");
}
