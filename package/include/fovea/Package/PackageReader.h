//===- PackageReader.h - opens a kernel package -----------------*- C++ -*-===//
//
// Reads a package and believes nothing in it: the file's structure, the tables'
// definitions, a checksum of every row and the hash of every image are checked,
// and whatever fails is refused with its reason. Records are kept in memory, so
// only loadImage() touches the file again. Read only; safe from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_PACKAGEREADER_H
#define FOVEA_PACKAGE_PACKAGEREADER_H

#include "fovea/Package/Package.h"

#include <memory>
#include <optional>

namespace fovea {

class PackageReader {
public:
  /// Opens and validates `path`. NotFound: no such file; Io: not readable;
  /// Busy: a writer held it for too long; Corrupt: not a package, or damaged;
  /// Incompatible: another format version, or, with `expectedArch` not empty,
  /// another chip.
  static Expected<PackageReader> open(const std::string &path,
                                      const std::string &expectedArch = "");

  /// A package of one kernel that is in memory alone.
  /// \param name  stands for a path
  /// \param record  as PackageWriter::put() takes it
  /// InvalidArgument: the record breaks a rule; Corrupt, Incompatible: the
  /// image is no code object, or for another chip.
  static Expected<PackageReader> ofKernel(std::string name, std::string creator,
                                          KernelRecord record,
                                          std::vector<uint8_t> image);

  PackageReader(PackageReader &&);
  PackageReader &operator=(PackageReader &&);
  ~PackageReader();

  const std::string &path() const;
  const std::string &creator() const;
  const TargetId &target() const;
  /// Of which library it is which part; none: it is whole.
  const std::optional<ShardInfo> &shard() const;

  /// All kernels, ordered by problem text, then schedule text. References stay
  /// valid as long as the reader, also when it is moved.
  const std::vector<KernelRecord> &kernels() const;

  /// All tuning rows, smallest bucket first within a problem: ordered by
  /// maxSeqlenQ, maxSeqlenK, maxBatchHeads.
  const std::vector<TuningRow> &tuning() const;

  /// Kernels of a problem, in the order of kernels().
  std::vector<const KernelRecord *> candidates(const ProblemKey &problem) const;

  /// The uncompressed code object of a kernel, its size and hash checked.
  /// NotFound when a writer has replaced it since the package was opened.
  Expected<std::vector<uint8_t>> loadImage(const KernelRecord &kernel) const;

  /// Loads and checks a kernel's image, its ELF header too: what `open` leaves
  /// for later.
  Status verifyImage(const KernelRecord &kernel) const;
  /// The same for all kernels, up to the first that fails.
  Status verifyImages() const;

private:
  struct Impl;
  explicit PackageReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace fovea

#endif // FOVEA_PACKAGE_PACKAGEREADER_H
