//===- CheckTest.cpp - what the buffers should hold at the end ------------===//
//
// "Kernels" here are the oracle's plain algorithm, written into the buffers in
// the description's layout; then something is made wrong.
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "fovea/Reference/Backward.h"

#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace fovea::describe;
namespace ref = fovea::reference;
using nlohmann::json;

namespace {

/// Axes b, s, h, d; two query heads a key head; values have 8 of 16 dimensions.
json sample(bool backward) {
  json text = json::parse(R"json({
    "version": 1,
    "variables": {"b": 2, "h": 4, "hk": 2, "sq": 9, "sk": 13, "d": 16, "dv": 8},
    "buffers": {
      "q": {"type": "bf16", "shape": ["b", "sq", "h", "d"], "fill": {"kind": "normal", "seed": 1}},
      "k": {"type": "bf16", "shape": ["b", "sk", "hk", "d"], "fill": {"kind": "normal", "seed": 2}},
      "v": {"type": "bf16", "shape": ["b", "sk", "hk", "dv"], "fill": {"kind": "normal", "seed": 3}},
      "o": {"type": "bf16", "shape": ["b", "sq", "h", "dv"], "fill": "reference"},
      "l": {"type": "f32", "shape": ["b", "sq", "h"], "strides": ["h * sq", 1, "sq"], "fill": "reference"}
    },
    "code_object": "k", "grid": [1], "block": [64], "arguments": [],
    "check": {"kind": "attention-forward", "axes": "bshd", "mask": "causal-bottom-right",
              "q": "q", "k": "k", "v": "v", "out": "o", "lse": "l"}
  })json");
  if (backward) {
    text["check"]["kind"] = "attention-backward";
    text["buffers"]["do"] = {{"type", "bf16"},
                             {"shape", {"b", "sq", "h", "dv"}},
                             {"fill", {{"kind", "normal"}, {"seed", 4}}}};
    text["check"]["dout"] = "do";
    for (const char *name : {"q", "k", "v"}) {
      json gradient = text["buffers"][name];
      gradient["fill"] = "nan";
      text["buffers"][std::string("d") + name] = gradient;
      text["check"][std::string("d") + name] = std::string("d") + name;
    }
  }
  return text;
}

class CheckTest : public testing::Test {
protected:
  void start(const json &text) {
    std::string error;
    ASSERT_TRUE(parse(text.dump(), "d.json", "", {}, problem, error)) << error;
    contents.resize(problem.buffers.size());
    for (size_t i = 0; i < contents.size(); ++i) {
      Buffer buffer = problem.buffers[i];
      if (buffer.fill.kind != Fill::Reference)
        ASSERT_TRUE(fillBuffer(buffer, nullptr, contents[i], error)) << error;
    }
    checker = std::make_unique<Checker>(problem);
    ASSERT_TRUE(checker->prepare(contents, error)) << error;
  }

  std::vector<uint8_t> &bytes(const char *name) {
    for (size_t i = 0; i < contents.size(); ++i)
      if (problem.buffers[i].name == name)
        return contents[i];
    ADD_FAILURE() << "no buffer " << name;
    return contents[0];
  }

  Problem problem;
  Contents contents;
  std::unique_ptr<Checker> checker;
};

TEST_F(CheckTest, ForwardTakesWhatIsRight) {
  start(sample(false));
  // The reference's own values, rounded, are a result.
  const Verdict verdict = checker->compare(contents);
  EXPECT_TRUE(verdict.pass) << verdict.message;
  ASSERT_EQ(verdict.compared.size(), 2u);
  EXPECT_EQ(verdict.compared[0].what, "out");
  EXPECT_GT(verdict.compared[0].budget, 0);
  EXPECT_EQ(verdict.compared[1].what, "lse");
}

TEST_F(CheckTest, ForwardFindsOneWrongElement) {
  start(sample(false));
  auto *words = reinterpret_cast<uint16_t *>(bytes("o").data());
  words[100] ^= 0x8000;
  const Verdict verdict = checker->compare(contents);
  EXPECT_FALSE(verdict.pass);
  // 100 is batch 0, row 3, head 0, dimension 4.
  EXPECT_NE(verdict.message.find("out[0, 0, 3, 4]"), std::string::npos)
      << verdict.message;
}

