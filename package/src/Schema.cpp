//===- Schema.cpp - the package's tables ----------------------------------===//
//
// Table definitions of each format version, their validation, and the way from
// an older version to this one. docs/PackageFormat.md describes the tables.
//
//===----------------------------------------------------------------------===//

#include "Checksum.h"
#include "Database.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

namespace fovea::db {
namespace {

/// A table, in the format versions that define it so. Version 4 is version 3
/// with the table `score`, which a package gets with its first score program.
struct Table {
  const char *name;
  int32_t from, to;
  const char *sql; ///< compared with the file's to the letter
};

constexpr int32_t kNow = kPackageFormatVersion;
constexpr int32_t kPlain = kPlainPackageFormatVersion;
constexpr Table kTables[] = {
    {"meta", 2, 2,
     "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT "
     "NULL, checksum INTEGER NOT NULL)"},
    {"meta", 3, kNow,
     "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT "
     "NULL, checksum INTEGER NOT NULL) WITHOUT ROWID"},
    {"image", 2, 2,
     "CREATE TABLE image(hash BLOB PRIMARY KEY NOT NULL, size INTEGER NOT "
     "NULL, data BLOB NOT NULL)"},
    {"block", 3, kNow,
     "CREATE TABLE block(id INTEGER PRIMARY KEY NOT NULL, size INTEGER NOT "
     "NULL, data BLOB NOT NULL)"},
    {"image", 3, kNow,
     "CREATE TABLE image(hash BLOB PRIMARY KEY NOT NULL, size INTEGER NOT "
     "NULL, block INTEGER NOT NULL REFERENCES block(id), place INTEGER NOT "
     "NULL) WITHOUT ROWID"},
    {"kernel", 2, 2,
     "CREATE TABLE kernel(problem TEXT NOT NULL, schedule TEXT NOT NULL, "
     "fingerprint TEXT NOT NULL, abi_version INTEGER NOT NULL, symbol TEXT NOT "
     "NULL, launches TEXT NOT NULL, block_m INTEGER NOT NULL, block_n INTEGER "
     "NOT NULL, threads "
     "INTEGER NOT NULL, vgprs INTEGER NOT NULL, agprs INTEGER NOT NULL, sgprs "
     "INTEGER NOT NULL, lds_bytes INTEGER NOT NULL, scratch_bytes INTEGER NOT "
     "NULL, occupancy INTEGER NOT NULL, matrix_instructions INTEGER NOT NULL, "
     "code_bytes INTEGER NOT NULL, compile_ms REAL NOT NULL, image_hash BLOB "
     "NOT NULL REFERENCES image(hash), image_bytes INTEGER NOT NULL, checksum "
     "INTEGER NOT NULL, PRIMARY KEY(problem, schedule))"},
    {"kernel", 3, kNow,
     "CREATE TABLE kernel(problem TEXT NOT NULL, schedule TEXT NOT NULL, "
     "fingerprint TEXT NOT NULL, abi_version INTEGER NOT NULL, symbol TEXT NOT "
     "NULL, launches TEXT NOT NULL, block_m INTEGER NOT NULL, block_n INTEGER "
     "NOT NULL, threads INTEGER NOT NULL, vgprs INTEGER NOT NULL, agprs "
     "INTEGER NOT NULL, sgprs INTEGER NOT NULL, lds_bytes INTEGER NOT NULL, "
     "scratch_bytes INTEGER NOT NULL, occupancy INTEGER NOT NULL, "
     "matrix_instructions INTEGER NOT NULL, code_bytes INTEGER NOT NULL, "
     "vgpr_spills INTEGER NOT NULL, sgpr_spills INTEGER NOT NULL, compile_ms "
     "REAL NOT NULL, image_hash BLOB NOT NULL REFERENCES image(hash), "
     "image_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY "
     "KEY(problem, schedule)) WITHOUT ROWID"},
    {"tuning", 2, 2,
     "CREATE TABLE tuning(problem TEXT NOT NULL, max_seqlen_q INTEGER NOT "
     "NULL, max_seqlen_k INTEGER NOT NULL, max_batch_heads INTEGER NOT NULL, "
     "schedule TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(problem, "
     "max_seqlen_q, max_seqlen_k, max_batch_heads))"},
    {"tuning", 3, kNow,
     "CREATE TABLE tuning(problem TEXT NOT NULL, max_seqlen_q INTEGER NOT "
     "NULL, max_seqlen_k INTEGER NOT NULL, max_batch_heads INTEGER NOT NULL, "
     "schedule TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(problem, "
     "max_seqlen_q, max_seqlen_k, max_batch_heads)) WITHOUT ROWID"},
    {"score", 4, kNow,
     "CREATE TABLE score(digest TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, "
     "text TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID"},
};

bool isOf(const Table &table, int32_t format) {
  return table.from <= format && format <= table.to;
}

Status checkTables(Database &database, int32_t format) {
  Expected<Statement> rows =
      database.prepare("SELECT type, name, sql FROM sqlite_schema");
  if (!rows)
    return rows.status();
  size_t found = 0;
  int code;
  while ((code = rows->step()) == SQLITE_ROW) {
    const std::string type = rows->text(0), name = rows->text(1),
                      sql = rows->text(2);
    if (type == "index" && name.rfind("sqlite_autoindex_", 0) == 0)
      continue;
    const Table *table = std::find_if(
        std::begin(kTables), std::end(kTables), [&](const Table &table) {
          return name == table.name && isOf(table, format);
        });
    if (type != "table" || table == std::end(kTables) || sql != table->sql)
      return database.corrupt(type + " '" + name +
                              "' is not defined as the format says");
    ++found;
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "reading its tables");
  const auto defined =
      std::count_if(std::begin(kTables), std::end(kTables),
                    [&](const Table &table) { return isOf(table, format); });
  if (found != size_t(defined))
    return database.corrupt("it has " + std::to_string(found) +
                            " of the format's " + std::to_string(defined) +
                            " tables");
  return Status();
}

Status checkPages(Database &database) {
  Expected<Statement> rows = database.prepare("PRAGMA quick_check(1)");
  if (!rows)
    return rows.status();
  if (int code = rows->step(); code != SQLITE_ROW)
    return database.failure(code, "checking its pages");
  if (std::string verdict = rows->text(0); verdict != "ok")
    return database.corrupt("it is damaged (" + verdict + ")");
  return Status();
}

} // namespace

Status putMeta(Database &database, const std::string &key,
               const std::string &value) {
  Expected<Statement> insert = database.prepare(
      "INSERT OR REPLACE INTO meta(key, value, checksum) VALUES(?,?,?)");
  if (!insert)
    return insert.status();
  insert->bind(1, key);
  insert->bind(2, value);
  insert->bind(3, Checksum().add(key).add(value).value());
  return database.run(*insert, "writing its header");
}

Expected<std::string> getMeta(Database &database, const std::string &key) {
  Expected<Statement> select =
      database.prepare("SELECT value, checksum FROM meta WHERE key=?");
  if (!select)
    return select.status();
  select->bind(1, key);
  if (int code = select->step(); code == SQLITE_DONE)
    return database.corrupt("its entry '" + key + "' is missing");
  else if (code != SQLITE_ROW)
    return database.failure(code, "reading its header");
  std::string value = select->text(0);
  if (select->integer(1) != Checksum().add(key).add(value).value())
    return database.corrupt("the checksum of its entry '" + key + "' is wrong");
  return value;
}

Expected<int32_t> formatOf(Database &database) {
  Expected<int64_t> version = database.queryInteger("PRAGMA user_version");
  if (!version)
    return version.status();
  return int32_t(*version);
}

/// Sets the version that only packages with score programs have, or the one of
/// the others.
static Status setFormat(Database &database, int32_t format) {
  return database.execute(
      ("PRAGMA user_version=" + std::to_string(format)).c_str());
}

Status storeScore(Database &database, uint64_t digest,
                  const ScoreRecord &record) {
  Expected<int32_t> format = formatOf(database);
  if (!format)
    return format.status();
  if (*format == kPlain) {
    for (const Table &table : kTables)
      if (isOf(table, kNow) && !isOf(table, kPlain))
        if (Status status = database.execute(table.sql); !status.ok())
          return status;
    if (Status status = setFormat(database, kNow); !status.ok())
      return status;
  }
  return storeScoreRow(database, digest, record);
}

Status dropUnusedScores(Database &database) {
  Expected<int32_t> format = formatOf(database);
  if (!format)
    return format.status();
  if (*format == kPlain)
    return Status();
  // By the text, since the problem may be one that only a later version can
  // read.
  if (Status status = database.execute(
          "DELETE FROM score WHERE NOT EXISTS(SELECT 1 FROM kernel WHERE "
          "instr(problem || ';', ';score=' || digest || ';'))");
      !status.ok())
    return status;
  Expected<int64_t> left = database.queryInteger("SELECT count(*) FROM score");
  if (!left)
    return left.status();
  if (*left != 0)
    return Status();
  if (Status status = database.execute("DROP TABLE score"); !status.ok())
    return status;
  return setFormat(database, kPlain);
}

Status createTables(Database &database, const TargetId &target,
                    const std::string &creator, int32_t present) {
  const std::string identity =
      "PRAGMA application_id=" + std::to_string(kPackageApplicationId) +
      ";PRAGMA user_version=" + std::to_string(kPlain);
  if (Status status = database.execute(identity.c_str()); !status.ok())
    return status;
  for (const Table &table : kTables)
    if (isOf(table, kPlain) && !isOf(table, present))
      if (Status status = database.execute(table.sql); !status.ok())
        return status;
  const std::pair<const char *, std::string> entries[] = {
      {"creator", creator},
      {kPackedEntry, ""},
      {"target", target.arch},
      {"xnack", toString(target.xnack)},
      {"sramecc", toString(target.sramecc)}};
  for (const auto &[key, value] : entries)
    if (Status status = putMeta(database, key, value); !status.ok())
      return status;
  return Status();
}

// Entries that a package has which is a part, and no other; libraries that know
// nothing of parts read it as any package.
static constexpr const char *kShardEntry = "shard", *kPlanEntry = "plan",
                            *kBuildEntry = "build";

Status putShard(Database &database, const ShardInfo &shard) {
  const std::pair<const char *, std::string> entries[] = {
      {kShardEntry, shard.str()},
      {kPlanEntry, shard.plan},
      {kBuildEntry, shard.build},
      {kFinishedEntry, shard.finished ? "1" : "0"}};
  for (const auto &[key, value] : entries)
    if (Status status = putMeta(database, key, value); !status.ok())
      return status;
  return Status();
}

static Status readShard(Database &database, std::optional<ShardInfo> &shard) {
  Expected<int64_t> count = database.queryInteger(
      "SELECT count(*) FROM meta WHERE key IN ('shard', 'plan', 'build', "
      "'finished')");
  if (!count)
    return count.status();
  if (*count == 0)
    return Status();
  shard.emplace();
  std::string text, finished;
  const std::pair<const char *, std::string &> entries[] = {
      {kShardEntry, text},
      {kPlanEntry, shard->plan},
      {kBuildEntry, shard->build},
      {kFinishedEntry, finished}};
  for (const auto &[key, value] : entries) {
    Expected<std::string> found = getMeta(database, key);
    if (!found)
      return found.status();
    value = *found;
  }
  char more = 0;
  if (std::sscanf(text.c_str(), "%" SCNu32 "/%" SCNu32 "%c", &shard->index,
                  &shard->count, &more) != 2 ||
      shard->index < 1 || shard->index > shard->count || shard->str() != text)
    return database.corrupt("its entry 'shard' is '" + text + "'");
  shard->finished = finished == "1";
  return Status();
}

Expected<Meta> validate(Database &database) {
  Expected<int64_t> application =
      database.queryInteger("PRAGMA application_id");
  if (!application)
    return application.status();
  if (*application != kPackageApplicationId)
    return Status(StatusCode::Corrupt,
                  "package '" + database.path() +
                      "': it is an SQLite file but no package (application "
                      "id " +
                      std::to_string(*application) + ")" + kWrongPath);
  Expected<int32_t> version = formatOf(database);
  if (!version)
    return version.status();
  if (*version < kOldestPackageFormatVersion ||
      *version > kPackageFormatVersion)
    return database.incompatible(
        "its format version is " + std::to_string(*version) +
        ", this library reads " + std::to_string(kOldestPackageFormatVersion) +
        " to " + std::to_string(kPackageFormatVersion) +
        "; delete the file and build it again with this version of Fovea, or "
        "use the version that built it");
  if (Status status = checkTables(database, *version); !status.ok())
    return status;
  if (Status status = checkPages(database); !status.ok())
    return status;

  Meta meta;
  meta.format = *version;
  std::string values[4];
  const char *keys[4] = {"creator", "target", "xnack", "sramecc"};
  for (int i = 0; i != 4; ++i) {
    Expected<std::string> value = getMeta(database, keys[i]);
    if (!value)
      return value.status();
    values[i] = *value;
  }
  meta.creator = values[0];
  Expected<TargetId> target = TargetId::parse(values[1]);
  Expected<FeatureState> xnack = parseFeatureState(values[2]);
  Expected<FeatureState> sramecc = parseFeatureState(values[3]);
  if (!target || !xnack || !sramecc || target->arch != values[1])
    return database.corrupt("its target is '" + values[1] + "', xnack '" +
                            values[2] + "', sramecc '" + values[3] + "'");
  meta.target = *target;
  meta.target.xnack = *xnack;
  meta.target.sramecc = *sramecc;
  if (Status status = readShard(database, meta.shard); !status.ok())
    return status;
  return meta;
}

Status upgrade(Database &database, const Meta &meta) {
  size_t unknown = 0;
  Expected<std::vector<KernelRecord>> kernels =
      readKernels(database, meta.format, unknown);
  if (!kernels)
    return kernels.status();
  Expected<std::vector<TuningRow>> tunings = readTunings(database, unknown);
  if (!tunings)
    return tunings.status();
  if (unknown != 0)
    return database.incompatible(
        "its format version is " + std::to_string(meta.format) + " and " +
        std::to_string(unknown) +
        " of its rows can't be read, so it can't be brought to version " +
        std::to_string(kPlain) + "; delete the file and build it again");
  std::vector<std::vector<uint8_t>> images;
  for (const KernelRecord &kernel : *kernels) {
    Expected<std::vector<uint8_t>> image =
        readImage(database, meta.format, kernel.imageHash, kernel.imageBytes);
    if (!image)
      return image.status();
    images.push_back(std::move(*image));
  }
  std::string drop;
  for (const Table &table : kTables)
    if (isOf(table, meta.format) && !isOf(table, kPlain))
      drop += std::string("DROP TABLE ") + table.name + ";";
  if (Status status = database.execute(drop.c_str()); !status.ok())
    return status;
  if (Status status =
          createTables(database, meta.target, meta.creator, meta.format);
      !status.ok())
    return status;
  // Each by itself: the build that is to come packs them.
  for (size_t i = 0; i != images.size(); ++i) {
    Expected<CompressedImage> image =
        CompressedImage::make(images[i].data(), images[i].size(), 3);
    if (!image)
      return image.status();
    if (Status status = image->store(database, (*kernels)[i].imageHash);
        !status.ok())
      return status;
  }
  for (const KernelRecord &kernel : *kernels)
    if (Status status = storeKernel(database, kernel); !status.ok())
      return status;
  for (const TuningRow &row : *tunings)
    if (Status status = storeTuning(database, row); !status.ok())
      return status;
  return dropOrphans(database);
}

} // namespace fovea::db
