//===- LowestScoreTest.cpp - scores of the lowest finite number -----------===//
//
// Masks in f32 hold the lowest number in the place of -infinity, and nothing
// can be added to it: rows of such scores alone count all their keys alike.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "ScoreKernel.h"

using namespace fovea;
using namespace fovea::test;
using namespace fovea::test::scores;
using llvm::ArrayRef;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
/// Runs of kLowestRows queries add one of these pairs to the scores of the keys
/// below kLowestEdge, and of the others: the lowest number of a type, -infinity
/// or nothing.
enum class Level { Lowest, None, Zero };
constexpr std::pair<Level, Level> kLevels[] = {
    {Level::Lowest, Level::Lowest}, {Level::None, Level::None},
    {Level::Lowest, Level::Zero},   {Level::Zero, Level::Zero},
    {Level::None, Level::Lowest},   {Level::Zero, Level::Lowest},
    {Level::Lowest, Level::None},   {Level::Zero, Level::None}};
constexpr int64_t kLowestRows = 24, kLowestEdge = 100;
std::pair<Level, Level> levelsOf(int64_t query) {
  return kLevels[query / kLowestRows % std::size(kLevels)];
}
/// Whether the largest score is that number: the row counts all keys alike that
/// have it.
bool isLowest(int64_t query) {
  auto [early, late] = levelsOf(query);
  return (early == Level::Lowest || late == Level::Lowest) &&
         early != Level::Zero && late != Level::Zero;
}

const char kAddLevel[] = R"(
      %rows = arith.constant 24 : i32
      %kinds = arith.constant 8 : i32
      %edge = arith.constant 100 : i32
      %two = arith.constant 2 : i32
      %run = arith.divsi %query, %rows : i32
      %kind = arith.remsi %run, %kinds : i32
      %first = arith.muli %kind, %two : i32
      %isLate = arith.cmpi sge, %key, %edge : i32
      %late = arith.extui %isLate : i1 to i32
      %place = arith.addi %first, %late : i32
      %b = attn.at %c0[%place] : !c0
      %s = arith.addf %x, %b : f32)";

/// The same without numbers that nothing can be added to: of them the lowest
/// count alike, or beside others not at all.
class WithoutLowest : public reference::ScoreFunction {
public:
  Result<double> apply(double product, const Place &place) const override {
    return of(product, place);
  }
  Result<float> apply(float product, const Place &place) const override {
    return of(product, place);
  }

private:
  template <typename Real>
  Result<Real> of(Real product, const Place &place) const {
    auto [early, late] = levelsOf(place.query);
    const Level level = place.key < kLowestEdge ? early : late;
    if (level == Level::Zero)
      return {product, 1};
    if (level == Level::Lowest && isLowest(place.query))
      return {Real(1), 0};
    return {-std::numeric_limits<Real>::infinity(), 0};
  }
};

/// Captures in each type.
class LowestScoreTest : public ScoreTest {
protected:
  bool hasSinks() const { return StringRef(kernel().name).ends_with("sinks"); }
  double lowest() const {
    const StringRef element = program().captures[0].element;
    return element == "f16"    ? -65504
           : element == "bf16" ? -0x1.FEp127
                               : std::numeric_limits<float>::lowest();
  }
  /// Whether scores have no digits beside it.
  bool absorbs() const { return lowest() < -1e30; }
  run::ForwardCase sizes() const {
    run::ForwardCase c = cases().front();
    c.batch = 1;
    c.heads = hasSinks() ? 2 : 1;
    c.seqQ = 8 * kLowestRows;
    c.seqK = c.seqQ + kLowestEdge + 9; // all see keys of both kinds
    return c;
  }
  /// What is captured, with something for the lowest number.
  run::CaptureFill fill(double lowest) const {
    run::CaptureFill fill;
    fill.extent = 2 * std::size(kLevels);
    for (auto [early, late] : kLevels)
      for (Level level : {early, late})
        fill.elements.push_back(level == Level::Zero   ? 0
                                : level == Level::None ? -kInf
                                                       : lowest);
    return fill;
  }
  template <typename Case>
  run::RunReport
  runWith(run::Session &session, Case problem, double lowest,
          std::shared_ptr<const reference::ScoreFunction> oracle) {
    run::CaseScore captures(compiled.score().name, compiled.captures(),
                            {fill(lowest)}, sizesOf(problem));
    EXPECT_EQ(captures.upload(session), "");
    give(sizesOf(problem), captures);
    if (oracle)
      sizesOf(problem).score = oracle;
    run::RunReport report = session.run(problem, options);
    EXPECT_EQ(report.outcome, run::Outcome::Pass)
        << problem.str() << ": " << report.message;
    return report;
  }
};
class ForwardLowestTest : public LowestScoreTest {};
class BackwardLowestTest : public LowestScoreTest {};

