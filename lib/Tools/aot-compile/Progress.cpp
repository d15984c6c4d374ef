//===- Progress.cpp - how far a build is ----------------------------------===//

#include "Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea::tools;

Progress::Progress(size_t total, bool quiet)
    : total(total), quiet(quiet),
      isTerminal(sys::Process::StandardErrIsDisplayed()),
      start(std::chrono::steady_clock::now()) {
  std::lock_guard<std::mutex> lock(mutex);
  draw();
}

Progress::~Progress() { erase(); }

void Progress::step(StringRef line) {
  std::lock_guard<std::mutex> lock(mutex);
  ++finished;
  if (isTerminal)
    return draw();
  // One write a line: other programs may share the stream.
  if (!quiet && total > 1)
    errs() << formatv("[{0}/{1}] {2}\n", finished, total, line).str();
}

void Progress::message(StringRef text) {
  std::lock_guard<std::mutex> lock(mutex);
  erase();
  errs() << text << (text.ends_with("\n") ? "" : "\n");
  draw();
}

void Progress::erase() {
  if (isTerminal && !quiet && total > 1)
    errs() << "\r\x1b[K";
}

void Progress::draw() {
  if (!isTerminal || quiet || total <= 1)
    return;
  constexpr size_t width = 30;
  size_t filled = width * finished / total;
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  std::string left;
  if (finished && finished < total)
    left = formatv(", {0:f0} s left",
                   seconds / double(finished) * double(total - finished));
  errs() << formatv("\r\x1b[K[{0}{1}] {2}/{3} kernels, {4:f0} s{5}",
                    std::string(filled, '#'), std::string(width - filled, '.'),
                    finished, total, seconds, left)
                .str();
}
