//===- FaultTest.cpp - wrong kernels must be found wrong ------------------===//
//
// Plants one fault at a time into the tile program of the forward kernel,
// compiles it for a chip of each family, executes it on a simulated device of
// that chip, and expects the comparison with the oracle to refuse it. The
// kernel without a fault passes the same runs.
//
//===----------------------------------------------------------------------===//

#include "ForwardRun.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Package/ForwardAbi.h"
#include "fovea/Package/PackageWriter.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Target/TargetInfo.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <filesystem>
#include <gtest/gtest.h>

using namespace mlir;
using namespace fovea;

namespace {

/// Changes a kernel's tile program; returns how many places it changed.
using Plant = int (*)(gpu::GPUFuncOp kernel);

static int none(gpu::GPUFuncOp) { return 0; }

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32).getResult();
}

/// The first key block is never visited.
static int skipTile(gpu::GPUFuncOp kernel) {
  auto loop = *kernel.getOps<scf::ForOp>().begin();
  OpBuilder b(loop);
  loop.setLowerBound(constant(b, loop.getLoc(), 1));
  return 1;
}

/// The last full block is left to nobody.
static int stopEarly(gpu::GPUFuncOp kernel) {
  auto loop = *kernel.getOps<scf::ForOp>().begin();
  OpBuilder b(loop);
  loop.setUpperBound(arith::SubIOp::create(
      b, loop.getLoc(), loop.getUpperBound(), constant(b, loop.getLoc(), 1)));
  return 1;
}

/// In the branch that rescales, the values whose number of rows is `wanted`
/// keep their old scale. Where sums have registers of their own, the scaled
/// value is yielded by way of them.
template <typename Wanted>
static int dropRescale(gpu::GPUFuncOp kernel, Wanted wanted) {
  int changed = 0;
  kernel.walk([&](scf::IfOp branch) {
    if (!branch.elseBlock())
      return;
    for (OpOperand &yielded : branch.thenYield()->getOpOperands()) {
      OpOperand *scaled = &yielded;
      if (auto move = yielded.get().getDefiningOp<attn::ToAccumulatorsOp>())
        scaled = &move->getOpOperand(0);
      auto product = scaled->get().getDefiningOp<arith::MulFOp>();
      if (!product ||
          !wanted(cast<RankedTensorType>(product.getType()).getDimSize(0)))
        continue;
      scaled->set(product.getLhs());
      ++changed;
    }
  });
  return changed;
}
static int staleAccumulator(gpu::GPUFuncOp kernel) {
  return dropRescale(kernel, [](int64_t rows) { return rows > 4; });
}
static int staleSum(gpu::GPUFuncOp kernel) {
  return dropRescale(kernel, [](int64_t rows) { return rows <= 4; });
}

/// The last visible key is off by `delta`.
template <int delta>
static int shiftMask(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::MaskOp mask) {
    OpBuilder b(mask);
    auto type = cast<RankedTensorType>(mask.getLast().getType());
    Value by = arith::ConstantOp::create(
        b, mask.getLoc(),
        DenseElementsAttr::get(type, b.getI32IntegerAttr(delta)));
    mask.getLastMutable().assign(
        arith::AddIOp::create(b, mask.getLoc(), mask.getLast(), by));
    ++changed;
  });
  return changed;
}

/// Diagonal and tail blocks are taken as they are.
static int dropMask(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::MaskOp mask) {
    mask.getResult().replaceAllUsesWith(mask.getTile());
    ++changed;
  });
  return changed;
}

/// The scale is off by one per cent.
template <int percent>
static int changeScale(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](arith::ConstantOp op) {
    auto value = dyn_cast<FloatAttr>(op.getValue());
    if (!value ||
        std::abs(value.getValueAsDouble() - 1.4426950408889634) > 1e-6)
      return;
    op.setValueAttr(FloatAttr::get(value.getType(), value.getValueAsDouble() *
                                                        (1 + percent / 100.0)));
    ++changed;
  });
  return changed;
}

