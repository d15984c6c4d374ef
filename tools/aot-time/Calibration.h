//===- Calibration.h - what a GPU says of the predictions -------*- C++ -*-===//
//
// A report of aot-qualify has times of a GPU beside predictions of the same
// kernels. Their ratio scales the predictions of that chip, and what is left of
// their spread is the interval.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_CALIBRATION_H
#define FOVEA_TOOLS_AOTTIME_CALIBRATION_H

#include "TimeRun.h"

#include <nlohmann/json.hpp>
#include <string>

namespace fovea::timing {

struct Calibration {
  std::string source;     ///< the report's file
  std::string chip, name; ///< "gfx942", what HIP calls the device
  std::string time;       ///< when it was made
  size_t points = 0;      ///< measurements beside predictions
  double factor = 1;      ///< measured over predicted: the median
  double error = 0;       ///< nine of ten lie within, as TimingReport::timeError
  double errorBefore = 0; ///< the model's own, of these kernels: the median
  size_t withinBefore = 0; ///< measurements in the model's interval
  double clockHz = 0;     ///< that the model assumed: the median
  bool isEstimate = false; ///< there are too few points to tell one in ten
};

/// Reads a report. False with `error` set where it is none, or has no times of
/// a GPU in it.
bool readCalibration(const std::string &path, Calibration &calibration,
                     std::string &error);

/// Scales a prediction; one for another chip gets an error.
void calibrate(const Calibration &calibration, SubjectTime &time);

/// What changes, as lines.
std::string toText(const Calibration &calibration);
nlohmann::json toJson(const Calibration &calibration);

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_CALIBRATION_H
