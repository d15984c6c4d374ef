//===- KernelCompiler.cpp - compiles one kernel ---------------------------===//

#include "KernelCompiler.h"
#include "Cost.h"
#include "Diagnostics.h"
#include "Problem.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/Transforms/Schedule.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/HSACO/BackendMessages.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <ctime>

using namespace mlir;
using namespace fovea;
using namespace fovea::tools;

/// CPU time of the calling thread, milliseconds.
static double threadCpuMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

namespace {
/// One kernel on its way. The members live as long as the compilation.
class Compilation {
public:
  Compilation(const Job &job, const Request &request)
      : job(job), request(request),
        context(compilerDialects(), MLIRContext::Threading::DISABLED),
        diagnostics(context, job.symbol,
                    request.input ? &*request.input : nullptr) {}

  /// The problem as IR. \param observed  by MLIR's flags: timing, remarks, IR.
  llvm::Error start(bool observed);
  /// Runs the passes from the stage reached up to `stage`.
  llvm::Error lower(Stage stage);
  llvm::Expected<CompiledKernel> finish();
  /// The one attention op, as long as there is one.
  template <typename Op>
  Op problem() {
    Op found;
    module->walk([&](Op op) { found = op; });
    return found;
  }

private:
  std::string print();
  bool isCancelled() const {
    return request.cancelled &&
           request.cancelled->load(std::memory_order_relaxed);
  }
  llvm::Error checkCancelled() const {
    return isCancelled()
               ? llvm::createStringError(
                     std::make_error_code(std::errc::operation_canceled),
                     "the compilation was cancelled")
               : llvm::Error::success();
  }
  llvm::Error backend(CompiledKernel &result);
  llvm::Error readFigures(CompiledKernel &result, Location loc);
  /// The error under the kernel's name; its code stays.
  llvm::Error failed(llvm::Error error) {
    std::error_code code = llvm::inconvertibleErrorCode();
    std::string text = job.symbol;
    llvm::handleAllErrors(std::move(error),
                          [&](const llvm::ErrorInfoBase &info) {
                            code = info.convertToErrorCode();
                            text += ": " + info.message();
                          });
    return llvm::createStringError(code, text);
  }
  /// Whether the kernel is taken to a code object; forms before it are not,
  /// unless its figures are wanted.
  bool wantsImage() const {
    return wantsFigures || request.report != ReportFormat::None ||
           request.emit == Emit::Hsaco || request.emit == Emit::Package ||
           request.emit == Emit::Contract ||
           request.emit == Emit::Description || request.emit == Emit::None;
  }

  const Job &job;
  const Request &request;
  MLIRContext context;
  DiagnosticCollector diagnostics;
  DefaultTimingManager timingManager;
  TimingScope timing;
  OwningOpRef<ModuleOp> module;
  Stage reached = Stage::Problem;
  bool observed = false;
  bool wantsFigures = false; ///< to see whether a later schedule is to be taken
};
} // namespace

llvm::Error Compilation::start(bool isObserved) {
  observed = isObserved;
  if (!observed) {
    // What is wrong is the request, not an op.
    context.printOpOnDiagnostic(false);
  } else {
    applyDefaultTimingManagerCLOptions(timingManager);
    timing = timingManager.getRootScope();
    if (!request.remarks.empty()) {
      remark::RemarkCategories categories;
      categories.all = categories.passed = categories.missed =
          categories.analysis = categories.failed = request.remarks;
      if (mlir::failed(remark::enableOptimizationRemarks(
              context, /*streamer=*/nullptr,
              std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
              /*printAsEmitRemarks=*/true)))
        return diagnostics.takeError();
    }
  }
  // Passes that are still to come are then skipped.
  if (request.cancelled)
    context.registerActionHandler(
        [this](llvm::function_ref<void()> run, const tracing::Action &) {
          if (!isCancelled())
            run();
        });
  module = makeProblem(context, job, request.input);
  return module ? llvm::Error::success() : diagnostics.takeError();
}

