//===- Mfma.cpp - Dense matrix instructions -------------------------------===//
//
// One table row an instruction. gfx942 and later: accumulation is a chain of
// fused multiply-adds in order of k, starting from C, rounded to nearest even,
// denormals kept (CDNA3 ISA reference, chapter on matrix arithmetic). gfx908 and
// gfx90a add the products of fp16 and bf16 in pairs, and pairs of pairs, before
// they go to C; gfx90a takes denormals for zeros and makes none (Xie et al.,
// "MMA-Sim", arXiv 2511.10909; AMD's MIOpen documentation on MI200).
//
//===----------------------------------------------------------------------===//
#include "exec/Matrix.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// D = C + A * B on floats, four rows at a time.
template <class InA, class InB, int M, int K, int B>
void mfmaFloatOf(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, B>;
  // A typedef: gcc 12 drops an attribute of an alias that depends on M.
  typedef float V __attribute__((vector_size(M * 4)));
  static_assert(sizeof(V) == M * 4, "a vector holds a row");
  MfmaFault fault = w.group->mfmaFault;
  Matrices<InA, InB, M, K, B> m(w.vreg(op.s[0].reg), w.vreg(op.s[1].reg), op,
                                fault);
  SourceC<L::regs> c(w, op);
  const bool limits = limitsMatrix(w);
  const SavedC<L::regs> saved(limits, [&](int r) { return c[r]; });
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; r += 4)
    for (int g = 0; g < L::groups; ++g) {
      int row = L::dRow(r, g), block = L::dBlock(r, g);
      if (__builtin_expect(fault == MfmaFault::SwapBlocksOfD, 0))
        row = (row + 4) % M;
      V acc[4];
      for (int i = 0; i < 4; ++i)
        std::memcpy(&acc[i], c[r + i] + g * M, sizeof(V));
      for (int k = 0; k < K; ++k) {
        V bv;
        std::memcpy(&bv, m.b[block][k], sizeof bv);
        for (int i = 0; i < 4; ++i)
          acc[i] = m.a[block][k][row + i] * bv + acc[i];
      }
      for (int i = 0; i < 4; ++i)
        std::memcpy(d + size_t(r + i) * kLaneStride + g * M, &acc[i], sizeof(V));
    }
  if (__builtin_expect(limits, 0))
    limitSums(saved, d, [&](int r, int l) {
      const int g = l / M, row = L::dRow(r, g), block = L::dBlock(r, g);
      bool any = false;
      for (int k = 0; k < K; ++k)
        any |=
            std::isinf(m.a[block][k][row]) || std::isinf(m.b[block][k][l % M]);
      return any;
    });
}

template <class In, int M, int K, int B>
void mfmaFloat(Wave &w, const MicroOp &op) {
  mfmaFloatOf<In, In, M, K, B>(w, op);
}

template <class In, int M, int K, int B>
void mfmaInt(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, B>;
  Matrices<In, In, M, K, B> m(w.vreg(op.s[0].reg), w.vreg(op.s[1].reg), op,
                              w.group->mfmaFault);
  SourceC<L::regs> c(w, op);
  const bool limits = limitsMatrix(w);
  const SavedC<L::regs> saved(limits, [&](int r) { return c[r]; });
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; ++r)
    for (int l = 0; l < 64; ++l) {
      int g = l / M, row = L::dRow(r, g), block = L::dBlock(r, g);
      uint32_t sum = c[r][l];
      for (int k = 0; k < K; ++k)
        sum += static_cast<uint32_t>(m.a[block][k][row] * m.b[block][k][l % M]);
      d[size_t(r) * kLaneStride + l] = sum;
    }
  if (__builtin_expect(limits, 0))
    limitInts(saved, d, [&](int r, int l) {
      const int g = l / M, row = L::dRow(r, g), block = L::dBlock(r, g);
      int64_t sum = 0;
      for (int k = 0; k < K; ++k)
        sum += m.a[block][k][row] * m.b[block][k][l % M];
      return sum;
    });
}

/// fp64: a lane holds one element of A and B; rows of D come one by one. The
/// field of blgp negates A, B and C.
template <int M, int K, int B>
void mfmaDouble(Wave &w, const MicroOp &op) {
  constexpr int groups = 64 / M, regs = M * M * B / 64;
  double a[B][K][M], b[B][K][M];
  const uint32_t *pa = w.vreg(op.s[0].reg), *pb = w.vreg(op.s[1].reg);
  double sign[3];
  for (int i = 0; i < 3; ++i)
    sign[i] = (op.aux >> (8 + i)) & 1 ? -1.0 : 1.0;
  for (int l = 0; l < 64; ++l) {
    int g = l / M;
    a[g % B][g / B][l % M] = sign[0] * F64::load(pa, l);
    b[g % B][g / B][l % M] = sign[1] * F64::load(pb, l);
  }
  SourceC<2 * regs> c(w, op);
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < regs; ++r)
    for (int l = 0; l < 64; ++l) {
      int g = l / M;
      int row = B == 1 ? g + groups * r : g / B;
      int block = B == 1 ? 0 : g % B;
      double sum = sign[2] * F64::load(c[2 * r], l);
      for (int k = 0; k < K; ++k)
        sum = std::fma(a[block][k][row], b[block][k][l % M], sum);
      F64::store(d + 2 * r * kLaneStride, l, sum);
    }
}

