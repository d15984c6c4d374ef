//===- BlocksTest.cpp - kernels that read lists of blocks -----------------===//
//
// Lists of blocks on simulated devices, against the oracle. Every kernel takes
// any window besides, some a score program.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "CompiledKernel.h"
#include "Scores.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

/// Keeps documents of 200 tokens apart, and doubles what is left.
constexpr const char *kDocuments = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %two = arith.constant 2.0 : f32
    %tokens = arith.constant 200 : i32
    %mine = arith.divsi %query, %tokens : i32
    %its = arith.divsi %key, %tokens : i32
    %same = arith.cmpi eq, %mine, %its : i32
    %y = arith.mulf %x, %two : f32
    attn.yield %y, %same : f32, i1
  })";

/// A chip, a type, a head dimension and what is asked of the schedule.
struct Kernel {
  const char *name, *chip, *dtype;
  int headDim;
  std::map<std::string, std::string> schedule;
  const char *score = "";
};

void PrintTo(const Kernel &kernel, std::ostream *os) { *os << kernel.name; }
std::string nameOf(const testing::TestParamInfo<Kernel> &info) {
  return info.param.name;
}

const Window kAll = reference::Mask::None;
const Window kCausal = reference::Mask::CausalBottomRight;
const Window kNarrow = {200, 30, Alignment::BottomRight,
                        Alignment::BottomRight};

/// A problem and its lists.
struct Row {
  int64_t batch, seqQ, seqK;
  Window mask;
  int64_t qBlock, kvBlock;
  double part; ///< as BlocksFill has it
  bool isShared = false, hasStrays = false, isAllFull = false;
};

class BlocksTest : public testing::TestWithParam<Kernel> {
protected:
  const Kernel &kernel() const { return GetParam(); }
  reference::ElemType type() const {
    return StringRef(kernel().dtype) == "f16" ? reference::ElemType::F16
                                              : reference::ElemType::BF16;
  }

  void compile(fovea::OpKind op) {
    const int row = spec::findGroup("blocks");
    const spec::GroupSpec &group = spec::featureGroups()[row];
    std::string arguments, operands, types;
    auto add = [&](StringRef name, StringRef type) {
      arguments += llvm::formatv(", %{0}: {1}", name, type);
      operands += llvm::formatv("{0}%{1}", operands.empty() ? "" : ", ", name);
      types += llvm::formatv("{0}{1}", types.empty() ? "" : ", ", type);
    };
    for (const spec::TensorSpec &tensor : group.tensors)
      add(tensor.name,
          tensor.shape == spec::Shape::BlockLists ? "!list" : "!count");
    for (const spec::ScalarSpec &scalar : group.scalars)
      add(scalar.name, "i32");
    const std::string blocks =
        llvm::formatv("visible [#attn.window] (%l, %r, %a) blocks({0} : {1}) "
                      "{2}",
                      operands, types, kernel().score);
    const std::string head =
        llvm::formatv("!t = memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>\n"
                      "!rows = memref<?x?x?xf32, strided<[?, ?, 1]>>\n"
                      "!count = memref<?x?x?xi32, strided<[?, ?, 1]>>\n"
                      "!list = memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>\n",
                      kernel().headDim, kernel().dtype);
    CompiledKernel::Request request = {kernel().chip,     {}, {},
                                       kernel().schedule, {}, {}};
    request.function =
        op == fovea::OpKind::Forward
            ? head +
                  "func.func @kernel(%q: !t, %k: !t, %v: !t, %out: !t, %lse: "
                  "!rows, %scale: f32, %l: i32, %r: i32, %a: i32" +
                  arguments +
                  ") {\nattn.forward %q, %k, %v, %out lse(%lse) "
                  "scale(%scale) " +
                  blocks + ": !t, !t, !t, !t, !rows\nreturn\n}"
            : head +
                  "func.func @kernel(%q: !t, %k: !t, %v: !t, %out: !t, %dout: "
                  "!t, %lse: !rows, %dq: !t, %dk: !t, %dv: !t, %w: "
                  "memref<?xi8>, %scale: f32, %l: i32, %r: i32, %a: i32" +
                  arguments +
                  ") {\nattn.backward %q, %k, %v, %out, %dout, %lse -> %dq, "
                  "%dk, %dv workspace(%w) scale(%scale) " +
                  blocks +
                  ": !t, !t, !t, !t, !t, !rows -> !t, !t, !t, memref<?xi8>\n"
                  "return\n}";
    ProblemKey &problem = request.record.problem;
    problem.op = op;
    problem.headDim = kernel().headDim;
    problem.dtype =
        StringRef(kernel().dtype) == "f16" ? DataType::F16 : DataType::BF16;
    problem.groups[kWindowGroup] = kWindowVersion;
    problem.groups[size_t(row)] = group.version;
    request.record.abiVersion = fovea::abiVersionOf(op);
    request.look = [&](ModuleOp module) {
      module.walk([&](attn::AttentionOpInterface op) {
        FailureOr<ProblemKey> key = attn::keyOf(op);
        ASSERT_TRUE(succeeded(key));
        key->score = 0; // CompiledKernel has it
        EXPECT_EQ(key->str(), problem.str());
      });
    };
    ASSERT_EQ(compiled.compile(request), "");
    std::string error;
    session = compiled.open(error);
    ASSERT_TRUE(session) << error;
    if (kernel().schedule.count("algorithm") &&
        kernel().schedule.at("algorithm") == "split")
      options.splits = 3;
    if (op == fovea::OpKind::Backward) {
      const auto algorithm = kernel().schedule.find("algorithm");
      options.deterministic = algorithm == kernel().schedule.end();
      options.narrowSums =
          !options.deterministic && algorithm->second == "atomic16";
    }
  }

