//===- Pipelines.h - the compiler's stages as pipelines ---------*- C++ -*-===//
//
// One function a stage, and the whole. Each stage ends with its own check
// (attn-verify-stage), so that a tool or a test can stop and start at any.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PIPELINES_PIPELINES_H
#define FOVEA_PIPELINES_PIPELINES_H

#include "fovea/Target/TargetInfo.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace fovea {

/// Options of the pipelines that choose schedules.
struct ScheduleOptions : public mlir::PassPipelineOptions<ScheduleOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("Chip to generate code for"),
                           llvm::cl::init(target::kDefaultTarget.str())};
  Option<int32_t> optLevel{*this, "O",
                           llvm::cl::desc("Optimisation level, 0 to 3"),
                           llvm::cl::init(3)};
  // Parameters of the schedule; what is left at its default is chosen.
  Option<int32_t> blockM{*this, "block-m",
                         llvm::cl::desc("Query rows of a workgroup"),
                         llvm::cl::init(0)};
  Option<int32_t> blockN{*this, "block-n",
                         llvm::cl::desc("Keys of an iteration"),
                         llvm::cl::init(0)};
  Option<int32_t> waves{*this, "waves", llvm::cl::desc("Waves of a workgroup"),
                        llvm::cl::init(0)};
  Option<int32_t> stages{
      *this, "stages",
      llvm::cl::desc("1: no prefetch, 2: one key block, 3: its "
                     "scores too, 4: segments"),
      llvm::cl::init(0)};
  Option<std::string> inst{*this, "inst", llvm::cl::desc("Matrix instruction"),
                           llvm::cl::init("")};
  Option<int32_t> wavesPerSimd{
      *this, "waves-per-simd",
      llvm::cl::desc("Occupancy to allocate registers for"), llvm::cl::init(0)};
  Option<int32_t> rescaleThreshold{
      *this, "rescale-threshold",
      llvm::cl::desc("Growth of the maximum that triggers a rescale"),
      llvm::cl::init(-1)};
  Option<int32_t> valueSplit{
      *this, "value-split",
      llvm::cl::desc("Waves that share queries and split the output"),
      llvm::cl::init(0)};
  Option<int32_t> queriesInLds{*this, "queries-in-lds",
                               llvm::cl::desc("Keep the queries in LDS"),
                               llvm::cl::init(-1)};
  Option<int32_t> directCopy{
      *this, "direct-copy",
      llvm::cl::desc("Load keys and values to LDS without registers"),
      llvm::cl::init(-1)};
  Option<int32_t> columnChunk{
      *this, "column-chunk",
      llvm::cl::desc("Columns that come through LDS at a time, of gradients"),
      llvm::cl::init(-1)};
  Option<std::string> algorithm{
      *this, "algorithm",
      llvm::cl::desc("Of attn.forward flash or split, of attn.backward "
                     "deterministic, atomic or atomic16"),
      llvm::cl::init("")};
  ListOption<int32_t> passedOver{
      *this, "passed-over",
      llvm::cl::desc("Of each kernel, how many of the table's schedules are "
                     "not taken")};
};

/// The stages, in order. Each goes from the form of the one before.
enum class Stage {
  Problem,
  Scheduled,
  Tiles,
  Layouts,
  Lanes,
  MatrixCore,
  Rocdl,
  Hsaco
};

/// The stage's name as options spell it ("tiles", …).
llvm::StringRef stageName(Stage stage);
/// All names from `problem` on, for messages.
std::string stageNames();
/// None if there is no such stage.
std::optional<Stage> parseStage(llvm::StringRef name);

/// Adds the passes that lead from the stage before to `stage`.
void populateStage(mlir::OpPassManager &manager, Stage stage,
                   const ScheduleOptions &options);

/// Adds the passes that lead from after `from` up to `to`.
void populateStages(mlir::OpPassManager &manager, Stage from, Stage to,
                    const ScheduleOptions &options);

/// Registers every pass and pipeline of the project.
void registerFoveaPasses();

/// Registers every dialect, and what translation and lowering need of it.
void registerFoveaDialects(mlir::DialectRegistry &registry);

} // namespace fovea

#endif // FOVEA_PIPELINES_PIPELINES_H
