//===- Schema.cpp - the package's tables ----------------------------------===//
//
// Table definitions, their validation, and rows as records and back. Each row
// carries a checksum over its values, so that a flipped bit in a block size is
// caught as one in an image is. docs/PackageFormat.md describes the tables.
//
//===----------------------------------------------------------------------===//

#include "Database.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace fovea::db {
namespace {

struct Table {
  const char *name;
  const char *sql; ///< compared with the file's to the letter
};

constexpr Table kTables[] = {
    {"meta", "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT "
             "NULL, checksum INTEGER NOT NULL)"},
    {"image",
     "CREATE TABLE image(hash BLOB PRIMARY KEY NOT NULL, size INTEGER NOT "
     "NULL, data BLOB NOT NULL)"},
    {"kernel",
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
    {"tuning",
     "CREATE TABLE tuning(problem TEXT NOT NULL, max_seqlen_q INTEGER NOT "
     "NULL, max_seqlen_k INTEGER NOT NULL, max_batch_heads INTEGER NOT NULL, "
     "schedule TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(problem, "
     "max_seqlen_q, max_seqlen_k, max_batch_heads))"},
};

/// XXH3-64 over values with their sizes, so that no two rows that differ
/// present the same bytes.
class Checksum {
public:
  Checksum() { XXH3_64bits_reset(&state); }
  Checksum &add(int64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i != 8; ++i)
      bytes[i] = uint8_t(uint64_t(value) >> (8 * i));
    XXH3_64bits_update(&state, bytes, sizeof(bytes));
    return *this;
  }
  Checksum &add(double value) {
    int64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return add(bits);
  }
  Checksum &add(const std::string &value) {
    add(int64_t(value.size()));
    XXH3_64bits_update(&state, value.data(), value.size());
    return *this;
  }
  Checksum &add(const ImageHash &hash) {
    XXH3_64bits_update(&state, hash.data(), hash.size());
    return *this;
  }
  int64_t value() const { return int64_t(XXH3_64bits_digest(&state)); }

private:
  XXH3_state_t state;
};

/// A kernel row's integer columns between `launches` and `compile_ms`, in
/// order.
struct Figure {
  const char *name;
  int32_t KernelRecord::*direct;
  int32_t KernelResources::*resource;
  int32_t &of(KernelRecord &record) const {
    return direct ? record.*direct : record.resources.*resource;
  }
  int32_t of(const KernelRecord &record) const {
    return direct ? record.*direct : record.resources.*resource;
  }
  int32_t least, most;
};
using R = KernelResources;
// The upper limits are beyond every chip's; a block of more than 256 rows would
// break the 32-bit offsets that abi::kMaxSeqStride promises.
constexpr Figure kFigures[] = {
    {"block_m", &KernelRecord::blockM, nullptr, 1, 256},
    {"block_n", &KernelRecord::blockN, nullptr, 1, 256},
    {"threads", &KernelRecord::threads, nullptr, 1, 1024},
    {"vgprs", nullptr, &R::vgprs, 0, 1024},
    {"agprs", nullptr, &R::agprs, 0, 1024},
    {"sgprs", nullptr, &R::sgprs, 0, 1024},
    {"lds_bytes", nullptr, &R::ldsBytes, 0, 1 << 20},
    {"scratch_bytes", nullptr, &R::scratchBytes, 0, 1 << 24},
    {"occupancy", nullptr, &R::occupancy, 0, 64},
    {"matrix_instructions", nullptr, &R::matrixInstructions, 0, 1 << 28},
    {"code_bytes", nullptr, &R::codeBytes, 0, 1 << 28},
};

constexpr int kFirstFigure = 6; ///< its column
constexpr int kCompileMs = kFirstFigure + int(std::size(kFigures));
static_assert(
    kCompileMs + 4 == kKernelColumnCount,
    "after the figures: compile_ms, image_hash, image_bytes, checksum");

int64_t checksumOf(const KernelRecord &record, const std::string &problem,
                   const std::string &launches) {
  Checksum sum;
  sum.add(problem).add(record.schedule).add(record.fingerprint);
  sum.add(int64_t(record.abiVersion)).add(record.symbol).add(launches);
  for (const Figure &figure : kFigures)
    sum.add(int64_t(figure.of(record)));
  sum.add(record.compileMs).add(record.imageHash);
  return sum.add(int64_t(record.imageBytes)).value();
}

int64_t checksumOf(const TuningRow &row, const std::string &problem) {
  return Checksum()
      .add(problem)
      .add(row.maxSeqlenQ)
      .add(row.maxSeqlenK)
      .add(row.maxBatchHeads)
      .add(row.schedule)
      .value();
}

Status checkTables(Database &database) {
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
    const Table *table =
        std::find_if(std::begin(kTables), std::end(kTables),
                     [&](const Table &t) { return name == t.name; });
    if (type != "table" || table == std::end(kTables) || sql != table->sql)
      return database.corrupt(type + " '" + name +
                              "' is not defined as the format says");
    ++found;
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "reading its tables");
  if (found != std::size(kTables))
    return database.corrupt("it has " + std::to_string(found) +
                            " of the format's " +
                            std::to_string(std::size(kTables)) + " tables");
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

Status putMeta(Database &database, const std::string &key,
               const std::string &value) {
  Expected<Statement> insert =
      database.prepare("INSERT INTO meta(key, value, checksum) VALUES(?,?,?)");
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

std::string nameOf(const std::string &problem, const std::string &schedule) {
  return "kernel '" + problem + "' with schedule '" + schedule + "'";
}

} // namespace

Status createTables(Database &database, const TargetId &target,
                    const std::string &creator) {
  const std::string identity =
      "PRAGMA application_id=" + std::to_string(kPackageApplicationId) +
      ";PRAGMA user_version=" + std::to_string(kPackageFormatVersion);
  if (Status status = database.execute(identity.c_str()); !status.ok())
    return status;
  for (const Table &table : kTables)
    if (Status status = database.execute(table.sql); !status.ok())
      return status;
  const std::pair<const char *, std::string> entries[] = {
      {"creator", creator},
      {"target", target.arch},
      {"xnack", toString(target.xnack)},
      {"sramecc", toString(target.sramecc)}};
  for (const auto &[key, value] : entries)
    if (Status status = putMeta(database, key, value); !status.ok())
      return status;
  return Status();
}

Expected<Meta> validate(Database &database) {
  Expected<int64_t> application =
      database.queryInteger("PRAGMA application_id");
  if (!application)
    return application.status();
  if (*application != kPackageApplicationId)
    return database.corrupt(
        "it is an SQLite file but no package (application id " +
        std::to_string(*application) + ")");
  Expected<int64_t> version = database.queryInteger("PRAGMA user_version");
  if (!version)
    return version.status();
  if (*version != kPackageFormatVersion)
    return database.incompatible(
        "its format version is " + std::to_string(*version) +
        ", this library reads " + std::to_string(kPackageFormatVersion) +
        "; delete the file and build it again with this version of Fovea, or "
        "use the version that built it");
  if (Status status = checkTables(database); !status.ok())
    return status;
  if (Status status = checkPages(database); !status.ok())
    return status;

  Meta meta;
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
  return meta;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

const char kKernelColumns[] =
    "problem, schedule, fingerprint, abi_version, symbol, launches, block_m, "
    "block_n, threads, vgprs, agprs, sgprs, lds_bytes, scratch_bytes, "
    "occupancy, "
    "matrix_instructions, code_bytes, compile_ms, image_hash, image_bytes, "
    "checksum";

void bindKernel(Statement &statement, const KernelRecord &record) {
  const std::string problem = record.problem.str();
  const std::string launches = toString(record.launches);
  statement.bind(1, problem);
  statement.bind(2, record.schedule);
  statement.bind(3, record.fingerprint);
  statement.bind(4, int64_t(record.abiVersion));
  statement.bind(5, record.symbol);
  statement.bind(6, launches);
  int index = kFirstFigure + 1;
  for (const Figure &figure : kFigures)
    statement.bind(index++, int64_t(figure.of(record)));
  statement.bind(index++, record.compileMs);
  statement.bindBlob(index++, record.imageHash.data(), record.imageHash.size());
  statement.bind(index++, int64_t(record.imageBytes));
  statement.bind(index, checksumOf(record, problem, launches));
}

Expected<KernelRecord> readKernel(const Database &database,
                                  const Statement &row, bool &known) {
  KernelRecord record;
  const std::string problem = row.text(0);
  record.schedule = row.text(1);
  record.fingerprint = row.text(2);
  record.abiVersion = int32_t(row.integer(3));
  record.symbol = row.text(4);
  const std::string launches = row.text(5);
  int column = kFirstFigure;
  for (const Figure &figure : kFigures)
    figure.of(record) = int32_t(row.integer(column++));
  record.compileMs = row.real(column++);
  auto [hash, hashBytes] = row.blob(column++);
  if (hashBytes == record.imageHash.size())
    std::copy_n(hash, hashBytes, record.imageHash.begin());
  record.imageBytes = uint64_t(row.integer(column++));
  if (row.integer(column) != checksumOf(record, problem, launches))
    return database.corrupt("the checksum of " +
                            nameOf(problem, record.schedule) + " is wrong");
  Expected<ProblemKey> key = ProblemKey::parse(problem);
  known = bool(key);
  if (!known)
    return record;
  record.problem = *key;
  if (key->str() != problem)
    return database.corrupt("the problem text '" + problem +
                            "' is not canonical");
  Expected<std::vector<LaunchRecord>> parsed = parseLaunches(launches);
  if (!parsed)
    return database.corrupt(nameOf(problem, record.schedule) + ": " +
                            parsed.status().message());
  record.launches = std::move(*parsed);
  if (Status status = checkKernelRecord(record); !status.ok())
    return database.corrupt(status.message());
  return record;
}

//===----------------------------------------------------------------------===//
// Tuning rows
//===----------------------------------------------------------------------===//

const char kTuningColumns[] = "problem, max_seqlen_q, max_seqlen_k, "
                              "max_batch_heads, schedule, checksum";

void bindTuning(Statement &statement, const TuningRow &row) {
  const std::string problem = row.problem.str();
  statement.bind(1, problem);
  statement.bind(2, row.maxSeqlenQ);
  statement.bind(3, row.maxSeqlenK);
  statement.bind(4, row.maxBatchHeads);
  statement.bind(5, row.schedule);
  statement.bind(6, checksumOf(row, problem));
}

Expected<TuningRow> readTuning(const Database &database, const Statement &row,
                               bool &known) {
  TuningRow record;
  const std::string problem = row.text(0);
  record.maxSeqlenQ = row.integer(1);
  record.maxSeqlenK = row.integer(2);
  record.maxBatchHeads = row.integer(3);
  record.schedule = row.text(4);
  if (row.integer(5) != checksumOf(record, problem))
    return database.corrupt("the checksum of a tuning row of '" + problem +
                            "' is wrong");
  Expected<ProblemKey> key = ProblemKey::parse(problem);
  known = bool(key);
  if (!known)
    return record;
  record.problem = *key;
  if (Status status = checkTuningRow(record); !status.ok())
    return database.corrupt(status.message());
  return record;
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

Expected<std::vector<uint8_t>> readImage(Database &database,
                                         const ImageHash &hash, uint64_t size) {
  const std::string name = "image " + toString(hash);
  Expected<Statement> select =
      database.prepare("SELECT size, data FROM image WHERE hash=?");
  if (!select)
    return select.status();
  select->bindBlob(1, hash.data(), hash.size());
  if (int code = select->step(); code == SQLITE_DONE)
    return Status(StatusCode::NotFound,
                  "package '" + database.path() + "': " + name +
                      " is no longer there: a build has replaced the kernel; "
                      "open the package again");
  else if (code != SQLITE_ROW)
    return database.failure(code, "reading an image");

  auto [data, bytes] = select->blob(1);
  const uint64_t stored = uint64_t(select->integer(0));
  const unsigned long long framed = ZSTD_getFrameContentSize(data, bytes);
  if (stored != size || framed != size || size > kMaxImageBytes)
    return database.corrupt(
        name + " should have " + std::to_string(size) +
        " bytes; its row says " + std::to_string(stored) + ", its content " +
        (framed == ZSTD_CONTENTSIZE_ERROR || framed == ZSTD_CONTENTSIZE_UNKNOWN
             ? std::string("is no zstd frame of known size")
             : std::to_string(framed)));
  std::vector<uint8_t> image(size);
  const size_t got = ZSTD_decompress(image.data(), image.size(), data, bytes);
  if (ZSTD_isError(got) || got != size)
    return database.corrupt(
        name + " does not decompress (" +
        (ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is cut off") + ")");
  if (hashImage(image.data(), image.size()) != hash)
    return database.corrupt(name + " has another hash: its content changed");
  return image;
}

} // namespace fovea::db

//===----------------------------------------------------------------------===//
// Public helpers that need the tables above
//===----------------------------------------------------------------------===//

namespace fovea {

ImageHash hashImage(const void *image, size_t size) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(image, size));
  ImageHash hash;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest),
            hash.begin());
  return hash;
}

