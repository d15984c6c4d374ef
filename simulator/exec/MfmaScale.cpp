//===- MfmaScale.cpp - v_mfma_*_f8f6f4 and v_mfma_scale_* -----------------===//
//
// gfx950's matrix instructions on fp8, bf8, fp6, bf6 and fp4, whose formats cbsz
// (A) and blgp (B) choose, with or without scales. Every run of 32 elements along
// k has one scale, an 8-bit exponent: lane M * run + row holds it, in the byte
// that op_sel (low bit) and op_sel_hi name. A lane holds the elements of 32
// consecutive k; of 8-bit formats it holds two runs of 16, the lane groups taking
// turns along k. Products of a run are added in fp32 by a chain of fused
// multiply-adds, scaled, and added to the accumulator; without scales one chain
// runs over all k. Sources: CDNA4 ISA document; AMD, "Matrix Core Programming on
// AMD CDNA3 and CDNA4 architecture".
//
//===----------------------------------------------------------------------===//
#include "exec/Matrix.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Formats by the value of cbsz or blgp.
struct Format {
  int bits;
  const float *values;
};
const Format *formats() {
  static const Format all[5] = {{8, decodeTable<Fp8Ocp>()},
                                {8, decodeTable<Bf8Ocp>()},
                                {6, decodeTable<Fp6>()},
                                {6, decodeTable<Bf6>()},
                                {4, decodeTable<Fp4>()}};
  return all;
}

/// Element e of lane l.
inline float element(const Format &f, const uint32_t *p, int l, int e) {
  int bit = e * f.bits;
  const uint32_t *word = p + bit / 32 * static_cast<int>(kLaneStride) + l;
  uint64_t both = word[0];
  if (bit % 32 + f.bits > 32)
    both |= uint64_t(word[kLaneStride]) << 32;
  return f.values[(both >> (bit % 32)) & ((1u << f.bits) - 1)];
}

template <int M, int K>
void gather(float (*to)[M], const uint32_t *p, const Format &f) {
  constexpr int groups = 64 / M;
  static_assert(K / groups == 32, "a lane holds 32 elements");
  int run = f.bits == 8 ? 16 : 32;
  for (int g = 0; g < groups; ++g)
    for (int e = 0; e < 32; ++e)
      for (int i = 0; i < M; ++i)
        to[e / run * run * groups + g * run + e % run][i] =
            element(f, p, g * M + i, e);
}

/// The scale exponents of an operand, by run and row. Constants and scalar
/// registers give bits 23 to 30, vector registers the byte that \p sel names.
template <int M, int K>
void scales(Wave &w, const Operand &o, int slot, unsigned sel,
            float (*to)[M]) {
  const uint32_t *p = lanesOf(w, o, slot);
  unsigned shift = o.kind == Operand::Vgpr ? 8 * sel : 23;
  for (int l = 0; l < 64; ++l) {
    uint32_t exponent = (p[l] >> shift) & 0xff;
    to[l / M][l % M] = exponent == 255
                           ? std::numeric_limits<float>::quiet_NaN()
                           : std::ldexp(1.0f, static_cast<int>(exponent) - 127);
  }
}

template <int M, int K, bool SCALED>
void mfmaSmall(Wave &w, const MicroOp &op) {
  using L = Layout<M, K, 1>;
  constexpr int runs = SCALED ? K / 32 : 1;
  alignas(64) float a[K][M], b[K][M], sa[K / 32][M], sb[K / 32][M];
  gather<M, K>(a, w.vreg(op.s[0].reg), formats()[op.aux & 7]);
  gather<M, K>(b, w.vreg(op.s[1].reg), formats()[(op.aux >> 8) & 7]);
  if (SCALED) {
    scales<M, K>(w, op.s[3], 0, (op.aux >> 16) & 3, sa);
    scales<M, K>(w, op.sd, 1, (op.aux >> 18) & 3, sb);
  }
  SourceC<L::regs> c(w, op);
  const bool limits = limitsMatrix(w);
  const SavedC<L::regs> saved(limits, [&](int r) { return c[r]; });
  uint32_t *d = w.vreg(op.d.reg);
  for (int r = 0; r < L::regs; ++r)
    for (int g = 0; g < L::groups; ++g) {
      int row = L::dRow(r, g);
      float acc[M];
      std::memcpy(acc, c[r] + g * M, sizeof acc);
      for (int n = 0; n < runs; ++n) {
        float sum[M];
        for (int j = 0; j < M; ++j)
          sum[j] = SCALED ? 0.0f : acc[j];
        for (int k = n * K / runs; k < (n + 1) * K / runs; ++k) {
          float x = a[k][row];
          for (int j = 0; j < M; ++j)
            sum[j] = x * b[k][j] + sum[j];
        }
        for (int j = 0; j < M; ++j) {
          // Exponents add up beyond those of fp32, but not beyond fp64's.
          double scale = SCALED ? static_cast<double>(sa[n][row]) *
                                      static_cast<double>(sb[n][j])
                                : 1.0;
          acc[j] = SCALED ? static_cast<float>(static_cast<double>(acc[j]) +
                                               static_cast<double>(sum[j]) * scale)
                          : sum[j];
        }
      }
      std::memcpy(d + size_t(r) * kLaneStride + g * M, acc, sizeof acc);
    }
  if (__builtin_expect(limits, 0))
    limitSums(saved, d, [&](int r, int l) {
      const int row = L::dRow(r, l / M);
      bool any = false;
      for (int k = 0; k < K; ++k)
        any |= std::isinf(a[k][row]) || std::isinf(b[k][l % M]);
      return any;
    });
}

constexpr const char *kCdna4 = "CDNA4 ISA document, MFMA with block scaling";
constexpr MfmaRow kRows[] = {
    {"v_mfma_f32_16x16x128_f8f6f4", mfmaSmall<16, 128, false>, 16 * 16 * 128,
     kCdna4, 0, Form::MfmaSmall},
    {"v_mfma_f32_32x32x64_f8f6f4", mfmaSmall<32, 64, false>, 32 * 32 * 64,
     kCdna4, 0, Form::MfmaSmall},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", mfmaSmall<16, 128, true>,
     16 * 16 * 128, kCdna4, 0, Form::MfmaSmall},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", mfmaSmall<32, 64, true>, 32 * 32 * 64,
     kCdna4, 0, Form::MfmaSmall},
};

} // namespace

void addScaledRows(std::vector<Row> &rows) {
  for (const MfmaRow &mfma : kRows)
    addMatrixRow(rows, mfma);
}

} // namespace fovea::sim::FOVEA_VARIANT
