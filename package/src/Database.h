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
  int step() { return sqlite3_step(stmt.get()); }

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  /// Size in bytes, and the bytes, valid until the next step.
  std::pair<const uint8_t *, size_t> blob(int column) const;

private:
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt *)> stmt;
};

/// A connection to one package file.
class Database {
public:
  enum class Mode { ReadOnly, ReadWriteCreate };

  static Expected<Database> open(const std::string &path, Mode mode,
                                 int32_t busyTimeoutMs);

  /// Runs statements that return nothing of interest.
  Status execute(const char *sql);
  Expected<Statement> prepare(const char *sql);
  /// First column of the first row as an integer.
  Expected<int64_t> queryInteger(const char *sql);
  /// Steps a statement that returns no row.
  Status run(Statement &statement, const char *doing);

  /// The Status of SQLite's latest error, with the path and a remedy.
  Status failure(int code, const char *doing) const;
  Status corrupt(const std::string &what) const;
  Status incompatible(const std::string &what) const;

  const std::string &path() const { return file; }

private:
  Database(sqlite3 *handle, std::string path)
      : handle(handle, sqlite3_close_v2), file(std::move(path)) {}
  std::unique_ptr<sqlite3, int (*)(sqlite3 *)> handle;
  std::string file;
};

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

/// Creates the tables of an empty database. The caller holds a transaction.
Status createTables(Database &database, const TargetId &target,
                    const std::string &creator);

/// What the table `meta` says.
struct Meta {
  TargetId target;
  std::string creator;
};

/// Checks identity, version, table definitions and the pages' structure, and
/// reads `meta`. The caller holds a transaction, so that all of it is of one
/// moment.
Expected<Meta> validate(Database &database);

/// Columns of `kernel` in the order that readKernel() and bindKernel() use.
extern const char kKernelColumns[];
inline constexpr int kKernelColumnCount = 21;
void bindKernel(Statement &statement, const KernelRecord &record);

/// Reads a row selected as kKernelColumns; Corrupt on a bad checksum or figure.
/// `known` is false for a problem text that this version can't read, which a
/// later version may have written.
Expected<KernelRecord> readKernel(const Database &database,
                                  const Statement &row, bool &known);

/// The same for `tuning`.
extern const char kTuningColumns[];
void bindTuning(Statement &statement, const TuningRow &row);
Expected<TuningRow> readTuning(const Database &database, const Statement &row,
                               bool &known);

/// Reads, decompresses and checks the image of a hash.
Expected<std::vector<uint8_t>> readImage(Database &database,
                                         const ImageHash &hash, uint64_t size);

} // namespace fovea::db

#endif // FOVEA_PACKAGE_SRC_DATABASE_H
