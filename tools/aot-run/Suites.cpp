//===- Suites.cpp - named sets of problems --------------------------------===//
//
// "demo" is a first look: one row a kind of work that models bring.
//
//===----------------------------------------------------------------------===//

#include "Suites.h"

using namespace fovea::run;
using namespace fovea::reference;

namespace {

struct Row {
  ElemType type;
  Mask mask;
  int64_t batch, heads, headsK, seqQ, seqK, headDim;
  Layout layout;
  InputKind input;
};

constexpr auto kF16 = ElemType::F16;
constexpr auto kBF16 = ElemType::BF16;
constexpr auto kNone = Mask::None;
constexpr auto kTop = Mask::CausalTopLeft;
constexpr auto kBottom = Mask::CausalBottomRight;
constexpr auto kBhsd = Layout::BHSD;
constexpr auto kBshd = Layout::BSHD;
constexpr auto kNormal = InputKind::Normal;

const Row kDemo[] = {
    // Prefill of language models: grouped keys, causal.
    {kBF16, kBottom, 1, 32, 8, 1024, 1024, 128, kBshd, kNormal},
    {kBF16, kBottom, 1, 8, 1, 1000, 1000, 256, kBshd, kNormal},
    {kF16, kTop, 2, 12, 12, 777, 777, 64, kBshd, kNormal},
    // A chunk of a prompt after what came before; then one token.
    {kBF16, kBottom, 1, 32, 4, 128, 2048, 128, kBshd, kNormal},
    {kBF16, kNone, 8, 32, 8, 1, 1500, 128, kBshd, kNormal},
    // Diffusion and encoders: all keys, odd head dimensions.
    {kBF16, kNone, 1, 2, 2, 2048, 2048, 128, kBhsd, kNormal},
    {kF16, kNone, 2, 10, 10, 1024, 77, 64, kBshd, kNormal},
    {kF16, kNone, 2, 8, 8, 1024, 77, 40, kBshd, kNormal},
    {kF16, kNone, 1, 16, 16, 577, 577, 80, kBshd, InputKind::Uniform},
    {kBF16, kNone, 1, 4, 4, 1500, 1500, 96, kBhsd, kNormal},
    {kBF16, kBottom, 1, 16, 16, 300, 500, 192, kBshd, kNormal},
    {kF16, kNone, 4, 8, 2, 129, 257, 16, Layout::SBHD, kNormal},
    // Numbers that go wrong first.
    {kBF16, kNone, 1, 2, 2, 500, 1000, 128, kBhsd, InputKind::Large},
    {kF16, kBottom, 1, 2, 2, 400, 200, 128, kBhsd, InputKind::OnesV},
};

const Row kBackwardDemo[] = {
    // Training of language models: grouped keys, causal.
    {kBF16, kBottom, 1, 8, 2, 512, 512, 128, kBshd, kNormal},
    {kBF16, kBottom, 1, 4, 1, 300, 300, 256, kBshd, kNormal},
    {kF16, kTop, 2, 6, 6, 333, 333, 64, kBshd, kNormal},
    {kBF16, kBottom, 1, 4, 4, 200, 500, 96, kBshd, kNormal},
    // Diffusion and encoders: all keys, odd head dimensions.
    {kBF16, kNone, 1, 2, 2, 512, 512, 128, kBhsd, kNormal},
    {kF16, kNone, 1, 4, 4, 577, 77, 40, kBshd, kNormal},
    {kF16, kNone, 1, 4, 4, 257, 257, 80, kBshd, InputKind::Uniform},
    {kBF16, kNone, 2, 4, 2, 129, 257, 32, Layout::SBHD, kNormal},
    // Numbers that go wrong first; queries that see no key.
    {kBF16, kNone, 1, 2, 2, 300, 400, 128, kBhsd, InputKind::Large},
    {kF16, kBottom, 1, 2, 2, 400, 200, 64, kBhsd, InputKind::OnesV},
};

template <size_t N>
std::vector<ForwardCase> casesOf(const Row (&rows)[N]) {
  std::vector<ForwardCase> cases;
  for (const Row &row : rows) {
    ForwardCase c;
    c.type = row.type;
    c.mask = row.mask;
    c.batch = row.batch;
    c.heads = row.heads;
    c.headsK = row.headsK;
    c.seqQ = row.seqQ;
    c.seqK = row.seqK;
    c.headDim = row.headDim;
    c.layout = row.layout;
    c.input = row.input;
    cases.push_back(c);
  }
  return cases;
}

} // namespace

std::vector<ForwardCase> fovea::run::suiteCases(const std::string &name) {
  return name == "demo" ? casesOf(kDemo) : std::vector<ForwardCase>();
}

std::vector<BackwardCase>
fovea::run::backwardSuiteCases(const std::string &name) {
  std::vector<BackwardCase> cases;
  if (name == "demo")
    for (const ForwardCase &problem : casesOf(kBackwardDemo))
      cases.push_back({problem, /*doutScale=*/1});
  return cases;
}

std::string fovea::run::suiteHelp() {
  return "demo: " + std::to_string(std::size(kDemo)) +
         " problems as models bring them, " +
         std::to_string(std::size(kBackwardDemo)) + " with --op=backward";
}
