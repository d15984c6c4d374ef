//===- OnDemand.cpp - kernels that are compiled when they are missing -----===//

#include "OnDemand.h"

#include "CompileCache.h"
#include "Scores.h"

#include <cstdlib>

namespace fovea::rt {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// Milliseconds as "367 ms".
std::string millis(double ms) {
  return std::to_string(int64_t(ms + 0.5)) + " ms";
}

/// Whether what the compiler failed on, and did not refuse, is no fault of its.
bool mayPass(const Result &result) {
  return result.code != FOVEA_STATUS_NOT_FOUND;
}

} // namespace

KernelOrder orderFor(const Problem &problem, const std::string &chip,
                     bool splits) {
  KernelOrder order;
  order.chip = chip;
  order.problem = compiledKeyOf(problem);
  if (problem.score.program) {
    order.score.program = problem.score.program;
    order.score.captures = problem.captures ? layoutOf(*problem.captures)
                                            : givenCaptures(problem.score);
    if (problem.score.text)
      order.score.text = problem.score.text;
  }
  if (splits)
    order.algorithm = "split";
  if (problem.sumsCaptures)
    order.algorithm = "atomic";
  if (problem.narrowSums)
    order.algorithm = "atomic16";
  return order;
}

Result OnDemand::configure(const char *given) {
  const std::string mode = given ? given : variable("FOVEA_COMPILE");
  if ((!given && mode.empty()) || mode == "never")
    when = Mode::Never;
  else if (mode == "auto")
    when = Mode::Auto;
  else if (mode == "always")
    when = Mode::Always;
  else
    return invalid(std::string(given ? "options.compile" : "FOVEA_COMPILE") +
                   " is '" + mode +
                   "', not never, auto or always");
  if (when == Mode::Never)
    return Result();
  library = variable("FOVEA_COMPILER_LIBRARY");

  uint64_t mebibytes = 256;
  if (const std::string most = variable("FOVEA_CACHE_MIB"); !most.empty()) {
    if (most.size() > 9 ||
        most.find_first_not_of("0123456789") != std::string::npos)
      return invalid("FOVEA_CACHE_MIB is '" + most +
                     "', not a whole number of MiB");
    mebibytes = std::strtoull(most.c_str(), nullptr, 10);
  }
  mostBytes = mebibytes << 20;
  folder = variable("FOVEA_CACHE_DIR");
  if (!folder.empty() && folder[0] != '/')
    return invalid("FOVEA_CACHE_DIR is '" + folder +
                   "', which is no absolute path");
  if (mostBytes == 0) {
    folder.clear();
    whyNoFolder = "FOVEA_CACHE_MIB is 0";
    return Result();
  }
  if (!folder.empty())
    return Result();
  // The base directory specification: a path that is not absolute is ignored.
  const std::string xdg = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!xdg.empty() && xdg[0] == '/')
    folder = xdg + "/fovea";
  else if (!home.empty() && home[0] == '/')
    folder = home + "/.cache/fovea";
  else
    whyNoFolder = "neither FOVEA_CACHE_DIR, XDG_CACHE_HOME nor HOME names a "
                  "folder";
  return Result();
}

bool OnDemand::begin(const std::string &name, Result &result,
                     Failure &failure) {
  std::unique_lock<std::mutex> lock(mutex);
  Entry &entry = entries[name]; // stays where it is
  const uint64_t run = entry.runs;
  if (entry.isRunning)
    ended.wait(lock, [&] { return entry.runs != run; });
  else if (!entry.isSettled())
    return entry.isRunning = true;
  result = entry.last;
  failure = entry.failure;
  return false;
}

void OnDemand::end(const std::string &name, Result &&result,
                   Failure failure) noexcept {
  {
    std::lock_guard<std::mutex> lock(mutex);
    Entry &entry = entries.find(name)->second;
    entry.isRunning = false;
    entry.failure = failure;
    entry.last = std::move(result);
    ++entry.runs;
  }
  ended.notify_all();
}

