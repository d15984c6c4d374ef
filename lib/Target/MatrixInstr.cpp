//===- MatrixInstr.cpp - the table of matrix instructions -----------------===//

#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace fovea::target {

using layout::TileLayout;

// Layouts are written as TileLayout(register bits, lane bits, wave bits),
// lowest bit first. A row's layout of A; where nothing else is said, B holds n
// where A holds m.

/// A of an m x k instruction whose lanes hold one row each, and `elements`
/// consecutive elements of it; the lanes past m continue along k.
static TileLayout rowsOfA(int m, int k, int elements) {
  layout::Bases registers, lanes;
  for (int bit = 1; bit < elements; bit <<= 1)
    registers.push_back({0, bit});
  for (int bit = 1; bit < m; bit <<= 1)
    lanes.push_back({bit, 0});
  for (int bit = elements; bit < k; bit <<= 1)
    lanes.push_back({0, bit});
  return TileLayout(registers, lanes, {});
}

/// MFMA's 32 x 32 results: four consecutive rows a lane, in groups of eight.
static TileLayout mfma32D() {
  return TileLayout({{1, 0}, {2, 0}, {8, 0}, {16, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}, {});
}
static TileLayout mfma16D() {
  return TileLayout({{1, 0}, {2, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}, {});
}

// gfx11: both halves of the wave hold all of A and B; of the result the lower
// half holds the even rows, the upper the odd ones.
static TileLayout wmmaRepeatedA() {
  return TileLayout({{0, 1}, {0, 2}, {0, 4}, {0, 8}},
                    {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 0}}, {});
}
static TileLayout wmmaRepeatedD() {
  return TileLayout({{2, 0}, {4, 0}, {8, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}}, {});
}
// gfx12: the halves hold eight rows of the result each.
static TileLayout wmmaD() {
  return TileLayout({{1, 0}, {2, 0}, {4, 0}},
                    {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}}, {});
}
// gfx1250: a lane holds two runs of eight. The order of the contraction does
// not matter as long as A and B share it.
static TileLayout wmmaDoubleA() {
  return TileLayout({{0, 1}, {0, 2}, {0, 4}, {0, 16}},
                    {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}}, {});
}

// Columns of lanes: A is in all of them, which LDS gives in one broadcast; of B
// and the result a lane holds a column, so that nothing moves between lanes.
static TileLayout lanesA() {
  return TileLayout({{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}},
                    {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, {});
}
static TileLayout lanesColumns(int rows) {
  layout::Bases registers;
  for (int bit = 1; bit < rows; bit <<= 1)
    registers.push_back({bit, 0});
  return TileLayout(registers, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}}, {});
}

