//===- PipelineFaultTest.cpp - faults of pipelines must be found ----------===//
//
// Compiles a kernel for each kind of pipeline, plants one fault after the other
// into the waits and barriers of its loops, and expects the simulated device's
// checkers or the oracle to find each. The kernel without a fault passes both.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include "MachineCode.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Target/TargetInfo.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

// A kernel of each pipeline.
const GroupKernel kForward[] = {
    {"gfx942_one", "gfx942", "bf16", 64, {{"stages", "1"}}},
    {"gfx942_two", "gfx942", "bf16", 64, {{"stages", "2"}}},
    {"gfx942_segments", "gfx942", "bf16", 64, {}},
    {"gfx942_alone",
     "gfx942",
     "bf16",
     64,
     {{"stages", "4"}, {"waves-per-simd", "1"}}},
    {"gfx950_direct_one",
     "gfx950",
     "f16",
     64,
     {{"stages", "1"}, {"direct-copy", "1"}}},
    {"gfx950_direct_two",
     "gfx950",
     "f16",
     64,
     {{"stages", "2"}, {"direct-copy", "1"}}},
    {"gfx950_direct_three",
     "gfx950",
     "f16",
     64,
     {{"stages", "3"}, {"direct-copy", "1"}, {"block-n", "64"}}},
    {"gfx950_pairs_groups", "gfx950", "f16", 128, {}},
    {"gfx950_pairs_groups_wide", "gfx950", "f16", 64, {}},
    {"gfx950_pairs_alone",
     "gfx950",
     "f16",
     64,
     {{"block-m", "128"},
      {"waves", "4"},
      {"block-n", "64"},
      {"waves-per-simd", "1"}}},
    {"gfx1100_one", "gfx1100", "bf16", 64, {{"stages", "1"}}},
    {"gfx1100_two", "gfx1100", "bf16", 64, {{"stages", "2"}}},
    {"gfx1201_one", "gfx1201", "bf16", 64, {{"stages", "1"}}},
    {"gfx1201_two", "gfx1201", "bf16", 64, {{"stages", "2"}}},
};
const GroupKernel kBackward[] = {
    {"gfx942_one", "gfx942", "bf16", 64, {{"stages", "1"}}},
    {"gfx942_two", "gfx942", "bf16", 64, {{"stages", "2"}}},
    {"gfx942_segments",
     "gfx942",
     "bf16",
     64,
     {{"stages", "4"}, {"waves-per-simd", "1"}}},
    {"gfx942_all_one",
     "gfx942",
     "bf16",
     64,
     {{"algorithm", "atomic"}, {"stages", "1"}}},
    {"gfx942_all_two",
     "gfx942",
     "bf16",
     64,
     {{"algorithm", "atomic"}, {"stages", "2"}}},
    {"gfx942_all_segments",
     "gfx942",
     "bf16",
     64,
     {{"algorithm", "atomic"}, {"stages", "4"}}},
    {"gfx942_all_late", "gfx942", "bf16", 64, {{"algorithm", "atomic"}}},
    {"gfx950_segments", "gfx950", "bf16", 64, {}},
    {"gfx950_all_segments", "gfx950", "bf16", 64, {{"algorithm", "atomic"}}},
    {"gfx1100_one", "gfx1100", "bf16", 64, {{"stages", "1"}}},
    {"gfx1100_two", "gfx1100", "bf16", 64, {{"stages", "2"}}},
    {"gfx1201_one", "gfx1201", "bf16", 64, {{"stages", "1"}}},
    {"gfx1201_two", "gfx1201", "bf16", 64, {{"stages", "2"}}},
};

/// Blocks of keys that go in pairs leave a last one for a loop of its own.
int singleLoops(const GroupKernel &kernel) {
  return StringRef(kernel.name).contains("pairs") ? 1 : 0;
}

/// Tiles that were reserved together with the one that it takes.
int64_t countOf(attn::LdsBufferOp op) {
  auto all = op.getLds().getDefiningOp<attn::AllocLdsOp>();
  return all ? all.getBuffers() : 1;
}

