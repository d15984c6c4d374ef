//===- CompareRows.cpp - Rows of the vector compares ----------------------===//
//
// v_cmp_* of all types; v_cmpx_* uses the same rows and also writes EXEC.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "isa/LaneMath.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {
#define CMP(NAME, EXPR)                                                        \
  struct c_##NAME {                                                            \
    template <class T>                                                         \
    static inline uint32_t f(T a, T b) {                                       \
      (void)a;                                                                 \
      (void)b;                                                                 \
      return EXPR;                                                             \
    }                                                                          \
  };
CMP(f, 0)
CMP(t, 1)
CMP(lt, a < b)
CMP(eq, a == b)
CMP(le, a <= b)
CMP(gt, a > b)
CMP(ne, a != b)
CMP(ge, a >= b)
CMP(lg, a < b || a > b)
CMP(o, a == a && b == b)
CMP(u, a != a || b != b)
CMP(nge, !(a >= b))
CMP(nlg, !(a < b || a > b))
CMP(ngt, !(a > b))
CMP(nle, !(a <= b))
CMP(nlt, !(a < b))

struct Class16 {
  static inline uint32_t f(uint16_t a, uint32_t b) {
    return (classBits(a, 5, 10) & b) != 0;
  }
};
struct Class32 {
  static inline uint32_t f(uint32_t a, uint32_t b) {
    return (classBits(a, 8, 23) & b) != 0;
  }
};
struct Class64 {
  static inline uint32_t f(uint64_t a, uint32_t b) {
    return (classBits(a, 11, 52) & b) != 0;
  }
};

Row compareRow(const char *name, LoopFn loop, Ty a, Ty b) {
  Row row = valueRow(name, InstClass::Valu, Form::Compare, execCompare,
                     Ty::Mask, a, b);
  row.loop = loop;
  return row;
}
} // namespace

void addCompareRows(std::vector<Row> &rows) {
#define ROW(OP, SUFFIX, T)                                                     \
  rows.push_back(compareRow("v_cmp_" #OP "_" #SUFFIX,                          \
                            laneLoop<c_##OP, U32, T, T>, T::ty, T::ty));
#define FLOATS(OP)                                                             \
  ROW(OP, f16, F16)                                                            \
  ROW(OP, f32, F32)                                                            \
  ROW(OP, f64, F64)
#define INTS(OP)                                                               \
  ROW(OP, i16, I16)                                                            \
  ROW(OP, u16, U16)                                                            \
  ROW(OP, i32, I32)                                                            \
  ROW(OP, u32, U32)                                                            \
  ROW(OP, i64, I64)                                                            \
  ROW(OP, u64, U64)
  FLOATS(f) FLOATS(lt) FLOATS(eq) FLOATS(le) FLOATS(gt) FLOATS(lg) FLOATS(ge)
  FLOATS(o) FLOATS(u) FLOATS(nge) FLOATS(nlg) FLOATS(ngt) FLOATS(nle)
  FLOATS(nlt)
  INTS(f) INTS(lt) INTS(eq) INTS(le) INTS(gt) INTS(ne) INTS(ge) INTS(t)
#define ALIAS(NAME, OP, T)                                                     \
  rows.push_back(                                                              \
      compareRow(NAME, laneLoop<c_##OP, U32, T, T>, T::ty, T::ty));
  ALIAS("v_cmp_neq_f16", ne, F16)
  ALIAS("v_cmp_neq_f32", ne, F32)
  ALIAS("v_cmp_neq_f64", ne, F64)
  ALIAS("v_cmp_tru_f16", t, F16)
  ALIAS("v_cmp_tru_f32", t, F32)
  ALIAS("v_cmp_tru_f64", t, F64)
  // The class of the bits themselves: no flushing, but neg and abs apply.
  rows.push_back(compareRow("v_cmp_class_f16",
                            laneLoop<Class16, U32, U16, U32>, Ty::F16, Ty::U32));
  rows.push_back(compareRow("v_cmp_class_f32",
                            laneLoop<Class32, U32, U32, U32>, Ty::F32, Ty::U32));
  rows.push_back(compareRow("v_cmp_class_f64",
                            laneLoop<Class64, U32, U64, U32>, Ty::F64, Ty::U32));
  for (Row &row : rows)
    if (row.mnemonic.substr(0, 11) == "v_cmp_class")
      row.flags |= kRaw;
}

} // namespace fovea::sim::FOVEA_VARIANT
