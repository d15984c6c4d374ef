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

  /// Whether its blocks divide those of lists.
  bool dividesLists() const {
    return spec::kListBlockUnit % blockM == 0 &&
           spec::kListBlockUnit % blockN == 0;
  }
};

ScheduleAttr makeSchedule(mlir::MLIRContext *context, llvm::StringRef inst,
                          const KernelRow &kernel, int32_t rescaleThreshold);

/// The first row that the chip can do and that holds the head dimension; null
/// if there is none. Rows have `features` that the chip must have beside the
/// instruction `inst`, and a `maxHeadDim`.
/// \param fits  what else a row must be; null: nothing
template <typename Row>
const Row *findRow(llvm::ArrayRef<Row> rows, const target::TargetInfo &target,
                   mlir::Type elementType, int64_t headDim,
                   llvm::function_ref<bool(const Row &)> fits = nullptr) {
  for (const Row &row : rows)
    if (headDim <= row.maxHeadDim && target.has(row.features) &&
        lookupMatrixInstr(target, row.inst, elementType) &&
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