  /// The problems that the kernel is run on.
  ArrayRef<Row> rows() const;

  run::ForwardCase caseOf(int64_t batch, int64_t seqQ, int64_t seqK,
                          Window mask) {
    run::ForwardCase c;
    c.type = type();
    c.headDim = kernel().headDim;
    c.mask = mask;
    c.batch = batch;
    c.heads = 2;
    c.headsK = 1;
    c.seqQ = seqQ;
    c.seqK = seqK;
    if (!*kernel().score)
      return c;
    score = std::make_unique<run::CaseScore>(
        compiled.score().name, compiled.captures(),
        std::vector<run::CaptureFill>(), c);
    std::string error;
    c.score = reference::readScoreProgram(compiled.score().text,
                                          score->values(), error);
    EXPECT_TRUE(c.score) << error;
    c.given = {score->group()};
    return c;
  }

  void list(run::ForwardCase &c, const run::BlocksFill &fill) {
    blocks = std::make_unique<run::CaseBlocks>(fill, c);
    ASSERT_EQ(blocks->upload(*session), "");
    c.listed = blocks->listed();
    c.given.push_back(blocks->group());
  }

  template <typename Case>
  run::RunReport expectPass(const Case &problem) {
    run::RunReport report = session->run(problem, options);
    EXPECT_EQ(report.outcome, run::Outcome::Pass)
        << problem.str() << ": " << report.message;
    EXPECT_TRUE(report.launched) << problem.str();
    return report;
  }

  CompiledKernel compiled;
  std::unique_ptr<run::Session> session;
  run::RunOptions options;
  std::unique_ptr<run::CaseScore> score;
  std::unique_ptr<run::CaseBlocks> blocks;
};

class ForwardBlocks : public BlocksTest {};
class BackwardBlocks : public BlocksTest {};
class VisitedBlocks : public BlocksTest {};

run::BlocksFill fillOf(const Row &row) {
  run::BlocksFill fill;
  fill.qBlock = row.qBlock;
  fill.kvBlock = row.kvBlock;
  fill.part = row.part;
  fill.isShared = row.isShared;
  fill.hasStrays = row.hasStrays;
  fill.isAllFull = row.isAllFull;
  return fill;
}

/// What no list has is NaN. Where a number is no block's, its queries meet what
/// is masked.
void poison(run::ForwardCase &c, const Row &row) {
  if (!row.hasStrays)
    c.input = reference::InputKind::Masked;
}

constexpr size_t kScoredRows = 3; // which the oracle takes longer for
const Row kRows[] = {
    // Of a program: what it hides is seen in blocks that are listed as whole.
    {1, 256, 300, kAll, 128, 128, -0.8, false, false, /*isAllFull=*/true},
    {1, 256, 384, kAll, 128, 128, -0.5},       // blocks that are seen in whole
    {2, 200, 330, kCausal, 128, 128, -0.6},    // others, and tails
    {1, 140, 900, kNarrow, 256, 384, 1, true}, // of the mask, for all heads
    {1, 500, 130, kAll, 384, 512, -0.4, false, /*hasStrays=*/true},
};

