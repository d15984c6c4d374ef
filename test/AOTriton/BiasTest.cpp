//===- BiasTest.cpp - biases of any strides -------------------------------===//
//
// Both passes with a bias that is added to the scores, as clients make them of
// masks: padded rows, broadcast dimensions, one batch for stacked sequences.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <cmath>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>

using namespace client;
using aotriton::TensorView;

namespace {

const char *why() { return fovea_aotriton_last_message(); }

struct Case {
  const char *name;
  int64_t seqlenQ, seqlenK;
  std::array<uint64_t, 4> strides;
  fovea::Window mask = {};
  bool hides = false;
  ref::ElemType type = ref::ElemType::BF16;
  ref::Layout gradient = ref::Layout::BSHD;
};
constexpr uint64_t kBatch = 2, kHeadsQ = 4;

const Case kCases[] = {
    {"Dense", 70, 64, {4 * 70 * 64, 70 * 64, 64, 1}},
    // PyTorch pads rows to multiples of 8.
    {"PaddedRows", 40, 61, {4 * 40 * 64, 40 * 64, 64, 1}},
    {"OfKeys", 40, 61, {64, 0, 0, 1}, {}, true},
    {"OneForAll", 40, 61, {0, 0, 64, 1}, ref::Mask::CausalTopLeft},
    {"OfHeadsAndKeys",
     33,
     100,
     {0, 104, 0, 1},
     ref::Mask::CausalBottomRight,
     true},
    {"OddKeys", 33, 61, {0, 0, 0, 1}},
    {"OddRows", 33, 61, {0, 0, 61, 1}},
    {"Transposed", 40, 50, {0, 0, 1, 40}},
    {"OfQueries", 40, 50, {0, 40, 1, 0}, {}, true},
    {"Fp32",
     40,
     61,
     {64, 0, 0, 1},
     ref::Mask::CausalTopLeft,
     true,
     ref::ElemType::F32},
    {"Fp32OddRows",
     33,
     61,
     {4 * 33 * 61, 33 * 61, 61, 1},
     {},
     false,
     ref::ElemType::F32,
     ref::Layout::BHSD},
};

class Biases : public testing::TestWithParam<Case> {
protected:
  Biases() {
    const Case &c = GetParam();
    Shape shape;
    shape.type = c.type;
    shape.batch = kBatch;
    shape.headsQ = kHeadsQ;
    shape.seqlenQ = c.seqlenQ;
    shape.seqlenK = c.seqlenK;
    shape.mask = c.mask;
    problem = std::make_unique<Problem>(shape);
    bias = std::make_shared<Bias>(shape.type,
                                  std::array<uint64_t, 4>{kBatch, kHeadsQ,
                                                          uint64_t(c.seqlenQ),
                                                          uint64_t(c.seqlenK)},
                                  c.strides, c.hides);
    problem->score = bias;
  }
  std::unique_ptr<Problem> problem;
  std::shared_ptr<Bias> bias;
};

TEST_P(Biases, Forward) {
  v3::attn_fwd_params params = forwardParams(*problem);
  params.B = bias->view();
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem->judgeForward(), "");
}

TEST_P(Biases, Backward) {
  problem->fillForwardResults();
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(*problem, delta);
  params.B = bias->view();
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem->judgeBackward(), "");
}

/// Of its own for each place, however the bias is laid out, in rows that
/// PyTorch pads to multiples of 16.
TEST_P(Biases, Gradient) {
  const Case &c = GetParam();
  problem->fillForwardResults();
  const int64_t padding = (16 - c.seqlenK % 16) % 16;
  Buffer dbias(c.type, c.gradient, int64_t(kBatch), int64_t(kHeadsQ), c.seqlenQ,
               c.seqlenK, padding);
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(*problem, delta);
  params.B = bias->view();
  params.DB = dbias.view();
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem->judgeBackward(), "");
  dbias.download();
  EXPECT_EQ(problem->judgeBias(dbias), "");
  for (uint64_t b = 0; b != kBatch; ++b)
    for (uint64_t h = 0; h != kHeadsQ; ++h)
      for (int64_t i = 0; i != c.seqlenQ; ++i) {
        const ref::Row row = dbias.host.row(int64_t(b), int64_t(h), i);
        for (int64_t j = c.seqlenK; j != c.seqlenK + padding; ++j)
          ASSERT_TRUE(std::isnan(row[j])) << "padding was written";
      }
}

