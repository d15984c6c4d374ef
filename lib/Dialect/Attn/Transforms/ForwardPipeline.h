//===- ForwardPipeline.h - how key blocks overlap, as data ------*- C++ -*-===//
//
// The steps that a forward kernel takes for each block of keys, and for each
// schedule the order in which an iteration takes them and of which block:
// a software pipeline. ForwardTiler writes a step once; what an iteration
// carries to the next, and what goes before and behind the loop, follows.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDPIPELINE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDPIPELINE_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include <map>
#include <optional>

namespace fovea::attn {

/// What is done for a block of keys, in the order of its data, and what orders
/// the work of all blocks.
enum class Step {
  LoadK, ///< from memory to registers
  LoadV,
  StoreK, ///< from there to LDS
  StoreV,
  CopyK, ///< from memory to LDS, past the registers
  CopyV,
  ReadK, ///< from LDS to operands of a product
  ReadV,
  Scores, ///< S^T = K Q^T
  Mask,
  Refer,      ///< row maxima, and what exponents are relative to
  Rescale,    ///< sums to that reference, for which `Refer` was earlier
  ReferAll,   ///< both, in one branch
  Weigh,      ///< exponentials
  Round,      ///< rounding and row sums of the weights
  Accumulate, ///< O^T += V^T P^T
  // Of no block.
  Barrier,     ///< all waves are here, what they wrote to LDS is there
  AwaitCopies, ///< those of this wave are there
  // The same, and of loops alone.
  Urgent, ///< from here on this wave goes first, and work stays behind this
  Usual,  ///< the end of that, and of work that began there
  Fence,  ///< instructions stay on their side
  Mix,    ///< work since the last branch, barrier or change of urgency is
          ///< spread evenly
};
inline bool isOfBlock(Step step) { return step < Step::Barrier; }
inline bool isOfLoop(Step step) { return step >= Step::Urgent; }
/// Of a block's steps: whether it accesses LDS.
bool touchesLds(Step step);

/// What steps leave to later ones of the same block.
enum class Slot {
  KRows, ///< [block_n, lds_dim] on their way to LDS
  VRows,
  Keys,      ///< [block_n, score_dim]
  Values,    ///< [value_dim, block_n]
  Scores,    ///< [block_n, block_m]
  Reference, ///< [1, block_m] that exponents are relative to
  Weights,   ///< [block_n, block_m] in f32
  Rounded,   ///< the same in the type of the inputs
};

struct Place {
  Step step;
  int ahead = 0; ///< of which block: so many behind the iteration's own
};

struct ForwardPipeline {
  int stages;      ///< as schedules call it
  bool directCopy; ///< likewise
  /// Blocks that an iteration of the loop over full ones takes: where buffers
  /// in LDS take turns, their addresses are then constants.
  int unroll;
  llvm::ArrayRef<Place> places;

  /// The pipeline of a schedule, which the attribute's verifier checked.
  static const ForwardPipeline &of(ScheduleAttr schedule);

  /// How far ahead of an iteration its first step is.
  int ahead() const;
  /// How many blocks its last step is behind.
  int behind() const;

  /// What an iteration finds of those before: the slot, and of which block.
  using Key = std::pair<Slot, int>;
  llvm::SmallVector<Key> carried() const;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDPIPELINE_H
