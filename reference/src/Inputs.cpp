//===- Inputs.cpp - seeded test inputs ------------------------------------===//
//
// The generators of fovea/Reference/Inputs.h.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Inputs.h"

#include <cmath>
#include <limits>

using namespace fovea::reference;

namespace {

struct KindName {
  InputKind kind;
  const char *name;
};
constexpr KindName kNames[] = {
    {InputKind::Uniform, "uniform"}, {InputKind::Normal, "normal"},
    {InputKind::Large, "large"},     {InputKind::OnesV, "ones-v"},
    {InputKind::Spike, "spike"},     {InputKind::Zeros, "zeros"},
    {InputKind::Masked, "masked"},
};

template <typename Value>
void fill(const Tensor &t, Value value) {
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s) {
        uint16_t *row = t.row(b, h, s);
        for (int64_t d = 0; d < t.dim; ++d)
          row[d] = encode(t.type, value());
      }
}

/// Plants, for each query head, a key that outweighs all others for one query.
void plantSpikes(ForwardProblem &p) {
  if (p.q.seq == 0 || p.k.seq == 0 || p.q.heads == 0)
    return;
  const int64_t group = p.q.heads / p.k.heads;
  for (int64_t b = 0; b < p.q.batch; ++b)
    for (int64_t h = 0; h < p.k.heads; ++h) {
      const int64_t j = (b * 31 + h * 17 + p.k.seq / 2) % p.k.seq;
      const uint16_t *q = p.q.row(b, h * group, p.q.seq - 1);
      uint16_t *k = p.k.row(b, h, j);
      for (int64_t d = 0; d < p.k.dim; ++d)
        k[d] = encode(p.k.type, 8 * decode(p.q.type, q[d]));
    }
}

/// Overwrites the keys that the mask hides from every query, and their values.
void poisonMaskedKeys(ForwardProblem &p) {
  int64_t seen = 0;
  for (int64_t i = 0; i < p.q.seq; ++i)
    seen = std::max(seen, visibleKeys(p.mask, i, p.q.seq, p.k.seq));
  const double bad[] = {std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()};
  for (int64_t b = 0; b < p.k.batch; ++b)
    for (int64_t h = 0; h < p.k.heads; ++h)
      for (int64_t j = seen; j < p.k.seq; ++j)
        for (int64_t d = 0; d < p.k.dim; ++d) {
          p.k.row(b, h, j)[d] = encode(p.k.type, bad[(j + d) % 3]);
          p.v.row(b, h, j)[d] = encode(p.v.type, bad[(j + d + 1) % 3]);
        }
}

} // namespace

const char *fovea::reference::inputKindName(InputKind kind) {
  for (const KindName &row : kNames)
    if (row.kind == kind)
      return row.name;
  return "unknown";
}

bool fovea::reference::parseInputKind(const std::string &name,
                                      InputKind &kind) {
  for (const KindName &row : kNames)
    if (name == row.name) {
      kind = row.kind;
      return true;
    }
  return false;
}

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::uniform() { return double(next() >> 11) * 0x1p-53; }

double Random::normal() {
  // Box-Muller; 1 - u is in (0, 1], so that the logarithm is finite.
  const double u = uniform(), angle = 2 * 3.14159265358979323846 * uniform();
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(angle);
}

void fovea::reference::fillInputs(ForwardProblem &p, InputKind kind,
                                  uint64_t seed) {
  Random random(seed);
  const bool uniform = kind == InputKind::Uniform;
  auto draw = [&] { return uniform ? random.uniform() : random.normal(); };
  double qk = 1;
  if (kind == InputKind::Zeros)
    qk = 0;
  if (kind == InputKind::Large) {
    // q.k has standard deviation sqrt(dim) and reaches about 4 times that;
    // both operands carry the square root of what is missing to 1e4.
    const double reach = 4 * std::sqrt(double(p.q.dim)) * std::fabs(p.scale);
    qk = reach > 0 ? std::sqrt(1e4 / reach) : 1;
  }
  fill(p.q, [&] { return qk * draw(); });
  fill(p.k, [&] { return qk * draw(); });
  if (kind == InputKind::OnesV)
    fill(p.v, [] { return 1.0; });
  else
    fill(p.v, draw);
  if (kind == InputKind::Spike)
    plantSpikes(p);
  if (kind == InputKind::Masked)
    poisonMaskedKeys(p);
}