llvm::ArrayRef<MatrixInstr> allMatrixInstrs() {
  using Type = ElementType;
  auto row = [](llvm::StringRef name, MatrixFamily family, Type type, int m,
                int n, int k, int waveSize, uint32_t feature,
                const TileLayout &a, const TileLayout &d) {
    return MatrixInstr{{name, family, m, n, k}, type, waveSize, feature, a,
                       a.transposed(),          d};
  };
  auto mfma32 = [&](llvm::StringRef name, Type type, int k, uint32_t feature) {
    return row(name, MatrixFamily::Mfma, type, 32, 32, k, 64, feature,
               rowsOfA(32, k, k / 2), mfma32D());
  };
  auto mfma16 = [&](llvm::StringRef name, Type type, int k, uint32_t feature) {
    return row(name, MatrixFamily::Mfma, type, 16, 16, k, 64, feature,
               rowsOfA(16, k, k / 4), mfma16D());
  };
  auto wmma = [&](llvm::StringRef name, Type type, int k, uint32_t feature,
                  const TileLayout &a, const TileLayout &d) {
    return row(name, MatrixFamily::Wmma, type, 16, 16, k, 32, feature, a, d);
  };
  static const MatrixInstr rows[] = {
      mfma32("mfma_32x32x16", Type::F16, 16, kMfmaDoubleK),
      mfma32("mfma_32x32x16", Type::BF16, 16, kMfmaDoubleK),
      mfma16("mfma_16x16x32", Type::F16, 32, kMfmaDoubleK),
      mfma16("mfma_16x16x32", Type::BF16, 32, kMfmaDoubleK),
      mfma32("mfma_32x32x8", Type::F16, 8, kMfmaF16),
      mfma32("mfma_32x32x8", Type::BF16, 8, kMfmaBf16_1k),
      mfma16("mfma_16x16x16", Type::F16, 16, kMfmaF16),
      mfma16("mfma_16x16x16", Type::BF16, 16, kMfmaBf16_1k),
      mfma32("mfma_32x32x4", Type::BF16, 4, kMfmaBf16),
      mfma16("mfma_16x16x8", Type::BF16, 8, kMfmaBf16),
      mfma32("mfma_32x32x2", Type::F32, 2, kMfmaF32),
      mfma16("mfma_16x16x4", Type::F32, 4, kMfmaF32),
      mfma32("mfma_32x32x16", Type::F8E4M3FNUZ, 16, kFp8Fnuz),
      mfma16("mfma_16x16x32", Type::F8E4M3FNUZ, 32, kFp8Fnuz),
      mfma32("mfma_32x32x16", Type::F8E4M3FN, 16, kFp8),
      mfma32("mfma_32x32x16", Type::F8E5M2, 16, kFp8),
      mfma16("mfma_16x16x32", Type::F8E4M3FN, 32, kFp8),
      mfma16("mfma_16x16x32", Type::F8E5M2, 32, kFp8),
      wmma("wmma_16x16x16", Type::F16, 16, kWmmaRepeated, wmmaRepeatedA(),
           wmmaRepeatedD()),
      wmma("wmma_16x16x16", Type::BF16, 16, kWmmaRepeated, wmmaRepeatedA(),
           wmmaRepeatedD()),
      wmma("wmma_16x16x16", Type::F16, 16, kWmma, rowsOfA(16, 16, 8), wmmaD()),
      wmma("wmma_16x16x16", Type::BF16, 16, kWmma, rowsOfA(16, 16, 8), wmmaD()),
      wmma("wmma_16x16x16", Type::F8E4M3FN, 16, kWmma | kFp8,
           rowsOfA(16, 16, 8), wmmaD()),
      wmma("wmma_16x16x16", Type::F8E5M2, 16, kWmma | kFp8, rowsOfA(16, 16, 8),
           wmmaD()),
      wmma("wmma_16x16x32", Type::F16, 32, kWmmaDoubleK, wmmaDoubleA(),
           wmmaD()),
      wmma("wmma_16x16x32", Type::BF16, 32, kWmmaDoubleK, wmmaDoubleA(),
           wmmaD()),
      {{"lanes_8x32x4", MatrixFamily::Lanes, 8, 32, 4},
       Type::F32,
       32,
       kLaneProducts,
       lanesA(),
       lanesColumns(4),
       lanesColumns(8)},
  };
  return rows;
}

const MatrixShape *lookupMatrixShape(llvm::StringRef name) {
  for (const MatrixInstr &row : allMatrixInstrs())
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string matrixInstrNames() {
  llvm::SmallSetVector<llvm::StringRef, 16> names;
  for (const MatrixInstr &row : allMatrixInstrs())
    names.insert(row.name);
  return llvm::join(names, ", ");
}

const MatrixInstr *lookupMatrixInstr(const TargetInfo &target,
                                     llvm::StringRef name, ElementType type) {
  for (const MatrixInstr &row : allMatrixInstrs())
    if (row.name == name && row.type == type && target.has(row.feature) &&
        row.waveSize == target.waveSize)
      return &row;
  return nullptr;
}

const layout::TransposedRead *ldsTransposedRead(const TargetInfo &target,
                                                int elementBytes) {
  // ds_read_b64_tr_b16. Source: AMD's CDNA4 instruction set document.
  static const layout::TransposedRead readB64TrB16 = {
      /*elementBytes=*/2, /*elementBits=*/2, /*laneBits=*/4};
  bool fits = target.has(kLdsTransposedRead) &&
              elementBytes == readB64TrB16.elementBytes;
  return fits ? &readB64TrB16 : nullptr;
}

std::string matrixInstrNames(const TargetInfo &target, ElementType type) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const MatrixInstr &row : allMatrixInstrs())
    if (lookupMatrixInstr(target, row.name, type) == &row)
      names.push_back(row.name);
  return llvm::join(names, ", ");
}

} // namespace fovea::target
