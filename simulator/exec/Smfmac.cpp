//===- Smfmac.cpp - Sparse matrix instructions ----------------------------===//
//
// D += A * B, where of every four elements of a row of A along k two are kept
// and the others are zero. A lane's index set says which: two bits an element,
// in the order of A's elements. Indices of 16-bit types take 8 bits a lane (16
// for the longer instructions of gfx950), those of 8-bit types 16 (32); abid picks
// the set where a register holds several, unless cbsz is set. Operand layouts:
// AMD's matrix instruction calculator; a lane that holds more than 16 bytes of B
// holds them in runs of 16 bytes, the lane groups taking turns along k.
//
//===----------------------------------------------------------------------===//
#include "exec/Matrix.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

template <class InA, class InB, int M, int K>
void smfmac(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, 1>;
  using T = typename InA::T;
  using A = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;
  constexpr int groups = 64 / M, perLaneB = K / groups, perLaneA = perLaneB / 2;
  constexpr int run = std::min(perLaneB, 128 / InB::bits);
  constexpr int indexBits = 2 * perLaneA;
  alignas(64) T b[K][M];
  const uint32_t *pb = w.vreg(op.s[1].reg);
  for (int g = 0; g < groups; ++g)
    for (int e = 0; e < perLaneB; ++e)
      for (int j = 0; j < M; ++j)
        b[e / run * run * groups + g * run + e % run][j] =
            InB::get(pb, g * M + j, e);
  unsigned cbsz = op.aux & 15, abid = (op.aux >> 4) & 15;
  int set = cbsz || indexBits == 32 ? 0 : static_cast<int>(abid) * indexBits % 32;
  const uint32_t *pa = w.vreg(op.s[0].reg);
  const uint32_t *index = lanesOf(w, op.s[2], 2);
  alignas(64) T a[K / 2][M];
  uint8_t at[K / 2][M];
  for (int g = 0; g < groups; ++g)
    for (int e = 0; e < perLaneA; ++e)
      for (int i = 0; i < M; ++i) {
        int kept = g * perLaneA + e;
        a[kept][i] = InA::get(pa, g * M + i, e);
        at[kept][i] = static_cast<uint8_t>(
            kept / 2 * 4 + ((index[g * M + i] >> (set + 2 * e)) & 3));
      }
  uint32_t *d = w.vreg(op.d.reg);
  const bool limits = limitsMatrix(w);
  const SavedC<L::regs> saved(
      limits, [&](int r) { return d + size_t(r) * kLaneStride; });
  for (int r = 0; r < L::regs; ++r)
    for (int g = 0; g < groups; ++g) {
      int row = L::dRow(r, g);
      A acc[M];
      std::memcpy(acc, d + size_t(r) * kLaneStride + g * M, sizeof acc);
      for (int k = 0; k < K / 2; ++k) {
        T x = a[k][row];
        const T *y = b[at[k][row]];
        for (int j = 0; j < M; ++j)
          acc[j] = static_cast<A>(x) * static_cast<A>(y[j]) + acc[j];
      }
      std::memcpy(d + size_t(r) * kLaneStride + g * M, acc, sizeof acc);
    }
  if (__builtin_expect(limits, 0)) {
    if constexpr (std::is_same_v<T, float>)
      limitSums(saved, d, [&](int r, int l) {
        const int row = L::dRow(r, l / M);
        bool any = false;
        for (int k = 0; k < K / 2; ++k)
          any |= std::isinf(a[k][row]) || std::isinf(b[at[k][row]][l % M]);
        return any;
      });
    else
      limitInts(saved, d, [&](int r, int l) {
        const int row = L::dRow(r, l / M);
        int64_t sum = 0;
        for (int k = 0; k < K / 2; ++k)
          sum += a[k][row] * b[at[k][row]][l % M];
        return sum;
      });
  }
}

constexpr const char *kCalc = "amd_matrix_instruction_calculator -a cdna3";
constexpr const char *kCdna4 = "CDNA4 ISA document, sparse operand layouts";
#define SPARSE(NAME, IN, M, K, SOURCE)                                         \
  {NAME, smfmac<IN, IN, M, K>, M * M * K / 2, SOURCE, 0, Form::Smfmac}
#define SMALL(SHAPE, M, K, FP8, BF8, TRAITS, SOURCE)                           \
  {"v_smfmac_f32_" SHAPE "_fp8_fp8", smfmac<InSmall<FP8>, InSmall<FP8>, M, K>, M * M * K / 2, SOURCE, TRAITS, Form::Smfmac}, \
      {"v_smfmac_f32_" SHAPE "_fp8_bf8", smfmac<InSmall<FP8>, InSmall<BF8>, M, K>, M * M * K / 2, SOURCE, TRAITS, Form::Smfmac}, \
      {"v_smfmac_f32_" SHAPE "_bf8_fp8", smfmac<InSmall<BF8>, InSmall<FP8>, M, K>, M * M * K / 2, SOURCE, TRAITS, Form::Smfmac}, \
      {"v_smfmac_f32_" SHAPE "_bf8_bf8", smfmac<InSmall<BF8>, InSmall<BF8>, M, K>, M * M * K / 2, SOURCE, TRAITS, Form::Smfmac}
constexpr MfmaRow kRows[] = {
    SPARSE("v_smfmac_f32_16x16x32_f16", InF16, 16, 32, kCalc),
    SPARSE("v_smfmac_f32_32x32x16_f16", InF16, 32, 16, kCalc),
    SPARSE("v_smfmac_f32_16x16x32_bf16", InBf16, 16, 32, kCalc),
    SPARSE("v_smfmac_f32_32x32x16_bf16", InBf16, 32, 16, kCalc),
    SPARSE("v_smfmac_i32_16x16x64_i8", InI8, 16, 64, kCalc),
    SPARSE("v_smfmac_i32_32x32x32_i8", InI8, 32, 32, kCalc),
    SPARSE("v_smfmac_f32_16x16x64_f16", InF16, 16, 64, kCdna4),
    SPARSE("v_smfmac_f32_32x32x32_f16", InF16, 32, 32, kCdna4),
    SPARSE("v_smfmac_f32_16x16x64_bf16", InBf16, 16, 64, kCdna4),
    SPARSE("v_smfmac_f32_32x32x32_bf16", InBf16, 32, 32, kCdna4),
    SPARSE("v_smfmac_i32_16x16x128_i8", InI8, 16, 128, kCdna4),
    SPARSE("v_smfmac_i32_32x32x64_i8", InI8, 32, 64, kCdna4),
    SMALL("16x16x64", 16, 64, Fp8Fnuz, Bf8Fnuz, 0, kCalc),
    SMALL("32x32x32", 32, 32, Fp8Fnuz, Bf8Fnuz, 0, kCalc),
    SMALL("16x16x64", 16, 64, Fp8Ocp, Bf8Ocp, kTraitOcpFloat8, kCalc),
    SMALL("32x32x32", 32, 32, Fp8Ocp, Bf8Ocp, kTraitOcpFloat8, kCalc),
    SMALL("16x16x128", 16, 128, Fp8Ocp, Bf8Ocp, 0, kCdna4),
    SMALL("32x32x64", 32, 64, Fp8Ocp, Bf8Ocp, 0, kCdna4),
};

} // namespace

void addSparseRows(std::vector<Row> &rows) {
  for (const MfmaRow &smfmac : kRows)
    addMatrixRow(rows, smfmac);
}

} // namespace fovea::sim::FOVEA_VARIANT
