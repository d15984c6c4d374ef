//===- ScoreTest.cpp - score programs in every pipeline -------------------===//
//
// Score programs in forward and backward kernels: those of a table, what they
// capture, and programs by chance. Every pipeline of every kernel carries one.
//
//===----------------------------------------------------------------------===//

#include "RandomProgram.h"
#include "ScoreKernel.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;
using namespace fovea::test::scores;

namespace {

constexpr const char *kScoreAndSeen = "%s, %seen : f32, i1";

const Program kPrograms[] = {
    {"Softcap", R"(
      %cap = arith.constant 5.0 : f32
      %small = arith.divf %x, %cap : f32
      %bounded = math.tanh %small : f32
      %s = arith.mulf %bounded, %cap : f32)"},
    // Distances as of the bottom-right corner.
    {"Alibi", R"(
      %eighth = arith.constant -1.5 : f32
      %h = arith.sitofp %head : i32 to f32
      %exponent = arith.mulf %h, %eighth : f32
      %slope = math.exp2 %exponent : f32
      %behind = arith.subi %seqlen_k, %seqlen_q : i32
      %end = arith.addi %query, %behind : i32
      %distance = arith.subi %end, %key : i32
      %far = arith.sitofp %distance : i32 to f32
      %size = math.absf %far : f32
      %bias = arith.mulf %size, %slope : f32
      %s = arith.subf %x, %bias : f32)"},
    // Each sees its own document, of a length that differs by batch.
    {"Documents", R"(
      %least = arith.constant 37 : i32
      %none = arith.constant 0xFF800000 : f32
      %length = arith.addi %least, %batch : i32
      %qdoc = arith.divsi %query, %length : i32
      %kdoc = arith.divsi %key, %length : i32
      %same = arith.cmpi eq, %qdoc, %kdoc : i32
      %s = arith.select %same, %x, %none : f32)"},
    // Nothing is a number where the mask hides it.
    {"Hidden", R"(
      %one = arith.constant 1 : i32
      %behind = arith.subi %seqlen_k, %seqlen_q : i32
      %end = arith.addi %query, %behind : i32
      %distance = arith.subi %end, %key : i32
      %positive = arith.addi %distance, %one : i32
      %real = arith.sitofp %positive : i32 to f32
      %log = math.log %real : f32
      %root = math.sqrt %real : f32
      %ratio = arith.divf %x, %root : f32
      %s = arith.subf %ratio, %log : f32)"},
    {"Functions", R"(
      %one = arith.constant 1.0 : f32
      %third = arith.constant 0.3 : f32
      %square = math.fma %x, %x, %one : f32
      %root = math.sqrt %square : f32
      %log = math.log2 %square : f32
      %least = arith.minimumf %x, %one : f32
      %power = math.exp %least : f32
      %most = arith.maximumf %root, %log : f32
      %negated = arith.negf %most : f32
      %step = math.floor %negated : f32
      %small = arith.mulf %step, %third : f32
      %sum = arith.addf %power, %negated : f32
      %s = arith.addf %sum, %small : f32)"},
    // Nor where the program's own predicate does, in any block; of one of the
    // problems that is everywhere.
    {"Unseen",
     R"(
      %least = arith.constant 50 : i32
      %distance = arith.subi %key, %least : i32
      %seen = arith.cmpi sgt, %distance, %query : i32
      %far = arith.subi %distance, %query : i32
      %real = arith.sitofp %far : i32 to f32
      %log = math.log %real : f32
      %root = math.sqrt %real : f32
      %ratio = arith.divf %x, %root : f32
      %s = arith.subf %ratio, %log : f32)",
     {},
     kScoreAndSeen},
    // Softcap, then ALiBi, then what is not in the prefix or behind the query.
    {"Three",
     R"(
      %cap = arith.constant 4.0 : f32
      %prefix = arith.constant 45 : i32
      %tenth = arith.constant 0.03 : f32
      %small = arith.divf %x, %cap : f32
      %bounded = math.tanh %small : f32
      %capped = arith.mulf %bounded, %cap : f32
      %distance = arith.subi %query, %key : i32
      %far = arith.sitofp %distance : i32 to f32
      %size = math.absf %far : f32
      %bias = arith.mulf %size, %tenth : f32
      %s = arith.subf %capped, %bias : f32
      %isPrefix = arith.cmpi slt, %key, %prefix : i32
      %isBehind = arith.cmpi sle, %key, %query : i32
      %seen = arith.ori %isPrefix, %isBehind : i1)",
     {},
     kScoreAndSeen},
};
constexpr const char *kThree = "Three";

