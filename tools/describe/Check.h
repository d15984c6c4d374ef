//===- Check.h - what the buffers should hold at the end --------*- C++ -*-===//
//
// Computes the reference of a description's check from its inputs, and compares
// a run's results with it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_CHECK_H
#define FOVEA_TOOLS_DESCRIBE_CHECK_H

#include "Description.h"

#include <memory>

namespace fovea::describe {

/// Bytes of all buffers, by index in Problem::buffers.
using Contents = std::vector<std::vector<uint8_t>>;

/// One compared buffer. Errors are absolute.
struct Compared {
  std::string what; ///< its role, as "out" or "dk"
  double error = 0, budget = 0;
  double rms = 0, rmsBudget = 0; ///< of the worst block of rows; 0: not taken
};

struct Verdict {
  bool pass = true;
  std::vector<Compared> compared;
  std::string message; ///< lines, when it is no pass
};

class Checker {
public:
  explicit Checker(const Problem &problem);
  ~Checker();

  /// Computes what is right from the inputs in `contents`, where all buffers
  /// but those of fill Reference are filled; then fills these. False with
  /// `error` set when the shapes do not go together.
  bool prepare(Contents &contents, std::string &error);

  /// Compares the results in `contents`.
  Verdict compare(const Contents &contents) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fovea::describe

#endif // FOVEA_TOOLS_DESCRIBE_CHECK_H
