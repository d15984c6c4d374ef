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

/// Finds the program among the kernels of a device by its name, puts it into
/// the problem's key, and checks the captures against it.
/// \param isLaunch  addresses too
/// \param missing  becomes true where none of that name takes the captures
Result bindScore(const DeviceView &view, Problem &problem, bool isLaunch,
                 bool &missing);

/// The captures whose gradients a call asks for, as bits.
uint8_t gradientsOf(const fovea_score_t &score);
/// Of these the ones that are stored in the capture's type.
uint8_t storedGradientsOf(const fovea_score_t &score);

/// Checks what a call gives against what a program captures.
Result checkCaptures(const Problem &problem,
                     const std::vector<spec::CaptureSpec> &wanted,
                     bool isLaunch);

/// Checks that no capture of a launch and no gradient of one shares memory with
/// the workspace, bytes [begin, end), once its size is known.
Result checkCapturesApart(const fovea_score_t &score, uint64_t begin,
                          uint64_t end);

/// What a call gives, "f32, bf16[?, ?, ?, 1]": dimensions without what indexes
/// them, the last one a unit where several elements may be read at once.
std::string givenCaptures(const fovea_score_t &score);
/// The same of what a program reads.
std::string layoutOf(const std::vector<spec::CaptureSpec> &captures);

/// Writes an argument of a capture.
void fillCapture(const fovea_score_t &score, const ArgumentFill &fill,
                 unsigned char *to);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_SCORES_H