const Program kCapturing[] = {
    {"Bias",
     R"(
      %b = attn.at %c0[%batch, %head, %query, %key] : !c0
      %s = arith.addf %x, %b : f32)",
     {{"bf16", "bhqk", 3, true, false}}},
    // Nothing of the layout is known, and one row serves all heads.
    {"BiasAnyStride",
     R"(
      %b = attn.at %c0[%batch, %head, %query, %key] : !c0
      %s = arith.addf %x, %b : f32)",
     {{"f16", "bHqk", 3, false, true}}},
    // A row for all queries, added to by a column for all keys.
    {"BiasRowAndColumn",
     R"(
      %a = attn.at %c0[%batch, %key] : !c0
      %b = attn.at %c1[%head, %query] : !c1
      %y = arith.addf %x, %a : f32
      %s = arith.addf %y, %b : f32)",
     {{"f32", "bk", 3, true, false}, {"f32", "hq", 3, false, false}}},
    {"BiasBool",
     R"(
      %none = arith.constant 0xFF800000 : f32
      %b = attn.at %c0[%batch, %query, %key] : !c0
      %s = arith.select %b, %x, %none : f32)",
     {{"i1", "bqk", 3, true, false}}},
    {"DocumentIds",
     R"(
      %mine = attn.at %c0[%batch, %query] : !c0
      %its = attn.at %c1[%batch, %key] : !c1
      %same = arith.cmpi eq, %mine, %its : i32)",
     {{"i32", "bq", 2, false, false}, {"i32", "bk", 2, true, false}},
     "%x, %same : f32, i1"},
    // Distances outside the table have no bias.
    {"Relative",
     R"(
      %half = arith.constant 100 : i32
      %distance = arith.subi %query, %key : i32
      %place = arith.addi %distance, %half : i32
      %b = attn.at %c0[%head, %place] : !c0
      %s = arith.addf %x, %b : f32)",
     {{"bf16", "ht", 3, true, false}}},
    // Softcap, ALiBi and a bias, each with what it reads; of the last one what
    // no head has is outside.
    {"CapturingThree",
     R"(
      %small = arith.divf %x, %c0 : f32
      %bounded = math.tanh %small : f32
      %capped = arith.mulf %bounded, %c0 : f32
      %behind = arith.subi %seqlen_k, %seqlen_q : i32
      %end = arith.addi %query, %behind : i32
      %distance = arith.subi %end, %key : i32
      %far = arith.sitofp %distance : i32 to f32
      %size = math.absf %far : f32
      %slope = attn.at %c1[%batch, %head] : !c1
      %slow = arith.mulf %size, %slope : f32
      %biased = arith.subf %capped, %slow : f32
      %other = arith.subi %head, %c2 : i32
      %b = attn.at %c3[%other, %query, %key] : !c3
      %s = arith.addf %biased, %b : f32)",
     {{"f32", "", 5, false, false},
      {"f32", "bh", 0.1, false, true},
      {"i32", "", 1, false, false},
      {"f32", "hqk", 3, true, false}}},
};

