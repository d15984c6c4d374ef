//===- PackageWriter.cpp - builds a kernel package ------------------------===//

#include "fovea/Package/PackageWriter.h"

#include "Database.h"

#include <mutex>
#include <zstd.h>

namespace fovea {

using db::Database;
using db::Statement;
using db::Transaction;

struct PackageWriter::Impl {
  Database database;
  TargetId target;
  int compressionLevel;
  /// One transaction at a time on the connection; other processes and writers
  /// are held off by SQLite's own locks.
  std::mutex mutex;

  Impl(Database database, TargetId target, int compressionLevel)
      : database(std::move(database)), target(std::move(target)),
        compressionLevel(compressionLevel) {}

  Status dropOrphans() {
    return database.execute("DELETE FROM image WHERE hash NOT IN (SELECT "
                            "image_hash FROM kernel)");
  }

  Status insertImage(const KernelRecord &record,
                     const std::vector<uint8_t> &compressed) {
    Expected<Statement> insert = database.prepare(
        "INSERT OR REPLACE INTO image(hash, size, data) VALUES(?,?,?)");
    if (!insert)
      return insert.status();
    insert->bindBlob(1, record.imageHash.data(), record.imageHash.size());
    insert->bind(2, int64_t(record.imageBytes));
    insert->bindBlob(3, compressed.data(), compressed.size());
    return database.run(*insert, "storing an image");
  }
};

PackageWriter::PackageWriter(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
PackageWriter::PackageWriter(PackageWriter &&) = default;
PackageWriter &PackageWriter::operator=(PackageWriter &&) = default;
PackageWriter::~PackageWriter() = default;

Expected<PackageWriter> PackageWriter::open(const std::string &path,
                                            const TargetId &target,
                                            const Options &options) {
  if (Expected<TargetId> parsed = TargetId::parse(target.str()); !parsed)
    return parsed.status();
  if (Status status = checkTarget(target); !status.ok())
    return status;
  Expected<Database> opened = Database::open(
      path, Database::Mode::ReadWriteCreate, options.busyTimeoutMs);
  if (!opened)
    return opened.status();
  Database database = std::move(*opened);
  {
    // The lock is taken before the first look, so that of two processes that
    // find no file one creates the tables and the other finds them.
    Transaction transaction(database);
    if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
      return status;
    Expected<int64_t> tables =
        database.queryInteger("SELECT count(*) FROM sqlite_schema");
    if (!tables)
      return tables.status();
    Expected<int64_t> application =
        database.queryInteger("PRAGMA application_id");
    if (!application)
      return application.status();
    if (*tables == 0 && *application == 0) {
      if (Status status = createTables(database, target, options.creator);
          !status.ok())
        return status;
    } else {
      Expected<db::Meta> meta = db::validate(database);
      if (!meta)
        return meta.status();
      if (meta->target != target)
        return database.incompatible("it is for " + meta->target.str() +
                                     ", not for " + target.str() +
                                     "; a package holds the kernels of one "
                                     "target: choose another file");
    }
    if (Status status = transaction.commit(); !status.ok())
      return status;
  }
  return PackageWriter(std::make_unique<Impl>(std::move(database), target,
                                              options.compressionLevel));
}

Expected<bool> PackageWriter::isCurrent(const ProblemKey &problem,
                                        const std::string &schedule,
                                        const std::string &fingerprint) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  Database &database = impl->database;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  const std::string sql = std::string("SELECT ") + db::kKernelColumns +
                          " FROM kernel WHERE problem=? AND schedule=?";
  Expected<Statement> select = database.prepare(sql.c_str());
  if (!select)
    return select.status();
  select->bind(1, problem.str());
  select->bind(2, schedule);
  int code = select->step();
  if (code == SQLITE_DONE)
    return false;
  if (code != SQLITE_ROW)
    return database.failure(code, "looking for a kernel");
  bool known = false;
  Expected<KernelRecord> record = db::readKernel(database, *select, known);
  if (!record || !known || record->fingerprint != fingerprint)
    return false;
  return bool(db::readImage(database, record->imageHash, record->imageBytes));
}

Status PackageWriter::put(const KernelRecord &given, const void *image,
                          size_t size) {
  KernelRecord record = given;
  if (Status status = checkKernelRecord(record); !status.ok())
    return status;
  const std::string name =
      "kernel '" + record.problem.str() + "' ('" + record.schedule + "')";
  Expected<CodeObjectInfo> info = inspectCodeObject(image, size);
  if (!info)
    return Status(info.status().code(), name + ": " + info.status().message());
  if (info->target != impl->target)
    return Status(StatusCode::Incompatible,
                  name + ": its image is for " + info->target.str() +
                      ", the package for " + impl->target.str());
  record.imageHash = hashImage(image, size);
  record.imageBytes = size;

  // Compressed before the lock is taken: it is the slow part.
  std::vector<uint8_t> compressed(ZSTD_compressBound(size));
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx *)> context(ZSTD_createCCtx(),
                                                              ZSTD_freeCCtx);
  if (!context)
    return Status(StatusCode::Io, name + ": memory ran out");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel,
                         impl->compressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const size_t written = ZSTD_compress2(context.get(), compressed.data(),
                                        compressed.size(), image, size);
  if (ZSTD_isError(written))
    return Status(StatusCode::Io, name + ": compressing its image failed: " +
                                      ZSTD_getErrorName(written));
  compressed.resize(written);

