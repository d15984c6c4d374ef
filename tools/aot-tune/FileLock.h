//===- FileLock.h - one run at a time -----------------------------*- C++
//-*-===//

#ifndef FOVEA_TOOLS_AOTTUNE_FILELOCK_H
#define FOVEA_TOOLS_AOTTUNE_FILELOCK_H

#include <sys/file.h>

namespace fovea::tune {

/// Has an open file or folder to itself among the runs that lock it, for as
/// long as it lives. Where it can't be locked, nothing is.
class FileLock {
public:
  explicit FileLock(int file) : file(file) { (void)flock(file, LOCK_EX); }
  ~FileLock() { (void)flock(file, LOCK_UN); }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

private:
  int file;
};

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_FILELOCK_H
