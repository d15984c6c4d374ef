//===- ScoreProgram.h - score programs on the host --------------*- C++ -*-===//
//
// Evaluates the canonical text of a score program (docs/ScorePrograms.md) line
// by line, with the derivative of each by dual numbers: forward mode, which
// shares nothing with the compiler's reverse mode.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_SCOREPROGRAM_H
#define FOVEA_REFERENCE_SCOREPROGRAM_H

#include "fovea/Reference/Attention.h"

namespace fovea::reference {

/// A scalar or tensor that a program captures.
struct CapturedValues {
  std::vector<int64_t> extents, strides; ///< none: a scalar
  std::vector<double> values;            ///< as they lie in memory

  bool contains(const std::vector<int64_t> &indices) const;
  /// An element; 0 outside.
  double at(const std::vector<int64_t> &indices) const;
};

/// A program that is evaluated.
/// \param captured  read at each evaluation, which it outlives
/// \return null after an error, which names the line
std::shared_ptr<const ScoreFunction>
readScoreProgram(const std::string &text,
                 const std::vector<CapturedValues> &captured,
                 std::string &error);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_SCOREPROGRAM_H
