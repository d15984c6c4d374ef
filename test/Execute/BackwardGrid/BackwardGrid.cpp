//===- BackwardGrid.cpp - compiled gradients over the grid of problems ----===//
//
// Runs the backward kernels of a package as ForwardGrid runs forward ones:
// every pair of type, head dimension, mask, GQA ratio, length, layout, class of
// values and magnitude of dout; then each kernel once, half of them with one row
// of dout for the whole sequence, and that none has scratch. Runs with other
// thread counts and the workgroups in reverse must agree to the last bit, the
// gradients must be the derivative of what the package's forward kernel
// computes, and faults in the simulated matrix instructions must be noticed.
//
//   FoveaBackwardGrid --package=kernels [--grid=full|thin|atomic|atomic16]
//   [--hip=sim]
//     [--scratch=HEAD_DIM,... of kernels that may have some]
//     [--moved-scalars=HEAD_DIM,... of kernels that may spill 4 scalars]
//     [gtest options]
//
//===----------------------------------------------------------------------===//

#include "../ForwardGrid/Grid.h"
#include "BackwardRun.h"

#include <cmath>

using namespace fovea::test;

namespace {

const std::vector<Grid> kGrids = {
    {"full",
     1,
     {257, 129, 65, 17, 1, 0, 2, 63, 64, 128},
     {64, 32, 128, 16, 40, 96, 256}},
    // For chips that run the code of another but for a few instructions.
    {"thin", 1, {129, 65, 17, 1, 0}, {64, 128, 40}},
    // Of kernels that add dQ up in memory, in fp32 and in 16 bits.
    {"atomic", 1, {129, 65, 17, 1, 0}, {64, 32, 40}},
    {"atomic16", 1, {129, 65, 17, 1, 0}, {64, 32, 40}}};

bool isNarrow() { return grid->name == std::string("atomic16"); }
bool isAtomic() { return grid->name == std::string("atomic") || isNarrow(); }

/// What the grid's kernels are asked for by.
RunOptions gridOptions() {
  RunOptions options;
  options.deterministic = !isAtomic();
  options.narrowSums = isNarrow();
  return options;
}

/// Large gradients that stay finite in the type.
double largeDout(ElemType type) { return type == ElemType::F16 ? 64 : 16384; }

/// Queries that see no key, and keys that no query sees, beside full ones.
BackwardCase smallCase(ElemType type, Mask mask) {
  BackwardCase c;
  c.forward.type = type;
  c.forward.headDim = 64;
  c.forward.mask = mask;
  c.forward.heads = 4;
  c.forward.headsK = 2;
  c.forward.seqQ = 300;
  c.forward.seqK = 200;
  return c;
}

/// Bits of the gradients do not depend on who runs when.
void expectSameBits(const BackwardCase &c) {
  SetSimulator set = setSimulator();
  ASSERT_NE(set, nullptr);
  RunOptions options;
  options.check = false;
  const RunReport first = session->run(c, options);
  ASSERT_EQ(first.outcome, Outcome::Pass) << first.message;
  const std::pair<const char *, const char *> schedules[] = {
      {"1", "forward"}, {"1", "reverse"}, {"3", "forward"}, {"4", "reverse"}};
  for (const auto &[threads, order] : schedules) {
    ASSERT_EQ(set("threads", threads), 0);
    ASSERT_EQ(set("order", order), 0);
    const RunReport again = session->run(c, options);
    ASSERT_EQ(set("threads", "0"), 0);
    ASSERT_EQ(set("order", "forward"), 0);
    ASSERT_EQ(again.gradients.size(), first.gradients.size());
    for (size_t i = 0; i < first.gradients.size(); ++i)
      EXPECT_EQ(again.gradients[i].values, first.gradients[i].values)
          << first.gradients[i].name << " with " << threads << " threads, "
          << order;
  }
}

/// With atomics only those of dK and dV do not; dQ keeps to its budget in any
/// order, and who needs its bits is refused.
void expectOtherBits(const BackwardCase &c) {
  SetSimulator set = setSimulator();
  ASSERT_NE(set, nullptr);
  RunOptions options;
  const RunReport refused = session->run(c, options);
  EXPECT_EQ(refused.outcome, Outcome::Refused);
  EXPECT_NE(refused.message.find("its algorithm is 'atomic"), std::string::npos)
      << refused.message;
  options = gridOptions();
  ASSERT_EQ(set("threads", "1"), 0);
  const RunReport first = expectPass(c, options);
  ASSERT_EQ(set("order", "reverse"), 0);
  const RunReport again = expectPass(c, options);
  ASSERT_EQ(set("threads", "0"), 0);
  ASSERT_EQ(set("order", "forward"), 0);
  ASSERT_EQ(first.gradients.size(), 3u);
  ASSERT_EQ(again.gradients.size(), 3u);
  EXPECT_NE(again.gradients[0].values, first.gradients[0].values);
  for (size_t i : {1, 2})
    EXPECT_EQ(again.gradients[i].values, first.gradients[i].values)
        << first.gradients[i].name;
}

/// dout . (out(x + h u) - out(x - h u)) against gradient . (2 h u), for each of
/// q, k and v in the direction u of its exact gradient: both sides are sums of
/// many roundings, but the signal adds up and they do not. A part of the
/// gradient that is missing is missing on the right.
void expectDerivative(const BackwardCase &c) {
  const ForwardCase &f = c.forward;
  const size_t queries = size_t(f.batch * f.heads * f.seqQ * f.headDim),
               keys = size_t(f.batch * f.headsK * f.seqK * f.headDim);
  Random random(7);
  auto normal = [&](size_t count, double scale) {
    std::vector<double> values(count);
    for (double &value : values)
      value = roundTo(f.type, scale * random.normal());
    return values;
  };
  RunOptions options;
  options.forwardOnDevice = true;
  GivenInputs &given = options.given;
  given.q = normal(queries, 1);
  given.k = normal(keys, 1);
  given.v = normal(keys, 1);
  given.dout = normal(queries, c.doutScale);
  const RunReport report = session->run(c, options);
  ASSERT_EQ(report.outcome, Outcome::Pass) << report.message;
  options.check = false;
  std::vector<double> *inputs[] = {&given.q, &given.k, &given.v};
  for (size_t which = 0; which < 3; ++which) {
    const std::vector<float> &gradient = report.gradients[which].values;
    const std::vector<double> &exact = report.gradients[which].exact;
    double norm2 = 0;
    for (double value : exact)
      norm2 += value * value;
    ASSERT_GT(norm2, 0);
    // A step of this length along the whole gradient.
    constexpr double kStep = 2;
    const std::vector<double> at = *inputs[which];
    std::vector<double> ends[2] = {at, at};
    double predicted = 0, difference = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const double step = kStep * exact[i] / std::sqrt(norm2);
      ends[0][i] = roundTo(f.type, at[i] - step);
      ends[1][i] = roundTo(f.type, at[i] + step);
      predicted += double(gradient[i]) * (ends[1][i] - ends[0][i]);
    }
    for (int side : {0, 1}) {
      *inputs[which] = ends[side];
      const RunReport moved = session->run(f, options);
      ASSERT_EQ(moved.outcome, Outcome::Pass) << moved.message;
      for (size_t i = 0; i < moved.out.size(); ++i)
        difference += (side ? 1 : -1) * double(moved.out[i]) * given.dout[i];
    }
    *inputs[which] = at;
    std::printf("%s %s: out moves by %.5g, the gradient says %.5g\n",
                c.str().c_str(), report.gradients[which].name.c_str(),
                difference, predicted);
    EXPECT_NEAR(difference, predicted, 0.02 * std::fabs(difference))
        << report.gradients[which].name;
  }
}

