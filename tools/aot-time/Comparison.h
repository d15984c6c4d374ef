//===- Comparison.h - what is told of kernels beside each other -*- C++ -*-===//
//
// The figures of a row, which the text table and the page show alike.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_COMPARISON_H
#define FOVEA_TOOLS_AOTTIME_COMPARISON_H

#include "TimeRun.h"

#include <string>

namespace fovea::timing {

/// The launch that takes longest, of a subject without an error: the errors of
/// its time are the subject's.
const LaunchTime &longestOf(const SubjectTime &subject);

/// A predicted subject, and how it stands to the first of its block. Errors are
/// factors less one: 0.1 is from 1 / 1.1 to 1.1 times.
struct ComparedRow {
  double seconds = 0, timeError = 0;
  bool errorIsEstimate = false; ///< a guess: too little is published
  double flops = 0; ///< credited, or executed where nothing is; 0: no rate
  double flopsPerSecond = 0;
  double matrixOfChip = 0;
  double clockHz = 0, peakClockHz = 0;
  double peakFlops = 0; ///< a second, at peakClockHz
  double memoryBytes = 0, memoryBytesPerSecond = 0;
  bool hasRatio = false; ///< the first was predicted
  double ratio = 0, ratioError = 0;
  bool tie = false;      ///< the model cannot tell which is faster
  sim::RatioRange range; ///< of `ratio` by the ensemble, if it was asked for
  bool doubtful = false; ///< of a launch, creditIsDoubtful()
};
/// Of a subject without an error.
ComparedRow comparedRow(const SubjectTime &subject, const SubjectTime &first);

/// The same as it is printed; empty where there is no such figure.
struct ComparedCells {
  std::string time, rate, peak, chip, clock, ratio;
};
ComparedCells cellsOf(const ComparedRow &row);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_COMPARISON_H
