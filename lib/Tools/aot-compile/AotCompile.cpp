//===- AotCompile.cpp - the aot-compile driver ----------------------------===//

#include "fovea/Tools/AotCompile.h"
#include "KernelCompiler.h"
#include "Options.h"
#include "Output.h"
#include "Progress.h"
#include "Report.h"
#include "Targets.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/thread.h"
#include <atomic>
#include <deque>

using namespace fovea;
using namespace fovea::tools;

/// Exit codes, as AotCompile.h states them.
static constexpr int kDone = 0, kKernelFailed = 1, kImpossible = 2;

/// An error as it is shown. Lines get the program's name, so that they can be
/// told from other tools'; what quotes an input file, and so has a place of its
/// own, is shown as it is.
static std::string errorText(llvm::StringRef text) {
  if (text.split('\n').first.contains(": error: "))
    return text.rtrim().str() + "\n";
  std::string shown;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    shown +=
        ((line.starts_with("aot-compile: ") ? "" : "aot-compile: error: ") +
         line + "\n")
            .str();
  return shown;
}
static void complain(llvm::Error error) {
  llvm::errs() << errorText(llvm::toString(std::move(error)));
}

namespace {
/// Compiles the jobs of a request and sees them into the output.
class Driver {
public:
  explicit Driver(Request &request)
      : request(request), outcomes(request.jobs.size()) {}

  int run();

private:
  /// Chooses all schedules; false after a message if a job is impossible.
  bool plan();
  /// Takes from the work what the output has already.
  llvm::Error findCurrent();
  void compileAll();
  void compileOne(size_t job, Progress &progress);
  llvm::Error writeReport();
  int count(Outcome::Status status) const {
    return int(llvm::count_if(outcomes, [&](const Outcome &outcome) {
      return outcome.status == status;
    }));
  }

  Request &request;
  std::unique_ptr<Output> output;
  std::deque<Outcome> outcomes; ///< one a job
  std::vector<size_t> pending;  ///< jobs to compile
};
} // namespace

bool Driver::plan() {
  bool possible = true;
  llvm::StringMap<const Job *> seen;
  for (Job &job : request.jobs) {
    if (llvm::Error error = planJob(job, request)) {
      complain(std::move(error));
      possible = false;
      continue;
    }
    // Two of one schedule would be one kernel in a package.
    std::string key =
        job.target->name.str() + "\n" + job.problem.str() + "\n" + job.schedule;
    auto [at, isNew] = seen.try_emplace(key, &job);
    if (!isNew && request.emit == Emit::Package) {
      complain(llvm::createStringError(at->second->str() + " and " + job.str() +
                                       " have one problem and one schedule (" +
                                       job.schedule +
                                       "); a package holds one of them"));
      possible = false;
    }
  }
  return possible;
}

llvm::Error Driver::findCurrent() {
  for (auto [index, job] : llvm::enumerate(request.jobs)) {
    Outcome &outcome = outcomes[index];
    llvm::Expected<bool> current = output->isCurrent(job, outcome.kernel);
    if (!current)
      return current.takeError();
    if (*current)
      outcome.status = Outcome::Current;
    else
      pending.push_back(index);
  }
  return llvm::Error::success();
}

void Driver::compileOne(size_t index, Progress &progress) {
  const Job &job = request.jobs[index];
  Outcome &outcome = outcomes[index];
  llvm::Error error = llvm::Error::success();
  llvm::Expected<CompiledKernel> kernel = compileJob(job, request);
  if (kernel)
    error = output->store(job, *kernel);
  else
    error = kernel.takeError();
  if (error) {
    outcome.status = Outcome::Failed;
    outcome.error = llvm::toString(std::move(error));
    progress.message(errorText(outcome.error));
    progress.step(job.str() + ": failed");
    return;
  }
  outcome.status = Outcome::Compiled;
  if (!kernel->messages.empty())
    progress.message(kernel->messages);
  const hsaco::KernelResources &used = kernel->resources;
  if (used.scratchBytes || used.vgprSpills)
    progress.message(
        llvm::formatv("aot-compile: warning: {0}: {1} bytes of scratch a lane, "
                      "{2} registers spilled; it will be slow",
                      job.str(), used.scratchBytes, used.vgprSpills)
            .str());
  // Only figures are kept, so memory does not grow with the number of kernels.
  kernel->artifact = {};
  kernel->image = {};
  outcome.kernel = std::move(*kernel);
  progress.step(
      llvm::formatv("{0}: {1:f0} ms", job.str(), outcome.kernel.cpuMs).str());
}

void Driver::compileAll() {
  Progress progress(pending.size(), request.quiet);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < pending.size();)
      compileOne(pending[i], progress);
  };
  size_t workers = std::min<size_t>(request.workers, pending.size());
  // LLVM's passes recurse; the stack is what a main thread has.
  const std::optional<unsigned> stackBytes = 8u << 20;
  std::vector<llvm::thread> threads;
  for (size_t i = 0; i < workers; ++i)
    threads.emplace_back(stackBytes, work);
  for (llvm::thread &thread : threads)
    thread.join();
}

llvm::Error Driver::writeReport() {
  if (request.report == ReportFormat::None)
    return llvm::Error::success();
  std::vector<Outcome> all(outcomes.begin(), outcomes.end());
  return writeFile(request.reportFile, request.report == ReportFormat::Text
                                           ? reportText(request.jobs, all)
                                           : reportJson(request.jobs, all));
}

int Driver::run() {
  if (!plan())
    return kImpossible;
  auto fail = [](llvm::Error error, int code) {
    complain(std::move(error));
    return code;
  };
  if (request.report != ReportFormat::None)
    if (llvm::Error error = checkWritable(request.reportFile))
      return fail(std::move(error), kImpossible);
  llvm::Expected<std::unique_ptr<Output>> made = makeOutput(request);
  if (!made)
    return fail(made.takeError(), kImpossible);
  output = std::move(*made);
  if (llvm::Error error = findCurrent())
    return fail(std::move(error), kImpossible);
  compileAll();
  llvm::Expected<std::string> said = output->finish();
  if (!said)
    return fail(said.takeError(), kKernelFailed);
  if (llvm::Error error = writeReport())
    return fail(std::move(error), kKernelFailed);
  if (!request.quiet) {
    llvm::errs() << *said;
    if (request.jobs.size() > 1 || request.emit == Emit::Package)
      llvm::errs() << llvm::formatv(
          "aot-compile: {0} compiled, {1} current, {2} failed\n",
          count(Outcome::Compiled), count(Outcome::Current),
          count(Outcome::Failed));
  }
  return count(Outcome::Failed) ? kKernelFailed : kDone;
}

int fovea::tools::runAotCompile(int argc, char **argv) {
  llvm::Expected<CommandLine> line = parseCommandLine(argc, argv);
  if (!line) {
    complain(line.takeError());
    return kImpossible;
  }
  if (line->listTargets) {
    llvm::outs() << targetTable();
    return kDone;
  }
  return Driver(line->request).run();
}
