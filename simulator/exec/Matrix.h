//===- Matrix.h - Operands of matrix instructions ---------------*- C++ -*-===//
//
// Element types and lane maps that the matrix instructions share. The maps
// follow from M, N, K, the number of blocks and the element size, as AMD's matrix
// instruction calculator gives them (the unit test holds the formulas to its
// output).
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_MATRIX_H
#define FOVEA_SIMULATOR_EXEC_MATRIX_H

#include "exec/Engine.h"
#include "fovea/Simulator/Chip.h"
#include "isa/MiniFloat.h"

namespace fovea::sim::FOVEA_VARIANT {

/// Element types of A and B: elements in a word, and their conversion.
struct InF16 {
  using T = float;
  static constexpr int bits = 16;
  static T get(const uint32_t *p, int l, int e) {
    return halfToFloat(static_cast<uint16_t>(p[(e >> 1) * kLaneStride + l] >>
                                             (16 * (e & 1))));
  }
};
struct InBf16 {
  using T = float;
  static constexpr int bits = 16;
  static T get(const uint32_t *p, int l, int e) {
    uint32_t word = p[(e >> 1) * kLaneStride + l];
    return asF32(e & 1 ? word & 0xffff0000 : word << 16);
  }
};
struct InF32 {
  using T = float;
  static constexpr int bits = 32;
  static T get(const uint32_t *p, int l, int e) {
    return asF32(p[e * kLaneStride + l]);
  }
};
/// fp32 cut to the ten bits of mantissa of xf32.
struct InXf32 {
  using T = float;
  static constexpr int bits = 32;
  static T get(const uint32_t *p, int l, int e) {
    return asF32(p[e * kLaneStride + l] & 0xffffe000);
  }
};
/// fp16 and bf16 with denormals taken for zeros.
struct InF16Flushed : InF16 {
  static T get(const uint32_t *p, int l, int e) {
    T x = InF16::get(p, l, e);
    return std::fabs(x) < 0x1p-14f ? 0.0f : x;
  }
};
struct InBf16Flushed : InBf16 {
  static T get(const uint32_t *p, int l, int e) {
    T x = InBf16::get(p, l, e);
    return std::fabs(x) < 0x1p-126f ? 0.0f : x;
  }
};
/// Bytes of a small float format.
template <class M>
struct InSmall {
  using T = float;
  static constexpr int bits = 8;
  static T get(const uint32_t *p, int l, int e) {
    static const float *const table = decodeTable<M>();
    return table[(p[(e >> 2) * kLaneStride + l] >> (8 * (e & 3))) & 0xff];
  }
};
struct InI8 {
  using T = int32_t;
  static constexpr int bits = 8;
  static T get(const uint32_t *p, int l, int e) {
    return static_cast<int8_t>(p[(e >> 2) * kLaneStride + l] >> (8 * (e & 3)));
  }
};

/// Lane maps of an M x M x K instruction of B blocks on 64 lanes.
template <int M, int K, int B>
struct Layout {
  static constexpr int perLane = M * K * B / 64; ///< elements of A in a lane
  static constexpr int groups = 64 / M;          ///< of M lanes
  static constexpr int regs = M * M * B / 64;    ///< words of D in a lane
  // A: lane l, element e is A[block][l % M][k].
  static constexpr int aBlock(int group) { return group % B; }
  static constexpr int aK(int group, int e) { return group / B * perLane + e; }
  // D: register r, lane l is D[block][row][l % M], in runs of four rows.
  static constexpr int dRun(int r, int group) { return group + groups * (r / 4); }
  static constexpr int dRow(int r, int group) {
    return 4 * (dRun(r, group) % (M / 4)) + r % 4;
  }
  static constexpr int dBlock(int r, int group) {
    return dRun(r, group) / (M / 4);
  }
};

/// What the modifiers make of the lane that B is read from (blgp).
inline int bLane(unsigned blgp, int l) {
  switch (blgp) {
  case 1: return l & 31;
  case 2: return (l & 31) + 32;
  case 3: return (l + 16) & 63;
  case 4: case 5: case 6: case 7:
    return (l & 15) + 16 * static_cast<int>(blgp - 4);
  default: return l;
  }
}

template <class InA, class InB, int M, int K, int B>
struct Matrices {
  using T = typename InA::T;
  alignas(64) T a[B][K][M];
  alignas(64) T b[B][K][M];

