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
#include <tuple>

namespace fovea::attn {

/// What a lane copies to LDS at once, past the registers.
constexpr int64_t kCopyBytes = 16;

/// What is done for a block of keys, in the order of its data, and what orders
/// the work of all blocks.
enum class Step {
  LoadK, ///< from memory to registers
  LoadV,
  StoreK, ///< from there to LDS
  StoreV,
  CopyK, ///< from memory to LDS, past the registers
  CopyV,
  AwaitK, ///< until the copies of this wave are there
  AwaitV,
  ReadK, ///< from LDS to operands of a product
  ReadV,
  Fetch,      ///< what a score program reads, from memory to registers
  Scores,     ///< S^T = K Q^T
  Mask,       ///< and what a score program makes of scores
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
  Pin,    ///< work since the last of these stays before this
  Fence,  ///< instructions stay on their side
  Mix,    ///< work since the last branch, barrier, fence or change of urgency
          ///< is spread evenly
};
inline bool isOfBlock(Step step) { return step < Step::Barrier; }
inline bool isOfLoop(Step step) { return step >= Step::Urgent; }
inline bool isAwait(Step step) {
  return step == Step::AwaitK || step == Step::AwaitV;
}
/// Of a block's steps: whether it accesses LDS.
bool touchesLds(Step step);
/// Whether it is about all parts of the block at once.
bool isWhole(Step step);

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
  int part = -1; ///< of that block; -1: all of it
};

struct ForwardPipeline {
  int stages;      ///< as schedules call it
  bool directCopy; ///< likewise
  /// Which of such schedules it is for; the first one that fits is taken.
  enum Condition {
    kAnyBlock,
    kAlone,     ///< a wave has its SIMD to itself
    kWideBlock, ///< 128 keys
  } condition;
  /// Blocks that an iteration of the loop over full ones takes: where buffers
  /// in LDS take turns, their addresses are then constants.
  int unroll;
  /// Equal parts, in the order of keys, that steps of a block may be about.
  int parts;
  llvm::ArrayRef<Place> places;

  bool isAlone() const { return condition == kAlone; }
  int partsOf(Slot slot) const { return slot == Slot::Reference ? 1 : parts; }

  /// The pipeline of a schedule, which the attribute's verifier checked.
  static const ForwardPipeline &of(ScheduleAttr schedule);

  /// Whether waits count the copies that may still be under way. No barrier
  /// waits for these then, and all loops are unrolled, masked ones too.
  bool countsCopies() const;
  /// Copies of tiles of K or V that were begun behind the one that place
  /// `index`, an AwaitK or AwaitV, waits for.
  /// \param iteration  where it is ahead of the loops: only copies of blocks
  ///   from 0 on are there
  int copiesBehind(size_t index, bool values,
                   std::optional<int> iteration = std::nullopt) const;

  /// How far ahead of an iteration its first step is.
  int ahead() const;
  /// How many blocks its last step is behind.
  int behind() const;

  /// What an iteration finds of those before: the slot, and of which part of
  /// which block.
  struct Key {
    Slot slot;
    int part, block;
    bool operator<(const Key &other) const {
      return std::tie(slot, part, block) <
             std::tie(other.slot, other.part, other.block);
    }
  };
  llvm::SmallVector<Key> carried() const;
};

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_FORWARDPIPELINE_H
