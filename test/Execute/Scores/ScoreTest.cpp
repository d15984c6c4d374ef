//===- ScoreTest.cpp - kernels with score programs ------------------------===//
//
// Compiles score programs into forward and backward kernels, executes these on
// simulated devices and holds what they give to the oracle, which evaluates the
// same program in fp64. Every pipeline of every kernel carries one.
//
//===----------------------------------------------------------------------===//

#include "CompiledKernel.h"
#include "Groups.h"
#include "RandomProgram.h"
#include "Scores.h"
#include "Slopes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cctype>
#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// What a program captures. Dimensions have the extents of the problem's batch
/// (b), heads (h), queries (q) and keys (k), in capitals as one element for
/// all, or 200 (t); none: a scalar.
struct Capture {
  const char *element, *dims;
  double most;     ///< values lie in [-most, most], integers in [0, most]
  bool isUnit;     ///< the last stride is 1 in the type
  bool isReversed; ///< the first dimension is the innermost in memory
};

struct Program {
  const char *name, *text;
  std::vector<Capture> captures = {};
  const char *yields = "%s : f32";
};
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

/// A chip, a type, a head dimension and what is asked of the schedule.
struct Kernel {
  const char *name, *chip, *dtype;
  int headDim;
  std::map<std::string, std::string> schedule;
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
    {"gfx950_three",
     "gfx950",
     "bf16",
     64,
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

using Parameters = std::pair<Program, Kernel>;

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
/// is no time, the schedules of gfx950 that are not its own choice are left to
/// gfx942's and to what captures.
bool hasTheOne(const Kernel &kernel) {
  return runsFullGrids() || !StringRef(kernel.name).starts_with("gfx950_") ||
         StringRef(kernel.name) == "gfx950_atomic";
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

std::string nameOf(const testing::TestParamInfo<Parameters> &info) {
  return std::string(info.param.first.name) + "_" + info.param.second.name;
}

run::ForwardCase &sizesOf(run::ForwardCase &c) { return c; }
run::ForwardCase &sizesOf(run::BackwardCase &c) { return c.forward; }

/// How what a program captures is filled; what the mask hides is NaN.
std::vector<run::CaptureFill> fillsOf(ArrayRef<Capture> captures) {
  std::vector<run::CaptureFill> fills;
  for (const Capture &capture : captures) {
    run::CaptureFill &fill = fills.emplace_back();
    fill.most = capture.most;
    fill.extent = 200;
    fill.isReversed = capture.isReversed;
    fill.poison = true;
    for (auto [dim, name] : llvm::enumerate(StringRef(capture.dims)))
      fill.broadcast |= unsigned(std::isupper(name) != 0) << dim;
  }
  return fills;
}

class ScoreTest : public testing::TestWithParam<Parameters> {
protected:
  const Kernel &kernel() const { return GetParam().second; }
  std::string region() const {
    std::string captures;
    if (!program().captures.empty())
      captures =
          llvm::formatv("captures({0} : {1})",
                        llvm::join(mapCaptures([](size_t i, StringRef) {
                                     return "%g" + std::to_string(i);
                                   }),
                                   ", "),
                        llvm::join(mapCaptures([](size_t, StringRef type) {
                                     return type.str();
                                   }),
                                   ", "));
    return llvm::formatv(
        "{2} score {{ ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, "
        "%key: i32, %seqlen_q: i32, %seqlen_k: i32{1}): {0}\n"
        "attn.yield {3} }",
        text(), captureArguments("%c"), captures, program().yields);
  }
  const Program &program() const { return GetParam().first; }
  /// What `make` gives for each capture's number and name of its type.
  std::vector<std::string>
  mapCaptures(llvm::function_ref<std::string(size_t, StringRef)> make) const {
    std::vector<std::string> all;
    for (auto [i, capture] : llvm::enumerate(program().captures))
      all.push_back(make(i, *capture.dims ? "!c" + std::to_string(i)
                                          : std::string(capture.element)));
    return all;
  }
  std::string captureArguments(StringRef prefix) const {
    return llvm::join(
        mapCaptures([&](size_t i, StringRef type) {
          return (", " + prefix + llvm::Twine(i) + ": " + type).str();
        }),
        "");
  }
  /// Aliases of the captured tensors' types.
  std::string captureTypes() const {
    std::string text;
    for (auto [i, capture] : llvm::enumerate(program().captures)) {
      const size_t rank = StringRef(capture.dims).size();
      if (rank == 0)
        continue;
      std::vector<std::string> strides(rank, "?");
      if (capture.isUnit)
        strides.back() = "1";
      text += llvm::formatv("!c{0} = memref<{1}{2}, strided<[{3}]>>\n", i,
                            llvm::join(std::vector<StringRef>(rank, "?x"), ""),
                            capture.element, llvm::join(strides, ", "));
    }
    return text;
  }
  virtual std::string text() const { return GetParam().first.text; }
  std::string tensor() const {
    return llvm::formatv("memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>",
                         kernel().headDim, kernel().dtype);
  }

  void compile(fovea::OpKind op, const std::string &function,
               bool hasSinks = false) {
    CompiledKernel::Request request = {kernel().chip,     function, {},
                                       kernel().schedule, {},       {}};
    request.record.problem.op = op;
    request.record.problem.headDim = kernel().headDim;
    request.record.problem.dtype =
        StringRef(kernel().dtype) == "f16" ? DataType::F16 : DataType::BF16;
    request.record.problem.mask = fovea::MaskKind::CausalBottomRight;
    if (hasSinks)
      request.record.problem.groups[size_t(spec::findGroup("sinks"))] = 1;
    request.record.abiVersion = fovea::abiVersionOf(op);
    ASSERT_EQ(compiled.compile(request), "");
  }

  std::vector<run::ForwardCase> cases() const {
    std::vector<run::ForwardCase> all;
    run::ForwardCase c;
    c.type = StringRef(kernel().dtype) == "f16" ? reference::ElemType::F16
                                                : reference::ElemType::BF16;
    c.headDim = kernel().headDim;
    c.mask = reference::Mask::CausalBottomRight;
    c.batch = 2;
    c.heads = 2;
    c.headsK = 1;
    for (auto [seqQ, seqK, scale] :
         {std::tuple(130, 261, 0.125f), {141, 70, -0.3f}, {1, 90, 1.0f}}) {
      c.seqQ = seqQ;
      c.seqK = seqK;
      c.scale = scale;
      all.push_back(c);
    }
    return all;
  }

  std::vector<run::BackwardCase> gradientCases() const {
    std::vector<run::BackwardCase> all;
    for (const run::ForwardCase &forward : cases()) {
      run::BackwardCase c;
      c.forward = forward;
      all.push_back(c);
    }
    return all;
  }
  std::string forward(bool hasSinks = false) const, backward() const;

  template <typename Case>
  void expectPasses(const std::vector<Case> &cases) {
    std::string error;
    auto session = compiled.open(error);
    ASSERT_TRUE(session) << error;
    for (Case problem : cases) {
      run::CaseScore captures(compiled.score().name, compiled.captures(),
                              fillsOf(program().captures), sizesOf(problem));
      ASSERT_EQ(captures.upload(*session), "");
      give(sizesOf(problem), captures);
      const run::RunReport report = session->run(problem, options);
      EXPECT_EQ(report.outcome, run::Outcome::Pass)
          << problem.str() << ": " << report.message;
      EXPECT_TRUE(report.launched);
    }
  }

  void expectSlopes();

  /// Gives a case the program.
  virtual void give(run::ForwardCase &c, const run::CaseScore &captures) {
    std::string error;
    c.score = reference::readScoreProgram(compiled.score().text,
                                          captures.values(), error);
    ASSERT_TRUE(c.score) << error;
    c.given = {captures.group()};
  }

  CompiledKernel compiled;
  run::RunOptions options;
};

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

std::string ScoreTest::forward(bool hasSinks) const {
  return llvm::formatv(
      "{3}func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, "
      "%lse: memref<?x?x?xf32, strided<[?, ?, 1]>>, %scale: f32{4}{2}) {{\n"
      "attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) {5}"
      "visible [#attn.causal<bottom_right>] {1} : {0}, {0}, {0}, {0}, "
      "memref<?x?x?xf32, strided<[?, ?, 1]>>\nreturn\n}",
      tensor(), region(), captureArguments("%g"), captureTypes(),
      hasSinks ? ", %sinks: memref<?xf32, strided<[?]>>" : "",
      hasSinks ? "sinks(%sinks : memref<?xf32, strided<[?]>>) " : "");
}

std::string ScoreTest::backward() const {
  return llvm::formatv(
      "{4}func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, "
      "%dout: {0}, %lse: {1}, %dq: {0}, %dk: {0}, %dv: {0}, "
      "%w: memref<?xi8>, %scale: f32{3}) {{\n"
      "attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, %dv "
      "workspace(%w) scale(%scale) "
      "visible [#attn.causal<bottom_right>] {2} : "
      "{0}, {0}, {0}, {0}, {0}, {1} -> {0}, {0}, {0}, memref<?xi8>\n"
      "return\n}",
      tensor(), "memref<?x?x?xf32, strided<[?, ?, 1]>>", region(),
      captureArguments("%g"), captureTypes());
}

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

/// Holds derivatives and gradients to differences of scores and of the loss.
void ScoreTest::expectSlopes() {
  run::BackwardCase c = gradientCases().front();
  c.forward.batch = 1;
  c.forward.seqQ = 24;
  c.forward.seqK = 80;
  run::CaseScore captures(compiled.score().name, compiled.captures(),
                          fillsOf(program().captures), c.forward);
  expectDerivatives(compiled.score().text, captures.values(), c.forward);
  // A loss with steps has no slope.
  if (HasFailure() || StringRef(text()).contains("math.floor"))
    return;
  std::string error;
  auto session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  ASSERT_EQ(captures.upload(*session), "");
  give(c.forward, captures);
  expectSlopesOfLoss(*session, c, options);
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
  compile(fovea::OpKind::Backward, backward());
  if (HasFatalFailure())
    return;
  std::string error;
  auto session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  run::BackwardCase c = gradientCases().front();
  const run::CaseScore captures(compiled.score().name, compiled.captures(), {},
                                c.forward);
  give(c.forward, captures);
  c.forward.score = std::make_shared<WithoutDerivative>(c.forward.score);
  EXPECT_EQ(session->run(c, options).outcome, run::Outcome::Mismatch);
}

//===----------------------------------------------------------------------===//
// Scores of the lowest finite number
//===----------------------------------------------------------------------===//

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
  compile(fovea::OpKind::Forward, forward(hasSinks()), hasSinks());
  if (HasFatalFailure())
    return;
  std::string error;
  auto session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  if (kernel().schedule.count("algorithm"))
    options.splits = 3;
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
  compile(fovea::OpKind::Backward, backward());
  if (HasFatalFailure())
    return;
  std::string error;
  auto session = compiled.open(error);
  ASSERT_TRUE(session) << error;
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
