//===- Mfma.cpp - Matrix instructions -------------------------------------===//
//
// One table row an instruction; the lane maps follow from M, N, K, the number of
// blocks and the element type, as AMD's matrix instruction calculator gives them
// (the unit test holds the formulas to its output). Accumulation is a chain of
// fused multiply-adds in order of k, starting from C, rounded to nearest even,
// denormals kept (CDNA3 ISA reference, chapter on matrix arithmetic).
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Element types of A and B: elements in a word, and their conversion.
struct InF16 {
  using T = float;
  static T get(const uint32_t *p, int l, int e) {
    return halfToFloat(static_cast<uint16_t>(p[(e >> 1) * kLaneStride + l] >>
                                             (16 * (e & 1))));
  }
};
struct InBf16 {
  using T = float;
  static T get(const uint32_t *p, int l, int e) {
    uint32_t word = p[(e >> 1) * kLaneStride + l];
    return asF32(e & 1 ? word & 0xffff0000 : word << 16);
  }
};
struct InF32 {
  using T = float;
  static T get(const uint32_t *p, int l, int e) {
    return asF32(p[e * kLaneStride + l]);
  }
};
struct InI8 {
  using T = int32_t;
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
int bLane(unsigned blgp, int l) {
  switch (blgp) {
  case 1: return l & 31;
  case 2: return (l & 31) + 32;
  case 3: return (l + 16) & 63;
  case 4: case 5: case 6: case 7:
    return (l & 15) + 16 * static_cast<int>(blgp - 4);
  default: return l;
  }
}

template <class In, int M, int K, int B>
struct Matrices {
  using T = typename In::T;
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
        for (int i = 0; i < M; ++i)
          da[i] = In::get(pa, g * M + i, e);
        if (blgp == 0)
          for (int i = 0; i < M; ++i)
            db[i] = In::get(pb, g * M + i, e);
        else
          for (int i = 0; i < M; ++i)
            db[i] = In::get(pb, bLane(blgp, g * M + i), e);
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

/// D = C + A * B on floats, four rows at a time.
template <class In, int M, int K, int B>
void mfmaFloat(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, B>;
  // A typedef: gcc 12 drops an attribute of an alias that depends on M.
  typedef float V __attribute__((vector_size(M * 4)));
  static_assert(sizeof(V) == M * 4, "a vector holds a row");
  MfmaFault fault = w.group->mfmaFault;
  Matrices<In, M, K, B> m(w.vreg(op.s[0].reg), w.vreg(op.s[1].reg), op, fault);
  bool constantC = op.s[2].kind != Operand::Vgpr;
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  size_t cStride = constantC ? 0 : kLaneStride;
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; r += 4)
    for (int g = 0; g < L::groups; ++g) {
      int row = L::dRow(r, g), block = L::dBlock(r, g);
      if (__builtin_expect(fault == MfmaFault::SwapBlocksOfD, 0))
        row = (row + 4) % M;
      V acc[4];
      for (int i = 0; i < 4; ++i)
        std::memcpy(&acc[i], c + size_t(r + i) * cStride + g * M, sizeof(V));
      for (int k = 0; k < K; ++k) {
        V bv;
        std::memcpy(&bv, m.b[block][k], sizeof bv);
        for (int i = 0; i < 4; ++i)
          acc[i] = m.a[block][k][row + i] * bv + acc[i];
      }
      for (int i = 0; i < 4; ++i)
        std::memcpy(d + size_t(r + i) * kLaneStride + g * M, &acc[i], sizeof(V));
    }
}

template <class In, int M, int K, int B>
void mfmaInt(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, B>;
  Matrices<In, M, K, B> m(w.vreg(op.s[0].reg), w.vreg(op.s[1].reg), op,
                          w.group->mfmaFault);
  bool constantC = op.s[2].kind != Operand::Vgpr;
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  size_t cStride = constantC ? 0 : kLaneStride;
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; ++r)
    for (int l = 0; l < 64; ++l) {
      int g = l / M, row = L::dRow(r, g), block = L::dBlock(r, g);
      uint32_t sum = c[size_t(r) * cStride + l];
      for (int k = 0; k < K; ++k)
        sum += static_cast<uint32_t>(m.a[block][k][row] * m.b[block][k][l % M]);
      d[size_t(r) * kLaneStride + l] = sum;
    }
}

/// fp64: a lane holds one element of A and B; rows of D come one by one.
template <int M, int K, int B>
void mfmaDouble(Wave &w, const MicroOp &op) {
  constexpr int groups = 64 / M, regs = M * M * B / 64;
  double a[B][K][M], b[B][K][M];
  const uint32_t *pa = w.vreg(op.s[0].reg), *pb = w.vreg(op.s[1].reg);
  for (int l = 0; l < 64; ++l) {
    int g = l / M;
    a[g % B][g / B][l % M] = F64::load(pa, l);
    b[g % B][g / B][l % M] = F64::load(pb, l);
  }
  bool constantC = op.s[2].kind != Operand::Vgpr;
  const uint32_t *c = lanesOf(w, op.s[2], 2);
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < regs; ++r)
    for (int l = 0; l < 64; ++l) {
      int g = l / M;
      int row = B == 1 ? g + groups * r : g / B;
      int block = B == 1 ? 0 : g % B;
      double sum = F64::load(c + (constantC ? 0 : 2 * r * kLaneStride), l);
      for (int k = 0; k < K; ++k)
        sum = std::fma(a[block][k][row], b[block][k][l % M], sum);
      F64::store(d + 2 * r * kLaneStride, l, sum);
    }
}

