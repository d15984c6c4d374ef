//===- WindowTest.cpp - windows as AOTriton means them --------------------===//
//
// Numbers of either sign and special values, each for a side, where there are
// as many queries as keys, fewer, and more; both passes. What a row sees is
// worked out here as AOTriton's kernels do for a sequence, in numbers from the
// top left alone, and results are judged by the oracle.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <fovea/aotriton.h>
#include <gtest/gtest.h>
#include <limits>
#include <tuple>

using namespace client;

namespace {

constexpr int32_t kTopLeft = v3::WindowValue::TopLeftAligned;
constexpr int32_t kBottomRight = v3::WindowValue::BottomRightAligned;
constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
/// It is no special value, though next to one.
constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();

struct Sides {
  const char *name;
  int32_t left, right;
};
struct Lengths {
  int64_t seqlenQ, seqlenK;
};

const Sides kSides[] = {
    {"BothTopLeft", kTopLeft, kTopLeft},
    {"BothBottomRight", kBottomRight, kBottomRight},
    {"TopLeftThenBottomRight", kTopLeft, kBottomRight},
    {"BottomRightThenTopLeft", kBottomRight, kTopLeft},
    {"NumberThenTopLeft", 5, kTopLeft},
    {"NumberThenBottomRight", 5, kBottomRight},
    {"NegativeThenBottomRight", -9, kBottomRight},
    {"TopLeftThenNumber", kTopLeft, 5},
    {"BottomRightThenNumber", kBottomRight, 5},
    {"BottomRightThenNegative", kBottomRight, -9},
    {"Diagonal", 0, 0},
    {"Band", 16, 15},
    {"RightOfTheDiagonal", -3, 7},
    {"LeftOfTheDiagonal", 40, -31},
    // To other libraries these are no bounds.
    {"MinusOne", -1, -1},
    {"Nothing", 3, -4},
    {"All", kMost, kMost},
    {"AllButTheFuture", kMost, 0},
    {"NothingOnTheLeft", kLeast + 5, kMost},
    {"NothingOnTheRight", kMost, kLeast + 5},
    {"LeastOnTheLeft", kLeast, 4},
    {"LeastOnTheRight", 4, kLeast},
};
const Lengths kLengths[] = {{70, 70}, {40, 90}, {90, 40}};

/// What AOTriton's kernels make of the numbers for a sequence. Source:
/// AOTriton, modules/flash/kernel/masked_load_store.py, parse_window.
fovea::Window windowOf(const Sides &sides, const Lengths &lengths) {
  const bool special = sides.left == kTopLeft || sides.left == kBottomRight;
  const int64_t left = special ? lengths.seqlenQ : sides.left;
  int64_t right = sides.right;
  if (sides.right == kTopLeft)
    right = 0;
  else if (sides.right == kBottomRight)
    right = lengths.seqlenK - lengths.seqlenQ;
  return {left, right, fovea::Alignment::TopLeft, fovea::Alignment::TopLeft};
}

class WindowTable : public testing::TestWithParam<std::tuple<Lengths, Sides>> {
protected:
  static Shape shape() {
    const auto &[lengths, sides] = GetParam();
    Shape shape;
    shape.seqlenQ = lengths.seqlenQ;
    shape.seqlenK = lengths.seqlenK;
    shape.headsK = 1;
    shape.mask = windowOf(sides, lengths);
    return shape;
  }
  template <typename Params>
  static Params windowed(Params params) {
    params.causal_type = v3::CausalType::WindowedAttention;
    params.window_left = std::get<Sides>(GetParam()).left;
    params.window_right = std::get<Sides>(GetParam()).right;
    return params;
  }
};

TEST_P(WindowTable, Forward) {
  Problem problem(shape());
  ASSERT_EQ(attnFwd(windowed(forwardParams(problem))), hipSuccess)
      << fovea_aotriton_last_message();
  EXPECT_EQ(problem.judgeForward(), "");
}

TEST_P(WindowTable, Backward) {
  Problem problem(shape());
  problem.fillForwardResults();
  Lazy delta;
  ASSERT_EQ(attnBwd(windowed(backwardParams(problem, delta))), hipSuccess)
      << fovea_aotriton_last_message();
  EXPECT_EQ(problem.judgeBackward(), "");
}

std::string nameOf(const testing::TestParamInfo<WindowTable::ParamType> &info) {
  const auto &[lengths, sides] = info.param;
  return std::to_string(lengths.seqlenQ) + "x" +
         std::to_string(lengths.seqlenK) + sides.name;
}
INSTANTIATE_TEST_SUITE_P(All, WindowTable,
                         testing::Combine(testing::ValuesIn(kLengths),
                                          testing::ValuesIn(kSides)),
                         nameOf);

/// Without a window its numbers say nothing, whatever they are.
TEST(NoWindow, IgnoresNumbers) {
  for (int32_t number : {0, kTopLeft, kBottomRight, kLeast}) {
    SCOPED_TRACE(number);
    Problem problem({});
    v3::attn_fwd_params forward = forwardParams(problem);
    forward.causal_type = v3::CausalType::None;
    forward.window_left = forward.window_right = number;
    ASSERT_EQ(attnFwd(forward), hipSuccess) << fovea_aotriton_last_message();
    EXPECT_EQ(problem.judgeForward(), "");

    problem.fillForwardResults();
    Lazy delta;
    v3::attn_bwd_params backward = backwardParams(problem, delta);
    backward.causal_type = v3::CausalType::None;
    backward.window_left = backward.window_right = number;
    ASSERT_EQ(attnBwd(backward), hipSuccess) << fovea_aotriton_last_message();
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

} // namespace
