//===- DryRun.cpp - what a build would do ---------------------------------===//

#include "DryRun.h"
#include "Cost.h"
#include "Progress.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace fovea;
using namespace fovea::tools;

namespace {
/// Sums over jobs; the estimates are those of what is to be compiled.
struct Sums {
  size_t kernels = 0, current = 0;
  double seconds = 0, mib = 0;

  void add(const Job &job, bool isCurrent, bool isStored) {
    ++kernels;
    current += isCurrent;
    if (isCurrent)
      return;
    seconds += job.cost.cpuMs / 1e3;
    mib += (isStored ? job.cost.storedBytes : job.cost.imageBytes) / (1 << 20);
  }
};
} // namespace

std::string fovea::tools::dryRunText(const Request &request,
                                     llvm::ArrayRef<Outcome::Status> outcomes) {
  llvm::MapVector<llvm::StringRef, llvm::MapVector<OpKind, Sums>> rows;
  Sums all;
  for (auto [job, status] : llvm::zip_equal(request.jobs, outcomes)) {
    const bool isCurrent = status == Outcome::Current;
    const bool isStored = request.emit == Emit::Package;
    rows[job.target->name][job.problem.op].add(job, isCurrent, isStored);
    all.add(job, isCurrent, isStored);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  constexpr llvm::StringLiteral kFormat =
      "{0,-14} {1,-9} {2,8} {3,8} {4,11} {5,7} {6,7}\n";
  auto print = [&](llvm::StringRef target, llvm::StringRef op,
                   const Sums &sums) {
    os << llvm::formatv(kFormat.data(), target, op, sums.kernels, sums.current,
                        sums.kernels - sums.current,
                        llvm::formatv("{0:f1}", sums.seconds).str(),
                        llvm::formatv("{0:f1}", sums.mib).str());
  };
  os << llvm::formatv(kFormat.data(), "target", "operation", "kernels",
                      "current", "to compile", "CPU s", "MiB");
  for (const auto &[target, ops] : rows)
    for (const auto &[op, sums] : ops)
      print(target, toString(op), sums);
  print("all", "", all);
  const size_t pending = all.kernels - all.current;
  const auto workers = unsigned(std::min<size_t>(request.workers, pending));
  if (workers)
    os << llvm::formatv(
        "{0} to compile: about {1} of processor time, {2} with -j{3}, at most "
        "{4} MiB of memory; {5:f1} MiB {6}\n",
        pending, durationText(all.seconds), durationText(all.seconds / workers),
        workers, memoryBound(workers) >> 20, all.mib,
        request.emit == Emit::Package ? "more in packages" : "of code objects");
  else
    os << "nothing to compile\n";
  return text;
}
