//===- Schedule.h - choosing and checking schedules -------------*- C++ -*-===//

#ifndef FOVEA_DIALECT_ATTN_TRANSFORMS_SCHEDULE_H
#define FOVEA_DIALECT_ATTN_TRANSFORMS_SCHEDULE_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/MatrixInstr.h"

namespace fovea::attn {

/// How many columns the tensors have.
struct HeadDims {
  int64_t qk; ///< q and k, and their gradients
  int64_t v;  ///< v and out, and their gradients

  HeadDims(int64_t both) : qk(both), v(both) {}
  HeadDims(int64_t qk, int64_t v) : qk(qk), v(v) {}
  explicit HeadDims(AttentionOpInterface op)
      : HeadDims(op.getHeadDim(), op.getHeadDimV()) {}
  int64_t most() const { return std::max(qk, v); }
  /// "192/128", of one number that alone.
  std::string str() const;
};

/// Extents of the tiles of one kernel, all in elements.
struct ForwardTiles {
  int64_t chunks;     ///< that the columns come through LDS in
  int64_t columns;    ///< of the head dimension in a chunk: all if it is one
  int64_t scoreDim;   ///< columns padded for the first product's contraction
  int64_t valueDim;   ///< columns padded for the second product's rows
  int64_t ldsDim;     ///< columns padded for the tiles in LDS
  int64_t ldsDimV;    ///< the same of V
  int64_t ldsBuffers; ///< of K, and of V
  int64_t blockM;     ///< queries of a workgroup
  int64_t blockN;     ///< keys of an iteration
  int64_t rowGroups;  ///< lanes that share a query, each with keys of its own
  int64_t elementBytes; ///< of factors
  int64_t ldsBytes;   ///< of a workgroup: K, V and, if they are there, queries
};

/// A row of a tile in LDS is a multiple of this many bytes.
inline constexpr int64_t kLdsRowBytes = 64;

/// Bytes of a register of a lane.
inline constexpr int64_t kRegisterBytes = 4;

/// Whether reads from LDS turn tiles at no cost, which then lie there once, as
/// they do in memory: by an instruction that transposes, or since an element
/// fills a register and the banks give as many in narrow reads as in wide ones.
bool turnsReads(const target::TargetInfo &target, mlir::Type elementType);

/// The schedule but for column_chunk: what forward kernels hold, of which only
/// the scores take columns in chunks.
ScheduleAttr withAllColumns(ScheduleAttr schedule);

ForwardTiles forwardTiles(HeadDims dims, ScheduleAttr schedule,
                          const target::MatrixInstr &inst);

/// Of kernels of gradients the tiles of q and k, in all of their roles, or of
/// v and out, in as many chunks.
ForwardTiles gradientTiles(HeadDims dims, bool ofV, ScheduleAttr schedule,
                           const target::MatrixInstr &inst);

/// What a kernel does besides, as far as schedules depend on it: bits.
using KernelNeeds = unsigned;
/// It takes any window, and no mask is compiled in.
inline constexpr KernelNeeds kTakesWindow = 1;
/// It reads lists of blocks, which its own divide.
inline constexpr KernelNeeds kReadsLists = 2;
/// Its score program waits for tiles of elements.
inline constexpr KernelNeeds kReadsTiles = 4;
inline constexpr KernelNeeds kDropsWeights = 8;
/// It knows at run time how many columns there are, which copies past
/// registers can't cut.
inline constexpr KernelNeeds kCutsColumns = 16;
/// Its workgroups take a share of the keys each: its rows are few.
inline constexpr KernelNeeds kSplitsKeys = 32;
/// A program makes its scores.
inline constexpr KernelNeeds kHasProgram = 64;
/// V has another number of columns than Q.
inline constexpr KernelNeeds kColumnsDiffer = 128;
KernelNeeds needsOf(AttentionOpInterface op);

/// The schedule from the table for a chip, type and head dimension; null if the
/// chip has no matrix instruction of the type.
/// \param passedOver  so many of the table are not taken, but one of the
/// others;
///                    null if there are no more
ScheduleAttr chooseForwardSchedule(mlir::MLIRContext *context,
                                   const target::TargetInfo &target,
                                   mlir::Type elementType, HeadDims dims,
                                   KernelNeeds needs, int32_t passedOver = 0);

/// The largest head dimension that the table has a forward schedule for; 0: it
/// has none.
int64_t largestForwardHeadDim(const target::TargetInfo &target,
                              mlir::Type elementType);

/// Fails, through `emitError`, if the chip cannot run a forward kernel of this
/// type and head dimension with the schedule.
llvm::LogicalResult
checkForwardSchedule(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                     const target::TargetInfo &target, mlir::Type elementType,
                     HeadDims dims, ScheduleAttr schedule);

/// How a forward kernel knows that the maxima of rows outgrew their references.
enum class RowMaxima {
  Exchanged,  ///< lanes find each row's in every block of keys
  OwnKeys,    ///< each lane asks for its own; they exchange where it did
  BegunBelow, ///< likewise, and products begin at minus the reference
};
/// "exchanged", "own_keys", "begun_below".
llvm::StringRef nameOf(RowMaxima maxima);
/// Of a kernel that has its schedule.
RowMaxima rowMaximaOf(ForwardOp op, const target::TargetInfo &target);

/// Whether workgroups own few rows, as they do for one row of a group of heads.
bool hasFewRows(ScheduleAttr forward);

/// Most rows of a workgroup that combines: fewer than products have.
inline constexpr int32_t kMostCombinedRows = 8;

/// The schedule of the kernel that combines shares of the keys: waves that share
/// a row's columns, and as many shares an iteration as they have registers for.
ScheduleAttr chooseCombineSchedule(mlir::MLIRContext *context,
                                   const target::TargetInfo &target,
                                   ScheduleAttr forward, int64_t headDimV);

/// As checkForwardSchedule, for the kernel that combines.
llvm::LogicalResult
checkCombineSchedule(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                     const target::TargetInfo &target, mlir::Type elementType,
                     int64_t headDimV, ScheduleAttr schedule);

/// The schedule of the kernel that writes the mask of dropout: `block_m`
/// queries of a workgroup, `block_n` keys of an iteration; the same on all
/// chips. Null if the chip has no kernels of the type.
ScheduleAttr chooseMaskSchedule(mlir::MLIRContext *context,
                                const target::TargetInfo &target,
                                mlir::Type elementType);

/// Fails, through `emitError`, if lanes have no four keys in a row of the mask
/// that one call of the generator serves, or hold more than is compiled soon.
llvm::LogicalResult
checkMaskSchedule(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                  const target::TargetInfo &target, ScheduleAttr schedule);

/// How dQ of one block pair is computed by the kernel that adds it up in
/// memory: [block_n, columns] = dS [block_n, block_m] * K [block_m, columns].
struct QueryProduct {
  const target::MatrixInstr *inst;
  int columnWaves; ///< waves that share out the columns; the others the rows
  int64_t columns; ///< head_dim padded
};

/// The product with the fewest columns of padding and, of those, the one that
/// the most waves share by columns, since each holds the keys' columns that are
/// its own: with the schedule's instruction or, where that is too wide, with
/// another of the chip. None if the waves cannot share it.
std::optional<QueryProduct> queryProduct(const target::TargetInfo &target,
                                         mlir::Type elementType,
                                         HeadDims dims, ScheduleAttr schedule);

/// The schedule of the backward kernels from the table; null if it has none for
/// this algorithm, chip, type and head dimension.
/// \param passedOver  as of chooseForwardSchedule, of each launch, or empty;
///                    without products it counts for nothing
BackwardScheduleAttr
chooseBackwardSchedule(mlir::MLIRContext *context, BackwardAlgorithm algorithm,
                       const target::TargetInfo &target, mlir::Type elementType,
                       HeadDims dims, KernelNeeds needs,
                       llvm::ArrayRef<int32_t> passedOver = {});

/// The schedule of the kernel that sums the gradient of the sinks: `waves` to a
/// head, `block_n` rows a lane in an iteration. There is nothing to choose, so
/// it is no part of the op's.
ScheduleAttr sinkSumSchedule(BackwardScheduleAttr schedule);

/// The largest head dimension that the table has a backward schedule for; 0: it
/// has none.
int64_t largestBackwardHeadDim(BackwardAlgorithm algorithm,
                               const target::TargetInfo &target,
                               mlir::Type elementType);

/// As checkForwardSchedule, for the kernels of a backward pass.
llvm::LogicalResult
checkBackwardSchedule(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                      const target::TargetInfo &target, mlir::Type elementType,
                      HeadDims dims, BackwardScheduleAttr schedule);

/// Fails, with an error, if an algorithm cannot give the gradients of captures
/// that an op asks for: additions in any order are for those alone that promise
/// no bits.
llvm::LogicalResult checkScoreGradients(BackwardOp op,
                                        const target::TargetInfo &target,
                                        BackwardAlgorithm algorithm);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_TRANSFORMS_SCHEDULE_H
