//===- Comparison.cpp - what is told of kernels beside each other ---------===//

#include "Comparison.h"

#include "Format.h"
#include "Reports.h"

#include <algorithm>

using namespace fovea;
using namespace fovea::timing;
using sim::TimingReport;

const LaunchTime &timing::longestOf(const SubjectTime &subject) {
  return *std::max_element(subject.launches.begin(), subject.launches.end(),
                           [](const LaunchTime &a, const LaunchTime &b) {
                             return a.report.seconds < b.report.seconds;
                           });
}

namespace {

/// How far the ratio of two subjects' speeds may be off. What the model does
/// not know of a chip is in both times where both ran on that.
double ratioErrorOf(const SubjectTime &subject, const SubjectTime &first) {
  if (&subject == &first)
    return 0;
  const TimingReport &a = longestOf(subject).report,
                     &b = longestOf(first).report;
  return a.chip == b.chip ? std::max(a.ratioError, b.ratioError)
                          : std::max(a.timeError, b.timeError);
}

} // namespace

std::string timing::nameOf(const Swept &swept) {
  std::string text;
  for (const auto &[variable, value] : swept)
    text += (text.empty() ? "" : " ") + variable + "=" + value;
  return text;
}

ComparedRow timing::comparedRow(const SubjectTime &subject,
                                const SubjectTime &first) {
  const TimingReport &longest = longestOf(subject).report;
  ComparedRow row;
  row.seconds = subject.seconds();
  row.timeError = longest.timeError;
  row.errorIsEstimate = longest.errorIsEstimate;
  row.flops = subject.flops() > 0 ? subject.flops() : longest.flops;
  if (row.flops > 0 && row.seconds > 0)
    row.flopsPerSecond = row.flops / row.seconds;
  row.matrixOfChip = longest.matrixOfChip;
  row.clockHz = longest.clockHz;
  row.peakClockHz = longest.peakClockHz;
  row.peakFlops = longest.peakFlops;
  row.memoryBytesPerSecond = longest.memoryBytesPerSecond;
  for (const LaunchTime &launch : subject.launches) {
    row.memoryBytes += launch.report.memoryBytes;
    row.doubtful |= creditIsDoubtful(launch);
  }
  row.hasRatio = first.error.empty();
  if (!row.hasRatio)
    return row;
  row.ratio = speedRatio(subject, first);
  row.ratioError = ratioErrorOf(subject, first);
  if (&subject != &first && subject.target == first.target) {
    row.range = sim::ratioOverMembers(first.members(), subject.members());
    const double credited = row.ratio * subject.seconds() / first.seconds();
    row.range.least *= credited;
    row.range.greatest *= credited;
  }
  row.tie = &subject != &first && row.ratio > 0 &&
            std::max(row.ratio, 1 / row.ratio) <= 1 + row.ratioError;
  return row;
}

ComparedCells timing::cellsOf(const ComparedRow &row) {
  ComparedCells cells;
  cells.time = timeText(row.seconds);
  if (row.flopsPerSecond > 0) {
    cells.rate = format("%.1f", row.flopsPerSecond / 1e12);
    cells.peak = format("%.1f %%", 100 * row.flopsPerSecond / row.peakFlops);
  }
  cells.chip = format("%.1f %%", 100 * row.matrixOfChip);
  cells.clock = format("%.2f", row.clockHz / 1e9);
  cells.ratio =
      row.hasRatio ? format("%5.2f%s", row.ratio, row.tie ? "~" : "") : "-";
  return cells;
}