/// Of tiles in LDS that have several buffers, operations that take one.
SmallVector<attn::LdsBufferOp> buffersOf(gpu::GPUFuncOp kernel) {
  SmallVector<attn::LdsBufferOp> buffers;
  kernel.walk([&](attn::LdsBufferOp op) {
    if (countOf(op) > 1)
      buffers.push_back(op);
  });
  return buffers;
}

/// Waits that hold nothing up on the ways that problems take through a kernel:
/// LLVM waits for the latest of all ways into a loop (docs/Checkers.md).
template <typename Case>
size_t mostNotFound(const GroupKernel &kernel) {
  return std::is_same_v<Case, run::BackwardCase> &&
         StringRef(kernel.name) == "gfx942_segments";
}

/// Sees several blocks in whole, and several in part at both ends.
const Window kWide = {800, 100, Alignment::BottomRight, Alignment::BottomRight};

class PipelineFaultTest : public GroupKernelTest {
protected:
  /// Of each kind all faults or, where there is no time, some.
  std::vector<CodeFault> faults() const {
    std::vector<CodeFault> all = faultsOfLoops(
        compiled.code(), kernel().chip,
        target::lookupTarget(kernel().chip)->waveSize, singleLoops(kernel()));
    if (runsFullGrids())
      return all;
    std::vector<CodeFault> some;
    for (auto kind :
         {CodeFault::WaitShort, CodeFault::WaitDropped, CodeFault::NoBarrier}) {
      SmallVector<const CodeFault *> found;
      for (const CodeFault &fault : all)
        if (fault.kind == kind)
          found.push_back(&fault);
      EXPECT_FALSE(found.empty()) << describe(kind).str();
      for (size_t part = 0; part < kSome && !found.empty(); ++part)
        some.push_back(*found[(2 * part + 1) * found.size() / (2 * kSome)]);
    }
    return some;
  }

  template <typename Case>
  bool isFound(ArrayRef<Case> problems) {
    return llvm::any_of(problems, [&](const Case &problem) {
      const run::Outcome outcome = session->run(problem, options).outcome;
      return outcome == run::Outcome::Mismatch ||
             outcome == run::Outcome::DeviceError;
    });
  }

  template <typename Case>
  void expectFound(ArrayRef<Case> problems) {
    for (const Case &problem :
         runsFullGrids() ? problems : problems.take_front())
      expectPass(problem);
    std::vector<std::string> missed;
    for (const CodeFault &fault : faults()) {
      ASSERT_EQ(compiled.replaceCode(fault.plantedInto(compiled.code())), "");
      std::string error;
      session = compiled.open(error);
      ASSERT_TRUE(session) << error;
      if (!isFound(problems))
        missed.push_back(describe(fault.kind).str() + ": " + fault.what);
    }
    // Where some are planted each is found.
    const size_t most = runsFullGrids() ? mostNotFound<Case>(kernel()) : 0;
    EXPECT_LE(missed.size(), most) << "not found are\n"
                                   << llvm::join(missed, "\n");
  }

  std::vector<run::ForwardCase> forwardProblems() const {
    run::ForwardCase c = makeCase(1, 256, 1300, kWide);
    c.heads = c.headsK = 1;
    // Nothing is rescaled behind the first blocks, or all sums in each.
    run::ForwardCase rescales = c;
    rescales.input = reference::InputKind::Large;
    return {c, rescales};
  }
  std::vector<run::BackwardCase> backwardProblems() const {
    run::BackwardCase c;
    c.forward =
        makeCase(1, 600, 600,
                 {400, 100, Alignment::BottomRight, Alignment::BottomRight});
    c.forward.heads = c.forward.headsK = 1;
    // A wait in a loop is for what is under way where the loop is entered, be
    // it from the prologue or from another loop: without blocks that are seen
    // in part, which are ahead of it otherwise.
    run::BackwardCase whole = c;
    whole.forward.mask = reference::Mask::None;
    whole.forward.seqQ = whole.forward.seqK = 512;
    return {c, whole};
  }

private:
  static constexpr size_t kSome = 1;
};

class ForwardPipelineFaultTest : public PipelineFaultTest {};
class GradientPipelineFaultTest : public PipelineFaultTest {};

