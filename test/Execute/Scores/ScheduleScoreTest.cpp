//===- ScheduleScoreTest.cpp - a score program in every schedule ----------===//
//
// A made-up element-wise step is compiled into kernels of all schedules that
// the tables hold, executed on simulated devices and held to fp64.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include <set>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

// Bends scores, and reads where each of them is.
constexpr const char *kStep = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
  %tenth = arith.constant 0.1 : f32
  %hundredth = arith.constant 0.01 : f32
  %square = arith.mulf %x, %x : f32
  %bend = arith.mulf %square, %tenth : f32
  %bent = arith.subf %x, %bend : f32
  %sum = arith.addi %query, %head : i32
  %distance = arith.subi %sum, %key : i32
  %far = arith.sitofp %distance : i32 to f32
  %bias = arith.mulf %far, %hundredth : f32
  %s = arith.addf %bent, %bias : f32
  attn.yield %s : f32 } )";
// The same with a tile that it reads.
constexpr const char *kReadingStep = R"(score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32,
       %c: memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>):
  %tenth = arith.constant 0.1 : f32
  %square = arith.mulf %x, %x : f32
  %bend = arith.mulf %square, %tenth : f32
  %bent = arith.subf %x, %bend : f32
  %bias = attn.at %c[%batch, %head, %query, %key]
    : memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
  %s = arith.addf %bent, %bias : f32
  attn.yield %s : f32 } )";
constexpr const char *kTile = "memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>";

/// What tables have rows of their own for.
struct Needs {
  const char *name;
  fovea::OpKind op;
  std::map<std::string, std::string> schedule;
  std::vector<const char *> groups = {};
  bool readsTiles = false, columnsDiffer = false;
};
const Needs kNeeds[] = {
    {"forward", fovea::OpKind::Forward, {}},
    {"split", fovea::OpKind::Forward, {{"algorithm", "split"}}},
    {"gradients", fovea::OpKind::Backward, {}},
    {"atomic", fovea::OpKind::Backward, {{"algorithm", "atomic"}}},
};
const Needs kNeedsInFull[] = {
    {"atomic16", fovea::OpKind::Backward, {{"algorithm", "atomic16"}}},
    {"forwardReading", fovea::OpKind::Forward, {}, {}, true},
    {"forwardLists", fovea::OpKind::Forward, {}, {"blocks"}},
    {"forwardCut", fovea::OpKind::Forward, {}, {"head_dims"}},
    {"forwardDropping", fovea::OpKind::Forward, {}, {"dropout"}},
    {"forwardDiffering", fovea::OpKind::Forward, {}, {}, false, true},
    {"gradientsReading", fovea::OpKind::Backward, {}, {}, true},
    {"gradientsLists", fovea::OpKind::Backward, {}, {"blocks"}},
    {"gradientsCut", fovea::OpKind::Backward, {}, {"head_dims"}},
    {"gradientsDropping", fovea::OpKind::Backward, {}, {"dropout"}},
    {"gradientsDiffering", fovea::OpKind::Backward, {}, {}, false, true},
    {"atomicCut",
     fovea::OpKind::Backward,
     {{"algorithm", "atomic"}},
     {"head_dims"}},
};

class ScheduleScoreTest : public GroupKernelTest {
protected:
  const GroupKernel &kernel() const override { return now; }

  /// The head dimension, and the place in the tables: of each launch 0 for what
  /// the compiler takes itself.
  void take(const Needs &needs, int headDim, const std::string &passedOver) {
    now = GetParam();
    now.headDim = headDim;
    now.schedule = needs.schedule;
    now.groups = needs.groups;
    if (!passedOver.empty())
      now.schedule["passed-over"] = passedOver;
    now.score = needs.readsTiles ? kReadingStep : kStep;
    now.captured = needs.readsTiles ? kTile : "";
    now.headDimV = needs.columnsDiffer ? (headDim / 2 + 7) / 8 * 8 : 0;
  }
  /// Compiles and runs it, unless its schedules ran before.
  void runNew(const Needs &needs) {
    const std::string schedule = scheduleOf(needs.op);
    if (schedule.empty() || !seen.insert(schedule).second)
      return;
    SCOPED_TRACE(std::to_string(now.headDim) + ", " + schedule);
    options = {};
    compile(needs.op);
    if (HasFatalFailure())
      return;
    run::BackwardCase c;
    c.forward = makeCase(1, 70, 133, reference::Mask::CausalBottomRight);
    c.forward.heads = 2;
    c.forward.headsK = 1;
    c.forward.scale = 0.125f;
    const bool isBackward = needs.op == fovea::OpKind::Backward;
    fill(c.forward, nullptr, isBackward);
    if (kernel().has("dropout"))
      c.forward.dropout = dropoutOf(c.forward, 0.3f, 3, 1000);
    if (isBackward)
      expectPass(c);
    else
      expectPass(c.forward);
  }
  void runAll(const Needs &needs) {
    // Of 288 what combines has an odd number of units of columns.
    const bool isSplit = needs.name == StringRef("split");
    const SmallVector<int> some = {40, isSplit ? 288 : 128};
    for (int headDim = 512; headDim > 0; headDim -= 8) {
      if (!runsFullGrids() && !llvm::is_contained(some, headDim))
        continue;
      take(needs, headDim, "");
      runNew(needs);
    }
    EXPECT_TRUE(runsFullGrids() || !seen.empty()) << needs.name;
    // What is taken where these spill: of one launch after the other.
    for (const std::string before : {"", "0,", "0,0,"})
      for (int headDim = 512; headDim > 0 && runsFullGrids(); headDim -= 64)
        for (int place = 1; place < 20; ++place) {
          take(needs, headDim, before + std::to_string(place));
          if (scheduleOf(needs.op).empty())
            break;
          runNew(needs);
        }
    RecordProperty("schedules", int(seen.size()));
  }

  GroupKernel now = GetParam();
  std::set<std::string> seen;
};

std::vector<GroupKernel> kernels() {
  std::vector<GroupKernel> all;
  static std::vector<std::string> names;
  names.reserve(100);
  for (const char *chip : kChips)
    for (const char *type : {"bf16", "f16", "f32"}) {
      // A chip of each family.
      if (!runsFullGrids() &&
          (StringRef(type) != "bf16" ||
           !llvm::is_contained({"gfx942", "gfx1201"}, StringRef(chip))))
        continue;
      names.push_back(std::string(chip) + "_" + type);
      all.push_back({names.back().c_str(), chip, type, 0, {}});
    }
  return all;
}

} // namespace

TEST_P(ScheduleScoreTest, RunsRight) {
  for (const Needs &needs : kNeeds) {
    SCOPED_TRACE(needs.name);
    runAll(needs);
    seen.clear();
  }
}

TEST_P(ScheduleScoreTest, RunsRightWithWhatElseTablesTell) {
  if (!runsFullGrids())
    GTEST_SKIP() << "FOVEA_FULL_GRIDS is not set";
  for (const Needs &needs : kNeedsInFull) {
    SCOPED_TRACE(needs.name);
    runAll(needs);
    seen.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleScoreTest,
                         testing::ValuesIn(kernels()), nameOf);