llvm::Error Compilation::lower(Stage stage) {
  ScheduleOptions options;
  options.chip = job.target->name.str();
  options.optLevel = request.optLevel;
  options.blockM = job.overrides.blockM;
  options.blockN = job.overrides.blockN;
  options.waves = job.overrides.waves;
  options.stages = job.overrides.stages;
  options.inst = job.overrides.inst;
  options.wavesPerSimd = job.overrides.wavesPerSimd;
  options.rescaleThreshold = job.overrides.rescaleThreshold;
  options.valueSplit = job.overrides.valueSplit;
  options.queriesInLds = job.overrides.queriesInLds;
  options.directCopy = job.overrides.directCopy;
  options.columnChunk = job.overrides.columnChunk;
  options.algorithm = job.overrides.algorithm;
  for (int32_t count : job.passedOver)
    options.passedOver.push_back(count);
  PassManager manager(&context);
  if (observed && mlir::failed(applyPassManagerCLOptions(manager)))
    return llvm::createStringError("MLIR's pass manager refuses its flags");
  TimingScope nested = timing.nest("MLIR passes");
  manager.enableTiming(nested);
  populateStages(manager, reached, stage, options);
  reached = stage;
  const bool done = mlir::succeeded(manager.run(*module));
  if (llvm::Error error = checkCancelled())
    return error;
  return done ? llvm::Error::success() : diagnostics.takeError();
}

std::string Compilation::print() {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  os << "\n";
  return text;
}

/// The figures of a job from those of its launches.
static void combine(CompiledKernel &kernel) {
  static constexpr int hsaco::KernelResources::*largest[] = {
      &hsaco::KernelResources::vgprs,
      &hsaco::KernelResources::agprs,
      &hsaco::KernelResources::sgprs,
      &hsaco::KernelResources::vgprSpills,
      &hsaco::KernelResources::sgprSpills,
      &hsaco::KernelResources::ldsBytes,
      &hsaco::KernelResources::scratchBytes,
      &hsaco::KernelResources::threads,
      &hsaco::KernelResources::kernargBytes};
  static constexpr int hsaco::KernelResources::*summed[] = {
      &hsaco::KernelResources::instructions,
      &hsaco::KernelResources::matrixInstructions,
      &hsaco::KernelResources::codeBytes};
  static_cast<KernelFigures &>(kernel) = kernel.launches.front();
  for (const KernelFigures &launch : llvm::drop_begin(kernel.launches)) {
    for (auto member : largest)
      kernel.resources.*member =
          std::max(kernel.resources.*member, launch.resources.*member);
    for (auto member : summed)
      kernel.resources.*member += launch.resources.*member;
    kernel.occupancy = std::min(kernel.occupancy, launch.occupancy);
  }
}

/// From the rocdl stage to a code object, keeping the form asked for.
llvm::Error Compilation::backend(CompiledKernel &result) {
  auto kernels = module->getOps<gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(kernels))
    return llvm::createStringError("not one gpu.module after lowering");
  auto machine = hsaco::createTargetMachine(*job.target, request.optLevel);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext llvmContext;
  hsaco::BackendMessages said(llvmContext);

  TimingScope translating = timing.nest("translation to LLVM IR");
  auto ir = hsaco::translate(*kernels.begin(), llvmContext, **machine);
  if (!ir)
    return said.check(ir.takeError());
  translating.stop();
  TimingScope optimizing = timing.nest("LLVM passes");
  if (llvm::Error error = said.check(hsaco::optimize(
          **ir, **machine, request.optLevel, request.cancelled)))
    return error;
  if (llvm::Error error = checkCancelled())
    return error;
  optimizing.stop();
  if (request.emit == Emit::Llvm) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(**ir);
    hsaco::placeScalars(*copy, **machine);
    llvm::raw_string_ostream os(result.artifact);
    copy->print(os, nullptr);
  }
  TimingScope generating = timing.nest("LLVM code generation");
  if (request.emit == Emit::Asm) {
    auto text = hsaco::emitAssembly(**ir, **machine);
    if (!text)
      return said.check(text.takeError());
    result.artifact = std::move(*text);
    auto kernels = hsaco::readMetadata(result.artifact);
    if (!kernels)
      return kernels.takeError();
    wantsFigures =
        job.takesLaterRows &&
        llvm::any_of(*kernels, [](const hsaco::KernelResources &kernel) {
          return kernel.scratchBytes != 0;
        });
  }
  wantsFigures |= request.emit == Emit::Obj && job.takesLaterRows;
  auto warn = [&] {
    for (const std::string &warning : said.warnings())
      result.messages +=
          "aot-compile: warning: " + job.str() + ": LLVM: " + warning + "\n";
    for (auto [index, launch] : llvm::enumerate(job.launches))
      if (said.missesOccupancy(launch.symbol))
        result.messages +=
            "aot-compile: warning: " + launch.symbol + " (" +
            job.target->name.str() + "): fewer waves fit a SIMD " +
            (result.launches.empty()
                 ? std::string()
                 : "(" + std::to_string(result.launches[index].occupancy) +
                       ") ") +
            "than the " + std::to_string(launch.wavesPerSimd) +
            " of waves_per_simd; registers or LDS do not allow more\n";
  };
  if (!wantsImage() && request.emit != Emit::Obj) {
    warn();
    return said.check(llvm::Error::success());
  }
  auto object = hsaco::emitObject(**ir, **machine, &result.emissions);
  if (llvm::Error error =
          said.check(object ? llvm::Error::success() : object.takeError()))
    return error;
  generating.stop();
  if (request.emit == Emit::Obj)
    result.artifact = *object;
  if (!wantsImage()) {
    warn();
    return llvm::Error::success();
  }
  if (llvm::Error error = checkCancelled())
    return error;
  TimingScope linking = timing.nest("link");
  auto image = hsaco::link(*object);
  if (!image)
    return image.takeError();
  linking.stop();
  result.image = std::move(*image);
  result.imageBytes = result.image.size();
  if (llvm::Error error = readFigures(result, (*kernels.begin()).getLoc()))
    return error;
  warn();
  return llvm::Error::success();
}