// All pipelines: stages, copies past the registers, both algorithms.
const Kernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 128, {}},
    {"gfx942_one", "gfx942", "bf16", 128, {{"stages", "1"}}},
    {"gfx942_two", "gfx942", "f16", 64, {{"stages", "2"}}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx950_one",
     "gfx950",
     "f16",
     64,
     {{"stages", "1"}, {"direct-copy", "1"}}},
    {"gfx950_two",
     "gfx950",
     "f16",
     64,
     {{"stages", "2"}, {"direct-copy", "1"}}},
    // At 64 LLVM takes half a minute to mix these products with the rest.
    {"gfx950_three",
     "gfx950",
     "bf16",
     32,
     {{"stages", "3"}, {"direct-copy", "1"}}},
    {"gfx908", "gfx908", "f16", 64, {}},
    {"gfx1100", "gfx1100", "bf16", 64, {}},
    {"gfx1201", "gfx1201", "f16", 128, {}},
};
const Kernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 128, {}},
    {"gfx942_one", "gfx942", "bf16", 64, {{"stages", "1"}}},
    {"gfx942_two", "gfx942", "f16", 64, {{"stages", "2"}}},
    {"gfx942_atomic", "gfx942", "bf16", 128, {{"algorithm", "atomic"}}},
    {"gfx942_atomic_one",
     "gfx942",
     "bf16",
     64,
     {{"algorithm", "atomic"}, {"stages", "1"}}},
    {"gfx942_atomic_two",
     "gfx942",
     "f16",
     64,
     {{"algorithm", "atomic"}, {"stages", "2"}}},
    {"gfx950", "gfx950", "f16", 128, {}},
    {"gfx950_atomic", "gfx950", "bf16", 64, {{"algorithm", "atomic"}}},
    {"gfx908", "gfx908", "f16", 64, {}},
    {"gfx1100", "gfx1100", "bf16", 64, {}},
    {"gfx1201", "gfx1201", "f16", 64, {}},
};

/// Whether a kernel has this program of a table: the plain kernel of a chip of
/// each family, all of them or, where there is no time, one of the forward and
/// the gradient kernels of two chips in turn.
bool hasInTurn(const Kernel &kernel, size_t program, fovea::OpKind op) {
  const size_t turn = op == fovea::OpKind::Forward ? 0 : 1;
  const StringRef name = kernel.name;
  return (name == "gfx942" && (program % 4 == turn || runsFullGrids())) ||
         (name == "gfx1201" && (program % 4 == 3 - turn || runsFullGrids()));
}

/// Whether the one program that all kernels have runs in this one: where there
/// is no time, the schedules of gfx950 are left to gfx942's and to what
/// captures, but for one of each pass.
bool hasTheOne(const Kernel &kernel) {
  const StringRef name = kernel.name;
  return runsFullGrids() || !name.starts_with("gfx950") ||
         name == "gfx950_atomic" || name == "gfx950_two";
}

/// One program on all kernels, and all programs on a plain one.
std::vector<Parameters> capturingOf(ArrayRef<Kernel> kernels,
                                    fovea::OpKind op) {
  std::vector<Parameters> all;
  for (const Kernel &kernel : kernels)
    for (const Program &program : kCapturing) {
      const StringRef name = kernel.name;
      if (hasInTurn(kernel, &program - kCapturing, op) ||
          &program == kCapturing ||
          (&program == std::end(kCapturing) - 1 &&
           (name == "gfx950" || name == "gfx908" || name == "gfx1100")))
        all.emplace_back(program, kernel);
    }
  return all;
}

/// One program on all kernels, and all programs on a plain one.
std::vector<Parameters> parametersOf(ArrayRef<Kernel> kernels,
                                     fovea::OpKind op) {
  std::vector<Parameters> all;
  for (const Kernel &kernel : kernels)
    for (const Program &program : kPrograms)
      if (hasInTurn(kernel, &program - kPrograms, op) ||
          (StringRef(program.name) == kThree && hasTheOne(kernel)))
        all.emplace_back(program, kernel);
  return all;
}

class ForwardScoreTest : public ScoreTest {};
class BackwardScoreTest : public ScoreTest {};
class WrongDerivativeTest : public ScoreTest {};

/// Programs by chance: FOVEA_SCORE_PROGRAMS of each kernel below, or so many
/// that all make 60, and 20 where there is no time.
class RandomScoreTest : public ScoreTest {
protected:
  std::string text() const override { return randomProgram(seed); }
  void expectAllPass(fovea::OpKind op);

  uint64_t seed = 0;
};

