//===- Wmma.cpp - Matrix instructions of RDNA -----------------------------===//
//
// D = C + A * B on 16 x 16 x K matrices that the lanes of a wave hold together:
// WMMA, and SWMMAC, whose A has two elements of each four and an index. One
// table row an instruction; lane maps are those of AMD's matrix instruction
// calculator (-a rdna3, -a rdna4), which the unit test's formulas were compared
// with for every instruction and both wave sizes. Sums are chains of fused
// multiply-adds in fp32 in order of k, starting from C; 16-bit results are
// rounded once. The order in which hardware adds is not documented.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "fovea/Simulator/Chip.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

enum class El : uint8_t { F16, Bf16, Fp8, Bf8, I8, I4, F32, I32 };

constexpr unsigned bitsOf(El el) {
  switch (el) {
  case El::F16:
  case El::Bf16:
    return 16;
  case El::Fp8:
  case El::Bf8:
  case El::I8:
    return 8;
  case El::I4:
    return 4;
  default:
    return 32;
  }
}

struct WmmaRow {
  const char *mnemonic;
  El a, b, d;
  int k;
  bool sparse;
};
#define FP8(NAME, D, K, SPARSE)                                                \
  {NAME "_fp8_fp8", El::Fp8, El::Fp8, D, K, SPARSE},                           \
      {NAME "_fp8_bf8", El::Fp8, El::Bf8, D, K, SPARSE},                       \
      {NAME "_bf8_fp8", El::Bf8, El::Fp8, D, K, SPARSE}, {                     \
    NAME "_bf8_bf8", El::Bf8, El::Bf8, D, K, SPARSE                            \
  }
constexpr WmmaRow kWmma[] = {
    {"v_wmma_f32_16x16x16_f16", El::F16, El::F16, El::F32, 16, false},
    {"v_wmma_f32_16x16x16_bf16", El::Bf16, El::Bf16, El::F32, 16, false},
    {"v_wmma_f16_16x16x16_f16", El::F16, El::F16, El::F16, 16, false},
    {"v_wmma_bf16_16x16x16_bf16", El::Bf16, El::Bf16, El::Bf16, 16, false},
    {"v_wmma_i32_16x16x16_iu8", El::I8, El::I8, El::I32, 16, false},
    {"v_wmma_i32_16x16x16_iu4", El::I4, El::I4, El::I32, 16, false},
    {"v_wmma_i32_16x16x32_iu4", El::I4, El::I4, El::I32, 32, false},
    FP8("v_wmma_f32_16x16x16", El::F32, 16, false),
    {"v_swmmac_f32_16x16x32_f16", El::F16, El::F16, El::F32, 32, true},
    {"v_swmmac_f32_16x16x32_bf16", El::Bf16, El::Bf16, El::F32, 32, true},
    {"v_swmmac_f16_16x16x32_f16", El::F16, El::F16, El::F16, 32, true},
    {"v_swmmac_bf16_16x16x32_bf16", El::Bf16, El::Bf16, El::Bf16, 32, true},
    {"v_swmmac_i32_16x16x32_iu8", El::I8, El::I8, El::I32, 32, true},
    {"v_swmmac_i32_16x16x32_iu4", El::I4, El::I4, El::I32, 32, true},
    {"v_swmmac_i32_16x16x64_iu4", El::I4, El::I4, El::I32, 64, true},
    FP8("v_swmmac_f32_16x16x32", El::F32, 32, true),
};
#undef FP8

constexpr int kMaxK = 64;

/// Which k the elements of a lane are. Lanes come in groups of 16, one row of A
/// or column of B each. GFX11: a group holds all of K, the others repeat it.
/// GFX12: bit `groupBit` of k says which group of a half wave holds an element;
/// in waves of 64 lanes the upper half takes the place of the highest bit of an
/// element's number, unless a lane would hold less than a register.
struct KMap {
  int perLane;  ///< elements
  int groups;   ///< that count
  int groupBit; ///< -1: all groups hold the same
  int halfBit;  ///< of the element's number; -1: none

