//===- GradientPipeline.h - steps of the gradient kernels -------*- C++ -*-===//
//
// The kernels of gradients own rows of two tensors and visit blocks of rows of
// two others, the left factors of their first products: that of dQ owns Q and
// dO and visits K and V; that of dK and dV owns K and V and visits Q and dO,
// the fused one too.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTPIPELINE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTPIPELINE_H

#include "Pipeline.h"

namespace fovea::attn {

/// What is done for a block that is visited, in the order of its data.
enum class GradientStep {
  Load,        ///< all that is visited, from memory to registers
  Store,       ///< from there to LDS: as it is, and turned what is needed so
  ReadScored,  ///< from LDS to operands of a product: K or Q
  Scores,      ///< S, or transposed: times what is owned
  Fetch,       ///< what a score program reads, from memory to registers
  Mask,        ///< the score program, and what is not seen
  ReadLogSums, ///< log-sum-exp of the queries that are visited
  Weigh,       ///< P
  Round,       ///< of P, for a product
  ReadTurnedOther,  ///< dO^T
  AccumulateValues, ///< dV^T += dO^T P
  ReadOther,        ///< V or dO
  WeightGradients,  ///< dP: times what is owned
  ReadDeltas,       ///< of the queries that are visited
  ScoreGradients,   ///< dS = P (dP - delta) times slopes, rounded for a product
  ReadTurned,       ///< K^T or Q^T
  Accumulate,       ///< dQ^T or dK^T += that times dS
  // The sums of dQ in memory.
  StoreScoreGradients, ///< dS to LDS
  ReadScoreGradients,  ///< from there as a left operand
  QueryGradients,      ///< dS K
  AddQueryGradients,   ///< to what lies in memory
  // Where columns come in chunks, of which the first steps keep none.
  LoadAgain,   ///< what is needed turned, from memory to registers
  StoreTurned, ///< from there to LDS
};

/// What steps leave to later ones of the same block.
enum class GradientSlot {
  ScoredRows, ///< [block_n, lds_dim] of K or Q on their way to LDS
  OtherRows,  ///< of V or dO
  LogSumRows, ///< [1, block_n]
  DeltaRows,
  Number,            ///< i32 of the block
  Fetched,           ///< tiles that a score program reads, as many as it does
  Scored,            ///< [block_n, score_dim]
  Scores,            ///< [block_n, block_m]
  Slopes,            ///< [block_n, block_m] of a score program, if it has any
  LogSums,           ///< [block_n, block_m]: one a row
  Weights,           ///< [block_n, block_m] in f32
  Rounded,           ///< the same in the type of the inputs
  TurnedOther,       ///< [value_dim, block_n]
  Other,             ///< [block_n, score_dim]
  WeightGradients,   ///< [block_n, block_m]
  Deltas,            ///< [block_n, block_m]: one a row
  ScoreGradients,    ///< [block_n, block_m] in the type of the inputs
  Turned,            ///< [value_dim, block_n]
  ScoreGradientRows, ///< [block_n, block_m] as a left operand
  QueryGradients,    ///< [block_n, columns]
};

using GradientPipeline = PipelineOf<GradientStep, GradientSlot>;

/// Which of the kernels.
enum class GradientKernel { Queries, Keys, All };

/// The pipeline of a kernel under a schedule that checkBackwardSchedule()
/// accepts.
/// \param chunks  that columns come in, as forwardTiles() says
/// \param loops   whether scores are a loop over them, with `stages` = 1
GradientPipeline gradientPipeline(GradientKernel kernel, ScheduleAttr schedule,
                                  int64_t chunks, bool loops = false);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_GRADIENTPIPELINE_H