  Matrices(const uint32_t *pa, const uint32_t *pb, const MicroOp &op,
           MfmaFault fault) {
    using L = Layout<M, K, B>;
    unsigned cbsz = op.aux & 15, abid = (op.aux >> 4) & 15;
    unsigned blgp = (op.aux >> 8) & 7;
    for (int e = 0; e < L::perLane; ++e)
      for (int g = 0; g < L::groups; ++g) {
        T *da = a[L::aBlock(g)][L::aK(g, e)], *db = b[L::aBlock(g)][L::aK(g, e)];
        FOVEA_ROW for (int i = 0; i < M; ++i)
          da[i] = InA::get(pa, g * M + i, e);
        if (blgp == 0)
          FOVEA_ROW for (int i = 0; i < M; ++i)
            db[i] = InB::get(pb, g * M + i, e);
        else
          for (int i = 0; i < M; ++i)
            db[i] = InB::get(pb, bLane(blgp, g * M + i), e);
      }
    if (cbsz && B > 1) { // one block of A for groups of 2^cbsz blocks
      auto *copy = new T[B][K][M];
      std::memcpy(copy, a, sizeof a);
      for (unsigned block = 0; block < B; ++block)
        std::memcpy(a[block], copy[(((block >> cbsz) << cbsz) + abid) % B],
                    sizeof a[0]);
      delete[] copy;
    }
    if (__builtin_expect(fault != MfmaFault::None, 0))
      plant(fault);
  }

  void plant(MfmaFault fault) {
    if (fault == MfmaFault::SwapRowsOfA)
      for (auto &block : a)
        for (auto &k : block)
          std::swap(k[0], k[1]);
    if (fault == MfmaFault::RotateK)
      for (auto &block : a)
        for (int k = 0; k + 1 < K; ++k)
          for (int i = 0; i < M; ++i)
            std::swap(block[k][i], block[k + 1][i]);
  }
};

/// The registers of C: all are read before D is written. D may lie over some of
/// them, off by a register or more (LLVM lets results of up to four registers do
/// so), and those are put aside first.
template <int REGS>
class SourceC {
public:
  SourceC(Wave &w, const MicroOp &op)
      : from(lanesOf(w, op.s[2], 2)),
        stride(op.s[2].kind == Operand::Vgpr ? kLaneStride : 0) {
    const uint32_t *d = w.vreg(op.d.reg);
    constexpr ptrdiff_t size = ptrdiff_t(REGS) * kLaneStride;
    if (stride == 0 || from == d || from - d >= size || d - from >= size)
      return;
    std::memcpy(aside, from, sizeof aside);
    from = aside;
  }
  /// The lanes of register r; the same for all r where C is a constant.
  const uint32_t *operator[](int r) const { return from + size_t(r) * stride; }

private:
  const uint32_t *from;
  size_t stride;
  alignas(64) uint32_t aside[size_t(REGS) * kLaneStride];
};

/// MODE.FP16_OVFL where matrix instructions heed it: results too large become
/// the largest number.
inline bool limitsMatrix(const Wave &w) {
  return w.limitsOverflow() && (w.group->chip->traits & kTraitMfmaClamp);
}
/// C of a product that may have to be limited, since D is written over it.
template <int REGS>
struct SavedC {
  uint32_t word[size_t(REGS) * kLaneStride];
  /// \p c(r): the lanes of register r.
  template <class Source>
  SavedC(bool wanted, const Source &c) {
    for (int r = 0; wanted && r < REGS; ++r)
      std::memcpy(word + size_t(r) * kLaneStride, c(r), kLaneStride * 4);
  }
};
/// The largest number for each infinite sum of \p d whose addend and whose
/// factors are finite. infinite(r, l): whether a factor of register r, lane l
/// is not. Apart from the products' loops, which it would slow.
template <int REGS, class Infinite>
[[gnu::noinline]] void limitSums(const SavedC<REGS> &c, uint32_t *d,
                                 Infinite infinite) {
  for (int r = 0; r < REGS; ++r)
    for (int l = 0; l < int(kLaneStride); ++l) {
      const size_t at = size_t(r) * kLaneStride + size_t(l);
      const float sum = asF32(d[at]);
      if (std::isinf(sum) && !std::isinf(asF32(c.word[at])) && !infinite(r, l))
        d[at] = asU32(std::copysign(std::numeric_limits<float>::max(), sum));
    }
}
/// The same for integers. products(r, l): the exact sum without the addend.
template <int REGS, class Products>
[[gnu::noinline]] void limitInts(const SavedC<REGS> &c, uint32_t *d,
                                 Products products) {
  for (int r = 0; r < REGS; ++r)
    for (int l = 0; l < int(kLaneStride); ++l) {
      const size_t at = size_t(r) * kLaneStride + size_t(l);
      const int64_t sum = int64_t(products(r, l)) + int32_t(c.word[at]);
      d[at] = static_cast<uint32_t>(
          imed3(sum, int64_t(INT32_MIN), int64_t(INT32_MAX)));
    }
}

/// A row of a table of matrix instructions.
struct MfmaRow {
  const char *mnemonic;
  Handler handler;
  uint32_t multiplyAdds;
  const char *source; ///< where shape and lane maps can be checked
  uint32_t traits = 0;
  Form form = Form::Mfma;
  Rate rate = Rate::Full;
};
void addMatrixRow(std::vector<Row> &rows, const MfmaRow &mfma);
void addPairwiseRows(std::vector<Row> &rows);
void addSparseRows(std::vector<Row> &rows);
void addScaledRows(std::vector<Row> &rows);

} // namespace fovea::sim::FOVEA_VARIANT

#endif // FOVEA_SIMULATOR_EXEC_MATRIX_H
