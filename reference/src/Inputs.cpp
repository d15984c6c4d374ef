//===- Inputs.cpp - seeded test inputs ------------------------------------===//
//
// The generators of fovea/Reference/Inputs.h.
//
//===----------------------------------------------------------------------===//

#include "fovea/Reference/Inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace fovea::reference;

const std::vector<InputKindRow> &fovea::reference::inputKinds() {
  static const std::vector<InputKindRow> rows = {
      {"uniform", InputKind::Uniform}, {"normal", InputKind::Normal},
      {"large", InputKind::Large},     {"ones-v", InputKind::OnesV},
      {"spike", InputKind::Spike},     {"zeros", InputKind::Zeros},
      {"masked", InputKind::Masked},   {"leader", InputKind::Leader},
      {"huge", InputKind::Huge},       {"equal", InputKind::Equal},
      {"rising", InputKind::Rising},
  };
  return rows;
}

namespace {

template <typename Value>
void fill(const Tensor &t, Value value) {
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s) {
        const Row row = t.row(b, h, s);
        for (int64_t d = 0; d < t.dim; ++d)
          row.set(d, value());
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
      const Row q = p.q.row(b, h * group, p.q.seq - 1), k = p.k.row(b, h, j);
      for (int64_t d = 0; d < p.k.dim; ++d)
        k.set(d, 8 * q[d]);
    }
}

/// Makes all keys zeros but one, whose logit with each query is 9.8.
void plantLeader(ForwardProblem &p) {
  // Both of them point the same way; a scale of 0 has no such key.
  const double logit = p.scale != 0 ? 9.8 / p.scale : 0;
  const double size = std::sqrt(std::fabs(logit) / double(p.q.dim));
  fill(p.q, [&] { return size; });
  fill(p.k, [] { return 0.0; });
  for (int64_t b = 0; b < p.k.batch; ++b)
    for (int64_t h = 0; h < p.k.heads && p.k.seq > 0; ++h)
      for (int64_t d = 0; d < p.k.dim; ++d)
        p.k.row(b, h, p.k.seq / 2).set(d, std::copysign(size, logit));
}

/// Enlarges keys and queries by where they are.
void raiseKeys(ForwardProblem &p) {
  auto scale = [](const Tensor &t, auto factorOf) {
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t h = 0; h < t.heads; ++h)
        for (int64_t s = 0; s < t.seq; ++s)
          for (int64_t d = 0; d < t.dim; ++d) {
            const Row row = t.row(b, h, s);
            row.set(d, factorOf(s) * row[d]);
          }
  };
  scale(p.k, [](int64_t s) { return std::ldexp(1.0, int(2 * (s / 64 % 4))); });
  scale(p.q, [](int64_t s) { return s % 2 ? 0.125 : 8.0; });
}

/// What nobody may look at.
double bad(int64_t number) {
  const double values[] = {std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  return values[number % 3];
}

/// Overwrites a key and its value.
void poisonKey(ForwardProblem &p, int64_t b, int64_t h, int64_t j) {
  for (int64_t d = 0; d < p.k.dim; ++d)
    p.k.row(b, h, j).set(d, bad(j + d));
  for (int64_t d = 0; d < p.v.dim; ++d)
    p.v.row(b, h, j).set(d, bad(j + d + 1));
}

/// Overwrites keys and values in blocks that are listed for no query of their
/// heads, and queries that have no block.
void poisonUnlisted(ForwardProblem &p) {
  const int64_t group = p.q.heads / std::max<int64_t>(1, p.k.heads);
  for (int64_t b = 0; b < p.q.batch; ++b) {
    std::vector<bool> isSeen(size_t(p.k.heads * p.k.seq), false);
    for (int64_t h = 0; h < p.q.heads; ++h)
      for (int64_t i = 0; i < p.q.seq; ++i) {
        bool sees = false;
        for (int64_t j = 0; j < p.k.seq; ++j)
          if (p.isListed(b, h, i, j))
            sees = isSeen[size_t(h / group * p.k.seq + j)] = true;
        for (int64_t d = 0; d < p.q.dim && !sees; ++d)
          p.q.row(b, h, i).set(d, bad(i + d));
      }
    for (int64_t h = 0; h < p.k.heads; ++h)
      for (int64_t j = 0; j < p.k.seq; ++j)
        if (!isSeen[size_t(h * p.k.seq + j)])
          poisonKey(p, b, h, j);
  }
}

/// Overwrites the keys that the mask hides from every query, and their values.
void poisonMaskedKeys(ForwardProblem &p) {
  if (p.listed)
    return poisonUnlisted(p);
  std::vector<bool> isSeen(size_t(p.k.seq), false);
  int64_t from = 0; // those of rows before are marked up to here
  for (int64_t i = 0; i < p.q.seq; ++i) {
    const KeyRange seen = p.keysOf(i);
    for (int64_t j = std::max(seen.begin, from); j < seen.end; ++j)
      isSeen[size_t(j)] = true;
    from = std::max(from, seen.end);
  }
  for (int64_t b = 0; b < p.k.batch; ++b)
    for (int64_t h = 0; h < p.k.heads; ++h)
      for (int64_t j = 0; j < p.k.seq; ++j)
        if (!isSeen[size_t(j)])
          poisonKey(p, b, h, j);
}

} // namespace

const char *fovea::reference::inputKindName(InputKind kind) {
  for (const InputKindRow &row : inputKinds())
    if (row.kind == kind)
      return row.name;
  return "unknown";
}

bool fovea::reference::parseInputKind(const std::string &name,
                                      InputKind &kind) {
  for (const InputKindRow &row : inputKinds())
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
  const bool half = p.q.type == ElemType::F16;
  if (kind == InputKind::Large || kind == InputKind::Huge) {
    // q.k has standard deviation sqrt(dim) and reaches about 4 times that;
    // both operands carry the square root of what is missing.
    const double wanted = kind == InputKind::Large ? 1e4 : half ? 4e8 : 1e12;
    const double reach = 4 * std::sqrt(double(p.q.dim)) * std::fabs(p.scale);
    qk = reach > 0 ? std::sqrt(wanted / reach) : 1;
  }
  const double equal = half ? 60000 : 133120;
  auto element = [&] {
    const double x = qk * draw();
    return kind == InputKind::Equal ? equal
           : half                   ? std::clamp(x, -65504.0, 65504.0)
                                    : x;
  };
  fill(p.q, element);
  fill(p.k, element);
  if (kind == InputKind::OnesV)
    fill(p.v, [] { return 1.0; });
  else
    fill(p.v, draw);
  if (kind == InputKind::Spike)
    plantSpikes(p);
  if (kind == InputKind::Leader)
    plantLeader(p);
  if (kind == InputKind::Rising)
    raiseKeys(p);
  if (kind == InputKind::Masked)
    poisonMaskedKeys(p);
}
