//===- MfmaPairwise.cpp - Matrix instructions on halves of older chips ----===//
//
// fp16 and bf16 on gfx908 and gfx90a, whose products are added in pairs: groups
// of four (two for the first bf16 instructions) in order of k, each p0 + p1 and
// p2 + p3, then their sum, then that to the accumulator, every addition rounded
// to nearest even. gfx90a takes denormals for zeros, in C too, and makes none.
// Source: Xie et al., "MMA-Sim", arXiv 2511.10909, who compared it with the
// chips; the flushing also in AMD's MIOpen documentation on MI200. Compiled
// without contraction of a * b + c.
//
//===----------------------------------------------------------------------===//
#include "exec/Matrix.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// A row of the accumulator, or of products.
template <int M>
struct Numbers {
  float x[M];
};

template <bool FLUSH>
inline float maybeFlushed(float x) {
  return FLUSH ? flushed(x) : x;
}

template <class In, int M, int K, int B, int GROUP, bool FLUSH>
void pairwise(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, B>;
  MfmaFault fault = w.group->mfmaFault;
  Matrices<In, In, M, K, B> m(w.vreg(op.s[0].reg), w.vreg(op.s[1].reg), op,
                              fault);
  SourceC<L::regs> c(w, op);
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; ++r)
    for (int g = 0; g < L::groups; ++g) {
      int row = L::dRow(r, g), block = L::dBlock(r, g);
      if (__builtin_expect(fault == MfmaFault::SwapBlocksOfD, 0))
        row = (row + 4) % M;
      Numbers<M> acc, p[GROUP];
      std::memcpy(acc.x, c[r] + g * M, sizeof acc.x);
      for (int i = 0; FLUSH && i < M; ++i) // to +0
        acc.x[i] = (asU32(acc.x[i]) & 0x7f800000) ? acc.x[i] : 0.0f;
      for (int k = 0; k < K; k += GROUP) {
        for (int j = 0; j < GROUP; ++j)
          for (int i = 0; i < M; ++i)
            p[j].x[i] = maybeFlushed<FLUSH>(m.a[block][k + j][row] *
                                            m.b[block][k + j][i]);
        for (int step = 1; step < GROUP; step *= 2)
          for (int j = 0; j < GROUP; j += 2 * step)
            for (int i = 0; i < M; ++i)
              p[j].x[i] = maybeFlushed<FLUSH>(p[j].x[i] + p[j + step].x[i]);
        for (int i = 0; i < M; ++i)
          acc.x[i] = maybeFlushed<FLUSH>(acc.x[i] + p[0].x[i]);
      }
      std::memcpy(d + size_t(r) * kLaneStride + g * M, acc.x, sizeof acc.x);
    }
}

constexpr const char *kCalc = "amd_matrix_instruction_calculator -a cdna2";
#define HALF(NAME, IN, M, K, B, GROUP)                                         \
  {NAME, pairwise<IN, M, K, B, GROUP, false>, M * M * K * B, kCalc},           \
      {NAME, pairwise<IN##Flushed, M, K, B, GROUP, true>, M * M * K * B,       \
       kCalc, kTraitMfmaFlushHalf}
constexpr MfmaRow kRows[] = {
    HALF("v_mfma_f32_32x32x8f16", InF16, 32, 8, 1, 4),
    HALF("v_mfma_f32_16x16x16f16", InF16, 16, 16, 1, 4),
    HALF("v_mfma_f32_32x32x4f16", InF16, 32, 4, 2, 4),
    HALF("v_mfma_f32_16x16x4f16", InF16, 16, 4, 4, 4),
    HALF("v_mfma_f32_4x4x4f16", InF16, 4, 4, 16, 4),
    HALF("v_mfma_f32_32x32x8bf16_1k", InBf16, 32, 8, 1, 4),
    HALF("v_mfma_f32_16x16x16bf16_1k", InBf16, 16, 16, 1, 4),
    HALF("v_mfma_f32_32x32x4bf16_1k", InBf16, 32, 4, 2, 4),
    HALF("v_mfma_f32_16x16x4bf16_1k", InBf16, 16, 4, 4, 4),
    HALF("v_mfma_f32_4x4x4bf16_1k", InBf16, 4, 4, 16, 4),
    HALF("v_mfma_f32_32x32x4bf16", InBf16, 32, 4, 1, 2),
    HALF("v_mfma_f32_16x16x8bf16", InBf16, 16, 8, 1, 2),
    HALF("v_mfma_f32_32x32x2bf16", InBf16, 32, 2, 2, 2),
    HALF("v_mfma_f32_16x16x2bf16", InBf16, 16, 2, 4, 2),
    HALF("v_mfma_f32_4x4x2bf16", InBf16, 4, 2, 16, 2),
};

} // namespace

void addPairwiseRows(std::vector<Row> &rows) {
  for (const MfmaRow &mfma : kRows)
    addMatrixRow(rows, mfma);
}

} // namespace fovea::sim::FOVEA_VARIANT