  /// \p bits of an element, \p stored of them in a row, \p lowBit: groupBit
  /// counts \p units of k (4 for the groups of a sparse A).
  KMap(bool split, int lanes, unsigned bits, int stored, int groupBitOfUnits) {
    groupBit = groupBitOfUnits;
    halfBit = -1;
    perLane = stored;
    groups = 1;
    if (!split) {
      groupBit = -1;
      return;
    }
    perLane /= 2;
    groups = 2;
    if (lanes == 64 && perLane * static_cast<int>(bits) > 32) {
      perLane /= 2;
      groups = 4;
      halfBit = 0;
      while ((1 << halfBit) < perLane)
        ++halfBit;
    }
  }
  /// The place in its row of element \p e of a lane in group \p g.
  int at(int g, int e) const {
    if (groupBit < 0)
      return e;
    int n = halfBit >= 0 ? e | (g >> 1) << halfBit : e;
    int low = n & ((1 << groupBit) - 1);
    return low | (g & 1) << groupBit | (n >> groupBit) << (groupBit + 1);
  }
};

/// Rows of D in register \p r of lane group \p g, and their number in a wave.
int dRow(bool split, int lanes, int r, int g) {
  if (!split)
    return lanes / 16 * r + g;
  return 8 * (g & 1) + 4 * (g >> 1) + r;
}

/// fp8 (e4m3) and bf8 (e5m2) in OCP's formats: all values, by pattern.
template <int MANT, int BIAS>
const float *smallFloats() {
  struct Values {
    float value[256];
    Values() {
      for (int raw = 0; raw < 256; ++raw) {
        int exponent = (raw & 127) >> MANT, mantissa = raw & ((1 << MANT) - 1);
        bool top = MANT == 3 ? (raw & 127) == 127 : exponent == 31;
        float x = exponent ? std::ldexp(float(mantissa | 1 << MANT),
                                        exponent - BIAS - MANT)
                           : std::ldexp(float(mantissa), 1 - BIAS - MANT);
        if (top)
          x = MANT == 2 && !mantissa ? std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN();
        value[raw] = raw & 128 ? -x : x;
      }
    }
  };
  static const Values values;
  return values.value;
}

/// One matrix of sources, by k and then by row of A or column of B.
template <class T>
struct Matrix {
  alignas(64) T x[kMaxK][16];
};

/// Sixteen elements of one register and lane group.
void getElements(float *to, const uint32_t *words, El el, unsigned shift) {
  if (el == El::F16)
    for (int i = 0; i < 16; ++i)
      to[i] = halfToFloat(static_cast<uint16_t>(words[i] >> shift));
  else if (el == El::Bf16)
    for (int i = 0; i < 16; ++i)
      to[i] = asF32((words[i] >> shift) << 16);
  else {
    const float *table =
        el == El::Fp8 ? smallFloats<3, 7>() : smallFloats<2, 15>();
    for (int i = 0; i < 16; ++i)
      to[i] = table[(words[i] >> shift) & 0xff];
  }
}
void getElements(int32_t *to, const uint32_t *words, unsigned bits,
                 unsigned shift, bool isSigned) {
  unsigned up = 32 - bits - shift, down = 32 - bits;
  for (int i = 0; i < 16; ++i) {
    uint32_t top = words[i] << up;
    to[i] = isSigned ? static_cast<int32_t>(top) >> down
                     : static_cast<int32_t>(top >> down);
  }
}

/// Reads the elements of A or B in the order of their k.
template <class T>
void gather(Matrix<T> &m, Wave &w, const Operand &o, El el, const KMap &map) {
  unsigned bits = bitsOf(el), perWord = 32 / bits;
  for (int g = 0; g < map.groups; ++g)
    for (int e = 0; e < map.perLane; ++e) {
      const uint32_t *words =
          w.vreg(o.reg + static_cast<unsigned>(e) / perWord) + 16 * g;
      unsigned shift = static_cast<unsigned>(e) % perWord * bits;
      T *to = m.x[map.at(g, e)];
      if constexpr (std::is_same_v<T, float>) {
        getElements(to, words, el, shift);
        // Halves of a word have signs of their own.
        if (shift ? o.negHi : o.negLo)
          for (int i = 0; i < 16; ++i)
            to[i] = -to[i];
      } else {
        getElements(to, words, bits, shift, o.negLo);
      }
    }
}

/// One instruction of a wave, and how its chip lays out matrices.
struct Product {
  Wave &w;
  const MicroOp &op;
  const WmmaRow &row;
  bool split;   ///< the lane groups hold different parts of K
  int groupBit; ///< of k (KMap)
};

