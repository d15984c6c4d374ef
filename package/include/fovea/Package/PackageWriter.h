//===- PackageWriter.h - builds a kernel package ----------------*- C++ -*-===//
//
// Creates a package or adds to one. Every put is a transaction of its own: a
// killed build loses at most the kernels in flight, and the next run goes on.
// Several writers, in one process or many, may have one package open.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_PACKAGEWRITER_H
#define FOVEA_PACKAGE_PACKAGEWRITER_H

#include "fovea/Package/Package.h"

#include <memory>
#include <optional>

namespace fovea {

class PackageWriter {
public:
  struct Options {
    /// Text of the program that writes, e.g. "aot-compile 0.1.0"; stored.
    std::string creator = "fovea";
    /// How long to wait for another writer, milliseconds.
    int32_t busyTimeoutMs = 30000;
    /// zstd level of the images.
    int32_t compressionLevel = 19;
    /// What part of a library a package is that is created; one that is there
    /// stays what it is.
    std::optional<ShardInfo> shard;
  };

  /// Creates `path`, or opens it for append when it is a sound package of the
  /// same target. InvalidArgument: no such target, or one that does not have
  /// the features given; Incompatible: another target or format version;
  /// Corrupt: not a package, or damaged; Io: the folder can't be written.
  static Expected<PackageWriter>
  open(const std::string &path, const TargetId &target, const Options &options);
  static Expected<PackageWriter> open(const std::string &path,
                                      const TargetId &target) {
    return open(path, target, Options());
  }

  PackageWriter(PackageWriter &&);
  PackageWriter &operator=(PackageWriter &&);
  ~PackageWriter();

  /// True when the package holds this kernel, sound, from a build of the same
  /// fingerprint: it needs no compiling.
  Expected<bool> isCurrent(const ProblemKey &problem,
                           const std::string &schedule,
                           const std::string &fingerprint);

  /// Stores the kernel, in place of an earlier one of the same problem and
  /// schedule. `image` is the code object, for the package's chip; images with
  /// the same content are stored once. One transaction; safe from any thread.
  Status put(const KernelRecord &record, const void *image, size_t size);

  /// Stores a tuning row, in place of one of the same problem and limits.
  Status putTuning(const TuningRow &row);

  /// Drops a kernel, and its image if no other kernel uses it. NotFound when
  /// there is none.
  Status remove(const ProblemKey &problem, const std::string &schedule);

  /// Puts these rows in the place of all rows of their problems; all or none.
  Status replaceTuning(const std::vector<TuningRow> &rows);

  /// Drops all tuning rows of a problem, of which there may be none.
  Status dropTuning(const ProblemKey &problem);

  /// Compresses the images together, with a dictionary of what they share; what
  /// a build does last. Nothing happens when the images are those of the last
  /// time. The result depends on what is in the package alone, not on the order
  /// or the number of builds that put it there. A package that was never packed
  /// is as good, but larger.
  Status pack();

  /// Says of a part of a library that all of it is there.
  Status finishShard();

  /// Writes the file anew, in place of the old one, so that its bytes depend on
  /// what is in it alone and not on how it came there; by one version of SQLite
  /// and zstd. The last call: this writer may write nothing behind it, and
  /// nobody else while it runs, since that is lost.
  Status settle();

private:
  struct Impl;
  explicit PackageWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace fovea

#endif // FOVEA_PACKAGE_PACKAGEWRITER_H
