//===- Progress.cpp - how far a build is ----------------------------------===//

#include "Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea::tools;

/// How often a line says, where there is no bar, how fast it goes.
static constexpr std::chrono::seconds kBetweenRates(5);

std::string fovea::tools::durationText(double seconds) {
  const auto whole = uint64_t(seconds + 0.5);
  if (whole < 60)
    return formatv("{0} s", whole);
  if (whole < 3600)
    return formatv("{0} min {1} s", whole / 60, whole % 60);
  return formatv("{0} h {1} min", whole / 3600, whole / 60 % 60);
}

Progress::Progress(size_t total, double cost, bool quiet)
    : total(total), cost(cost), quiet(quiet),
      isTerminal(sys::Process::StandardErrIsDisplayed()),
      start(std::chrono::steady_clock::now()), lastRate(start) {
  std::lock_guard<std::mutex> lock(mutex);
  draw();
}

Progress::~Progress() { erase(); }

void Progress::step(double stepCost, bool failed, StringRef line) {
  std::lock_guard<std::mutex> lock(mutex);
  ++finished;
  failures += failed;
  finishedCost += stepCost;
  if (isTerminal)
    return draw();
  if (quiet || total <= 1)
    return;
  std::string now;
  const auto time = std::chrono::steady_clock::now();
  if (finished < total && time - lastRate >= kBetweenRates) {
    lastRate = time;
    now = "; " + rate();
  }
  // One write a line: other programs may share the stream.
  errs() << formatv("[{0}/{1}] {2}{3}\n", finished, total, line, now).str();
}

void Progress::message(StringRef text) {
  std::lock_guard<std::mutex> lock(mutex);
  erase();
  errs() << text << (text.ends_with("\n") ? "" : "\n");
  draw();
}

/// "2.1 kernels/s, 5 min 10 s left, 1 failed"
std::string Progress::rate() {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  std::string text =
      formatv("{0:f1} kernels/s", double(finished) / std::max(seconds, 1e-3));
  if (finishedCost > 0)
    text += ", " +
            durationText(seconds / finishedCost * (cost - finishedCost)) +
            " left";
  if (failures)
    text += formatv(", {0} failed", failures);
  return text;
}

void Progress::erase() {
  if (isTerminal && !quiet && total > 1)
    errs() << "\r\x1b[K";
}

void Progress::draw() {
  if (!isTerminal || quiet || total <= 1)
    return;
  // By cost, so that it moves evenly.
  constexpr size_t width = 30;
  const size_t filled =
      finished == total ? width : size_t(width * finishedCost / cost);
  errs() << formatv("\r\x1b[K[{0}{1}] {2}/{3} kernels{4}",
                    std::string(filled, '#'), std::string(width - filled, '.'),
                    finished, total, finished ? ", " + rate() : "")
                .str();
}