/// Every query head reads the keys of head 0.
static int wrongKeyHead(gpu::GPUFuncOp kernel) {
  int changed = 0;
  Value group = kernel.getArgument(std::size(fovea::abi::kForwardArgs) - 2);
  kernel.walk([&](arith::DivUIOp div) {
    if (div.getRhs() != group)
      return;
    OpBuilder b(div);
    div.getResult().replaceAllUsesWith(constant(b, div.getLoc(), 0));
    ++changed;
  });
  return changed;
}

/// The block that was computed last time is multiplied again: V is not
/// refreshed. It comes in the loop's last value, or by the last copy to LDS.
static int staleValues(gpu::GPUFuncOp kernel) {
  int changed = 0;
  for (auto loop : kernel.getOps<scf::ForOp>()) {
    auto copies = llvm::to_vector(loop.getOps<attn::CopyLdsOp>());
    if (!copies.empty()) {
      copies.back().erase();
      ++changed;
      continue;
    }
    mlir::Operation *yield = loop.getBody()->getTerminator();
    unsigned last = yield->getNumOperands() - 1;
    yield->setOperand(last, loop.getRegionIterArg(last));
    ++changed;
  }
  return changed;
}

struct Fault {
  const char *name;
  Plant plant;
  int places; ///< that must have been changed
};

void PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

const Fault kFaults[] = {
    {"SkipTile", skipTile, 1},
    {"StopEarly", stopEarly, 1},
    {"StaleAccumulator", staleAccumulator, 2},
    {"StaleSum", staleSum, 2},
    {"MaskOneMore", shiftMask<1>, 1},
    {"MaskOneLess", shiftMask<-1>, 1},
    {"DropMask", dropMask, 1},
    {"ScaleOnePerCentMore", changeScale<1>, 1},
    {"ScaleOnePerCentLess", changeScale<-1>, 1},
    {"WrongKeyHead", wrongKeyHead, 1},
    {"StaleValues", staleValues, 2},
};

const char *const kChips[] = {"gfx908", "gfx942", "gfx950", "gfx1100",
                              "gfx1201"};

/// A fault, a chip and a type.
using Parameters = std::tuple<Fault, const char *, const char *>;

class FaultTest : public testing::TestWithParam<Parameters> {
protected:
  static constexpr int kHeadDim = 64;

  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             llvm::formatv("fovea-fault-{0}", getpid()).str();
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Compiles the kernel with a fault into a package of its own.
  void build(Plant plant, int places, StringRef chip, StringRef dtype);

  /// The outcomes of a few runs that between them reach every part.
  std::vector<run::RunReport> runAll(StringRef chip, StringRef dtype);

  std::filesystem::path folder;
};
} // namespace

void FaultTest::build(Plant plant, int places, StringRef chip,
                      StringRef dtype) {
  DialectRegistry registry;
  registerFoveaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string tensor = llvm::formatv(
      "memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>", kHeadDim, dtype);
  std::string lse = "memref<?x?x?xf32, strided<[?, ?, 1]>>";
  std::string text = llvm::formatv(
      "func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, %lse: {1}, "
      "%scale: f32) {{\n"
      "attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) "
      "mask<causal_bottom_right> : {0}, {0}, {0}, {0}, {1}\nreturn\n}",
      tensor, lse);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  ScheduleOptions options;
  options.chip = chip.str();
  PassManager front(&context);
  populateStages(front, Stage::Problem, Stage::Tiles, options);
  ASSERT_TRUE(succeeded(front.run(*module)));
  int changed = 0;
  attn::ScheduleAttr schedule;
  module->walk([&](gpu::GPUFuncOp kernel) {
    schedule =
        kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
    changed += plant(kernel);
  });
  ASSERT_GE(changed, places);
  PassManager back(&context);
  populateStages(back, Stage::Tiles, Stage::Hsaco, options);
  ASSERT_TRUE(succeeded(back.run(*module)));
  std::string image;
  module->walk([&](gpu::BinaryOp binary) {
    image = cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
  });
  ASSERT_FALSE(image.empty());

  KernelRecord record;
  record.problem.dtype = dtype == "f16" ? DataType::F16 : DataType::BF16;
  record.problem.headDim = kHeadDim;
  record.problem.mask = fovea::MaskKind::CausalBottomRight;
  record.schedule = schedule.getKey();
  record.fingerprint = "fault";
  record.abiVersion = fovea::abi::kForwardAbiVersion;
  record.symbol = "kernel";
  record.blockM = schedule.getBlockM();
  record.blockN = schedule.getBlockN();
  record.threads = schedule.getWaves() * target::lookupTarget(chip)->waveSize;
  auto writer = PackageWriter::open((folder / "fault.fovea").string(),
                                    TargetId{chip.str()});
  ASSERT_TRUE(bool(writer)) << writer.status().message();
  fovea::Status put = writer->put(record, image.data(), image.size());
  ASSERT_TRUE(put.ok()) << put.message();
}

