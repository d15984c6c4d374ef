//===- PlantedKernel.cpp - kernels with a fault ---------------------------===//

#include "PlantedKernel.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

void fovea::test::PrintTo(const Fault &fault, std::ostream *os) {
  *os << fault.name;
}

std::string
fovea::test::nameOf(const testing::TestParamInfo<Parameters> &info) {
  auto [fault, chip, dtype] = info.param;
  return (fault.name + StringRef("_") + chip + "_" + dtype).str();
}

std::vector<Parameters> fovea::test::parametersOf(ArrayRef<Subject> subjects,
                                                  ArrayRef<Fault> faults) {
  std::vector<Parameters> all;
  const bool takesAll = runsFullGrids() || faults.size() == 1;
  // Each fault has a subject, of however few.
  const size_t turns = std::min<size_t>(3, subjects.size());
  for (auto [s, subject] : llvm::enumerate(subjects))
    for (auto [f, fault] : llvm::enumerate(faults))
      if (takesAll || (s + f) % turns == 0)
        all.emplace_back(fault, subject.first, subject.second);
  return all;
}

void PlantedKernelTest::build(const std::string &function, KernelRecord record,
                              int blockN, const std::string &algorithm) {
  const Fault fault = std::get<0>(GetParam());
  record.problem.dtype = dtype() == "f16" ? DataType::F16 : DataType::BF16;
  int changed = 0;
  CompiledKernel::Request request = {chip().str(), function, record,
                                     {},           {},       {}};
  if (blockN != 0)
    request.schedule["block-n"] = std::to_string(blockN);
  if (!algorithm.empty())
    request.schedule["algorithm"] = algorithm;
  request.change = [&](gpu::GPUFuncOp kernel) {
    if (kernel.getName().ends_with(fault.kernel))
      changed += fault.plant(kernel);
  };
  ASSERT_EQ(compiled.compile(request), "");
  ASSERT_GE(changed, fault.places);
}

std::unique_ptr<run::Session> PlantedKernelTest::open() {
  std::string error;
  auto session = compiled.open(error);
  EXPECT_TRUE(session) << error;
  return session;
}

//===----------------------------------------------------------------------===//
// Faults of both passes
//===----------------------------------------------------------------------===//

int fovea::test::stopEarly(scf::ForOp loop) {
  OpBuilder b(loop);
  loop.setUpperBound(arith::SubIOp::create(
      b, loop.getLoc(), loop.getUpperBound(), loop.getStep()));
  return 1;
}

int fovea::test::shiftMask(gpu::GPUFuncOp kernel, MaskEnd end, int delta) {
  int changed = 0;
  kernel.walk([&](attn::MaskOp mask) {
    MutableOperandRange bound =
        end == MaskEnd::Begin ? mask.getBeginMutable() : mask.getEndMutable();
    if (bound.empty())
      return;
    OpBuilder b(mask);
    Value value = bound[0].get();
    auto type = cast<RankedTensorType>(value.getType());
    Value by = arith::ConstantOp::create(
        b, mask.getLoc(),
        DenseElementsAttr::get(type, b.getI32IntegerAttr(delta)));
    bound.assign(arith::AddIOp::create(b, mask.getLoc(), value, by));
    ++changed;
  });
  return changed;
}

int fovea::test::moveSegment(gpu::GPUFuncOp kernel, int from, int delta) {
  // Of a kernel of gradients they lie within the loop over heads.
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (loop.getBody()->getOps<scf::ForOp>().empty())
      loops.push_back(loop);
  });
  auto moved = [&](scf::ForOp loop, Value bound) {
    OpBuilder b(loop);
    return arith::AddIOp::create(b, loop.getLoc(), bound,
                                 constant(b, loop.getLoc(), delta))
        .getResult();
  };
  const int count = int(loops.size());
  if (from >= 0 && from < count)
    loops[from].setUpperBound(moved(loops[from], loops[from].getUpperBound()));
  if (from + 1 < count)
    loops[from + 1].setLowerBound(
        moved(loops[from + 1], loops[from + 1].getLowerBound()));
  return count;
}

int fovea::test::dropMask(gpu::GPUFuncOp kernel) {
  int changed = 0;
  kernel.walk([&](attn::MaskOp mask) {
    mask.getResult().replaceAllUsesWith(mask.getTile());
    ++changed;
  });
  return changed;
}

int fovea::test::changeScale(gpu::GPUFuncOp kernel, int percent) {
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
