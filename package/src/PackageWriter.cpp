//===- PackageWriter.cpp - builds a kernel package ------------------------===//

#include "fovea/Package/PackageWriter.h"

#include "Database.h"
#include "fovea/Package/WriteFile.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>

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
  bool upgraded = false;
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
      if (options.shard)
        if (Status status = db::putShard(database, *options.shard);
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
      upgraded = meta->format < kPlainPackageFormatVersion;
      if (upgraded)
        if (Status status = db::upgrade(database, *meta); !status.ok())
          return status;
    }
    if (Status status = transaction.commit(); !status.ok())
      return status;
  }
  // Where it fails, for a reader is there say, the file is larger and no worse.
  if (upgraded)
    (void)database.execute(
        (std::string(db::kNewFileLayout) + "VACUUM").c_str());
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
  Expected<std::optional<KernelRecord>> found =
      db::findKernel(database, problem, schedule);
  // A damaged row is compiled again.
  if (!found && found.status().code() != StatusCode::Corrupt)
    return found.status();
  if (!found || !*found || (*found)->fingerprint != fingerprint)
    return false;
  const KernelRecord &record = **found;
  return bool(db::readImage(database, kPackageFormatVersion, record.imageHash,
                            record.imageBytes));
}

/// Stores a kernel's score program, unless another has its digest.
/// \param name  of the kernel, for messages
static Status putScore(Database &database, const KernelRecord &record,
                       const std::string &name) {
  const uint64_t digest = record.problem.score;
  Expected<std::optional<ScoreRecord>> there = db::findScore(database, digest);
  // A damaged row is replaced.
  if (!there && there.status().code() != StatusCode::Corrupt)
    return there.status();
  if (there && *there && (*there)->text != record.score.text)
    return Status(StatusCode::InvalidArgument,
                  name + ": the text of its score program '" +
                      record.score.name + "' is not that of '" +
                      (*there)->name + "', which has the same digest");
  return db::storeScore(database, digest, record.score);
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
  Expected<db::CompressedImage> compressed =
      db::CompressedImage::make(image, size, impl->compressionLevel);
  if (!compressed)
    return Status(compressed.status().code(),
                  name + ": " + compressed.status().message());

  std::lock_guard<std::mutex> lock(impl->mutex);
  Database &database = impl->database;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  // An image already there is kept only if it is sound; so building again is
  // the remedy of a damaged one.
  if (!db::readImage(database, kPackageFormatVersion, record.imageHash,
                     record.imageBytes))
    if (Status status = compressed->store(database, record.imageHash);
        !status.ok())
      return status;
  if (record.problem.score)
    if (Status status = putScore(database, record, name); !status.ok())
      return status;
  if (Status status = db::storeKernel(database, record); !status.ok())
    return status;
  if (Status status = db::dropOrphans(impl->database); !status.ok())
    return status;
  return transaction.commit();
}

Status PackageWriter::putTuning(const TuningRow &row) {
  if (Status status = checkTuningRow(row); !status.ok())
    return status;
  std::lock_guard<std::mutex> lock(impl->mutex);
  return db::storeTuning(impl->database, row);
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
  if (Status status = db::dropOrphans(impl->database); !status.ok())
    return status;
  return transaction.commit();
}

static Status eraseTuning(Database &database, const ProblemKey &problem) {
  Expected<Statement> erase =
      database.prepare("DELETE FROM tuning WHERE problem=?");
  if (!erase)
    return erase.status();
  erase->bind(1, problem.str());
  return database.run(*erase, "dropping tuning rows");
}

Status PackageWriter::dropTuning(const ProblemKey &problem) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  Transaction transaction(impl->database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  if (Status status = eraseTuning(impl->database, problem); !status.ok())
    return status;
  return transaction.commit();
}

Status PackageWriter::replaceTuning(const std::vector<TuningRow> &rows) {
  for (const TuningRow &row : rows)
    if (Status status = checkTuningRow(row); !status.ok())
      return status;
  std::lock_guard<std::mutex> lock(impl->mutex);
  Database &database = impl->database;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  for (const TuningRow &row : rows)
    if (Status status = eraseTuning(database, row.problem); !status.ok())
      return status;
  for (const TuningRow &row : rows)
    if (Status status = db::storeTuning(database, row); !status.ok())
      return status;
  return transaction.commit();
}

Status PackageWriter::pack() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return db::packImages(impl->database, impl->compressionLevel);
}

Status PackageWriter::finishShard() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return db::putMeta(impl->database, db::kFinishedEntry, "1");
}

Status PackageWriter::settle() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  const std::string &path = impl->database.path();
  const std::string copy = temporaryBeside(path);
  Status status = impl->database.copyInto(copy);
  if (status.ok()) {
    std::ifstream file(copy, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    if (!file)
      status = Status(StatusCode::Io, "package '" + path +
                                          "': what was written of it anew "
                                          "can't be read; build it again");
    else if (const std::error_code error = writeWhole(path, bytes))
      status = Status(StatusCode::Io,
                      "package '" + path + "' can't be written anew: " +
                          error.message() +
                          "; check its folder's permissions and free space");
  }
  (void)std::remove(copy.c_str());
  return status;
}

} // namespace fovea