/// Kernels whose buffers in LDS take turns, one after the other with one that
/// is off by one.
class BufferFaultTest : public PipelineFaultTest {
protected:
  template <typename Case>
  void expectEachFound(fovea::OpKind op, ArrayRef<Case> problems) {
    // Which one, and how many there are, known once it has been compiled.
    int planted = -1, count = 0;
    change = [&](gpu::GPUFuncOp kernel) {
      for (attn::LdsBufferOp buffer : buffersOf(kernel))
        if (count++ == planted)
          turn(buffer);
    };
    compile(op);
    if (HasFatalFailure())
      return;
    const int all = std::exchange(count, 0);
    ASSERT_GT(all, 0) << "no buffers take turns";
    for (planted = runsFullGrids() ? 0 : all / 2;
         planted < (runsFullGrids() ? all : all / 2 + 1); ++planted) {
      count = 0;
      compile(op);
      if (HasFatalFailure())
        return;
      EXPECT_TRUE(isFound(problems)) << "buffer " << planted << " of " << all;
    }
  }

private:
  static void turn(attn::LdsBufferOp buffer) {
    OpBuilder b(buffer);
    const Location loc = buffer.getLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, loc, value, /*width=*/32);
    };
    Value next = arith::AddIOp::create(b, loc, buffer.getNumber(), constant(1));
    buffer.getNumberMutable().assign(
        arith::RemUIOp::create(b, loc, next, constant(countOf(buffer))));
  }
};

class ForwardBufferFaultTest : public BufferFaultTest {};
class GradientBufferFaultTest : public BufferFaultTest {};

/// Before main() opens the library.
[[maybe_unused]] const bool isChecked = [] {
  setenv("FOVEA_SIM_CHECK", "waitcnt,race-lds", 1);
  setenv("FOVEA_SIM_QUIET", "1", 1);
  return true;
}();

} // namespace

TEST_P(ForwardPipelineFaultTest, IsFound) {
  compile(fovea::OpKind::Forward);
  if (HasFatalFailure())
    return;
  expectFound<run::ForwardCase>(forwardProblems());
}

TEST_P(GradientPipelineFaultTest, IsFound) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  expectFound<run::BackwardCase>(backwardProblems());
}

TEST_P(ForwardBufferFaultTest, IsFound) {
  expectEachFound<run::ForwardCase>(fovea::OpKind::Forward, forwardProblems());
}

TEST_P(GradientBufferFaultTest, IsFound) {
  expectEachFound<run::BackwardCase>(fovea::OpKind::Backward,
                                     backwardProblems());
}

/// All or, where there is no time, each pipeline once, and one of each family
/// of chips.
static std::vector<GroupKernel> kernelsOf(ArrayRef<GroupKernel> all) {
  std::vector<GroupKernel> some;
  for (const GroupKernel &kernel : all) {
    const StringRef name = kernel.name;
    const bool isRepeated = name == "gfx1100_one" || name == "gfx1201_one" ||
                            name == "gfx1100_two" || name == "gfx950_segments";
    if (runsFullGrids() || !isRepeated)
      some.push_back(kernel);
  }
  return some;
}

/// Those of them whose pipeline has several buffers in LDS.
static std::vector<GroupKernel> inTurns(ArrayRef<GroupKernel> all) {
  std::vector<GroupKernel> some = kernelsOf(all);
  llvm::erase_if(some, [&](const GroupKernel &kernel) {
    const StringRef name = kernel.name;
    if (name.ends_with("_one"))
      return true;
    return all.data() == kForward
               ? !name.contains("_direct_") && !name.contains("_pairs_")
               : name.ends_with("_two");
  });
  return some;
}

INSTANTIATE_TEST_SUITE_P(Planted, ForwardBufferFaultTest,
                         testing::ValuesIn(inTurns(kForward)), nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, GradientBufferFaultTest,
                         testing::ValuesIn(inTurns(kBackward)), nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, ForwardPipelineFaultTest,
                         testing::ValuesIn(kernelsOf(kForward)), nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, GradientPipelineFaultTest,
                         testing::ValuesIn(kernelsOf(kBackward)), nameOf);
