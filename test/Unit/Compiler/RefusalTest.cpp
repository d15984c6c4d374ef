//===- RefusalTest.cpp - what the compiler's tables do not have -----------===//
//
// An operation, algorithm or element type that verifiers let through tomorrow
// meets tables that do not know it yet: each refuses, and takes it for nothing
// else.
//
//===----------------------------------------------------------------------===//

#include "Cost.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Passes.h"
#include "fovea/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace fovea;

namespace {

/// A function with an attention op on f64, which no verifier has seen.
class UnknownType : public ::testing::Test {
protected:
  UnknownType() : builder(&context) {
    context.loadDialect<attn::AttnDialect, func::FuncDialect>();
    constexpr int64_t dynamic = ShapedType::kDynamic;
    auto tensor =
        MemRefType::get({dynamic, dynamic, dynamic, 64}, builder.getF64Type());
    auto lse =
        MemRefType::get({dynamic, dynamic, dynamic}, builder.getF32Type());
    auto workspace = MemRefType::get({dynamic}, builder.getI8Type());
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToStart(module->getBody());
    auto func = func::FuncOp::create(
        builder, builder.getUnknownLoc(), "f",
        builder.getFunctionType({tensor, lse, workspace, builder.getF32Type()},
                                {}));
    builder.setInsertionPointToStart(func.addEntryBlock());
    args = func.getArguments();
  }

