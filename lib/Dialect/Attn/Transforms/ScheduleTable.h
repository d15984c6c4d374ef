//===- ScheduleTable.h - what schedule tables share -------------*- C++ -*-===//
//
// The tables of the forward and of the backward kernels have rows of one shape,
// are searched alike, and what a kernel keeps is held to the same limits.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H
#define FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H

#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include <algorithm>

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
  KernelNeeds notFor = 0;  ///< kernels with one of these
  int64_t minHeadDim = 0;

  bool serves(KernelNeeds needs) const { return kernel.serves(needs); }
};

/// Whether a row may be the first of a kernel.
template <typename Row>
bool isFor(const Row &row, KernelNeeds needs, int64_t headDim) {
  return (!row.onlyFor || (needs & row.onlyFor)) && !(needs & row.notFor) &&
         headDim >= row.minHeadDim;
}

ScheduleAttr makeSchedule(mlir::MLIRContext *context, llvm::StringRef inst,
                          const KernelRow &kernel, int32_t rescaleThreshold);

/// Whether the chip has what a row is for.
template <typename Row>
bool canDo(const target::TargetInfo &target, const Row &row,
           mlir::Type elementType) {
  return target.has(row.features) &&
         lookupMatrixInstr(target, row.inst, elementType);
}

/// The largest head dimension of a row that the chip can do; 0: it can do none.
template <typename Row>
int64_t largestHeadDim(llvm::ArrayRef<Row> rows,
                       const target::TargetInfo &target,
                       mlir::Type elementType) {
  int64_t largest = 0;
  for (const Row &row : rows)
    if (canDo(target, row, elementType))
      largest = std::max(largest, row.maxHeadDim);
  return largest;
}

/// The rows that the chip can do and that hold the head dimension: the first
/// that is for such kernels, then, in the order of the table, all others, which
/// may be for others. None if there is no such first one.
/// Rows are as ScheduleRow, of one kernel or several.
/// \param fits  what else a row must be; null: nothing
template <typename Row>
llvm::SmallVector<const Row *>
findRows(llvm::ArrayRef<Row> rows, const target::TargetInfo &target,
         mlir::Type elementType, int64_t headDim, KernelNeeds needs,
         llvm::function_ref<bool(const Row &)> fits = nullptr) {
  llvm::SmallVector<const Row *> found;
  for (const Row &row : rows)
    if (headDim <= row.maxHeadDim && canDo(target, row, elementType) &&
        row.serves(needs) && (!fits || fits(row)))
      found.push_back(&row);
  auto first = llvm::find_if(
      found, [&](const Row *row) { return isFor(*row, needs, headDim); });
  if (first == found.end())
    return {};
  std::rotate(found.begin(), first, first + 1);
  return found;
}

/// Of the schedules that are there, none counted twice, the one behind so many:
/// the first, then those most like it, which own as many rows above all. Null
/// if there are no more. Behind the first they must pass the check: their rows
/// are of other head dimensions too.
using ScheduleCheck = llvm::function_ref<llvm::LogicalResult(
    llvm::function_ref<mlir::InFlightDiagnostic()> emitError, ScheduleAttr)>;
ScheduleAttr pickSchedule(llvm::ArrayRef<ScheduleAttr> schedules,
                          int32_t passedOver, ScheduleCheck check);

/// What a kernel keeps in registers from its first block to its last.
struct Residents {
  llvm::StringRef what; ///< for messages: "the output and Q take"
  int64_t accumulators; ///< columns of f32 by block_m
  int64_t factors;      ///< columns by block_m
  int64_t other = 0;    ///< registers a lane of what else stays
};

/// What a schedule must be for the two products of a forward kernel, or the
/// first and the last of one of gradients.
llvm::LogicalResult
checkProducts(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
              const target::TargetInfo &target, mlir::Type elementType,
              HeadDims dims, ScheduleAttr schedule);

/// Fails, through `emitError`, if residents take more registers than the waves
/// that share a SIMD leave each.
llvm::LogicalResult
checkResidents(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
               const target::TargetInfo &target,
               const target::MatrixInstr &inst, ScheduleAttr schedule,
               const Residents &residents);

/// The same for a launch of gradients that has products (BackwardChecks.cpp).
llvm::LogicalResult
checkGradientLaunch(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                    const target::TargetInfo &target, mlir::Type elementType,
                    HeadDims dims, const spec::AlgorithmSpec &algorithm,
                    const spec::LaunchSpec &launch, ScheduleAttr kernel);

} // namespace fovea::attn

#endif // FOVEA_LIB_DIALECT_ATTN_TRANSFORMS_SCHEDULETABLE_H
