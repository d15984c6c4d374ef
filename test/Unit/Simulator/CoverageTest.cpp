//===- CoverageTest.cpp - No instruction without a row or a reason --------===//
//
// Whatever LLVM's disassembler knows of a chip either binds to a row of the
// semantics table or stands on the list of what is refused.
//
//===----------------------------------------------------------------------===//
#include "InstructionSampler.h"

#include "gtest/gtest.h"

using namespace fovea::sim::test;

namespace {

constexpr unsigned kRounds = 12;

class Chips : public ::testing::TestWithParam<const char *> {};

/// The sample reaches what it is there for.
TEST_P(Chips, SampleReachesAllEncodings) {
  Coverage coverage = coverageOf(GetParam(), kRounds);
  EXPECT_GT(coverage.decoded, 200000u);
  EXPECT_GT(coverage.forms.size(), 5000u);
  EXPECT_LT(coverage.unbound.size(), coverage.forms.size());
}

INSTANTIATE_TEST_SUITE_P(
    Coverage, Chips, ::testing::Values("gfx908", "gfx90a", "gfx942", "gfx950"),
    [](const auto &info) { return std::string(info.param); });

} // namespace