/// A of SWMMAC: the two elements stored for each four, put where the index
/// says.
template <class T>
void gatherSparse(Matrix<T> &m, const Product &p) {
  Wave &w = p.w;
  const MicroOp &op = p.op;
  const int k = p.row.k;
  Matrix<T> stored;
  // Pairs are places in units of four k: one group bit stands two bits lower,
  // and one higher again since a unit holds two elements.
  KMap map(p.split, w.lanes, bitsOf(p.row.a), k / 2, p.groupBit - 1);
  gather(stored, w, op.s[0], p.row.a, map);
  std::memset(m.x, 0, sizeof m.x[0] * static_cast<size_t>(k));
  const uint32_t *index = w.vreg(op.s[2].reg);
  int pairs = map.perLane / 2;
  for (int g = 0; g < map.groups; ++g)
    for (int q = 0; q < pairs; ++q) {
      int place = map.at(g, 2 * q); // even: twice the unit's number
      unsigned shift = static_cast<unsigned>(4 * (q + pairs * int(op.aux)));
      for (int i = 0; i < 16; ++i) {
        uint32_t at = index[16 * g + i] >> shift;
        m.x[2 * place + static_cast<int>(at & 3)][i] = stored.x[place][i];
        m.x[2 * place + static_cast<int>((at >> 2) & 3)][i] =
            stored.x[place + 1][i];
      }
    }
}

/// What tests plant into operand A (MfmaFault).
template <class T>
void plant(Matrix<T> &a, int k, MfmaFault fault) {
  if (fault == MfmaFault::SwapRowsOfA)
    for (int i = 0; i < k; ++i)
      std::swap(a.x[i][0], a.x[i][1]);
  if (fault == MfmaFault::RotateK)
    for (int i = 0; i + 1 < k; ++i)
      std::swap(a.x[i], a.x[i + 1]);
}

/// A and B, with what tests plant.
template <class T>
struct Sources {
  Matrix<T> a, b;

  explicit Sources(const Product &p) {
    const WmmaRow &row = p.row;
    auto read = [&](Matrix<T> &m, const Operand &o, El el) {
      gather(m, p.w, o, el,
             KMap(p.split, p.w.lanes, bitsOf(el), row.k, p.groupBit));
    };
    if (row.sparse)
      gatherSparse(a, p);
    else
      read(a, p.op.s[0], row.a);
    read(b, p.op.s[1], row.b);
    MfmaFault fault = p.w.group->mfmaFault;
    if (__builtin_expect(fault != MfmaFault::None, 0))
      plant(a, row.k, fault);
  }
};

/// The row of A whose products go to row \p at of D, with what tests plant.
int rowOfA(const Product &p, int at) {
  return p.w.group->mfmaFault == MfmaFault::SwapBlocksOfD ? (at + 4) % 16 : at;
}

/// Operand C: registers, which SWMMAC shares with D, or a constant.
struct Addend {
  const uint32_t *words;
  bool constant;

  explicit Addend(const Product &p)
      : words(p.row.sparse ? p.w.vreg(p.op.d.reg) : lanesOf(p.w, p.op.s[2], 2)),
        constant(!p.row.sparse && p.op.s[2].kind != Operand::Vgpr) {}
  /// Its 16 words in register \p r of lane group \p g.
  const uint32_t *at(int r, int g) const {
    return constant ? words : words + size_t(r) * kLaneStride + 16 * g;
  }
};

using Floats = float __attribute__((vector_size(64)));
using Ints = int32_t __attribute__((vector_size(64)));

void multiply(Floats &sum, const Matrix<float> &a, const Matrix<float> &b,
              int row, int k) {
  for (int i = 0; i < k; ++i) {
    Floats column;
    std::memcpy(&column, b.x[i], sizeof column);
    sum = a.x[i][row] * column + sum;
  }
}

/// Operand C or its part for one register and lane group, as fp32.
void getC(float *to, const uint32_t *words, El el, unsigned shift,
          const Operand &o) {
  if (el == El::F32)
    std::memcpy(to, words, 64);
  else
    getElements(to, words, el, shift);
  for (int i = 0; i < 16; ++i) { // neg_hi is abs here
    to[i] = o.negHi ? std::fabs(to[i]) : to[i];
    to[i] = o.negLo ? -to[i] : to[i];
  }
}