/// The figures of each kernel of the image, and of all of them together.
llvm::Error Compilation::readFigures(CompiledKernel &result, Location loc) {
  auto found = hsaco::readResources(result.image, *job.target);
  if (!found)
    return found.takeError();
  if (found->size() != job.launches.size())
    return llvm::createStringError(
        "the code object holds " + llvm::Twine(found->size()) +
        " kernels where " + llvm::Twine(job.launches.size()) + " belong");
  for (const Launch &launch : job.launches) {
    auto kernel =
        llvm::find_if(*found, [&](const hsaco::KernelResources &kernel) {
          return kernel.name == launch.symbol;
        });
    if (kernel == found->end())
      return llvm::createStringError("the code object does not hold " +
                                     launch.symbol);
    KernelFigures &figures = result.launches.emplace_back();
    figures.resources = *kernel;
    figures.occupancy =
        target::wavesPerSimd(*job.target, kernel->use(*job.target));
    figures.imageBytes = result.image.size();
    remark::analysis(loc,
                     remark::RemarkOpts::name("resources").category("attn"))
        << hsaco::describe(*kernel, *job.target);
  }
  combine(result);
  result.resources.name = job.symbol;
  return llvm::Error::success();
}

llvm::Expected<CompiledKernel> Compilation::finish() {
  CompiledKernel result;
  bool stopsEarly = request.emit == Emit::Mlir && !wantsImage();
  if (request.emit == Emit::Mlir) {
    if (llvm::Error error = lower(request.stage))
      return error;
    result.artifact = print();
  }
  if (!stopsEarly) {
    if (llvm::Error error = lower(Stage::Rocdl))
      return error;
    if (llvm::Error error = backend(result))
      return failed(std::move(error));
  }
  result.messages += diagnostics.takeText();
  return result;
}

static void addLaunch(Job &job, const spec::LaunchSpec &kind,
                      attn::ScheduleAttr schedule) {
  const llvm::StringRef suffix = kind.suffix;
  Launch &launch = job.launches.emplace_back();
  launch.kind = &kind;
  launch.record = {suffix.str(), schedule.getBlockM(),
                   schedule.getWaves() * job.target->waveSize};
  launch.symbol = job.symbol + (suffix.empty() ? "" : "_") + suffix.str();
  launch.schedule = schedule.getKey();
  launch.blockN = schedule.getBlockN();
  launch.wavesPerSimd = schedule.getWavesPerSimd();
  job.blockM = std::max(job.blockM, launch.record.blockRows);
  // What combines shares of the keys has shares in their place.
  if (!job.algorithm->splitsKeys() || kind.splitsKeys)
    job.blockN = std::max(job.blockN, launch.blockN);
  job.threads = std::max(job.threads, launch.record.threads);
}

