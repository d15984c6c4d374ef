//===- AotCompile.cpp - the aot-compile driver ----------------------------===//

#include "fovea/Tools/AotCompile.h"
#include "DryRun.h"
#include "Interrupt.h"
#include "KernelCompiler.h"
#include "Options.h"
#include "Output.h"
#include "Plan.h"
#include "Progress.h"
#include "Report.h"
#include "Scores.h"
#include "Targets.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/thread.h"
#include <atomic>
#include <csignal>
#include <deque>

using namespace fovea;
using namespace fovea::tools;

/// Exit codes, as AotCompile.h states them.
static constexpr int kDone = 0, kKernelFailed = 1, kImpossible = 2,
                     kInterrupted = 128; // and the signal's number

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
  explicit Driver(Request &request) : request(request) {}

  int run();

private:
  /// Takes from the work what the output has already, and puts the rest in
  /// order.
  llvm::Error findCurrent();
  void compileAll();
  void compileOne(size_t job, Progress &progress);
  llvm::Error writeReport();
  int dryRun();
  int summarize(llvm::StringRef said);
  int count(Outcome::Status status) const {
    return int(llvm::count_if(outcomes, [&](const Outcome &outcome) {
      return outcome.status == status;
    }));
  }

  Request &request;
  Plan plan;
  std::unique_ptr<Output> output;
  std::deque<Outcome> outcomes; ///< one a job
  std::vector<size_t> pending;  ///< jobs to compile, in this order
  Interrupt interrupt;
  /// The output takes no more, or not before someone does something about it:
  /// every further kernel would be compiled in vain.
  std::atomic<bool> outputFailed{false};
};
} // namespace

/// Whether an error is of the place where kernels go, and not of the kernel.
static bool isOfOutput(std::error_code code) {
  static constexpr std::errc kErrors[] = {
      std::errc::no_space_on_device,        std::errc::file_too_large,
      std::errc::read_only_file_system,     std::errc::io_error,
      std::errc::permission_denied, // and of a temporary folder:
      std::errc::no_such_file_or_directory, std::errc::not_a_directory};
  return code == std::error_code(EDQUOT, std::generic_category()) ||
         llvm::is_contained(kErrors, code);
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
  // The longest first: else the last of them keeps one processor busy while the
  // others have nothing left to do.
  llvm::sort(pending, [&](size_t a, size_t b) {
    const double costA = request.jobs[a].cost.cpuMs;
    const double costB = request.jobs[b].cost.cpuMs;
    return costA != costB ? costA > costB : a < b;
  });
  return llvm::Error::success();
}

void Driver::compileOne(size_t index, Progress &progress) {
  Job &job = request.jobs[index];
  Outcome &outcome = outcomes[index];
  llvm::Error error = llvm::Error::success();
  llvm::Expected<CompiledKernel> kernel = compileJob(job, request);
  if (kernel)
    error = output->store(job, *kernel);
  else
    error = kernel.takeError();
  const double cost = job.cost.cpuMs;
  if (error) {
    outcome.status = Outcome::Failed;
    llvm::handleAllErrors(std::move(error),
                          [&](const llvm::ErrorInfoBase &info) {
                            outcome.error = info.message();
                            if (isOfOutput(info.convertToErrorCode()))
                              outputFailed = true;
                          });
    progress.message(errorText(outcome.error));
    progress.step(cost, /*failed=*/true, job.str() + ": failed");
    return;
  }
  outcome.status = Outcome::Compiled;
  if (!kernel->messages.empty())
    progress.message(kernel->messages);
  const hsaco::KernelResources &used = kernel->resources;
  if (used.scratchBytes || used.vgprSpills)
    progress.message(
        llvm::formatv("aot-compile: warning: {0}: {1} bytes of scratch a lane, "
                      "{2} registers spilled; it will be slow{3}",
                      job.str(), used.scratchBytes, used.vgprSpills,
                      job.takesLaterRows && used.scratchBytes
                          ? ", and no other schedule of the table uses less"
                          : "")
            .str());
  // Only figures are kept, so memory does not grow with the number of kernels.
  kernel->artifact = {};
  kernel->image = {};
  outcome.kernel = std::move(*kernel);
  progress.step(
      cost, /*failed=*/false,
      llvm::formatv("{0}: {1:f0} ms", job.str(), outcome.kernel.cpuMs).str());
}