  std::lock_guard<std::mutex> lock(impl->mutex);
  Database &database = impl->database;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  // An image already there is kept only if it is sound; so building again is
  // the remedy of a damaged one.
  if (!db::readImage(database, record.imageHash, record.imageBytes))
    if (Status status = impl->insertImage(record, compressed); !status.ok())
      return status;
  const std::string sql = std::string("INSERT OR REPLACE INTO kernel(") +
                          db::kKernelColumns +
                          ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
  Expected<Statement> insert = database.prepare(sql.c_str());
  if (!insert)
    return insert.status();
  db::bindKernel(*insert, record);
  if (Status status = database.run(*insert, "storing a kernel"); !status.ok())
    return status;
  if (Status status = impl->dropOrphans(); !status.ok())
    return status;
  return transaction.commit();
}

Status PackageWriter::putTuning(const TuningRow &row) {
  if (Status status = checkTuningRow(row); !status.ok())
    return status;
  std::lock_guard<std::mutex> lock(impl->mutex);
  const std::string sql = std::string("INSERT OR REPLACE INTO tuning(") +
                          db::kTuningColumns + ") VALUES(?,?,?,?,?,?)";
  Expected<Statement> insert = impl->database.prepare(sql.c_str());
  if (!insert)
    return insert.status();
  db::bindTuning(*insert, row);
  return impl->database.run(*insert, "storing a tuning row");
}

Status PackageWriter::remove(const ProblemKey &problem,
                             const std::string &schedule) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  Database &database = impl->database;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  {
    Expected<Statement> erase = database.prepare(
        "DELETE FROM kernel WHERE problem=? AND schedule=? RETURNING 1");
    if (!erase)
      return erase.status();
    erase->bind(1, problem.str());
    erase->bind(2, schedule);
    int code = erase->step();
    if (code == SQLITE_DONE)
      return Status(StatusCode::NotFound,
                    "package '" + database.path() + "' has no kernel '" +
                        problem.str() + "' with schedule '" + schedule + "'");
    if (code != SQLITE_ROW)
      return database.failure(code, "dropping a kernel");
  }
  if (Status status = impl->dropOrphans(); !status.ok())
    return status;
  return transaction.commit();
}

Status PackageWriter::clearTuning(const ProblemKey &problem) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  Expected<Statement> erase =
      impl->database.prepare("DELETE FROM tuning WHERE problem=?");
  if (!erase)
    return erase.status();
  erase->bind(1, problem.str());
  return impl->database.run(*erase, "dropping tuning rows");
}

} // namespace fovea