/// What a program gives, with a derivative of 1.
class WithoutDerivative : public reference::ScoreFunction {
public:
  explicit WithoutDerivative(std::shared_ptr<const ScoreFunction> of)
      : of(std::move(of)) {}
  Result<double> apply(double product, const Place &place) const override {
    return {of->apply(product, place).score, 1};
  }
  Result<float> apply(float product, const Place &place) const override {
    return {of->apply(product, place).score, 1};
  }

private:
  std::shared_ptr<const ScoreFunction> of;
};

TEST_P(ForwardScoreTest, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward, forward());
  if (!HasFatalFailure())
    expectPasses(cases());
}

TEST_P(BackwardScoreTest, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward, backward());
  if (HasFatalFailure())
    return;
  options.deterministic = false;
  expectPasses(gradientCases());
  expectSlopes();
}

void RandomScoreTest::expectAllPass(fovea::OpKind op) {
  const char *wanted = std::getenv("FOVEA_SCORE_PROGRAMS");
  const int count = wanted ? std::atoi(wanted) : runsFullGrids() ? 15 : 2;
  for (int i = 0; i < count; ++i) {
    seed = uint64_t(i) + 1000 * (GetParam().second.headDim +
                                 uint64_t(op == fovea::OpKind::Backward));
    const bool isForward = op == fovea::OpKind::Forward;
    compile(op, isForward ? forward() : backward());
    if (HasFatalFailure())
      return;
    options.deterministic = false;
    run::BackwardCase c = gradientCases().front();
    c.forward.seqQ = 70;
    c.forward.seqK = 150;
    if (isForward) {
      expectPasses(std::vector{c.forward});
    } else {
      expectPasses(std::vector{c});
      expectSlopes();
    }
    if (HasFailure()) {
      ADD_FAILURE() << "program " << seed << ":\n" << text();
      return;
    }
  }
}

TEST_P(RandomScoreTest, ForwardAgrees) {
  expectAllPass(fovea::OpKind::Forward);
}
TEST_P(RandomScoreTest, BackwardAgrees) {
  expectAllPass(fovea::OpKind::Backward);
}

/// The reference must tell a kernel whose derivative is not its program's.
TEST_P(WrongDerivativeTest, IsFound) {
  auto session = compileAndOpen(fovea::OpKind::Backward, backward());
  ASSERT_TRUE(session);
  run::BackwardCase c = gradientCases().front();
  const run::CaseScore captures(compiled.score().name, compiled.captures(), {},
                                c.forward);
  give(c.forward, captures);
  c.forward.score = std::make_shared<WithoutDerivative>(c.forward.score);
  EXPECT_EQ(session->run(c, options).outcome, run::Outcome::Mismatch);
}

INSTANTIATE_TEST_SUITE_P(Capturing, ForwardScoreTest,
                         testing::ValuesIn(capturingOf(kForward,
                                                       fovea::OpKind::Forward)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Capturing, BackwardScoreTest,
    testing::ValuesIn(capturingOf(kBackward, fovea::OpKind::Backward)), nameOf);
INSTANTIATE_TEST_SUITE_P(
    All, ForwardScoreTest,
    testing::ValuesIn(parametersOf(kForward, fovea::OpKind::Forward)), nameOf);
INSTANTIATE_TEST_SUITE_P(
    All, BackwardScoreTest,
    testing::ValuesIn(parametersOf(kBackward, fovea::OpKind::Backward)),
    nameOf);
const Kernel kSmall[] = {{"gfx942", "gfx942", "f16", 32, {}},
                         {"gfx1201", "gfx1201", "bf16", 48, {}}};
INSTANTIATE_TEST_SUITE_P(
    All, RandomScoreTest,
    testing::Values(Parameters({"Random", "", {}, kScoreAndSeen}, kSmall[0]),
                    Parameters({"Random", "", {}, kScoreAndSeen}, kSmall[1])),
    nameOf);
INSTANTIATE_TEST_SUITE_P(Softcap, WrongDerivativeTest,
                         testing::Values(Parameters(kPrograms[0],
                                                    kBackward[0])),
                         nameOf);

} // namespace