ArrayRef<Row> BlocksTest::rows() const {
  ArrayRef<Row> all = kRows;
  return *kernel().score ? all.take_front(kScoredRows) : all.drop_front();
}

} // namespace

TEST_P(ForwardBlocks, AgreesWithTheReference) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  int64_t pairs = 0, full = 0;
  for (const Row &row : rows()) {
    run::ForwardCase c = caseOf(row.batch, row.seqQ, row.seqK, row.mask);
    poison(c, row);
    list(c, fillOf(row));
    expectPass(c);
    pairs += blocks->pairs();
    full += blocks->fullPairs();
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(pairs, full);
  // Without lists all blocks are.
  run::ForwardCase c = caseOf(1, 150, 140, kCausal);
  expectPass(c);
}

TEST_P(BackwardBlocks, AgreesWithTheReference) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  for (const Row &row : rows()) {
    run::BackwardCase c;
    c.forward = caseOf(row.batch, row.seqQ, row.seqK, row.mask);
    poison(c.forward, row);
    list(c.forward, fillOf(row));
    expectPass(c);
  }
  run::BackwardCase c;
  c.forward = caseOf(1, 150, 140, kCausal);
  expectPass(c);
}

/// Matrix instructions are those of listed blocks, and no others.
TEST_P(VisitedBlocks, AreTheListed) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  options.check = false;
  using Lists = decltype(run::BlocksFill::lists);
  auto matrixOf = [&](Window mask, Lists lists, bool isCut = false) -> int64_t {
    run::ForwardCase c = caseOf(1, 256, 512, mask);
    run::BlocksFill fill;
    fill.lists = std::move(lists);
    list(c, fill);
    if (isCut) // a count of more entries than there are
      for (fovea_block_lists_t *cut :
           {&blocks->blocks.kv, &blocks->blocks.full_kv})
        cut->entries = 0;
    c.given.back() = blocks->group();
    const run::RunReport report = expectPass(c);
    return report.executed ? int64_t(report.executed->mfma) : -1;
  };
  auto none = [](int64_t, int64_t, int64_t, int64_t) { return false; };
  auto one = [](int64_t, int64_t head, int64_t q, int64_t kv) {
    return head == 1 && q == 0 && kv == 2;
  };
  auto some = [](int64_t, int64_t head, int64_t q, int64_t kv) {
    return (5 * head + 3 * q + kv) % 3 == 0;
  };
  const int64_t least = matrixOf(kAll, none);
  for (Window mask : {kAll, kCausal}) {
    const int64_t each = matrixOf(mask, one) - least;
    EXPECT_GT(each, 0);
    EXPECT_EQ(matrixOf(mask, some) - least, blocks->pairs() * each);
  }
  EXPECT_EQ(matrixOf(kAll, some, /*isCut=*/true), least);
}

namespace {

const Kernel kForward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_documents", "gfx942", "bf16", 32, {}, kDocuments},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx950_documents", "gfx950", "bf16", 64, {}, kDocuments},
    {"gfx908", "gfx908", "f16", 32, {}},
    {"gfx90a_split", "gfx90a", "f16", 32, {{"algorithm", "split"}}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
    {"gfx1201_documents", "gfx1201", "f16", 32, {}, kDocuments},
};
const Kernel kBackward[] = {
    {"gfx942", "gfx942", "bf16", 64, {}},
    {"gfx942_documents", "gfx942", "bf16", 32, {}, kDocuments},
    {"gfx942_atomic", "gfx942", "f16", 64, {{"algorithm", "atomic"}}},
    {"gfx942_atomic_documents",
     "gfx942",
     "bf16",
     32,
     {{"algorithm", "atomic"}},
     kDocuments},
    {"gfx942_atomic16", "gfx942", "bf16", 32, {{"algorithm", "atomic16"}}},
    {"gfx950", "gfx950", "bf16", 128, {}},
    {"gfx90a", "gfx90a", "f16", 32, {}},
    {"gfx1100", "gfx1100", "bf16", 32, {}},
    {"gfx1201", "gfx1201", "f16", 32, {}},
    {"gfx1201_documents", "gfx1201", "f16", 32, {}, kDocuments},
};
INSTANTIATE_TEST_SUITE_P(All, ForwardBlocks, testing::ValuesIn(kForward),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, VisitedBlocks, testing::Values(kForward[0]),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(All, BackwardBlocks, testing::ValuesIn(kBackward),
                         nameOf);

} // namespace