/// Nothing that is given is ignored. Errors have the code invalid_argument.
static llvm::Error checkOverrides(const Job &job) {
  const std::error_code misplaced =
      std::make_error_code(std::errc::invalid_argument);
  const std::string &algorithm = job.overrides.algorithm;
  const spec::OperationSpec &operation = spec::specOf(job.problem.op);
  if (!algorithm.empty() && !operation.findAlgorithm(algorithm))
    return llvm::createStringError(
        misplaced, job.str() + ": " + operation.name +
                       " kernels have no algorithm '" + algorithm +
                       "'; known: " + spec::namesOf(operation.algorithms));
  if (!operation.isAttention && !job.overrides.suffix().empty())
    return llvm::createStringError(
        misplaced, job.str() + ": " + operation.name +
                       " kernels have one schedule; leave '" +
                       job.overrides.suffix().substr(1) + "' out");
  if (job.problem.op != fovea::OpKind::Backward)
    return llvm::Error::success();
  for (const OverrideInfo &info : allOverrides())
    if (!info.ofBackward && job.overrides.*info.member >= info.smallest)
      return llvm::createStringError(misplaced,
                                     job.str() + ": backward kernels have no " +
                                         info.option + "; leave it out");
  return llvm::Error::success();
}

/// "q, k, v, out, lse".
static std::string tensorNames(fovea::OpKind op) {
  return llvm::join(llvm::map_range(spec::specOf(op).base.tensors,
                                    [](const spec::TensorSpec &tensor) {
                                      return llvm::StringRef(tensor.name);
                                    }),
                    ", ");
}

/// Whether nothing but the table says what the schedule is.
template <typename Op>
static bool hasNoSchedule(Op op) {
  return !op || !op.getSchedule();
}

/// Whether a kernel is another than those for which the tables were made: it
/// has a score program, arguments beside a window's, or a mask compiled in.
static bool isNotOfTables(const ProblemKey &problem) {
  GroupVersions others = problem.groups;
  others[size_t(spec::findGroup("window"))] = 0;
  return problem.score || others != GroupVersions{} || !problem.takesWindow();
}

llvm::Error fovea::tools::planJob(Job &job, const Request &request) {
  if (llvm::Error error = checkOverrides(job))
    return error;
  if (!job.tensors.empty() &&
      (request.emit == Emit::Package || request.emit == Emit::Description))
    return llvm::createStringError(
        job.str() + ": its tensors are not the operands " +
        tensorNames(job.problem.op) +
        " in this order, each a tensor of its own, which is what callers of "
        "a " +
        emitInfo(request.emit).name.str() +
        " pass; --emit=hsaco with --emit=contract say how to launch it");
  // The scheduled stage is reached again, and seen, when the job is compiled.
  Compilation compilation(job, request);
  if (llvm::Error error = compilation.start(/*observed=*/false))
    return error;
  job.takesLaterRows = !job.keepsFirstRow && isNotOfTables(job.problem) &&
                       job.overrides.leavesSchedule() &&
                       hasNoSchedule(compilation.problem<attn::ForwardOp>()) &&
                       hasNoSchedule(compilation.problem<attn::BackwardOp>());
  if (llvm::Error error = compilation.lower(Stage::Scheduled))
    return error;
  job.launches.clear();
  job.blockM = job.blockN = job.threads = 0;
  switch (job.problem.op) {
  case fovea::OpKind::Forward: {
    auto op = compilation.problem<attn::ForwardOp>();
    job.schedule = op.getScheduleKey();
    job.algorithm = &op.getAlgorithm();
    addLaunch(job, job.algorithm->launches[0], *op.getSchedule());
    job.launches[0].rowMaxima =
        attn::nameOf(attn::rowMaximaOf(op, *job.target));
    if (op.getCombine())
      addLaunch(job, job.algorithm->launches[1], *op.getCombine());
    break;
  }
  case fovea::OpKind::Backward: {
    attn::BackwardScheduleAttr schedule =
        *compilation.problem<attn::BackwardOp>().getSchedule();
    job.schedule = schedule.getKey();
    job.algorithm = &attn::specOf(schedule.getAlgorithm());
    for (auto [launch, part] :
         llvm::zip_equal(job.algorithm->launches, schedule.getKernels()))
      addLaunch(job, launch, part);
    for (const spec::GroupSpec *group : spec::groupsOf(job.problem))
      for (const spec::LaunchSpec &launch : group->launches)
        addLaunch(job, launch, attn::sinkSumSchedule(schedule));
    break;
  }
  case fovea::OpKind::DropoutMask: {
    attn::ScheduleAttr schedule =
        *compilation.problem<attn::DropoutMaskOp>().getSchedule();
    job.schedule = schedule.getKey();
    job.algorithm = spec::specOf(job.problem.op).algorithms.begin();
    addLaunch(job, job.algorithm->launches[0], schedule);
    break;
  }
  }
  if (job.passedOver.empty())
    job.firstSchedule = job.schedule;
  llvm::Expected<Cost> cost = estimateCost(job);
  if (!cost)
    return cost.takeError();
  job.cost = *cost;
  return llvm::Error::success();
}