  /// The errors of the pass, without verifiers around it.
  std::string choose() {
    func::ReturnOp::create(builder, builder.getUnknownLoc());
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    PassManager manager(&context);
    manager.enableVerifier(false);
    manager.addNestedPass<func::FuncOp>(attn::createAttnChooseSchedule());
    EXPECT_TRUE(failed(manager.run(*module)));
    return said;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  ValueRange args;
};

} // namespace

TEST_F(UnknownType, IsNoFactor) {
  for (const target::ElementTypeInfo &row : target::allElementTypes()) {
    Type type = attn::getElementType(&context, row.type);
    std::string printed;
    llvm::raw_string_ostream(printed) << type;
    EXPECT_EQ(row.mlir.str(), printed);
    EXPECT_EQ(row.bytes(), attn::bytesOf(type));
    EXPECT_EQ(&row, attn::lookupElementType(type));
  }
  EXPECT_EQ(nullptr, attn::lookupElementType(builder.getI8Type()));
  EXPECT_EQ(nullptr, attn::lookupElementType(builder.getF64Type()));
  const target::TargetInfo *target = target::lookupTarget("gfx942");
  ASSERT_TRUE(target);
  EXPECT_TRUE(
      attn::lookupMatrixInstr(*target, "mfma_32x32x8", builder.getBF16Type()));
  EXPECT_FALSE(
      attn::lookupMatrixInstr(*target, "mfma_32x32x8", builder.getF32Type()));
}

TEST_F(UnknownType, HasNoForwardSchedule) {
  attn::ForwardOp::create(builder, builder.getUnknownLoc(), args[0], args[0],
                          args[0], args[0], args[1], args[3],
                          /*bounds=*/ValueRange(), /*sinks=*/nullptr,
                          /*lists=*/ValueRange(), /*sequences=*/ValueRange(),
                          /*dropout=*/ValueRange(), /*head_dims=*/ValueRange(),
                          /*captures=*/ValueRange(),
                          /*visibility=*/nullptr,
                          /*schedule=*/nullptr, /*combine=*/nullptr);
  EXPECT_NE(std::string::npos, choose().find("no schedule for head dimension "
                                             "64 in 'f64' on gfx942"));
}

TEST_F(UnknownType, IsRefusedWithAForwardSchedule) {
  auto schedule = attn::ScheduleAttr::get(
      &context, 128, 64, 4, attn::InstAttr::get(&context, "mfma_32x32x8"), 2, 2,
      8, 1, 0, 0, 0);
  attn::ForwardOp::create(builder, builder.getUnknownLoc(), args[0], args[0],
                          args[0], args[0], args[1], args[3],
                          /*bounds=*/ValueRange(), /*sinks=*/nullptr,
                          /*lists=*/ValueRange(), /*sequences=*/ValueRange(),
                          /*dropout=*/ValueRange(), /*head_dims=*/ValueRange(),
                          /*captures=*/ValueRange(),
                          /*visibility=*/nullptr, schedule,
                          /*combine=*/nullptr);
  EXPECT_NE(std::string::npos,
            choose().find("gfx942 has no matrix instruction 'mfma_32x32x8' for "
                          "'f64'; it has none for this type"));
}

TEST_F(UnknownType, HasNoBackwardSchedule) {
  attn::BackwardOp::create(
      builder, builder.getUnknownLoc(), args[0], args[0], args[0], args[0],
      args[0], args[1], args[0], args[0], args[0], args[2], args[3],
      /*bounds=*/ValueRange(), /*dlse=*/nullptr, /*sinks=*/nullptr,
      /*dsinks=*/nullptr, /*lists=*/ValueRange(), /*sequences=*/ValueRange(),
      /*dropout=*/ValueRange(), /*head_dims=*/ValueRange(),
      /*captures=*/ValueRange(),
      /*gradients=*/ValueRange(), /*gradient_numbers=*/nullptr,
      /*visibility=*/nullptr, /*schedule=*/nullptr);
  EXPECT_NE(std::string::npos,
            choose().find("no deterministic schedule for gradients of head "
                          "dimension 64 in 'f64' on gfx942"));
}

TEST(EstimateCost, KnowsEveryAlgorithm) {
  tools::Job job;
  job.target = target::lookupTarget("gfx942");
  job.problem.headDim = 128;
  for (const fovea::spec::OperationSpec &operation :
       fovea::spec::allOperations()) {
    job.problem.op = operation.op;
    for (const fovea::spec::AlgorithmSpec &algorithm : operation.algorithms) {
      job.algorithm = &algorithm;
      llvm::Expected<tools::Cost> cost = tools::estimateCost(job);
      ASSERT_TRUE(bool(cost)) << algorithm.name;
      EXPECT_GT(cost->cpuMs, 0);
      EXPECT_GT(cost->storedBytes, 0);
    }
  }
}

TEST(EstimateCost, KnowsWhereProductsAreOfLanes) {
  auto cpuMs = [](const char *chip, fovea::DataType type) {
    tools::Job job;
    job.target = target::lookupTarget(chip);
    job.problem.op = fovea::OpKind::Backward;
    job.problem.headDim = 128;
    job.problem.dtype = type;
    job.algorithm = &fovea::spec::specOf(job.problem.op).algorithms[0];
    return llvm::cantFail(tools::estimateCost(job)).cpuMs;
  };
  for (const char *chip : {"gfx1100", "gfx1201"}) {
    EXPECT_EQ(cpuMs(chip, fovea::DataType::BF16),
              cpuMs("gfx942", fovea::DataType::BF16));
    EXPECT_GT(cpuMs(chip, fovea::DataType::F32),
              2 * cpuMs("gfx942", fovea::DataType::F32));
  }
}

TEST(EstimateCost, RefusesWhatWasNotMeasured) {
  tools::Job job;
  job.target = target::lookupTarget("gfx942");
  job.symbol = "k";
  job.problem.op = static_cast<fovea::OpKind>(7);
  llvm::Expected<tools::Cost> cost = tools::estimateCost(job);
  ASSERT_FALSE(bool(cost));
  EXPECT_EQ("k (gfx942): no estimate of what it costs to compile operation 7 "
            "by algorithm ''; measure it and add a row to Cost.cpp",
            llvm::toString(cost.takeError()));
  fovea::spec::AlgorithmSpec unknown =
      fovea::spec::specOf(fovea::OpKind::Backward).algorithms[0];
  unknown.name = "blocked";
  job.problem.op = fovea::OpKind::Backward;
  job.algorithm = &unknown;
  cost = tools::estimateCost(job);
  ASSERT_FALSE(bool(cost));
  EXPECT_NE(std::string::npos,
            llvm::toString(cost.takeError()).find("by algorithm 'blocked'"));
}

//===----------------------------------------------------------------------===//
// Chips that lack what every chip of the table has
//===----------------------------------------------------------------------===//

TEST(AtomicAdd, NeedsTheInstruction) {
  target::TargetInfo row = *target::lookupTarget("gfx942");
  row.features &= ~target::kBufferAtomicAddF32;
  target::ScopedTarget scoped(row);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  registerFoveaDialects(registry);
  context.appendDialectRegistry(registry);
  auto module = parseSourceString<ModuleOp>(R"mlir(
    gpu.module @module attributes {attn.target = #attn.target<"gfx942">} {
      gpu.func @kernel(%base: !llvm.ptr<1>, %from: i64, %n: i32) kernel
          attributes {attn.schedule = #attn.schedule<block_m = 32,
            block_n = 32, waves = 1, inst = <mfma_32x32x8>, stages = 1,
            waves_per_simd = 1, rescale_threshold = 0>} {
        %view = attn.view %base[%from] rows %n stride %n : !attn.view<8 x f32>
        %tile = attn.load %view : !attn.view<8 x f32> -> tensor<32x8xf32>
        attn.atomic_add %tile, %view : tensor<32x8xf32>, !attn.view<8 x f32>
        gpu.return
      }
    })mlir",
                                            &context);
  ASSERT_TRUE(module);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
    return success();
  });
  PassManager manager(&context);
  populateStages(manager, Stage::Tiles, Stage::Lanes, ScheduleOptions());
  EXPECT_TRUE(failed(manager.run(*module)));
  EXPECT_NE(std::string::npos,
            said.find("'attn.atomic_add' op gfx942 cannot add f32 in memory"))
      << said;
}