INSTANTIATE_TEST_SUITE_P(All, Biases, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.name;
                         });

/// What PyTorch makes of a mask (preprocess_mask): rows padded to a multiple of
/// 8 elements and cut again, then expanded, which leaves the strides of what
/// was not 1 and of what stays 1. No kernel for any strides is needed.
TEST(BiasOfPyTorch, Masks) {
  struct Row {
    const char *name;
    std::array<uint64_t, 4> sizes, strides;
  };
  const Row rows[] = {
      {"one key", {1, 2, 70, 1}, {560, 0, 8, 1}},
      {"of keys, one batch", {1, 2, 50, 61}, {64, 0, 0, 1}},
      {"one query", {1, 2, 1, 61}, {64, 0, 64, 1}},
      {"one query that shows no padding", {1, 2, 1, 61}, {61, 0, 61, 1}},
      {"one row for all", {2, 2, 50, 61}, {0, 0, 0, 1}},
  };
  for (const Row &row : rows) {
    SCOPED_TRACE(row.name);
    Shape shape;
    shape.batch = int64_t(row.sizes[0]);
    shape.seqlenQ = int64_t(row.sizes[2]);
    shape.seqlenK = int64_t(row.sizes[3]);
    Problem problem(shape);
    std::array<uint64_t, 4> strides = row.strides;
    for (size_t i = 0; i != 4; ++i)
      strides[i] = row.sizes[i] == 1 ? 0 : strides[i];
    const auto bias = std::make_shared<Bias>(shape.type, row.sizes, strides);
    problem.score = bias;
    const TensorView<4> view = bias->view(),
                        mask = {reinterpret_cast<intptr_t>(view.data_ptr()),
                                row.sizes, row.strides, view.dtype()};
    v3::attn_fwd_params forward = forwardParams(problem);
    forward.B = mask;
    ASSERT_EQ(attnFwd(forward), hipSuccess) << why();
    EXPECT_EQ(problem.judgeForward(), "");
    problem.fillForwardResults();
    Lazy delta;
    v3::attn_bwd_params backward = backwardParams(problem, delta);
    backward.B = mask;
    ASSERT_EQ(attnBwd(backward), hipSuccess) << why();
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

/// Sizes of 1 are broadcast, whatever their strides.
TEST(BiasForward, TakesSizesOfOne) {
  Shape shape;
  shape.batch = 2;
  Problem problem(shape);
  auto bias =
      std::make_shared<Bias>(shape.type, std::array<uint64_t, 4>{2, 2, 70, 70},
                             std::array<uint64_t, 4>{70, 0, 0, 1}, false);
  problem.score = bias;
  v3::attn_fwd_params params = forwardParams(problem);
  const TensorView<4> view = bias->view();
  params.B = {reinterpret_cast<intptr_t>(view.data_ptr()),
              {2, 1, 1, 70},
              {70, 70, 70, 1},
              view.dtype()};
  ASSERT_EQ(attnFwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeForward(), "");
}

/// As AOTriton takes it: without strides it is not wanted.
TEST(BiasGradient, IsNotWrittenWithoutStrides) {
  Problem problem({});
  auto bias = std::make_shared<Bias>(
      problem.shape.type, std::array<uint64_t, 4>{1, 2, 70, 70},
      std::array<uint64_t, 4>{0, 0, 70, 1}, false);
  problem.score = bias;
  problem.fillForwardResults();
  Buffer dbias(problem.shape.type, ref::Layout::BHSD, 1, 2, 70, 70);
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  params.B = bias->view();
  const TensorView<4> view = dbias.view();
  auto with = [&](std::array<uint64_t, 4> sizes,
                  std::array<uint64_t, 4> strides, aotriton::DType type) {
    return TensorView<4>(reinterpret_cast<intptr_t>(view.data_ptr()), sizes,
                         strides, type);
  };
  params.DB = with(view.sizes(), {0, 0, 0, 1}, view.dtype());
  ASSERT_EQ(attnBwd(params), hipSuccess) << why();
  EXPECT_EQ(problem.judgeBackward(), "");
  auto expectRefused = [&](hipError_t status, const char *reason,
                           const TensorView<4> &db) {
    params.DB = db;
    EXPECT_EQ(attnBwd(params), status);
    EXPECT_NE(std::string(why()).find(reason), std::string::npos) << why();
  };
  expectRefused(hipErrorInvalidValue, "DB has strides (4900, 0, 70, 1)",
                with(view.sizes(), {4900, 0, 70, 1}, view.dtype()));
  expectRefused(hipErrorInvalidValue, "DB has shape (1, 2, 70, 69)",
                with({1, 2, 70, 69}, view.strides(), view.dtype()));
  expectRefused(hipErrorInvalidValue, "DB has type number 1",
                with(view.sizes(), view.strides(), aotriton::kFloat32));
  expectRefused(hipErrorInvalidValue, "gradient_strides[2] is 69",
                with(view.sizes(), {9800, 4900, 69, 1}, view.dtype()));
  params.B = {};
  expectRefused(hipErrorInvalidValue, "DB has data, and B", view);
  dbias.download();
  for (uint16_t value : dbias.values)
    ASSERT_EQ(value, 0xffff); // nothing was written
}

/// Of fp32 it is cleared before kernels add to it: nothing is where rows would
/// lie in one another.
TEST(BiasGradient, OfFp32HasRowsOfItsOwn) {
  Shape shape;
  shape.type = ref::ElemType::F32;
  Problem problem(shape);
  auto bias =
      std::make_shared<Bias>(shape.type, std::array<uint64_t, 4>{1, 2, 70, 70},
                             std::array<uint64_t, 4>{0, 0, 70, 1}, false);
  problem.score = bias;
  problem.fillForwardResults();
  Buffer dbias(shape.type, ref::Layout::BHSD, 1, 2, 70, 70);
  Lazy delta;
  v3::attn_bwd_params params = backwardParams(problem, delta);
  params.B = bias->view();
  const TensorView<4> view = dbias.view();
  for (const std::array<uint64_t, 4> &strides :
       {std::array<uint64_t, 4>{9800, 4900, 69, 1}, {9800, 70, 70, 1}}) {
    params.DB = {reinterpret_cast<intptr_t>(view.data_ptr()), view.sizes(),
                 strides, view.dtype()};
    EXPECT_EQ(attnBwd(params), hipErrorInvalidValue);
    EXPECT_NE(std::string(why()).find("by which its rows overlap"),
              std::string::npos)
        << why();
  }
  dbias.download();
  for (uint16_t value : dbias.values)
    ASSERT_EQ(value, 0xffff); // nothing was cleared
}

struct Broken {
  const char *name;
  hipError_t status;
  const char *reason;
  TensorView<4> (*breakIt)(const TensorView<4> &);
};
TensorView<4> changed(const TensorView<4> &view, std::array<uint64_t, 4> sizes,
                      std::array<uint64_t, 4> strides, aotriton::DType type) {
  return {reinterpret_cast<intptr_t>(view.data_ptr()), sizes, strides, type};
}
const Broken kBroken[] = {
    {"Type", hipErrorInvalidValue, "B has type number 1, and Q 3",
     [](const TensorView<4> &b) {
       return changed(b, b.sizes(), b.strides(), aotriton::kFloat32);
     }},
    {"Shape", hipErrorInvalidValue,
     "B has shape (1, 2, 70, 69); the other tensors demand (1, 2, 70, 70)",
     [](const TensorView<4> &b) {
       return changed(b, {1, 2, 70, 69}, b.strides(), b.dtype());
     }},
    {"Stride", hipErrorInvalidValue, "none of them may be negative",
     [](const TensorView<4> &b) {
       return changed(b, b.sizes(), {0, 0, uint64_t(-70), 1}, b.dtype());
     }},
};

TEST(BiasRefused, BrokenCalls) {
  Problem problem({});
  const Bias bias(ref::ElemType::BF16, {1, 2, 70, 70}, {0, 0, 70, 1}, false);
  for (const Broken &row : kBroken) {
    SCOPED_TRACE(row.name);
    v3::attn_fwd_params params = forwardParams(problem);
    params.B = row.breakIt(bias.view());
    EXPECT_EQ(attnFwd(params), row.status);
    EXPECT_NE(std::string(why()).find(row.reason), std::string::npos) << why();
  }
  // There are no kernels with it of this type here.
  Shape shape;
  shape.type = ref::ElemType::F16;
  Problem other(shape);
  const Bias half(shape.type, {1, 2, 70, 70}, {0, 0, 70, 1}, false);
  v3::attn_fwd_params params = forwardParams(other);
  params.B = half.view();
  EXPECT_EQ(attnFwd(params), hipErrorNotSupported);
  EXPECT_NE(std::string(why()).find("score program 'bias'"), std::string::npos)
      << why();
}

} // namespace