TEST_F(CheckTest, ForwardFindsAWrongLogSum) {
  start(sample(false));
  auto *rows = reinterpret_cast<float *>(bytes("l").data());
  rows[1] += 1e-3f;
  const Verdict verdict = checker->compare(contents);
  EXPECT_FALSE(verdict.pass);
  EXPECT_NE(verdict.message.find("lse[0, 0, 1]"), std::string::npos)
      << verdict.message;
}

TEST_F(CheckTest, ToleranceWidensTheBudget) {
  json text = sample(false);
  text["check"]["tolerance"] = 1000;
  start(text);
  auto *rows = reinterpret_cast<float *>(bytes("l").data());
  rows[1] += 1e-3f;
  EXPECT_TRUE(checker->compare(contents).pass);
}

/// Where results of shares are rounded before they are combined, two roundings
/// may go the same way; where there is one key, nothing else has any.
TEST_F(CheckTest, SharesHaveOneRoundingMore) {
  json text = sample(false);
  text["variables"]["sk"] = 1;
  text["check"]["mask"] = "none";
  json values = json::array();
  for (int row = 0; row < 4; ++row)
    for (int d = 0; d < 8; ++d)
      values.push_back(d == 0 ? 3 : 1.90625);
  text["buffers"]["v"]["fill"] = {{"kind", "values"}, {"values", values}};
  for (bool isShared : {false, true}) {
    if (isShared)
      text["check"]["shares"] = "b + 1";
    start(text);
    auto *words = reinterpret_cast<uint16_t *>(bytes("o").data());
    for (size_t i = 0; i < bytes("o").size() / 2; ++i)
      words[i] += i % 8 >= 4;
    EXPECT_EQ(checker->compare(contents).pass, isShared);
  }
}

/// The plain algorithm's gradients, for sequences of any length.
void writeGradients(const Problem &p, Contents &contents, int64_t scaleDk) {
  const Check &c = *p.check;
  auto tensor = [&](const char *role, int64_t begin, int64_t end) {
    const Buffer &b = p.buffers[c.buffers.at(role)];
    ref::Tensor t;
    t.type = ref::ElemType::BF16;
    const size_t s = c.axes.find('s'), h = c.axes.find('h');
    t.batch = c.axes.size() == 4 ? b.shape[0] : 1;
    t.strideBatch = c.axes.size() == 4 ? b.strides[0] : 0;
    t.heads = b.shape[h];
    t.strideHead = b.strides[h];
    t.seq = end < 0 ? b.shape[s] : end - begin;
    t.strideSeq = b.strides[s];
    t.dim = b.shape.back();
    t.data = reinterpret_cast<uint16_t *>(contents[c.buffers.at(role)].data()) +
             begin * t.strideSeq;
    return t;
  };
  const size_t count = c.startsQ.empty() ? 1 : c.startsQ.size() - 1;
  for (size_t n = 0; n < count; ++n) {
    auto of = [&](const char *role, bool keys) {
      const std::vector<int64_t> &starts = keys ? c.startsK : c.startsQ;
      return starts.empty() ? tensor(role, 0, -1)
                            : tensor(role, starts[n], starts[n + 1]);
    };
    ref::BackwardProblem problem;
    problem.forward.q = of("q", false);
    problem.forward.k = of("k", true);
    problem.forward.v = of("v", true);
    problem.forward.mask = ref::Mask::CausalBottomRight;
    problem.forward.scale = float(c.scale);
    problem.dout = of("dout", false);
    ASSERT_EQ(problem.check(), "");
    const ref::BackwardResult plain = ref::attentionBackwardPlain(problem);
    auto write = [&](const char *role, bool keys,
                     const std::vector<double> &values, double factor) {
      const ref::Tensor t = of(role, keys);
      size_t i = 0;
      for (int64_t b = 0; b < t.batch; ++b)
        for (int64_t h = 0; h < t.heads; ++h)
          for (int64_t s = 0; s < t.seq; ++s)
            for (int64_t d = 0; d < t.dim; ++d)
              t.row(b, h, s).set(d, factor * values[i++]);
    };
    write("dq", false, plain.dq, 1);
    write("dk", true, plain.dk, double(scaleDk));
    write("dv", true, plain.dv, 1);
  }
}

