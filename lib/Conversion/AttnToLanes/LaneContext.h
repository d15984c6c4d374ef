//===- LaneContext.h - what a lane knows of itself --------------*- C++ -*-===//
//
// Shared by the patterns of convert-attn-to-lanes: the lane and wave number of
// a kernel, and coordinates computed from them by a layout. Coordinates are put
// before the outermost op that needs them: outside of loops, but not at the
// kernel's start, where those of the epilogue would hold registers throughout.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_CONVERSION_ATTNTOLANES_LANECONTEXT_H
#define FOVEA_CONVERSION_ATTNTOLANES_LANECONTEXT_H

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Layout/DotLayouts.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"
#include <map>
#include <string>
#include <tuple>

namespace fovea {

/// LDS, in LLVM.
constexpr unsigned kLdsAddressSpace = 3;

class LaneContext {
public:
  LaneContext(mlir::gpu::GPUFuncOp kernel, const target::TargetInfo &target);

  const target::TargetInfo &getTarget() const { return target; }
  mlir::gpu::GPUFuncOp getKernel() const { return kernel; }

  /// i32 number of the lane in its wave.
  mlir::Value getLane() const { return lane; }

  /// Where what `op` needs of its lane is computed: before `op` or, if that is
  /// in a loop or branch, before the outermost of them that is no kernel's
  /// text.
  mlir::ImplicitLocOpBuilder builderBefore(mlir::Operation *op);

  /// i32 coordinate `dim` of register 0 of this lane, inside a unit.
  mlir::Value coordinate(mlir::Operation *op, const layout::TileLayout &layout,
                         int dim);

  /// i1: this lane is the first of those that hold the same elements; null if
  /// nothing is replicated.
  mlir::Value isFirstHolder(mlir::Operation *op,
                            const layout::TileLayout &layout);

  /// The same of lane 0 of this wave, in a scalar register.
  mlir::Value waveCoordinate(mlir::Operation *op,
                             const layout::TileLayout &layout, int dim);

  /// i32 byte in its row of register 0 of this lane of the first unit, as the
  /// swizzle of an LDS tile has it. Column bits of `xorBytes` are exchanged in
  /// place.
  mlir::Value swizzledColumn(mlir::Operation *op,
                             const layout::TileLayout &layout,
                             attn::LdsType type, int64_t xorBytes);

  /// i32 byte address in LDS of register 0 of this lane of the first unit.
  /// Column bits of `xorBytes` are exchanged in place.
  mlir::Value ldsBase(mlir::Operation *op, const layout::TileLayout &layout,
                      attn::LdsType type, int64_t xorBytes);

  /// What this lane and the lane with number `lane XOR mask` have, in an order
  /// that both agree on or not: for operations that do not mind.
  std::pair<mlir::Value, mlir::Value> exchangePair(mlir::OpBuilder &b,
                                                   mlir::Operation *op,
                                                   mlir::Value value, int mask);

  /// i1, in a scalar register: whether this wave is of the second half of its
  /// workgroup's.
  mlir::Value isLateWave(mlir::ImplicitLocOpBuilder &b);

  /// i1: whether this lane has the parity.
  mlir::Value hasParity(mlir::Operation *op, layout::Conversion::Parity parity);

  /// The value, of 32 bits, that the lane with number `lane XOR mask` has, by
  /// the cheapest instruction of the chip.
  mlir::Value exchange(mlir::OpBuilder &b, mlir::Operation *op,
                       mlir::Value value, int mask);

  mlir::Value i32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
  mlir::Value i32(mlir::ImplicitLocOpBuilder &b, int64_t value) {
    return i32(b, b.getLoc(), value);
  }

  /// The alias scope of copies to LDS; null if the kernel has none. Reads of
  /// LDS declare that they do not touch it: the tile program waits for copies
  /// before it reads what they bring, and LLVM, which cannot tell one buffer
  /// from another, would wait for all of them before any read.
  mlir::ArrayAttr getCopyScope() const { return copyScope; }

  int getWaves() const { return waves; } ///< of a workgroup
  /// Bytes of LDS that a workgroup may take beside its tiles, and as many fit
  /// a compute unit all the same.
  int64_t getLdsLeft() const { return ldsLeft; }

  /// Address in LDS of bytes that are this wave's alone, and in them of what
  /// has the number of this lane, or of those of its bits; 16 bytes each. Calls
  /// with as many bytes share them.
  mlir::Value ldsOfWave(mlir::Operation *op, int64_t bytes, uint32_t laneBits);

  /// Whether this is a forward kernel whose waves need not wait for what a
  /// program reads of each block: they hide what LDS takes, and no load of
  /// theirs is held up where others are issued early.
  bool isSteady() const { return isForward && !readsBlocks; }

  /// Whether a wave of 32 lanes holds the output of two tiles of queries.
  bool holdsTwoTiles() const { return hasTwoTiles; }

  /// Whether LDS reaches further than the offsets of its instructions.
  bool isLdsFar() const { return hasFarLds; }

  /// Address in the LDS tiles at `lds` that ldsBase() is of, in a register that
  /// all accesses share: LLVM would add what is past an instruction's offset
  /// for each of them.
  mlir::Value farLdsBase(mlir::Operation *op, mlir::Value lds,
                         const layout::TileLayout &layout, attn::LdsType type,
                         int64_t xorBytes);

private:
  mlir::Value bitsOf(mlir::ImplicitLocOpBuilder &b,
                     llvm::ArrayRef<layout::Coord> bases, int dim,
                     mlir::Value index);

  mlir::gpu::GPUFuncOp kernel;
  const target::TargetInfo &target;
  mlir::Value lane, wave;
  /// Its occupancy leaves a wave fewer registers than instructions can name.
  bool isTight = false;
  bool isForward = false;
  bool readsBlocks = false; ///< a score program, in loops
  int waves = 1;            ///< of a workgroup
  int64_t ldsLeft = 0;
  bool hasTwoTiles = false;
  bool hasFarLds = false;
  std::map<std::tuple<const void *, std::string, const void *, int64_t>,
           mlir::Value>
      farBases;
  mlir::ArrayAttr copyScope;
};

/// The swizzle of an LDS tile as the layout algebra has it.
layout::Swizzle getSwizzle(attn::LdsType type);

/// Patterns that need the context; one set a kernel.
void populateMemoryToLanesPatterns(mlir::TypeConverter &converter,
                                   mlir::RewritePatternSet &patterns,
                                   LaneContext &context);
void populateLdsToLanesPatterns(mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns,
                                LaneContext &context);
void populateComputeToLanesPatterns(mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns,
                                    LaneContext &context);
void populateDropoutToLanesPatterns(mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns,
                                    LaneContext &context);
void populateMovesToLanesPatterns(mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns,
                                  LaneContext &context);

} // namespace fovea

#endif // FOVEA_CONVERSION_ATTNTOLANES_LANECONTEXT_H