constexpr const char *kCalc = "amd_matrix_instruction_calculator -a cdna3";
constexpr const char *kCdna4 = "CDNA4 ISA document, dense MFMA operand layouts";
#define DENSE(NAME, FN, IN, M, K, B, SOURCE)                                   \
  {NAME, FN<IN, M, K, B>, M * M * K * B, SOURCE}
/// fp32 and fp64 products leave the vector ALU idle, as the calculator says.
#define ALONE(NAME, FN, M, K, B)                                               \
  {NAME, FN, M * M * K * B, kCalc, 0, Form::Mfma, Rate::Alone}
/// fp8 and bf8 in all four combinations, in the formats of a generation.
#define SMALL(SHAPE, M, K, FP8, BF8, TRAITS)                                   \
  {"v_mfma_f32_" SHAPE "_fp8_fp8", mfmaFloatOf<InSmall<FP8>, InSmall<FP8>, M, K, 1>, M * M * K, kCalc, TRAITS}, \
      {"v_mfma_f32_" SHAPE "_fp8_bf8", mfmaFloatOf<InSmall<FP8>, InSmall<BF8>, M, K, 1>, M * M * K, kCalc, TRAITS}, \
      {"v_mfma_f32_" SHAPE "_bf8_fp8", mfmaFloatOf<InSmall<BF8>, InSmall<FP8>, M, K, 1>, M * M * K, kCalc, TRAITS}, \
      {"v_mfma_f32_" SHAPE "_bf8_bf8", mfmaFloatOf<InSmall<BF8>, InSmall<BF8>, M, K, 1>, M * M * K, kCalc, TRAITS}
