//===- ScalarGfx11.cpp - Scalar instructions of GFX11 and GFX12 -----------===//
//
// Floats in scalar registers (GFX11.5 and GFX12), 64-bit arithmetic, messages
// with an answer, and barriers in two halves. Sources: AMD's RDNA3.5 and RDNA4
// ISA documents.
//
//===----------------------------------------------------------------------===//
#include "exec/Barrier.h"
#include "isa/LaneMath.h"
#include "isa/Table.h"

#include <cfenv>
#include <chrono>

namespace fovea::sim {

namespace {
using namespace FOVEA_VARIANT;

//===-- Floats ------------------------------------------------------------===//

/// The host's rounding mode while a scalar float instruction runs.
class ScalarRounding {
public:
  ScalarRounding(const Wave &w, bool half) {
    unsigned mode = (half ? w.mode >> 2 : w.mode) & 3;
    if (!mode)
      return;
    static const int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                 FE_TOWARDZERO};
    saved = std::fegetround();
    std::fesetround(kModes[mode]);
  }
  ~ScalarRounding() {
    if (saved >= 0)
      std::fesetround(saved);
  }

private:
  int saved = -1;
};

/// fp32 and fp16 operands: flushed as MODE says, with neg and abs.
struct Single {
  static constexpr bool half = false;
  static float load(const Wave &w, const Operand &o) {
    float x = asF32(readS32(w, o));
    if (o.abs)
      x = asF32(asU32(x) & 0x7fffffff);
    if (o.neg)
      x = asF32(asU32(x) ^ 0x80000000);
    return w.mode & 0x10 ? x : flushed(x);
  }
  static void store(Wave &w, const MicroOp &op, float x) {
    writeS32(w, op.d, asU32(w.mode & 0x20 ? x : flushed(x)));
  }
};
struct Half {
  static constexpr bool half = true;
  static float load(const Wave &w, const Operand &o) {
    uint32_t x = readS32(w, o);
    if (o.abs)
      x &= 0x7fff;
    if (o.neg)
      x ^= 0x8000;
    if (!(w.mode & 0x40) && !(x & 0x7c00))
      x &= 0x8000;
    return halfToFloat(static_cast<uint16_t>(x));
  }
  static void store(Wave &w, const MicroOp &op, float x) {
    uint16_t h = floatToHalf(x);
    if (!(w.mode & 0x80) && !(h & 0x7c00))
      h &= 0x8000;
    writeS32(w, op.d, h); // the upper half becomes 0
  }
};

#define FLOAT2(NAME, EXPR)                                                     \
  template <class T>                                                           \
  void NAME(Wave &w, const MicroOp &op) {                                      \
    ScalarRounding rounding(w, T::half);                                       \
    float a = T::load(w, op.s[0]), b = T::load(w, op.s[1]);                    \
    T::store(w, op, EXPR);                                                     \
  }
#define FLOAT1(NAME, EXPR)                                                     \
  template <class T>                                                           \
  void NAME(Wave &w, const MicroOp &op) {                                      \
    float a = T::load(w, op.s[0]);                                             \
    T::store(w, op, EXPR);                                                     \
  }
FLOAT2(fAdd, a + b)
FLOAT2(fSub, a - b)
FLOAT2(fMul, a *b)
FLOAT2(fMin, fminNum(a, b))
FLOAT2(fMax, fmaxNum(a, b))
FLOAT2(fMinNumber, fminimumNumber(a, b))
FLOAT2(fMaxNumber, fmaximumNumber(a, b))
FLOAT2(fMinimum, fminimum(a, b))
FLOAT2(fMaximum, fmaximum(a, b))
FLOAT1(fCeil, std::ceil(a))
FLOAT1(fFloor, std::floor(a))
FLOAT1(fTrunc, std::trunc(a))
FLOAT1(fRound, std::nearbyint(a))
#undef FLOAT1
/// Transcendentals of the vector ALU on scalar registers, with its modifiers.
#define TRANSCENDENTAL(NAME, EXPR)                                             \
  template <class T>                                                           \
  void NAME(Wave &w, const MicroOp &op) {                                      \
    float a = T::load(w, op.s[0]);                                             \
    static const float kScale[] = {1.0f, 2.0f, 4.0f, 0.5f};                    \
    /* Ignored where results keep denormals. */                                \
    bool plain = w.mode & (T::half ? 0x80 : 0x20);                             \
    float r = (EXPR) * kScale[plain ? 0 : op.omod];                            \
    if (op.flags & kClamp)                                                     \
      r = r > 0 ? (r < 1 ? r : 1.0f) : 0.0f;                                   \
    T::store(w, op, r);                                                        \
  }
TRANSCENDENTAL(fExp, exp2Lane(a))
TRANSCENDENTAL(fLog, log2Lane(a))
TRANSCENDENTAL(fRcp, rcpLane(a))
TRANSCENDENTAL(fRsq, rsqLane(a))
TRANSCENDENTAL(fSqrt, sqrtLane(a))
#undef TRANSCENDENTAL
#undef FLOAT2

template <class T>
void fMac(Wave &w, const MicroOp &op) {
  ScalarRounding rounding(w, T::half);
  float a = T::load(w, op.s[0]), b = T::load(w, op.s[1]), c = T::load(w, op.d);
  T::store(w, op, T::half ? fmaHalf(a, b, c) : fma32(a, b, c));
}
/// a * literal + b or a * b + literal: the operands as printed.
void fMadLiteral(Wave &w, const MicroOp &op) {
  ScalarRounding rounding(w, false);
  float a = Single::load(w, op.s[0]), b = Single::load(w, op.s[1]);
  Single::store(w, op, fma32(a, b, Single::load(w, op.s[2])));
}

template <class T, class F>
void compare(Wave &w, const MicroOp &op, F holds) {
  w.scc = holds(T::load(w, op.s[0]), T::load(w, op.s[1]));
}
#define COMPARE(NAME, EXPR)                                                    \
  template <class T>                                                           \
  void NAME(Wave &w, const MicroOp &op) {                                      \
    compare<T>(w, op, [](float a, float b) { return EXPR; });                  \
  }
COMPARE(cmpLt, a < b)
COMPARE(cmpEq, a == b)
COMPARE(cmpLe, a <= b)
COMPARE(cmpGt, a > b)
COMPARE(cmpLg, a<b || a> b)
COMPARE(cmpGe, a >= b)
COMPARE(cmpO, a == a && b == b)
COMPARE(cmpU, a != a || b != b)
COMPARE(cmpNge, !(a >= b))
COMPARE(cmpNlg, !(a < b || a > b))
COMPARE(cmpNgt, !(a > b))
COMPARE(cmpNle, !(a <= b))
COMPARE(cmpNeq, a != b)
COMPARE(cmpNlt, !(a < b))
#undef COMPARE

void cvtF32I32(Wave &w, const MicroOp &op) {
  ScalarRounding rounding(w, false);
  Single::store(w, op,
                static_cast<float>(static_cast<int32_t>(readS32(w, op.s[0]))));
}
void cvtF32U32(Wave &w, const MicroOp &op) {
  ScalarRounding rounding(w, false);
  Single::store(w, op, static_cast<float>(readS32(w, op.s[0])));
}
void cvtI32F32(Wave &w, const MicroOp &op) {
  writeS32(w, op.d, static_cast<uint32_t>(toI32(Single::load(w, op.s[0]))));
}
void cvtU32F32(Wave &w, const MicroOp &op) {
  writeS32(w, op.d, toU32(Single::load(w, op.s[0])));
}
void cvtF16F32(Wave &w, const MicroOp &op) {
  ScalarRounding rounding(w, true);
  Half::store(w, op, Single::load(w, op.s[0]));
}
void cvtF32F16(Wave &w, const MicroOp &op) {
  Single::store(w, op, Half::load(w, op.s[0]));
}
void cvtHiF32F16(Wave &w, const MicroOp &op) {
  uint32_t x = readS32(w, op.s[0]) >> 16;
  if (!(w.mode & 0x40) && !(x & 0x7c00))
    x &= 0x8000;
  Single::store(w, op, halfToFloat(static_cast<uint16_t>(x)));
}
void cvtPkRtz(Wave &w, const MicroOp &op) {
  writeS32(w, op.d,
           pkHalfRtz(Single::load(w, op.s[0]), Single::load(w, op.s[1])));
}

//===-- 64-bit integers, modes, messages ----------------------------------===//

void addU64(Wave &w, const MicroOp &op) {
  writeS64(w, op.d, readS64(w, op.s[0]) + readS64(w, op.s[1]));
}
void subU64(Wave &w, const MicroOp &op) {
  writeS64(w, op.d, readS64(w, op.s[0]) - readS64(w, op.s[1]));
}
void mulU64(Wave &w, const MicroOp &op) {
  writeS64(w, op.d, readS64(w, op.s[0]) * readS64(w, op.s[1]));
}
void roundMode(Wave &w, const MicroOp &op) {
  w.setMode((w.mode & ~0xfu) | (op.aux & 0xf));
}
void denormMode(Wave &w, const MicroOp &op) {
  w.setMode((w.mode & ~0xf0u) | (op.aux & 0xf) << 4);
}
void sleepVar(Wave &w, const MicroOp &) { w.slice = w.slice > 1 ? 1 : w.slice; }
void movrelsd2(Wave &w, const MicroOp &op) {
  uint32_t m0 = w.s[kM0];
  unsigned from = (op.s[0].reg + (m0 & 0x3ff)) & 127;
  w.s[(op.d.reg + ((m0 >> 16) & 0x3ff)) & 127] = w.s[from];
}

/// Answers to s_sendmsg_rtn: the real-time counter; 0 for places of the chip.
uint64_t answer(uint32_t message) {
  constexpr uint32_t kGetRealtime = 0x83;
  if ((message & 0xff) != kGetRealtime)
    return 0;
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
             std::chrono::duration_cast<std::chrono::nanoseconds>(now)
                 .count()) /
         10;
}
void sendmsgRtn32(Wave &w, const MicroOp &op) {
  writeS32(w, op.d, static_cast<uint32_t>(answer(op.aux)));
}
void sendmsgRtn64(Wave &w, const MicroOp &op) {
  writeS64(w, op.d, answer(op.aux));
}