/// A NaN in a query reaches its own gradient and those of all keys and values
/// that it sees, whatever clamps its probabilities pass.
void expectNaNStays(ElemType type) {
  const BackwardCase c = smallCase(type, Mask::None);
  const ForwardCase &f = c.forward;
  RunOptions options = gridOptions();
  Random random(3);
  options.given.q.resize(size_t(f.batch * f.heads * f.seqQ * f.headDim));
  for (double &value : options.given.q)
    value = roundTo(type, random.normal());
  options.given.q[size_t(70 * f.headDim + 5)] = NAN;
  const RunReport report = expectPass(c, options);
  ASSERT_EQ(report.gradients.size(), 3u);
  for (const GradientReport &gradient : report.gradients)
    EXPECT_GT(std::count_if(gradient.values.begin(), gradient.values.end(),
                            [](float value) { return std::isnan(value); }),
              0)
        << gradient.name;
}

void addDerivatives(ElemType type) {
  auto add = [](const BackwardCase &c) {
    addTest("Derivative", c.str(), [=] { expectDerivative(c); });
  };
  for (Mask mask : kNamedMasks) {
    BackwardCase c = smallCase(type, mask);
    add(c);
    std::swap(c.forward.seqQ, c.forward.seqK);
    c.forward.layout = Layout::BSHD;
    c.forward.rowPadding = 24;
    c.doutScale = largeDout(type);
    add(c);
  }
}

