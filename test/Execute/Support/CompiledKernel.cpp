//===- CompiledKernel.cpp - kernels of MLIR text under test ---------------===//

#include "CompiledKernel.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/IR/ScoreText.h"
#include "fovea/Pipelines/Pipelines.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>


using namespace mlir;
using namespace fovea;
using namespace fovea::test;

CompiledKernel::CompiledKernel() {
  static int count = 0;
  folder = std::filesystem::temp_directory_path() /
           llvm::formatv("fovea-kernel-{0}-{1}", getpid(), count++).str();
  std::filesystem::create_directories(folder);
}

CompiledKernel::~CompiledKernel() { std::filesystem::remove_all(folder); }

/// Null: there are no such options.
static std::unique_ptr<ScheduleOptions>
optionsOf(const std::string &chip,
          const std::map<std::string, std::string> &schedule) {
  std::string text = "chip=" + chip;
  for (const auto &[name, value] : schedule)
    text += " " + name + "=" + value;
  return ScheduleOptions::createFromString(text);
}

std::string
CompiledKernel::scheduleOf(const std::string &function, const std::string &chip,
                           const std::map<std::string, std::string> &schedule) {
  DialectRegistry registry;
  registerFoveaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {});
  auto module = parseSourceString<ModuleOp>(function, &context);
  const auto options = optionsOf(chip, schedule);
  if (!module || !options)
    return "";
  PassManager passes(&context);
  populateStages(passes, Stage::Problem, Stage::Scheduled, *options);
  if (mlir::failed(passes.run(*module)))
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->walk([&](attn::AttentionOpInterface op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (attribute.getName() != "operandSegmentSizes")
        stream << attribute.getName().str() << '=' << attribute.getValue()
               << ' ';
  });
  return text;
}

std::string CompiledKernel::compile(const Request &request) {
  chip = request.chip;
  record = request.record;
  DialectRegistry registry;
  registerFoveaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said += diagnostic.str() + "\n";
  });
  auto failed = [&](StringRef what) { return (what + ": " + said).str(); };
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(request.function, &context);
  if (!module)
    return failed("the text does not parse");
  if (request.look)
    request.look(*module);
  program = {};
  captured.clear();
  module->walk([&](attn::AttentionOpInterface problem) {
    if (problem.getScore().empty())
      return;
    attn::ScoreText text = attn::canonicalScore(problem.getScore());
    record.problem.score = text.digest;
    program = {scoreDigits(text.digest), std::move(text.text)};
    captured = attn::capturesOf(problem.getScore());
  });
  const auto options = optionsOf(chip, request.schedule);
  if (!options)
    return "no such options of a schedule";
  PassManager front(&context);
  populateStages(front, Stage::Problem, Stage::Tiles, *options);
  if (mlir::failed(front.run(*module)))
    return failed("no tile program");

  record.symbol = "kernel";
  record.schedule = "planted";
  const auto algorithm = request.schedule.find("algorithm");
  const bool isNamed = algorithm != request.schedule.end();
  if (isNamed)
    record.schedule = algorithm->second;
  const int waveSize = target::lookupTarget(chip)->waveSize;
  module->walk([&](gpu::GPUFuncOp kernel) {
    auto schedule =
        kernel->getAttrOfType<attn::ScheduleAttr>(attn::kScheduleAttrName);
    const int threads = schedule.getWaves() * waveSize;
    record.blockM = std::max(record.blockM, int32_t(schedule.getBlockM()));
    record.blockN = std::max(record.blockN, int32_t(schedule.getBlockN()));
    record.threads = std::max(record.threads, int32_t(threads));
    StringRef name = kernel.getName();
    if (name.consume_front(record.symbol + "_"))
      record.launches.push_back(
          {name.str(), int32_t(schedule.getBlockM()), int32_t(threads)});
    if (isNamed) // what a comparison reads of it
      record.schedule += ";" + name.str() + ":" + schedule.getKey();
    if (request.change)
      request.change(kernel);
  });
  PassManager back(&context);
  populateStages(back, Stage::Tiles, Stage::Hsaco, *options);
  if (mlir::failed(back.run(*module)))
    return failed("no code object");
  module->walk([&](gpu::BinaryOp binary) {
    image = cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
  });
  record.fingerprint = "planted";
  record.score = program;
  return replaceCode(image);
}

std::string CompiledKernel::replaceCode(const std::string &code) {
  std::filesystem::remove(package());
  auto writer = PackageWriter::open(package(), TargetId{chip});
  if (!writer)
    return writer.status().message();
  fovea::Status put = writer->put(record, code.data(), code.size());
  return put.ok() ? "" : put.message();
}

std::unique_ptr<run::Session> CompiledKernel::open(std::string &error) {
  run::Session::Options options;
  options.package = folder.string();
  options.hip = FOVEA_HIPSIM_LIBRARY;
  options.device = int(llvm::find(kChips, chip) - std::begin(kChips));
  bool deviceError = false;
  return run::Session::open(options, error, deviceError);
}

/// The simulated devices, in the order of kChips, and the other one.
int main(int argc, char **argv) {
  std::string chips = llvm::join(ArrayRef(kChips), ",") + "," + kOtherChip;
  setenv("FOVEA_SIM_TARGET", chips.c_str(), 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