//===-- Barriers ----------------------------------------------------------===//

/// The barrier that an operand names: a constant, or M0[5:0].
int barrierId(const Wave &w, const MicroOp &op) {
  int32_t id = static_cast<int32_t>(readS32(w, op.s[0]));
  return op.s[0].kind == Operand::Const ? id : id & 63;
}
void barrierSignal(Wave &w, const MicroOp &op) {
  uint32_t count =
      op.s[0].kind == Operand::Const ? 0 : (readS32(w, op.s[0]) >> 16) & 0x7f;
  signalBarrier(w, op, barrierId(w, op), count);
}
void barrierSignalIsfirst(Wave &w, const MicroOp &op) {
  w.scc = isFirstToSignal(w, barrierId(w, op));
  barrierSignal(w, op);
}
void barrierWait(Wave &w, const MicroOp &op) {
  waitForBarrier(w, op, static_cast<int16_t>(op.aux));
}
void barrierInit(Wave &w, const MicroOp &op) {
  initBarrier(w, op, barrierId(w, op), (w.s[kM0] >> 16) & 0x7f);
}
void barrierJoin(Wave &w, const MicroOp &op) {
  joinBarrier(w, op, barrierId(w, op));
}
void barrierLeave(Wave &w, const MicroOp &op) { leaveBarrier(w, op); }
void barrierState(Wave &w, const MicroOp &op) {
  writeS32(w, op.d, stateOfBarrier(w, barrierId(w, op)));
}

} // namespace

