//===- MatrixInstr.h - the table of matrix instructions ---------*- C++ -*-===//
//
// One row an instruction: its shape, types, operand layouts and cost. Schedules
// name a row; layouts are derived from it; the emitters of MFMA and WMMA look
// up nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_MATRIXINSTR_H
#define FOVEA_TARGET_MATRIXINSTR_H

#include "fovea/Layout/LdsAccess.h"
#include "fovea/Target/ElementType.h"
#include "fovea/Target/TargetInfo.h"

namespace fovea::target {

/// `Lanes` is no instruction of the chip: each lane computes columns of its own
/// with vector instructions, from rows that all lanes hold.
enum class MatrixFamily { Mfma, Wmma, Lanes };

/// What a name stands for; chips that share it may lay operands out each in
/// their own way.
struct MatrixShape {
  llvm::StringRef name; ///< as schedules spell it: family and shape
  MatrixFamily family;
  int m, n, k;
};

/// D[m][n] = A[m][k] * B[k][n] + C[m][n], computed by one wave.
struct MatrixInstr : MatrixShape {
  ElementType type; ///< of the two factors; products and sums are f32
  int waveSize;
  uint32_t feature; ///< what the chip must have

  /// Layouts of one instruction's operands. Dimensions: A {m, k}, B {k, n},
  /// D {m, n}; C is laid out as D.
  /// Source: amd_matrix_instruction_calculator --detail-instruction;
  /// it lacks gfx1250, whose row is checked by no execution.
  layout::TileLayout a, b, d;

  /// The same for the algebra of products.
  layout::InstrLayouts layouts() const {
    return {a, b, d, elementTypeInfo(type).bytes()};
  }
};

llvm::ArrayRef<MatrixInstr> allMatrixInstrs();

/// Family and shape of an instruction name; null if no chip has it.
const MatrixShape *lookupMatrixShape(llvm::StringRef name);

/// All names, for messages: "mfma_32x32x16, ...".
std::string matrixInstrNames();

/// The row of an instruction name and factor type on a chip; null if the chip
/// has none.
const MatrixInstr *lookupMatrixInstr(const TargetInfo &target,
                                     llvm::StringRef name, ElementType type);

/// The chip's read of LDS that transposes elements of that size; null if it has
/// none.
const layout::TransposedRead *ldsTransposedRead(const TargetInfo &target,
                                                int elementBytes);

/// Names that `lookupMatrixInstr` accepts for this chip and type.
std::string matrixInstrNames(const TargetInfo &target, ElementType type);

} // namespace fovea::target

#endif // FOVEA_TARGET_MATRIXINSTR_H
