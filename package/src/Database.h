//===- Database.h - SQLite behind the package library -----------*- C++ -*-===//
//
// Owners of SQLite's handles, the one translation of its result codes into
// Status, the tables' definitions, and the checksums of rows. Private.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_SRC_DATABASE_H
#define FOVEA_PACKAGE_SRC_DATABASE_H

#include "fovea/Package/Package.h"

#include <memory>
#include <optional>
#include <sqlite3.h>
#include <string>
#include <vector>

namespace fovea::db {

/// A statement in preparation or being stepped. Binding indices start at 1,
/// columns at 0, as in SQLite.
class Statement {
public:
  explicit Statement(sqlite3_stmt *stmt) : stmt(stmt, sqlite3_finalize) {}

  void bind(int index, int64_t value);
  void bind(int index, double value);
  /// Text and blobs are copied.
  void bind(int index, const std::string &value);
  void bindBlob(int index, const void *data, size_t size);

  /// SQLITE_ROW, SQLITE_DONE or an error code.
  int step() {
    return bindError != SQLITE_OK ? bindError : sqlite3_step(stmt.get());
  }

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  /// Size in bytes, and the bytes, valid until the next step.
  std::pair<const uint8_t *, size_t> blob(int column) const;

private:
  void bound(int code);
  /// std::bad_alloc if it is for want of memory that a value is null.
  void checkMemory(const void *data) const;

  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)> stmt;
  int bindError = SQLITE_OK;
};

/// The remedy for a file that is something else: nobody should delete it.
inline constexpr const char *kWrongPath =
    "; correct the path, or build the package again under another name";

/// A connection to one package file.
class Database {
public:
  enum class Mode { ReadOnly, ReadWriteCreate };

  static Expected<Database> open(const std::string &path, Mode mode,
                                 int32_t busyTimeoutMs);

  /// Runs statements that return nothing of interest.
  Status execute(const char *sql);
  /// Ends a transaction, if there is one, without a trace.
  void rollBack() noexcept;
  Expected<Statement> prepare(const char *sql);
  /// First column of the first row as an integer.
  Expected<int64_t> queryInteger(const char *sql);
  /// Writes what is in it into a new file, whose bytes depend on that alone: not
  /// on how many transactions and changes of its tables there were.
  Status copyInto(const std::string &path);
  /// Steps a statement that returns no row.
  Status run(Statement &statement, const char *doing);

  /// The Status of SQLite's latest error, with the path and a remedy.
  Status failure(int code, const char *doing) const;
  Status corrupt(const std::string &what) const;
  Status incompatible(const std::string &what) const;

  const std::string &path() const { return file; }

  /// The block that was decompressed last (Images.cpp), by a hash of its frame.
  struct {
    uint64_t frameHash = 0;
    std::vector<uint8_t> bytes;
  } lastBlock;

private:
  Database(sqlite3 *handle, std::string path)
      : handle(handle, sqlite3_close_v2), file(std::move(path)) {}
  std::unique_ptr<sqlite3, int (*)(sqlite3 *)> handle;
  std::string file;
};

/// Statements that give an empty file its pages, and any other with VACUUM.
extern const char *const kNewFileLayout;

/// BEGIN IMMEDIATE or BEGIN ... COMMIT; rolls back unless committed.
class Transaction {
public:
  explicit Transaction(Database &database) : database(database) {}
  ~Transaction();
  Status begin(const char *sql);
  Status commit();

private:
  Database &database;
  bool open = false;
};

/// Creates the tables of kPlainPackageFormatVersion that a database of the
/// format version `present` does not have in common with it; 0: an empty
/// database. The caller holds a transaction.
Status createTables(Database &database, const TargetId &target,
                    const std::string &creator, int32_t present = 0);

/// Entry of `meta` of a part of a library: whether it has all that it is to have,
/// "1" or "0".
inline constexpr const char *kFinishedEntry = "finished";

/// Says of a package that it is a part of a library.
Status putShard(Database &database, const ShardInfo &shard);

/// What the header and the table `meta` say.
struct Meta {
  int32_t format = kPackageFormatVersion;
  TargetId target;
  std::string creator;
  std::optional<ShardInfo> shard;
};

/// Checks identity, version, table definitions and the pages' structure, and
/// reads `meta`. The caller holds a transaction, so that all of it is of one
/// moment.
Expected<Meta> validate(Database &database);

/// Turns the tables of an older version that validate() has read into those of
/// kPlainPackageFormatVersion. The caller holds a transaction, so it is all or
/// nothing.
Status upgrade(Database &database, const Meta &meta);

/// All rows in the order of their keys; those that this version can't read are
/// left out and counted.
Expected<std::vector<KernelRecord>>
readKernels(Database &database, int32_t format, size_t &unknown);
Expected<std::vector<TuningRow>> readTunings(Database &database,
                                             size_t &unknown);

/// One kernel; Corrupt when its row is damaged.
Expected<std::optional<KernelRecord>> findKernel(Database &database,
                                                 const ProblemKey &problem,
                                                 const std::string &schedule);

/// Stores a row, in place of one of the same key.
Status storeKernel(Database &database, const KernelRecord &record);
Status storeTuning(Database &database, const TuningRow &row);

/// A score program by its digest; Corrupt when its row is damaged.
Expected<std::optional<ScoreRecord>> findScore(Database &database,
                                               uint64_t digest);

/// Stores a program in place of one of the same digest, and brings the database
/// to the format version that has a place for it. The caller holds a
/// transaction.
Status storeScore(Database &database, uint64_t digest,
                  const ScoreRecord &record);

/// Stores it where the table is there.
Status storeScoreRow(Database &database, uint64_t digest,
                     const ScoreRecord &record);

/// Drops programs that no kernel has, and with the last one their table, so
/// that the format version follows from the kernels.
Status dropUnusedScores(Database &database);

/// The format version of the moment: another writer may have changed it.
Expected<int32_t> formatOf(Database &database);

/// Entry of `meta`: which images were packed last, in their order; or the empty
/// text (Images.cpp).
inline constexpr const char *kPackedEntry = "packed";

/// Sets an entry of `meta`, or reads it: Corrupt when it is missing or damaged.
Status putMeta(Database &database, const std::string &key,
               const std::string &value);
Expected<std::string> getMeta(Database &database, const std::string &key);

//===----------------------------------------------------------------------===//
// Images (Images.cpp)
//===----------------------------------------------------------------------===//

/// Reads, decompresses and checks the image of a hash. The caller holds a
/// transaction, so that all of it is of one moment.
Expected<std::vector<uint8_t>> readImage(Database &database, int32_t format,
                                         const ImageHash &hash, uint64_t size);

/// An image, compressed by itself: making it is slow and wants no lock. Storing
/// it replaces a row of its hash.
class CompressedImage {
public:
  static Expected<CompressedImage> make(const void *image, size_t size,
                                        int level);
  Status store(Database &database, const ImageHash &hash) const;

private:
  std::vector<uint8_t> frame;
  size_t size = 0;
};

/// Drops images and score programs that no kernel uses, and blocks that no
/// image is in.
Status dropOrphans(Database &database);

/// Compresses all images anew, many together, if they are not those of the last
/// time. What comes out depends on the kernels alone, not on the order in which
/// they came.
Status packImages(Database &database, int level);

} // namespace fovea::db

#endif // FOVEA_PACKAGE_SRC_DATABASE_H
