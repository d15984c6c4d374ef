//===- ScheduleTable.h - what schedule tables share -------------*- C++ -*-===//
//
// The tables of the forward and of the backward kernels have rows of one shape,
// are searched alike, and what a kernel keeps is held to the same limits.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H

#include "fovea/Dialect/Attn/Transforms/Schedule.h"

namespace fovea::attn {

/// A kernel's part of a row: #attn.schedule without the instruction.
struct KernelRow {
  int32_t blockM, blockN, waves, stages, wavesPerSimd;
  int32_t valueSplit = 1, queriesInLds = 0, directCopy = 0, columnChunk = 0;

  /// Whether it can be of a kernel that has `needs`: its blocks divide those of
  /// lists, and columns that are cut pass the registers.
  bool serves(KernelNeeds needs) const {
    return (!(needs & kReadsLists) || (spec::kListBlockUnit % blockM == 0 &&
                                       spec::kListBlockUnit % blockN == 0)) &&
           (!(needs & kCutsColumns) || !directCopy);
  }
};

/// The schedule of one kernel.
struct ScheduleRow {
  uint32_t features; ///< that the chip must have, beside the instruction
  int64_t maxHeadDim;
  const char *inst;
  KernelRow kernel;
  KernelNeeds onlyFor = 0; ///< kernels with one of these; 0: for all

  bool serves(KernelNeeds needs) const { return kernel.serves(needs); }
};

ScheduleAttr makeSchedule(mlir::MLIRContext *context, llvm::StringRef inst,
                          const KernelRow &kernel, int32_t rescaleThreshold);

/// Whether the chip has what a row is for.
template <typename Row>
bool canDo(const target::TargetInfo &target, const Row &row,
           mlir::Type elementType) {
  return target.has(row.features) &&
         lookupMatrixInstr(target, row.inst, elementType);
}

/// The first row that the chip can do, that holds the head dimension, and that
/// is for kernels with these needs; null if there is none. Rows are as
/// ScheduleRow, of one kernel or several.
/// \param fits  what else a row must be; null: nothing
template <typename Row>
const Row *findRow(llvm::ArrayRef<Row> rows, const target::TargetInfo &target,
                   mlir::Type elementType, int64_t headDim, KernelNeeds needs,
                   llvm::function_ref<bool(const Row &)> fits = nullptr) {
  for (const Row &row : rows)
    if (headDim <= row.maxHeadDim && canDo(target, row, elementType) &&
        (!row.onlyFor || (needs & row.onlyFor)) && row.serves(needs) &&
        (!fits || fits(row)))
      return &row;
  return nullptr;
}

/// What a kernel keeps in registers from its first block to its last.
struct Residents {
  llvm::StringRef what; ///< for messages: "the output and Q take"
  int accumulators;     ///< f32 tiles of value_dim by block_m
  int factors; ///< tiles of score_dim by block_m, unless queries are in LDS
  int64_t other = 0; ///< registers a lane of what else stays
};

/// What a schedule must be for the two products of a forward kernel, or the
/// first and the last of one of gradients.
llvm::LogicalResult
checkProducts(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
              const target::TargetInfo &target, mlir::Type elementType,
              int64_t headDim, ScheduleAttr schedule);

/// Fails, through `emitError`, if residents take more registers than the waves
/// that share a SIMD leave each.
llvm::LogicalResult
checkResidents(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
               const target::TargetInfo &target,
               const target::MatrixInstr &inst, const ForwardTiles &tiles,
               ScheduleAttr schedule, const Residents &residents);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H