void addScalarRowsGfx11(std::vector<Row> &rows) {
  auto add = [&](const char *name, Handler handler, Form form, InstClass cls,
                 Ty d, Ty a, Ty b, Ty c) {
    rows.push_back(valueRow(name, cls, form, handler, d, a, b, c));
  };
  constexpr Ty N = Ty::None, W = Ty::B32, Q = Ty::B64, F = Ty::F32, H = Ty::F16;
  auto salu = [&](const char *name, Handler handler, Ty d, Ty a, Ty b, Ty c) {
    add(name, handler, d == N ? Form::ScalarNoDst : Form::Scalar,
        InstClass::Salu, d, a, b, c);
  };
  auto trans = [&](const char *name, Handler handler, Ty a) {
    add(name, handler, Form::Scalar, InstClass::Trans, W, a, N, N);
    rows.back().flags = kOwnModifiers;
  };
#define BOTH2(NAME, FN)                                                        \
  salu("s_" NAME "_f32", FN<Single>, W, F, F, N);                              \
  salu("s_" NAME "_f16", FN<Half>, W, H, H, N);
#define BOTH1(NAME, FN)                                                        \
  salu("s_" NAME "_f32", FN<Single>, W, F, N, N);                              \
  salu("s_" NAME "_f16", FN<Half>, W, H, N, N);
#define BOTHC(NAME, FN)                                                        \
  salu("s_cmp_" NAME "_f32", FN<Single>, N, F, F, N);                          \
  salu("s_cmp_" NAME "_f16", FN<Half>, N, H, H, N);
#define BOTHT(NAME, FN)                                                        \
  trans("v_s_" NAME "_f32", FN<Single>, F);                                    \
  trans("v_s_" NAME "_f16", FN<Half>, H);
  BOTH2("add", fAdd)
  BOTH2("sub", fSub)
  BOTH2("mul", fMul)
  BOTH2("min", fMin)
  BOTH2("max", fMax)
  BOTH2("min_num", fMinNumber)
  BOTH2("max_num", fMaxNumber)
  BOTH2("minimum", fMinimum)
  BOTH2("maximum", fMaximum)
  BOTH2("fmac", fMac)
  BOTH1("ceil", fCeil)
  BOTH1("floor", fFloor)
  BOTH1("trunc", fTrunc)
  BOTH1("rndne", fRound)
  BOTHC("lt", cmpLt)
  BOTHC("eq", cmpEq)
  BOTHC("le", cmpLe)
  BOTHC("gt", cmpGt)
  BOTHC("lg", cmpLg)
  BOTHC("ge", cmpGe)
  BOTHC("o", cmpO)
  BOTHC("u", cmpU)
  BOTHC("nge", cmpNge)
  BOTHC("nlg", cmpNlg)
  BOTHC("ngt", cmpNgt)
  BOTHC("nle", cmpNle)
  BOTHC("neq", cmpNeq)
  BOTHC("nlt", cmpNlt)
  BOTHT("exp", fExp)
  BOTHT("log", fLog)
  BOTHT("rcp", fRcp)
  BOTHT("rsq", fRsq)
  BOTHT("sqrt", fSqrt)
  salu("s_fmaak_f32", fMadLiteral, W, F, F, F);
  salu("s_fmamk_f32", fMadLiteral, W, F, F, F);
  salu("s_cvt_f32_i32", cvtF32I32, W, W, N, N);
  salu("s_cvt_f32_u32", cvtF32U32, W, W, N, N);
  salu("s_cvt_i32_f32", cvtI32F32, W, F, N, N);
  salu("s_cvt_u32_f32", cvtU32F32, W, F, N, N);
  salu("s_cvt_f16_f32", cvtF16F32, W, F, N, N);
  salu("s_cvt_f32_f16", cvtF32F16, W, H, N, N);
  salu("s_cvt_hi_f32_f16", cvtHiF32F16, W, W, N, N);
  salu("s_cvt_pk_rtz_f16_f32", cvtPkRtz, W, F, F, N);
  salu("s_add_nc_u64", addU64, Q, Q, Q, N);
  salu("s_sub_nc_u64", subU64, Q, Q, Q, N);
  salu("s_mul_u64", mulU64, Q, Q, Q, N);
  salu("s_movrelsd_2_b32", movrelsd2, W, W, N, N);
  salu("s_sendmsg_rtn_b32", sendmsgRtn32, W, N, N, N);
  salu("s_sendmsg_rtn_b64", sendmsgRtn64, Q, N, N, N);
  auto sync = [&](const char *name, Handler handler, Form form, Ty d, Ty a) {
    add(name, handler, form, InstClass::Sync, d, a, N, N);
  };
  sync("s_round_mode", roundMode, Form::Nop, N, N);
  sync("s_denorm_mode", denormMode, Form::Nop, N, N);
  sync("s_sleep_var", sleepVar, Form::Nop, N, N);
  sync("s_barrier_signal", barrierSignal, Form::ScalarNoDst, N, W);
  sync("s_barrier_signal_isfirst", barrierSignalIsfirst, Form::ScalarNoDst, N,
       W);
  sync("s_barrier_wait", barrierWait, Form::Nop, N, N);
  sync("s_barrier_init", barrierInit, Form::ScalarNoDst, N, W);
  sync("s_barrier_join", barrierJoin, Form::ScalarNoDst, N, W);
  sync("s_barrier_leave", barrierLeave, Form::Nop, N, N);
  sync("s_get_barrier_state", barrierState, Form::Scalar, W, W);
}

} // namespace fovea::sim
