//===- Package.h - the kernel package's records -----------------*- C++ -*-===//
//
// What a package holds: kernel records, their images, and tuning rows. One
// SQLite file per chip; docs/PackageFormat.md has the tables.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_PACKAGE_H
#define FOVEA_PACKAGE_PACKAGE_H

#include "fovea/Package/CodeObject.h"
#include "fovea/Package/Keys.h"
#include "fovea/Package/Status.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// SQLite's application_id of a package ("Fove"), the latest version of the
/// tables, the one that packages without score programs have, and the oldest
/// that is read.
inline constexpr int32_t kPackageApplicationId = 0x466f7665;
inline constexpr int32_t kPackageFormatVersion = 4;
inline constexpr int32_t kPlainPackageFormatVersion = 3;
inline constexpr int32_t kOldestPackageFormatVersion = 2;

/// Name ending by which packages are found in a folder.
inline constexpr const char *kPackageExtension = ".fovea";

/// XXH3-128 of an image, in canonical (big endian) order.
using ImageHash = std::array<uint8_t, 16>;
ImageHash hashImage(const void *image, size_t size);
std::string toString(const ImageHash &hash); ///< 32 hexadecimal digits

/// What a kernel uses of the chip, as the compiler read it from the code
/// object.
struct KernelResources {
  int32_t vgprs = 0, agprs = 0, sgprs = 0;
  int32_t ldsBytes = 0;           ///< static LDS of a workgroup
  int32_t scratchBytes = 0;       ///< of a lane
  int32_t occupancy = 0;          ///< waves a SIMD
  int32_t matrixInstructions = 0; ///< in the code, not executed
  int32_t codeBytes = 0;          ///< size of the kernel's instructions
  /// Registers spilled; -1: not known, since the row comes from a package of
  /// format version 2.
  int32_t vgprSpills = 0, sgprSpills = 0;
};

/// One of the launches of an operation that takes several, in their order.
struct LaunchRecord {
  std::string suffix;    ///< what is left of the launch's symbol after "<row>_"
  int32_t blockRows = 0; ///< rows of a block (LaunchSpec::rowsOf), 1 to 256
  int32_t threads = 0;   ///< work-items of a workgroup, 1 to 1024

  friend bool operator==(const LaunchRecord &a, const LaunchRecord &b) {
    return a.suffix == b.suffix && a.blockRows == b.blockRows &&
           a.threads == b.threads;
  }
};

/// What a package says of a score program besides its digest
/// (ProblemKey::score).
struct ScoreRecord {
  std::string name; ///< under which it was compiled last; not empty
  std::string text; ///< canonical: the digest is of this; not empty

  friend bool operator==(const ScoreRecord &a, const ScoreRecord &b) {
    return a.name == b.name && a.text == b.text;
  }
  friend bool operator!=(const ScoreRecord &a, const ScoreRecord &b) {
    return !(a == b);
  }
};

/// One compiled kernel, keyed by (problem, schedule); for an operation of
/// several launches all its kernels, which are in one image.
struct KernelRecord {
  ProblemKey problem;
  /// Of problem.score; empty without one. One for all kernels with the program.
  ScoreRecord score;
  std::string schedule;    ///< the compiler's canonical text; opaque here
  std::string fingerprint; ///< of the build: compiler version and options
  int32_t abiVersion = 0;  ///< of the operation's base arguments
                           ///< (OperationSpec.h), as the compiler knew them
  std::string symbol;      ///< kernel's name in the code object (without .kd)
  int32_t blockM = 0;      ///< query rows a workgroup owns, 1 to 256
  int32_t blockN = 0;      ///< keys an iteration visits, 1 to 256
  int32_t threads = 0;     ///< work-items of a workgroup, 1 to 1024
  /// What to launch, one after the other; empty for a forward kernel, which is
  /// one launch of `symbol` as the three figures above say. Of a row with
  /// launches those are the largest of its kernels, and so are the resources,
  /// but occupancy, which is the smallest, and counts and sizes of
  /// instructions, which are sums.
  std::vector<LaunchRecord> launches;
  KernelResources resources;
  double compileMs = 0; ///< CPU time of its compilation, milliseconds
  /// Set by the library: hash and size of the uncompressed image.
  ImageHash imageHash{};
  uint64_t imageBytes = 0;

  /// Name of a launch's kernel in the code object: `<symbol>_<suffix>`.
  std::string symbolOf(const LaunchRecord &launch) const {
    return symbol + "_" + launch.suffix;
  }
};

/// Which part of a library a package is, where several machines built it: what
/// keeps parts of different libraries from being merged.
struct ShardInfo {
  uint32_t index = 0, count = 0; ///< from 1 to count
  std::string plan;              ///< hash of what all parts have, opaque here
  std::string build;             ///< fingerprint of the build
  bool finished = false;         ///< it has all that it is to have
  /// "2/8".
  std::string str() const {
    return std::to_string(index) + "/" + std::to_string(count);
  }
};

/// Version of an operation's base arguments (OperationSpec.h) that this build
/// knows.
int32_t abiVersionOf(OpKind op);

/// Text of launches as a package stores it, `delta:64:256,dq:128:256`, and
/// back; InvalidArgument on any other text, also one that says the same in
/// another way. The empty text is that of no launches.
std::string toString(const std::vector<LaunchRecord> &launches);
Expected<std::vector<LaunchRecord>> parseLaunches(std::string_view text);

/// Which schedule to take for launches up to some size; a bucket is the set of
/// launches at or below its three limits, and the smallest bucket that holds a
/// launch is its bucket (docs/PackageFormat.md).
struct TuningRow {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  ProblemKey problem;
  int64_t maxSeqlenQ = kAny;    ///< rows
  int64_t maxSeqlenK = kAny;    ///< rows
  int64_t maxBatchHeads = kAny; ///< batch * heads_q
  std::string schedule;
};

/// InvalidArgument when a record's figures are out of the ranges stated above;
/// the writer and the reader both apply it.
Status checkKernelRecord(const KernelRecord &record);
Status checkTuningRow(const TuningRow &row);

} // namespace fovea

#endif // FOVEA_PACKAGE_PACKAGE_H