constexpr MfmaRow kMfma[] = {
    DENSE("v_mfma_f32_32x32x8_f16", mfmaFloat, InF16, 32, 8, 1, kCalc),
    DENSE("v_mfma_f32_16x16x16_f16", mfmaFloat, InF16, 16, 16, 1, kCalc),
    DENSE("v_mfma_f32_32x32x4_2b_f16", mfmaFloat, InF16, 32, 4, 2, kCalc),
    DENSE("v_mfma_f32_16x16x4_4b_f16", mfmaFloat, InF16, 16, 4, 4, kCalc),
    DENSE("v_mfma_f32_4x4x4_16b_f16", mfmaFloat, InF16, 4, 4, 16, kCalc),
    DENSE("v_mfma_f32_32x32x8_bf16", mfmaFloat, InBf16, 32, 8, 1, kCalc),
    DENSE("v_mfma_f32_16x16x16_bf16", mfmaFloat, InBf16, 16, 16, 1, kCalc),
    DENSE("v_mfma_f32_32x32x4_2b_bf16", mfmaFloat, InBf16, 32, 4, 2, kCalc),
    DENSE("v_mfma_f32_16x16x4_4b_bf16", mfmaFloat, InBf16, 16, 4, 4, kCalc),
    DENSE("v_mfma_f32_4x4x4_16b_bf16", mfmaFloat, InBf16, 4, 4, 16, kCalc),
    ALONE("v_mfma_f32_32x32x2_f32", (mfmaFloat<InF32, 32, 2, 1>), 32, 2, 1),
    ALONE("v_mfma_f32_32x32x2f32", (mfmaFloat<InF32, 32, 2, 1>), 32, 2, 1),
    ALONE("v_mfma_f32_16x16x4_f32", (mfmaFloat<InF32, 16, 4, 1>), 16, 4, 1),
    ALONE("v_mfma_f32_16x16x4f32", (mfmaFloat<InF32, 16, 4, 1>), 16, 4, 1),
    ALONE("v_mfma_f32_32x32x1_2b_f32", (mfmaFloat<InF32, 32, 1, 2>), 32, 1, 2),
    ALONE("v_mfma_f32_32x32x1f32", (mfmaFloat<InF32, 32, 1, 2>), 32, 1, 2),
    ALONE("v_mfma_f32_16x16x1_4b_f32", (mfmaFloat<InF32, 16, 1, 4>), 16, 1, 4),
    ALONE("v_mfma_f32_16x16x1f32", (mfmaFloat<InF32, 16, 1, 4>), 16, 1, 4),
    ALONE("v_mfma_f32_4x4x1_16b_f32", (mfmaFloat<InF32, 4, 1, 16>), 4, 1, 16),
    ALONE("v_mfma_f32_4x4x1f32", (mfmaFloat<InF32, 4, 1, 16>), 4, 1, 16),
    DENSE("v_mfma_i32_32x32x16_i8", mfmaInt, InI8, 32, 16, 1, kCalc),
    DENSE("v_mfma_i32_16x16x32_i8", mfmaInt, InI8, 16, 32, 1, kCalc),
    DENSE("v_mfma_i32_32x32x4_2b_i8", mfmaInt, InI8, 32, 4, 2, kCalc),
    DENSE("v_mfma_i32_32x32x4i8", mfmaInt, InI8, 32, 4, 2, kCalc),
    DENSE("v_mfma_i32_16x16x4_4b_i8", mfmaInt, InI8, 16, 4, 4, kCalc),
    DENSE("v_mfma_i32_16x16x4i8", mfmaInt, InI8, 16, 4, 4, kCalc),
    DENSE("v_mfma_i32_4x4x4_16b_i8", mfmaInt, InI8, 4, 4, 16, kCalc),
    DENSE("v_mfma_i32_4x4x4i8", mfmaInt, InI8, 4, 4, 16, kCalc),
    DENSE("v_mfma_i32_32x32x8i8", mfmaInt, InI8, 32, 8, 1, kCalc),
    DENSE("v_mfma_i32_16x16x16i8", mfmaInt, InI8, 16, 16, 1, kCalc),
    DENSE("v_mfma_f32_32x32x4_xf32", mfmaFloat, InXf32, 32, 4, 1, kCalc),
    DENSE("v_mfma_f32_16x16x8_xf32", mfmaFloat, InXf32, 16, 8, 1, kCalc),
    DENSE("v_mfma_f32_32x32x16_f16", mfmaFloat, InF16, 32, 16, 1, kCdna4),
    DENSE("v_mfma_f32_16x16x32_f16", mfmaFloat, InF16, 16, 32, 1, kCdna4),
    DENSE("v_mfma_f32_32x32x16_bf16", mfmaFloat, InBf16, 32, 16, 1, kCdna4),
    DENSE("v_mfma_f32_16x16x32_bf16", mfmaFloat, InBf16, 16, 32, 1, kCdna4),
    DENSE("v_mfma_i32_32x32x32_i8", mfmaInt, InI8, 32, 32, 1, kCdna4),
    DENSE("v_mfma_i32_16x16x64_i8", mfmaInt, InI8, 16, 64, 1, kCdna4),
    SMALL("32x32x16", 32, 16, Fp8Fnuz, Bf8Fnuz, 0),
    SMALL("16x16x32", 16, 32, Fp8Fnuz, Bf8Fnuz, 0),
    SMALL("32x32x16", 32, 16, Fp8Ocp, Bf8Ocp, kTraitOcpFloat8),
    SMALL("16x16x32", 16, 32, Fp8Ocp, Bf8Ocp, kTraitOcpFloat8),
    ALONE("v_mfma_f64_16x16x4_f64", (mfmaDouble<16, 4, 1>), 16, 4, 1),
    ALONE("v_mfma_f64_16x16x4f64", (mfmaDouble<16, 4, 1>), 16, 4, 1),
    ALONE("v_mfma_f64_4x4x4_4b_f64", (mfmaDouble<4, 4, 4>), 4, 4, 4),
    ALONE("v_mfma_f64_4x4x4f64", (mfmaDouble<4, 4, 4>), 4, 4, 4),
};

} // namespace

void addMatrixRow(std::vector<Row> &rows, const MfmaRow &mfma) {
  Row row;
  row.mnemonic = mfma.mnemonic;
  row.cls = InstClass::Mfma;
  row.form = mfma.form;
  row.handler = mfma.handler;
  row.count = mfma.multiplyAdds;
  row.traits = mfma.traits;
  row.rate = mfma.rate;
  bool f64 = row.mnemonic.substr(0, 10) == "v_mfma_f64";
  bool i32 = row.mnemonic.substr(0, 10) == "v_mfma_i32";
  row.d = f64 ? Ty::F64 : Ty::B32;
  row.s[2] = f64 ? Ty::F64 : i32 ? Ty::I32 : Ty::F32;
  rows.push_back(row);
}

void addMfmaRows(std::vector<Row> &rows) {
  for (const MfmaRow &mfma : kMfma)
    addMatrixRow(rows, mfma);
  addPairwiseRows(rows);
  addSparseRows(rows);
  addScaledRows(rows);
}

} // namespace fovea::sim::FOVEA_VARIANT
