//===- MatrixInstr.cpp - the table of matrix instructions -----------------===//

#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fovea::target {

using layout::TileLayout;

// Operand layouts of the MFMA shapes with four elements a lane. Written as
// TileLayout(register bits, lane bits, wave bits), lowest bit first.
static TileLayout mfma32x32x8A() {
  return TileLayout({{0, 1}, {0, 2}},
                    {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 4}}, {});
}
static TileLayout mfma32x32x8D() {
  return TileLayout({{1, 0}, {2, 0}, {8, 0}, {16, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}, {});
}
static TileLayout mfma16x16x16A() {
  return TileLayout({{0, 1}, {0, 2}},
                    {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 4}, {0, 8}}, {});
}
static TileLayout mfma16x16x16D() {
  return TileLayout({{1, 0}, {2, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}, {});
}

llvm::ArrayRef<MatrixInstr> allMatrixInstrs() {
  // In MFMA, B holds n where A holds m: its layout is A's transposed.
  static const MatrixInstr rows[] = {
      {"mfma_32x32x8", MatrixFamily::Mfma, FactorType::F16, 32, 32, 8, 64,
       /*passes=*/8, kMfmaF16, mfma32x32x8A(), mfma32x32x8A().transposed(),
       mfma32x32x8D()},
      {"mfma_32x32x8", MatrixFamily::Mfma, FactorType::BF16, 32, 32, 8, 64,
       /*passes=*/8, kMfmaBf16_1k, mfma32x32x8A(), mfma32x32x8A().transposed(),
       mfma32x32x8D()},
      {"mfma_16x16x16", MatrixFamily::Mfma, FactorType::F16, 16, 16, 16, 64,
       /*passes=*/4, kMfmaF16, mfma16x16x16A(), mfma16x16x16A().transposed(),
       mfma16x16x16D()},
      {"mfma_16x16x16", MatrixFamily::Mfma, FactorType::BF16, 16, 16, 16, 64,
       /*passes=*/4, kMfmaBf16_1k, mfma16x16x16A(),
       mfma16x16x16A().transposed(), mfma16x16x16D()},
  };
  return rows;
}

const MatrixInstr *lookupMatrixInstr(const TargetInfo &target,
                                     llvm::StringRef name, FactorType type) {
  for (const MatrixInstr &row : allMatrixInstrs())
    if (row.name == name && row.type == type && target.has(row.feature) &&
        row.waveSize == target.waveSize)
      return &row;
  return nullptr;
}

std::string matrixInstrNames(const TargetInfo &target, FactorType type) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const MatrixInstr &row : allMatrixInstrs())
    if (lookupMatrixInstr(target, row.name, type) == &row)
      names.push_back(row.name);
  return llvm::join(names, ", ");
}

} // namespace fovea::target