// The mean of V, and no sum of the exponentials that float's range does not
// have; where all are -infinity, zeros.
TEST_P(ForwardLowestTest, CountsKeysAlike) {
  auto session =
      compileAndOpen(fovea::OpKind::Forward, forward(hasSinks()), hasSinks());
  ASSERT_TRUE(session);
  if (kernel().schedule.count("algorithm"))
    options.splits = 4; // as many as are added at once, and none beside
  run::ForwardCase c = sizes();
  const run::RunReport report = runWith(*session, c, lowest(), nullptr);
  ASSERT_EQ(report.lse.size(), size_t(c.heads * c.seqQ));
  if (!absorbs()) // the oracle has held digits to account
    return;
  for (size_t row = 0; row != report.lse.size(); ++row)
    if (isLowest(int64_t(row) % c.seqQ))
      ASSERT_EQ(report.lse[row], float(lowest())) << row;
  c.lse = false;
  EXPECT_EQ(
      runWith(*session, c, lowest(), std::make_shared<WithoutLowest>()).out,
      report.out);
  if (!hasSinks())
    return;
  // One that is above takes the rows.
  const auto &options = run::groupOptions();
  auto sinks = llvm::find_if(options, [](const run::GroupOption &option) {
    return StringRef(option.name) == "sinks";
  });
  c.lse = true;
  c.groups = {{&*sinks, {-kInf, 1}}};
  const run::RunReport sunk = runWith(*session, c, lowest(), nullptr);
  for (size_t row = 0; row != sunk.lse.size(); ++row) {
    const bool hasSink = row >= size_t(c.seqQ);
    if (isLowest(int64_t(row) % c.seqQ))
      ASSERT_EQ(sunk.lse[row], hasSink ? 1 : float(lowest())) << row;
    for (int i = 0; i != c.headDim; ++i) {
      const size_t at = row * size_t(c.headDim) + size_t(i);
      if (!hasSink)
        ASSERT_EQ(sunk.out[at], report.out[at]) << row;
      else if (isLowest(int64_t(row) % c.seqQ))
        ASSERT_EQ(sunk.out[at], 0) << row;
    }
  }
}

// A log-sum-exp of that magnitude does not say how many keys there were: rows
// pass no gradient, and other rows all of theirs.
TEST_P(BackwardLowestTest, PassesNoGradient) {
  auto session = compileAndOpen(fovea::OpKind::Backward, backward());
  ASSERT_TRUE(session);
  options.deterministic = false;
  run::BackwardCase c;
  c.forward = sizes();
  const run::RunReport report = runWith(*session, c, lowest(), nullptr);
  if (!absorbs())
    return;
  const run::RunReport without = runWith(*session, c, -kInf, nullptr);
  ASSERT_EQ(report.gradients.size(), without.gradients.size());
  for (auto [found, wanted] : llvm::zip(report.gradients, without.gradients))
    EXPECT_EQ(found.values, wanted.values) << found.name;
}

Program lowestOf(const char *name, const char *element) {
  return {name, kAddLevel, {{element, "t", 0, false, false}}};
}
std::vector<Parameters> lowestOn(ArrayRef<Kernel> kernels) {
  std::vector<Parameters> all;
  for (const Kernel &kernel : kernels) {
    all.emplace_back(lowestOf("F32", "f32"), kernel);
    if (StringRef(kernel.name) != "gfx942") // reading is others' subject
      continue;
    all.emplace_back(lowestOf("F16", "f16"), kernel);
    all.emplace_back(lowestOf("BF16", "bf16"), kernel);
  }
  return all;
}
const Kernel kForwardLowest[] = {
    {"gfx942", "gfx942", "bf16", 32, {}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx908_sinks", "gfx908", "f16", 32, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201_sinks", "gfx1201", "f16", 32, {}},
    {"gfx90a_split", "gfx90a", "f16", 32, {{"algorithm", "split"}}},
    {"gfx942_split_sinks", "gfx942", "bf16", 32, {{"algorithm", "split"}}},
};
const Kernel kBackwardLowest[] = {
    {"gfx942", "gfx942", "bf16", 32, {}},
    {"gfx950_atomic", "gfx950", "bf16", 32, {{"algorithm", "atomic"}}},
    {"gfx908", "gfx908", "f16", 32, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardLowestTest,
                         testing::ValuesIn(lowestOn(kForwardLowest)), nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardLowestTest,
                         testing::ValuesIn(lowestOn(kBackwardLowest)), nameOf);

} // namespace
