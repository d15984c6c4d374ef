//===- NonFiniteTest.cpp - NaN and infinities in V, keys split ------------===//
//
// A workgroup of a kernel that splits keys may round its sums to the type of
// the inputs (docs/SplitKeys.md): what is no number in one share has to come
// through, and leave the other columns alone.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include <cmath>
#include <limits>

using namespace fovea;
using namespace fovea::test;

namespace {

class NonFiniteTest : public GroupKernelTest {};

} // namespace

TEST_P(NonFiniteTest, ComesThroughShares) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  const run::ForwardCase c = makeCase(1, 40, 700, reference::Mask::None);
  const int64_t dim = c.dimOfV();
  auto &v = options.given.v;
  for (int64_t i = 0; i != c.headsK * c.seqK * dim; ++i)
    v.push_back(std::sin(double(i)));
  struct {
    int64_t head, key, column;
    double value;
  } const bad[] = {
      {0, 690, 5, kInf},  {0, 0, 6, -kInf},
      {0, 100, 60, kInf}, {0, 650, 60, -kInf}, // of two shares
      {1, 300, 11, kInf}, {1, 301, 11, -kInf}, // of one
      {1, 3, 9, kNaN},    {1, 4, 63, kInf},
  };
  for (const auto &one : bad)
    v[size_t((one.head * c.seqK + one.key) * dim + one.column)] = one.value;
  options.splits = 6;
  const run::RunReport report = expectPass(c);
  EXPECT_NE(report.kernel.find("6 shares"), std::string::npos) << report.kernel;
  int64_t infinite = 0, none = 0;
  for (const float value : report.out) {
    infinite += std::isinf(value);
    none += std::isnan(value);
  }
  // Three columns of each kind, of two query heads.
  EXPECT_EQ(infinite, 3 * 2 * c.seqQ);
  EXPECT_EQ(none, 3 * 2 * c.seqQ);
}

namespace {

const std::map<std::string, std::string> kSplit = {{"algorithm", "split"}};
const GroupKernel kKernels[] = {
    {"gfx942_bf16", "gfx942", "bf16", 64, kSplit},
    {"gfx942_f16", "gfx942", "f16", 64, kSplit},
    {"gfx1100_bf16", "gfx1100", "bf16", 64, kSplit},
    {"gfx1100_f16", "gfx1100", "f16", 64, kSplit},
};
INSTANTIATE_TEST_SUITE_P(All, NonFiniteTest, testing::ValuesIn(kKernels),
                         nameOf);

} // namespace