Result OnDemand::openCompiler(const Log &log) {
  std::lock_guard<std::mutex> lock(compilerMutex);
  const bool isNew = compiler.path().empty();
  Result result = compiler.open(library);
  if (result.ok() && isNew)
    log.line(LogLevel::Info,
             "compiler " + compiler.path() + ": " + compiler.buildId());
  return result;
}

Result OnDemand::findScore(const Problem &problem, const Log &log,
                           FoundScore &found) {
  return findScore(orderFor(problem, /*chip=*/"", /*splits=*/false), log,
                   found);
}

Result OnDemand::findScore(KernelOrder order, const Log &log,
                           FoundScore &found) {
  order.problem.score = 0;
  order.problem.scoreGradients = order.problem.storedGradients = 0;
  const std::string name =
      std::string(toString(order.problem.dtype)) + "\n" + order.score.str();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto at = scores.find(name); at != scores.end()) {
      found = at->second;
      return found.result;
    }
  }
  if (Result result = openCompiler(log); !result.ok())
    return because(FOVEA_CAUSE_NOT_COMPILED, std::move(result));
  bool refused = false;
  ScoreRecord score;
  found.result = compiler.findScore(order, found.digits, score, refused);
  if (found.result.ok()) {
    auto captures = spec::capturesOfProgram(score.text);
    if (!captures)
      return Result(captures.status());
    found.captures = std::move(*captures);
    found.text = std::move(score.text);
  } else if (!refused) {
    const bool passes = mayPass(found.result);
    return because(FOVEA_CAUSE_NOT_COMPILED, std::move(found.result), passes);
  }
  std::lock_guard<std::mutex> lock(mutex);
  // Those of a program that makes up its texts are not kept for ever.
  constexpr size_t kMost = 256;
  if (scores.size() == kMost)
    scores.clear();
  scores.emplace(name, found);
  return found.result;
}

Result OnDemand::make(const KernelOrder &order, const Log &log, Made &made,
                      Failure &failure) {
  if (Result result = openCompiler(log); !result.ok()) {
    failure = Failure::NoCompiler;
    return result;
  }
  const BlockFileSizeSignal blocked;
  CompileCache cache(folder, mostBytes, order, compiler.buildId());
  std::string unkept = whyNoFolder;
  auto note = [&](const Result &result) {
    if (!result.ok() && unkept.empty())
      unkept = result.message;
  };
  auto finish = [&](const std::string &path, OrderedKernel &&kernel,
                    std::string origin) -> Result {
    Expected<PackageReader> package = PackageReader::ofKernel(
        path, compiler.buildId(), std::move(kernel.record),
        std::move(kernel.image));
    if (!package)
      return Result(package.status());
    made.package = std::make_shared<PackageReader>(std::move(*package));
    made.origin = std::move(origin);
    log.line(
        LogLevel::Info,
        "kernel '" + order.problem.str() + "' " +
            (order.algorithm.empty() ? "" : "by '" + order.algorithm + "' ") +
            "for " + order.chip + ": " + made.origin);
    return Result();
  };
  OrderedKernel kernel;
  bool found = false;
  if (!folder.empty()) {
    note(cache.find(kernel, found));
    if (!found && unkept.empty()) {
      // Whoever compiles it has stored it when the lock is free.
      note(cache.lockOrder());
      if (unkept.empty())
        note(cache.find(kernel, found));
    }
    if (found)
      return finish(cache.path(), std::move(kernel),
                    "compiled on demand before, from the cache");
  }
  bool refused = false;
  if (Result result = compiler.compile(order, kernel, refused); !result.ok()) {
    failure = refused           ? Failure::Refused
              : mayPass(result) ? Failure::Passing
                                : Failure::OfCompiler;
    return result;
  }
  kernel.record.fingerprint = cache.fingerprint();
  if (!folder.empty() && unkept.empty())
    note(cache.store(kernel));
  const std::string took =
      "compiled on demand in " + millis(kernel.record.compileMs);
  if (unkept.empty())
    return finish(cache.path(), std::move(kernel),
                  took + ", kept in the cache");
  return finish("(memory)", std::move(kernel),
                took + ", in memory alone: " + unkept);
}

} // namespace fovea::rt