std::vector<run::RunReport> FaultTest::runAll(StringRef chip, StringRef dtype) {
  std::vector<run::RunReport> reports;
  run::Session::Options options;
  options.package = folder.string();
  options.hip = FOVEA_HIPSIM_LIBRARY;
  options.device = int(llvm::find(kChips, chip) - std::begin(kChips));
  std::string error;
  bool deviceError = false;
  auto session = run::Session::open(options, error, deviceError);
  EXPECT_TRUE(session) << error;
  if (!session)
    return reports;
  run::ForwardCase problem;
  problem.type =
      dtype == "f16" ? reference::ElemType::F16 : reference::ElemType::BF16;
  problem.headDim = kHeadDim;
  problem.mask = reference::Mask::CausalBottomRight;
  problem.heads = 4;
  problem.headsK = 2;
  problem.seqQ = 200;
  for (int64_t seqK : {200, 331})
    // Large logits make the maximum grow from block to block.
    for (auto input :
         {reference::InputKind::Normal, reference::InputKind::Large}) {
      problem.seqK = seqK;
      problem.input = input;
      reports.push_back(session->run(problem, run::RunOptions()));
    }
  return reports;
}

TEST_P(FaultTest, IsFound) {
  auto [fault, chip, dtype] = GetParam();
  build(fault.plant, fault.places, chip, dtype);
  if (HasFatalFailure())
    return;
  bool found = false;
  for (const run::RunReport &report : runAll(chip, dtype))
    found |= report.outcome == run::Outcome::Mismatch;
  EXPECT_TRUE(found) << fault.name << " passes for right";
}

static std::string nameOf(const testing::TestParamInfo<Parameters> &info) {
  auto [fault, chip, dtype] = info.param;
  return (fault.name + StringRef("_") + chip + "_" + dtype).str();
}

INSTANTIATE_TEST_SUITE_P(Planted, FaultTest,
                         testing::Combine(testing::ValuesIn(kFaults),
                                          testing::ValuesIn(kChips),
                                          testing::Values("f16", "bf16")),
                         nameOf);

class NoFaultTest : public FaultTest {};

TEST_P(NoFaultTest, Passes) {
  auto [fault, chip, dtype] = GetParam();
  build(fault.plant, fault.places, chip, dtype);
  if (HasFatalFailure())
    return;
  std::vector<run::RunReport> reports = runAll(chip, dtype);
  EXPECT_EQ(reports.size(), 4u);
  for (const run::RunReport &report : reports)
    EXPECT_EQ(report.outcome, run::Outcome::Pass) << report.message;
}

INSTANTIATE_TEST_SUITE_P(
    Unharmed, NoFaultTest,
    testing::Combine(testing::Values(Fault{"None", none, 0}),
                     testing::ValuesIn(kChips), testing::Values("f16", "bf16")),
    nameOf);

/// The simulated devices, in the order of kChips.
int main(int argc, char **argv) {
  setenv("FOVEA_SIM_TARGET", llvm::join(ArrayRef(kChips), ",").c_str(), 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
