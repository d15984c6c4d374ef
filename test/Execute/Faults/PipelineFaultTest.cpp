//===- PipelineFaultTest.cpp - faults of pipelines must be found ----------===//
//
// Compiles a kernel for each kind of pipeline, plants one fault after the other
// into the waits and barriers of its loops, and expects the simulated device's
// checkers or the oracle to find each. The kernel without a fault passes both.
//
//===----------------------------------------------------------------------===//

#include "GroupKernel.h"
#include "MachineCode.h"
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

/// Of kernels of all gradients the barrier behind dS is also between the last
/// reads of a block and the stores of the next, for which one and two stages
/// have another, the first of their loops.
bool isSpare(const GroupKernel &kernel, const CodeFault &fault) {
  return fault.kind == CodeFault::NoBarrier && fault.number == 0 &&
         (StringRef(kernel.name).ends_with("all_one") ||
          StringRef(kernel.name).ends_with("all_two"));
}

/// Waits in loops of gfx942's gradients, of which why they hold nothing up is
/// not known (docs/Checkers.md).
int mostNotFound(const GroupKernel &kernel, fovea::OpKind op) {
  const StringRef name = kernel.name;
  if (op == fovea::OpKind::Forward)
    return 0;
  return name == "gfx942_all_two" ? 5 : name == "gfx942_segments" ? 1 : 0;
}

class PipelineFaultTest : public GroupKernelTest {
protected:
  /// Of each kind all faults or, where there is no time, some.
  std::vector<CodeFault> faults() const {
    std::vector<CodeFault> all = faultsOfLoops(
        compiled.code(), kernel().chip,
        target::lookupTarget(kernel().chip)->waveSize, singleLoops(kernel()));
    llvm::erase_if(
        all, [&](const CodeFault &fault) { return isSpare(kernel(), fault); });
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
  void expectFound(ArrayRef<Case> problems, fovea::OpKind op) {
    for (const Case &problem :
         runsFullGrids() ? problems : problems.take_front())
      expectPass(problem);
    std::vector<std::string> missed;
    for (const CodeFault &fault : faults()) {
      ASSERT_EQ(compiled.replaceCode(fault.plantedInto(compiled.code())), "");
      std::string error;
      session = compiled.open(error);
      ASSERT_TRUE(session) << error;
      const bool found = llvm::any_of(problems, [&](const Case &problem) {
        const run::Outcome outcome = session->run(problem, options).outcome;
        return outcome == run::Outcome::Mismatch ||
               outcome == run::Outcome::DeviceError;
      });
      if (!found)
        missed.push_back(describe(fault.kind).str() + ": " + fault.what);
    }
    // Where some are planted each is found.
    const size_t most = runsFullGrids() ? mostNotFound(kernel(), op) : 0;
    EXPECT_LE(missed.size(), most) << "not found are\n"
                                   << llvm::join(missed, "\n");
  }

private:
  static constexpr size_t kSome = 1;
};

class ForwardPipelineFaultTest : public PipelineFaultTest {};
class GradientPipelineFaultTest : public PipelineFaultTest {};

/// Sees several blocks in whole, and several in part at both ends.
const Window kWide = {800, 100, Alignment::BottomRight, Alignment::BottomRight};

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
  run::ForwardCase c = makeCase(1, 256, 1300, kWide);
  c.heads = c.headsK = 1;
  // Nothing is rescaled behind the first blocks, or all sums in each.
  run::ForwardCase rescales = c;
  rescales.input = reference::InputKind::Large;
  expectFound<run::ForwardCase>({c, rescales}, fovea::OpKind::Forward);
}

TEST_P(GradientPipelineFaultTest, IsFound) {
  compile(fovea::OpKind::Backward);
  if (HasFatalFailure())
    return;
  run::BackwardCase c;
  c.forward = makeCase(
      1, 600, 600, {400, 100, Alignment::BottomRight, Alignment::BottomRight});
  c.forward.heads = c.forward.headsK = 1;
  expectFound<run::BackwardCase>(c, fovea::OpKind::Backward);
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

INSTANTIATE_TEST_SUITE_P(Planted, ForwardPipelineFaultTest,
                         testing::ValuesIn(kernelsOf(kForward)), nameOf);
INSTANTIATE_TEST_SUITE_P(Planted, GradientPipelineFaultTest,
                         testing::ValuesIn(kernelsOf(kBackward)), nameOf);