/// What pairs do not bring together: hidden keys that hold NaN beside queries
/// past the last, rows without keys beside full ones, gradients of exactly 0,
/// scales that are negative and 0.
std::vector<BackwardCase> chosenCases() {
  const struct {
    Mask mask;
    int64_t seqQ, seqK;
    InputKind input;
    std::optional<float> scale = std::nullopt;
  } rows[] = {{Mask::CausalTopLeft, 100, 200, InputKind::Masked},
              {Mask::CausalTopLeft, 1, 150, InputKind::Masked},
              {Mask::CausalBottomRight, 257, 100, InputKind::OnesV},
              {Mask::None, 257, 1, InputKind::Spike},
              {Mask::CausalTopLeft, 70, 90, InputKind::Normal, -0.125f},
              {Mask::CausalTopLeft, 70, 90, InputKind::Normal, 0.0f}};
  std::vector<BackwardCase> cases;
  for (ElemType type : kTypes)
    for (const auto &row : rows) {
      BackwardCase c = smallCase(type, row.mask);
      c.forward.seqQ = row.seqQ;
      c.forward.seqK = row.seqK;
      c.forward.input = row.input;
      c.forward.scale = row.scale;
      cases.push_back(c);
    }
  // Probabilities and gradients of scores below the least normal number of
  // fp16, of one query and of many.
  for (ElemType type : kTypes)
    for (int64_t seqQ : {1, 70}) {
      BackwardCase c = smallCase(type, Mask::None);
      c.forward.seqQ = seqQ;
      c.forward.seqK = 4096;
      c.forward.heads = c.forward.headsK = 1;
      c.forward.input = InputKind::Leader;
      cases.push_back(c);
    }
  // Logits beyond 2^30, of which the log-sum-exp has no digit behind the point.
  BackwardCase equal = smallCase(ElemType::BF16, Mask::CausalTopLeft);
  equal.forward.input = InputKind::Equal;
  cases.push_back(equal);
  return cases;
}

void registerTests() {
  size_t count = 0;
  RunOptions options = gridOptions();
  for (const GridCase &row : thinnedGrid(*grid, {/*large dout*/ 2})) {
    BackwardCase c;
    c.forward = row.problem;
    if (row.own[0])
      c.doutScale = largeDout(c.forward.type);
    options.guards = row.guards;
    addTest("Grid", c.str() + " " + std::to_string(count++),
            [=] { expectPass(c, options); });
  }
  options.guards = Guards::Auto;
  for (const BackwardCase &c : chosenCases())
    addTest("Grid", c.str() + " " + std::to_string(count++),
            [=] { expectPass(c, options); });
  std::printf("%s: %zu cases of the %s grid\n", session->arch().c_str(), count,
              grid->name);
  forEachKernel(fovea::OpKind::Backward, [&](const fovea_kernel_info_t &info,
                                             const ForwardCase &f) {
    BackwardCase c;
    c.forward = f;
    c.forward.seqQ = info.block_m + 37;
    c.forward.seqK = info.block_m + 2 * info.block_n + 29;
    // As the gradient of a sum or mean of all rows is: past the last row of
    // dout there is another of its rows.
    c.forward.equalRows = info.id % 2 ? "dout" : "";
    options.kernel = info.id;
    addTest("EveryKernel", "id " + std::to_string(info.id) + " " + c.str(),
            [=] { expectPass(c, options); });
  });
  for (ElemType type : kTypes)
    addTest("NaNStays", type == ElemType::F16 ? "fp16" : "bf16",
            [=] { expectNaNStays(type); });
  if (isAtomic()) {
    if (!session->simulated())
      return;
    // Sums of two have one order only: more blocks of keys than that.
    for (ElemType type : kTypes) {
      BackwardCase c = smallCase(type, Mask::None);
      c.forward.seqK = 700;
      addTest("OtherBits", c.str(), [=] { expectOtherBits(c); });
    }
    return;
  }
  for (ElemType type : kTypes) {
    // The package has these forward kernels; of one type in a thin grid.
    if (type == kTypes[0] || grid == &kGrids[0])
      addDerivatives(type);
    if (!session->simulated())
      continue;
    for (Mask mask : kNamedMasks) {
      const BackwardCase c = smallCase(type, mask);
      addTest("SameBits", c.str(), [=] { expectSameBits(c); });
    }
  }
  addPlantedFaults(smallCase(ElemType::BF16, Mask::None),
                   [](const RunReport &report) {
                     for (const GradientReport &gradient : report.gradients)
                       EXPECT_FALSE(gradient.comparison.pass) << gradient.name;
                   });
}

} // namespace

int main(int argc, char **argv) {
  return gridMain(argc, argv, kGrids, registerTests);
}