void wmmaFloat(const Product &p) {
  Wave &w = p.w;
  const WmmaRow &row = p.row;
  const Sources<float> in(p);
  const Addend c(p);
  uint32_t *to = w.vreg(p.op.d.reg);
  bool half = row.d != El::F32;
  const bool limits = row.d == El::F16 && w.limitsOverflow();
  // GFX12 packs two rows of a 16-bit D into a register; GFX11 uses one half.
  int parts = half && p.split ? 2 : 1;
  unsigned onlyShift = half && !p.split && p.op.s[2].selLo ? 16 : 0;
  int regs = 16 * 16 / w.lanes / parts;
  Operand signs = row.sparse ? Operand() : p.op.s[2];
  for (int r = 0; r < regs; ++r)
    for (int g = 0; g < w.lanes / 16; ++g)
      for (int part = 0; part < parts; ++part) {
        unsigned shift = part ? 16 : onlyShift;
        float c16[16];
        getC(c16, c.at(r, g), row.d, c.constant ? 0 : shift, signs);
        Floats sum;
        std::memcpy(&sum, c16, sizeof sum);
        int at = dRow(p.split, w.lanes, r * parts + part, g);
        multiply(sum, in.a, in.b, rowOfA(p, at), row.k);
        uint32_t *words = to + size_t(r) * kLaneStride + 16 * g;
        if (!half) {
          std::memcpy(words, &sum, sizeof sum);
          continue;
        }
        for (int i = 0; i < 16; ++i) {
          uint32_t h =
              row.d == El::F16 ? floatToHalf(sum[i]) : floatToBrain(sum[i]);
          if (__builtin_expect(limits, 0) && (h & 0x7fff) == 0x7c00 &&
              std::fabs(sum[i]) <= std::numeric_limits<float>::max())
            --h;
          words[i] = (words[i] & ~(0xffffu << shift)) | h << shift;
        }
      }
}

void wmmaInt(const Product &p) {
  Wave &w = p.w;
  const Sources<int32_t> in(p);
  const Addend addend(p);
  uint32_t *to = w.vreg(p.op.d.reg);
  for (int r = 0; r < 16 * 16 / w.lanes; ++r)
    for (int g = 0; g < w.lanes / 16; ++g) {
      int at = rowOfA(p, dRow(p.split, w.lanes, r, g));
      // Products of 64 bytes fit 32 bits.
      Ints sum = {};
      for (int k = 0; k < p.row.k; ++k) {
        Ints column;
        std::memcpy(&column, in.b.x[k], sizeof column);
        sum += in.a.x[k][at] * column;
      }
      const uint32_t *c = addend.at(r, g);
      uint32_t *d = to + size_t(r) * kLaneStride + 16 * g;
      for (int i = 0; i < 16; ++i) {
        int64_t x = int64_t(sum[i]) + static_cast<int32_t>(c[i]);
        if (p.op.flags & kClamp)
          x = imed3(x, int64_t(INT32_MIN), int64_t(INT32_MAX));
        d[i] = static_cast<uint32_t>(x);
      }
    }
}

void wmma(Wave &w, const MicroOp &op) {
  const WmmaRow &row = kWmma[op.row->param];
  bool split = w.group->chip->traits & kTraitSplitWmma;
  // Dense 16-bit elements come in runs of four, all others in halves of K.
  int groupBit = bitsOf(row.a) == 16 ? (row.sparse ? 3 : 2)
                 : row.k == 16       ? 3
                 : row.k == 32       ? 4
                                     : 5;
  const Product product{w, op, row, split, groupBit};
  if (row.d == El::I32)
    wmmaInt(product);
  else
    wmmaFloat(product);
}

} // namespace

void addWmmaRows(std::vector<Row> &rows) {
  for (uint32_t i = 0; i < std::size(kWmma); ++i) {
    const WmmaRow &wmmaRow = kWmma[i];
    Row row;
    row.mnemonic = wmmaRow.mnemonic;
    row.cls = InstClass::Mfma;
    row.form = Form::Mfma;
    row.handler = wmma;
    row.flags = kOwnModifiers;
    if (wmmaRow.sparse)
      row.flags |= kTied;
    if (wmmaRow.d == El::Bf16)
      row.flags |= kBrain;
    row.param = i;
    row.count = 16 * 16 * uint32_t(wmmaRow.k) / (wmmaRow.sparse ? 2 : 1);
    row.d = Ty::B32;
    row.s[2] = wmmaRow.sparse            ? Ty::B32
               : wmmaRow.d == El::I32    ? Ty::I32
               : bitsOf(wmmaRow.d) == 16 ? Ty::F16
                                         : Ty::F32;
    rows.push_back(row);
  }
}

} // namespace fovea::sim::FOVEA_VARIANT
