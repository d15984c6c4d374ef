//===- VectorRows.cpp - Rows of the vector ALU ----------------------------===//
//
// Makes table rows of VectorOps.def: a lane loop for each line, and the engine's
// handler for all of them.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "fovea/Simulator/Chip.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {
#define V1(NAME, CLS, FLAGS, D, A, EXPR)                                       \
  struct f_##NAME {                                                            \
    static inline D::T f(A::T a) { return static_cast<D::T>(EXPR); }           \
  };
#define V2(NAME, CLS, FLAGS, D, A, B, EXPR)                                    \
  struct f_##NAME {                                                            \
    static inline D::T f(A::T a, B::T b) { return static_cast<D::T>(EXPR); }   \
  };
#define V3(NAME, CLS, FLAGS, D, A, B, C, EXPR)                                 \
  struct f_##NAME {                                                            \
    static inline D::T f(A::T a, B::T b, C::T c) {                             \
      return static_cast<D::T>(EXPR);                                          \
    }                                                                          \
  };
#define V3F(NAME, CLS, FLAGS, D, A, B, C, EXPR)                                \
  struct f_##NAME {                                                            \
    static inline D::T f(A::T a, B::T b, C::T c, uint32_t &flag) {             \
      (void)c;                                                                 \
      return static_cast<D::T>(EXPR);                                          \
    }                                                                          \
  };
#define P2(NAME, P, EXPR)                                                      \
  struct f_##NAME {                                                            \
    static inline P::T f(P::T a, P::T b) { return EXPR; }                      \
  };
#define P3(NAME, FLAGS, P, EXPR)                                               \
  struct f_##NAME {                                                            \
    static inline P::T f(P::T a, P::T b, P::T c) { return EXPR; }              \
  };
#include "isa/VectorOps.def"
#include "isa/VectorOpsGfx11.def"
#undef V1
#undef V2
#undef V3
#undef V3F
#undef P2
#undef P3

/// v_dot2_f32_f16 of chips on which it knows no denormals.
struct Dot2Flushed {
  static inline float f(uint32_t a, uint32_t b, float c) {
    return flushed(dot2(flushedHalves(a), flushedHalves(b), flushed(c)));
  }
};

Row makeRow(const char *name, InstClass cls, uint32_t flags, LoopFn loop, Ty d,
            Ty a, Ty b, Ty c) {
  Row row = valueRow(name, cls, Form::Vector, execVector, d, a, b, c);
  row.loop = loop;
  row.flags = flags;
  if (flags & kQuarterRate)
    row.rate = Rate::Quarter;
  return row;
}
} // namespace

void addVectorRows(std::vector<Row> &rows) {
#define V1(NAME, CLS, FLAGS, D, A, EXPR)                                       \
  rows.push_back(makeRow(#NAME, InstClass::CLS, FLAGS,                         \
                         laneLoop<f_##NAME, D, A>, D::ty, A::ty, Ty::None,     \
                         Ty::None));
#define V2(NAME, CLS, FLAGS, D, A, B, EXPR)                                    \
  rows.push_back(makeRow(#NAME, InstClass::CLS, FLAGS,                         \
                         laneLoop<f_##NAME, D, A, B>, D::ty, A::ty, B::ty,     \
                         Ty::None));
#define V3(NAME, CLS, FLAGS, D, A, B, C, EXPR)                                 \
  rows.push_back(makeRow(#NAME, InstClass::CLS, FLAGS,                         \
                         laneLoop<f_##NAME, D, A, B, C>, D::ty, A::ty, B::ty,  \
                         C::ty));
#define V3F(NAME, CLS, FLAGS, D, A, B, C, EXPR)                                \
  rows.push_back(makeRow(#NAME, InstClass::CLS, (FLAGS) | kCarryOut,           \
                         laneLoop2<f_##NAME, D, A, B, C>, D::ty, A::ty, B::ty, \
                         C::ty));
#define P2(NAME, P, EXPR)                                                      \
  rows.push_back(makeRow(#NAME, InstClass::Valu, 0,                            \
                         packedLoop<f_##NAME, P, P, P>, P::ty, P::ty, P::ty,   \
                         Ty::None));
#define P3(NAME, FLAGS, P, EXPR)                                               \
  rows.push_back(makeRow(#NAME, InstClass::Valu, FLAGS,                        \
                         packedLoop<f_##NAME, P, P, P, P>, P::ty, P::ty,       \
                         P::ty, P::ty));
#include "isa/VectorOps.def"
#include "isa/VectorOpsGfx11.def"
  for (bool tied : {false, true}) {
    rows.push_back(makeRow(tied ? "v_dot2c_f32_f16" : "v_dot2_f32_f16",
                           InstClass::Valu,
                           kRaw | kNearest | (tied ? kTied : 0),
                           laneLoop<Dot2Flushed, F32, WH, WH, F32>, Ty::F32,
                           Ty::PH, Ty::PH, Ty::F32));
    rows.back().traits = kTraitDot2Flush;
  }
}

} // namespace fovea::sim::FOVEA_VARIANT