void Driver::compileAll() {
  double cost = 0;
  for (size_t index : pending)
    cost += request.jobs[index].cost.cpuMs;
  Progress progress(pending.size(), cost, request.quiet);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i;
         !interrupt.signal() && !outputFailed && (i = next++) < pending.size();)
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
  return writeFile(request.reportFile,
                   request.report == ReportFormat::Text
                       ? reportText(request.jobs, all)
                       : reportJson(request.jobs, all, plan.leftOut));
}

int Driver::dryRun() {
  std::vector<Outcome::Status> states;
  for (const Outcome &outcome : outcomes)
    states.push_back(outcome.status);
  if (llvm::Error error = writeFile("-", dryRunText(request, states))) {
    complain(std::move(error));
    return kImpossible;
  }
  return kDone;
}

/// What became of the kernels, and how to go on if it is not all done.
int Driver::summarize(llvm::StringRef said) {
  const int untried = count(Outcome::Pending);
  if (!request.quiet) {
    llvm::errs() << said;
    if (request.jobs.size() > 1 || request.emit == Emit::Package) {
      llvm::errs() << llvm::formatv(
          "aot-compile: {0} compiled, {1} current, {2} failed",
          count(Outcome::Compiled), count(Outcome::Current),
          count(Outcome::Failed));
      if (!plan.leftOut.empty())
        llvm::errs() << ", " << plan.leftOut.size() << " left out";
      llvm::errs() << (untried ? ", " + std::to_string(untried) + " not tried\n"
                               : "\n");
    }
  }
  llvm::StringRef goOn =
      request.emit == Emit::Package
          ? "the finished kernels are kept; the same command goes on with the "
            "rest"
          : "the finished kernels are kept; the same command starts anew";
  if (int signal = interrupt.signal(); signal && untried) {
    llvm::errs() << errorText(
        llvm::formatv("interrupted by {0}: {1}",
                      signal == SIGINT ? "SIGINT" : "SIGTERM", goOn)
            .str());
    return kInterrupted + signal;
  }
  if (outputFailed && untried)
    llvm::errs() << errorText(
        ("stopped, since the output takes no more kernels: " + goOn).str());
  const int failed = count(Outcome::Failed);
  if (failed && !outputFailed && request.jobs.size() > 1)
    llvm::errs() << errorText(llvm::formatv("{0} of {1} kernels failed: {2}",
                                            failed, request.jobs.size(), goOn)
                                  .str());
  return failed ? kKernelFailed : kDone;
}

int Driver::run() {
  auto fail = [](llvm::Error error, int code) {
    complain(std::move(error));
    return code;
  };
  llvm::Expected<Plan> planned = planJobs(request);
  if (!planned)
    return fail(planned.takeError(), kImpossible);
  plan = std::move(*planned);
  outcomes.resize(request.jobs.size());
  if (!request.quiet)
    llvm::errs() << request.notes << plan.notes(request);
  if (request.report != ReportFormat::None)
    if (llvm::Error error = checkWritable(request.reportFile))
      return fail(std::move(error), kImpossible);
  llvm::Expected<std::unique_ptr<Output>> made = makeOutput(request);
  if (!made)
    return fail(made.takeError(), kImpossible);
  output = std::move(*made);
  if (llvm::Error error = findCurrent())
    return fail(std::move(error), kImpossible);
  if (request.dryRun)
    return dryRun();
  compileAll();
  std::string said;
  bool isFinished = true;
  // Nothing is dropped from a package by a build that is not all done.
  if (!count(Outcome::Pending)) {
    if (llvm::Expected<std::string> finished =
            output->finish(/*all=*/!count(Outcome::Failed))) {
      said = std::move(*finished);
    } else {
      complain(finished.takeError());
      isFinished = false;
    }
  }
  if (llvm::Error error = writeReport())
    return fail(std::move(error), kKernelFailed);
  const int status = summarize(said);
  return isFinished ? status : kKernelFailed;
}

int fovea::tools::runAotCompile(int argc, char **argv) {
  llvm::Expected<CommandLine> line = parseCommandLine(argc, argv);
  if (!line) {
    complain(line.takeError());
    return kImpossible;
  }
  if (line->listTargets) {
    if (llvm::Error error = writeFile("-", targetTable())) {
      complain(std::move(error));
      return kImpossible;
    }
    return kDone;
  }
  if (line->listScores) {
    if (llvm::Error error = writeFile("-", listScores())) {
      complain(std::move(error));
      return kImpossible;
    }
    return kDone;
  }
  return Driver(line->request).run();
}
