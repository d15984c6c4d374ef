//===- Scores.h - score programs of calls -----------------------*- C++ -*-===//
//
// A call names a score program and gives what it reads. Which kernels have it,
// and whether what is given is what they take, is known once the packages are.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_SCORES_H
#define FOVEA_RUNTIME_SRC_SCORES_H

#include "Params.h"

namespace fovea::rt {

class DeviceView;

/// Takes the group into the problem; checks what can be checked without the
/// program. Sizes of the problem have been checked.
Result readScore(const fovea_group_t *group, Problem &problem);

/// Finds the program among the kernels of a device, puts it into the problem's
/// key, and checks the captures against it.
/// \param isLaunch  addresses too
Result bindScore(const DeviceView &view, Problem &problem, bool isLaunch);

/// Writes an argument of a capture.
void fillCapture(const fovea_score_t &score, const ArgumentFill &fill,
                 unsigned char *to);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_SCORES_H
