//===- TemporaryFolder.h - a folder for the time of a scope -----*- C++ -*-===//

#ifndef FOVEA_TOOLS_SUPPORT_TEMPORARYFOLDER_H
#define FOVEA_TOOLS_SUPPORT_TEMPORARYFOLDER_H

#include <string>

namespace fovea::tool {

/// A new folder where TMPDIR says, or else in /tmp; gone with all that is in it
/// when this is.
class TemporaryFolder {
public:
  /// Its name begins with `prefix`.
  explicit TemporaryFolder(const std::string &prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; } ///< empty: there is none
  /// Why there is none, and what to do about it.
  const std::string &error() const { return message; }

private:
  std::string folder, message;
};

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_TEMPORARYFOLDER_H