std::string toString(const ImageHash &hash) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : hash) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Status checkKernelRecord(const KernelRecord &record) {
  const std::string problem = record.problem.str();
  const std::string name = db::nameOf(problem, record.schedule);
  auto fail = [&](const std::string &why) {
    return Status(StatusCode::InvalidArgument, name + ": " + why);
  };
  if (Expected<ProblemKey> key = ProblemKey::parse(problem); !key)
    return key.status();
  if (record.schedule.empty() || record.symbol.empty())
    return fail(record.schedule.empty() ? "the schedule is empty"
                                        : "the kernel's symbol is empty");
  for (const db::Figure &figure : db::kFigures) {
    const int32_t value = figure.of(record);
    if (value < figure.least || value > figure.most)
      return fail(std::string(figure.name) + " is " + std::to_string(value) +
                  ", not in " + std::to_string(figure.least) + " to " +
                  std::to_string(figure.most));
  }
  // Read back: whatever its text cannot say is wrong in the list.
  const std::string launches = toString(record.launches);
  Expected<std::vector<LaunchRecord>> read = parseLaunches(launches);
  if (!read)
    return fail(read.status().message());
  if (*read != record.launches)
    return fail("a suffix of the launches '" + launches +
                "' is not of small letters, digits and '_'");
  const bool several = record.problem.op != Operation::Forward;
  if (several == record.launches.empty())
    return fail(several ? "the list of its launches is empty"
                        : "a forward kernel is one launch, but there is the "
                          "list '" +
                              launches + "'");
  return Status();
}

Status checkTuningRow(const TuningRow &row) {
  if (Expected<ProblemKey> key = ProblemKey::parse(row.problem.str()); !key)
    return key.status();
  if (row.schedule.empty() || row.maxSeqlenQ < 0 || row.maxSeqlenK < 0 ||
      row.maxBatchHeads < 0)
    return Status(StatusCode::InvalidArgument,
                  "tuning row of '" + row.problem.str() +
                      "': the schedule is empty or a limit is negative");
  return Status();
}

} // namespace fovea