struct MfmaRow {
  const char *mnemonic;
  Handler handler;
  uint32_t flops; ///< multiply-adds
  const char *source;
};
constexpr const char *kCalc = "amd_matrix_instruction_calculator -a cdna3";
#define DENSE(NAME_940, NAME_90A, FN, IN, M, K, B)                             \
  {NAME_940, FN<IN, M, K, B>, M * M * K * B, kCalc},                           \
      {NAME_90A, FN<IN, M, K, B>, M * M * K * B, kCalc}
constexpr MfmaRow kMfma[] = {
    DENSE("v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8f16", mfmaFloat, InF16, 32, 8, 1),
    DENSE("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16f16", mfmaFloat, InF16, 16, 16, 1),
    DENSE("v_mfma_f32_32x32x4_2b_f16", "v_mfma_f32_32x32x4f16", mfmaFloat, InF16, 32, 4, 2),
    DENSE("v_mfma_f32_16x16x4_4b_f16", "v_mfma_f32_16x16x4f16", mfmaFloat, InF16, 16, 4, 4),
    DENSE("v_mfma_f32_4x4x4_16b_f16", "v_mfma_f32_4x4x4f16", mfmaFloat, InF16, 4, 4, 16),
    DENSE("v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x8bf16_1k", mfmaFloat, InBf16, 32, 8, 1),
    DENSE("v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16bf16_1k", mfmaFloat, InBf16, 16, 16, 1),
    DENSE("v_mfma_f32_32x32x4_2b_bf16", "v_mfma_f32_32x32x4bf16_1k", mfmaFloat, InBf16, 32, 4, 2),
    DENSE("v_mfma_f32_16x16x4_4b_bf16", "v_mfma_f32_16x16x4bf16_1k", mfmaFloat, InBf16, 16, 4, 4),
    DENSE("v_mfma_f32_4x4x4_16b_bf16", "v_mfma_f32_4x4x4bf16_1k", mfmaFloat, InBf16, 4, 4, 16),
    DENSE("v_mfma_f32_32x32x2_f32", "v_mfma_f32_32x32x2f32", mfmaFloat, InF32, 32, 2, 1),
    DENSE("v_mfma_f32_16x16x4_f32", "v_mfma_f32_16x16x4f32", mfmaFloat, InF32, 16, 4, 1),
    DENSE("v_mfma_f32_32x32x1_2b_f32", "v_mfma_f32_32x32x1f32", mfmaFloat, InF32, 32, 1, 2),
    DENSE("v_mfma_f32_16x16x1_4b_f32", "v_mfma_f32_16x16x1f32", mfmaFloat, InF32, 16, 1, 4),
    DENSE("v_mfma_f32_4x4x1_16b_f32", "v_mfma_f32_4x4x1f32", mfmaFloat, InF32, 4, 1, 16),
    DENSE("v_mfma_i32_32x32x16_i8", "v_mfma_i32_32x32x16i8", mfmaInt, InI8, 32, 16, 1),
    DENSE("v_mfma_i32_16x16x32_i8", "v_mfma_i32_16x16x32i8", mfmaInt, InI8, 16, 32, 1),
    DENSE("v_mfma_i32_32x32x4_2b_i8", "v_mfma_i32_32x32x4i8", mfmaInt, InI8, 32, 4, 2),
    DENSE("v_mfma_i32_16x16x4_4b_i8", "v_mfma_i32_16x16x4i8", mfmaInt, InI8, 16, 4, 4),
    DENSE("v_mfma_i32_4x4x4_16b_i8", "v_mfma_i32_4x4x4i8", mfmaInt, InI8, 4, 4, 16),
    {"v_mfma_f64_16x16x4_f64", mfmaDouble<16, 4, 1>, 16 * 16 * 4, kCalc},
    {"v_mfma_f64_16x16x4f64", mfmaDouble<16, 4, 1>, 16 * 16 * 4, kCalc},
    {"v_mfma_f64_4x4x4_4b_f64", mfmaDouble<4, 4, 4>, 4 * 4 * 4 * 4, kCalc},
    {"v_mfma_f64_4x4x4f64", mfmaDouble<4, 4, 4>, 4 * 4 * 4 * 4, kCalc},
};

} // namespace

void addMfmaRows(std::vector<Row> &rows) {
  for (const MfmaRow &mfma : kMfma) {
    Row row;
    row.mnemonic = mfma.mnemonic;
    row.cls = InstClass::Mfma;
    row.form = Form::Mfma;
    row.handler = mfma.handler;
    row.param = mfma.flops;
    bool f64 = row.mnemonic.substr(0, 10) == "v_mfma_f64";
    bool i32 = row.mnemonic.substr(0, 10) == "v_mfma_i32";
    row.d = f64 ? Ty::F64 : Ty::B32;
    row.s[2] = f64 ? Ty::F64 : i32 ? Ty::I32 : Ty::F32;
    rows.push_back(row);
  }
}

} // namespace fovea::sim::FOVEA_VARIANT
