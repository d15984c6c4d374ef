//===- HeadDimsTest.cpp - head dimensions that differ ---------------------===//
//
// Both passes with head dimensions of V other than those of Q, and with such as
// no kernel has, in rows that 8 divides the distance of.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <fovea/aotriton.h>
#include <gtest/gtest.h>

using namespace client;

namespace {

const char *why() { return fovea_aotriton_last_message(); }

constexpr int64_t kDims[][2] = {{64, 32}, {24, 64}, {7, 7}, {37, 53}, {1, 64}};

Shape shapeOf(const int64_t (&dims)[2]) {
  Shape shape;
  shape.batch = 2;
  shape.headsQ = 4;
  shape.seqlenQ = 50;
  shape.seqlenK = 61;
  shape.dim = dims[0];
  shape.dimV = dims[1];
  return shape;
}

TEST(HeadDims, Forward) {
  for (const auto &dims : kDims) {
    Problem problem(shapeOf(dims));
    ASSERT_EQ(attnFwd(forwardParams(problem)), hipSuccess) << why();
    EXPECT_EQ(problem.judgeForward(), "") << dims[0] << "/" << dims[1];
  }
}

TEST(HeadDims, Backward) {
  for (const auto &dims : kDims) {
    Problem problem(shapeOf(dims));
    problem.fillForwardResults();
    Lazy delta;
    ASSERT_EQ(attnBwd(backwardParams(problem, delta)), hipSuccess) << why();
    EXPECT_EQ(problem.judgeBackward(), "") << dims[0] << "/" << dims[1];
  }
}

} // namespace