TEST_F(CheckTest, BackwardTakesWhatIsRightAndFindsWhatIsNot) {
  json text = sample(true);
  text["variables"]["dv"] = 16; // writeGradients() knows one dimension
  start(text);
  writeGradients(problem, contents, 1);
  Verdict verdict = checker->compare(contents);
  EXPECT_TRUE(verdict.pass) << verdict.message;
  EXPECT_EQ(verdict.compared.size(), 3u);
  writeGradients(problem, contents, 2);
  verdict = checker->compare(contents);
  EXPECT_FALSE(verdict.pass);
  EXPECT_NE(verdict.message.find("dk["), std::string::npos) << verdict.message;
  EXPECT_EQ(verdict.message.find("dv["), std::string::npos) << verdict.message;
}

TEST_F(CheckTest, GradientsNotWrittenShow) {
  start(sample(true));
  const Verdict verdict = checker->compare(contents);
  EXPECT_FALSE(verdict.pass);
  for (const char *part : {"dq[0, 0, 0, 0] is nan", "dk[", "dv["})
    EXPECT_NE(verdict.message.find(part), std::string::npos) << verdict.message;
}

TEST_F(CheckTest, PackedSequencesAreTakenOneByOne) {
  json text = sample(true);
  text["variables"]["dv"] = 16;
  for (auto &[name, buffer] : text["buffers"].items()) {
    auto &shape = buffer["shape"];
    shape.erase(0);
    shape[0] = shape[0] == "sq" ? "9 + 4" : "13 + 4";
    if (buffer.contains("strides"))
      buffer["strides"] = {1, 13};
  }
  text["check"]["axes"] = "shd";
  text["check"]["starts_q"] = {0, 9, 9, 13};
  text["check"]["starts_k"] = {0, 13, 13, 17};
  start(text);
  writeGradients(problem, contents, 1);
  Verdict verdict = checker->compare(contents);
  EXPECT_TRUE(verdict.pass) << verdict.message;
  // A row of the last sequence.
  reinterpret_cast<uint16_t *>(bytes("dq").data())[10 * 4 * 16] ^= 0x8000;
  verdict = checker->compare(contents);
  EXPECT_FALSE(verdict.pass);
  EXPECT_NE(verdict.message.find("sequence 2: dq[0, 0, 1, 0]"),
            std::string::npos)
      << verdict.message;
}

TEST(CheckShapes, ThatDoNotGoTogetherAreRefused) {
  struct Case {
    const char *pointer;
    json value;
    const char *part;
  };
  const Case cases[] = {
      {"/variables/hk", 3, "multiple of key heads"},
      {"/buffers/k/shape/1", 12, "'k' and 'v' differ in axis 's'"},
      {"/buffers/o/shape/1", 8, "'q' and 'o' differ in axis 's'"},
      {"/buffers/l/shape/1", 8, "'q' and 'l' differ in axis 's'"},
      {"/buffers/k/shape/3", 8, "queries (16) and keys (8) differ"},
      {"/buffers/k/type", "f16", "one element type"},
      {"/buffers/q/fill", "reference", "neither 'out' nor 'lse'"},
  };
  for (const Case &c : cases) {
    json text = sample(false);
    text[json::json_pointer(c.pointer)] = c.value;
    Problem problem;
    std::string error;
    ASSERT_TRUE(parse(text.dump(), "d.json", "", {}, problem, error)) << error;
    Contents contents(problem.buffers.size());
    for (size_t i = 0; i < contents.size(); ++i) {
      Buffer buffer = problem.buffers[i];
      buffer.fill.kind = Fill::Zeros;
      ASSERT_TRUE(fillBuffer(buffer, nullptr, contents[i], error));
    }
    EXPECT_FALSE(Checker(problem).prepare(contents, error)) << c.pointer;
    EXPECT_NE(error.find(c.part), std::string::npos)
        << c.pointer << ": " << error;
    EXPECT_EQ(error.compare(0, 16, "d.json: /check: "), 0) << error;
  }
}

} // namespace