static llvm::Expected<CompiledKernel> compileOnce(const Job &job,
                                                  const Request &request) {
  Compilation compilation(job, request);
  if (llvm::Error error = compilation.start(/*observed=*/request.takesFlags))
    return error;
  return compilation.finish();
}

/// Bytes of scratch of all launches together.
static int64_t scratchOf(const CompiledKernel &kernel) {
  int64_t bytes = 0;
  for (const KernelFigures &launch : kernel.launches)
    bytes += launch.resources.scratchBytes;
  return bytes;
}

/// Plans the job with one more row passed over of a launch; false, and the job
/// as it was, if there is none behind it.
static bool passOver(Job &job, size_t launch, const Request &request) {
  if (job.launches[launch].kind->products == 0)
    return false;
  Job next = job;
  next.passedOver.resize(job.launches.size());
  ++next.passedOver[launch];
  if (llvm::Error error = planJob(next, request)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  job = std::move(next);
  return true;
}

/// Compiles a kernel that uses scratch anew, each of its launches that does so
/// with the next row, until none does or none has more rows.
static llvm::Error compileLater(Job &job, CompiledKernel &kernel,
                                const Request &request) {
  Job next = job;
  CompiledKernel compiled = kernel;
  unsigned emissions = kernel.emissions;
  while (scratchOf(compiled) != 0) {
    bool isOther = false;
    for (size_t i = 0; i != compiled.launches.size(); ++i)
      if (compiled.launches[i].resources.scratchBytes != 0)
        isOther |= passOver(next, i, request);
    if (!isOther)
      break;
    llvm::Expected<CompiledKernel> anew = compileOnce(next, request);
    if (!anew)
      return anew.takeError();
    compiled = std::move(*anew);
    emissions += compiled.emissions;
    if (scratchOf(compiled) < scratchOf(kernel)) {
      job = next;
      kernel = compiled;
    }
  }
  kernel.emissions = emissions;
  return llvm::Error::success();
}

llvm::Expected<CompiledKernel>
fovea::tools::compileJob(Job &job, const Request &request) {
  double start = threadCpuMs();
  llvm::Expected<CompiledKernel> result = compileOnce(job, request);
  if (result && job.takesLaterRows)
    if (llvm::Error error = compileLater(job, *result, request))
      return error;
  if (result)
    result->cpuMs = threadCpuMs() - start;
  return result;
}

/// As planAs, with what launches from `launch` on pass over.
static bool planFrom(Job &job, size_t launch, llvm::StringRef schedule,
                     const Request &request) {
  if (launch == job.launches.size())
    return job.schedule == schedule;
  for (Job next = job;;) {
    Job rest = next;
    if (planFrom(rest, launch + 1, schedule, request)) {
      job = std::move(rest);
      return true;
    }
    if (!passOver(next, launch, request))
      return false;
  }
}

bool fovea::tools::planAs(Job &job, llvm::StringRef schedule,
                          const Request &request) {
  return job.takesLaterRows && planFrom(job, 0, schedule, request);
}

KernelRecord fovea::tools::recordOf(const Job &job,
                                    const CompiledKernel &kernel) {
  KernelRecord record = job.record();
  record.resources.vgprs = kernel.resources.vgprs;
  record.resources.agprs = kernel.resources.agprs;
  record.resources.sgprs = kernel.resources.sgprs;
  record.resources.ldsBytes = kernel.resources.ldsBytes;
  record.resources.scratchBytes = kernel.resources.scratchBytes;
  record.resources.occupancy = kernel.occupancy;
  record.resources.matrixInstructions = kernel.resources.matrixInstructions;
  record.resources.codeBytes = kernel.resources.codeBytes;
  record.resources.vgprSpills = kernel.resources.vgprSpills;
  record.resources.sgprSpills = kernel.resources.sgprSpills;
  record.compileMs = kernel.cpuMs;
  return record;
}
