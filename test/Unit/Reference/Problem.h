//===- Problem.h - a forward problem with storage, for tests ----*- C++ -*-===//

#ifndef FOVEA_TEST_REFERENCE_PROBLEM_H
#define FOVEA_TEST_REFERENCE_PROBLEM_H

#include "fovea/Reference/Attention.h"
#include "fovea/Reference/Inputs.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace fovea::reference {

/// Shape of a problem; the default scale is 1/sqrt(dim).
struct Shape {
  ElemType type = ElemType::BF16;
  int64_t batch = 1, heads = 1, headsK = 1, seqQ = 1, seqK = 1, dim = 16;
  Window mask;
  Layout layout = Layout::BHSD;
  int64_t padding = 0;
};

/// With the ten bits of mantissa of xf32, and of tf32.
inline float cut(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits &= 0xffffe000;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}
/// Rounded to 16 bits, or cut where the type has more.
inline float coarse(ElemType type, float x) {
  return type == ElemType::F32 ? cut(x) : float(roundTo(type, x));
}

/// Owns q, k and v of a problem.
class OwnedProblem {
public:
  OwnedProblem(const Shape &s, InputKind kind, uint64_t seed) {
    problem.q = add(
        describe(s.type, s.layout, s.batch, s.heads, s.seqQ, s.dim, s.padding));
    problem.k = add(describe(s.type, s.layout, s.batch, s.headsK, s.seqK, s.dim,
                             s.padding));
    problem.v = add(describe(s.type, s.layout, s.batch, s.headsK, s.seqK, s.dim,
                             s.padding));
    problem.mask = s.mask;
    problem.scale = float(1 / std::sqrt(double(s.dim)));
    fillInputs(problem, kind, seed);
  }
  OwnedProblem(const OwnedProblem &) = delete;
  OwnedProblem &operator=(const OwnedProblem &) = delete;

  ForwardProblem problem;

private:
  Tensor add(Tensor t) {
    // Gaps hold NaN: reading one shows.
    storage.push_back(std::vector<uint8_t>(
        size_t((t.span() + 1) * elementSize(t.type)), 0xff));
    t.data = storage.back().data();
    return t;
  }
  std::vector<std::vector<uint8_t>> storage;
};

} // namespace fovea::reference

#endif // FOVEA_TEST_REFERENCE_PROBLEM_H
