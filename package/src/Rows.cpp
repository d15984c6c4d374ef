//===- Rows.cpp - a package's kernels and tuning rows ---------------------===//
//
// Rows as records and back. Each row carries a checksum over its values, so
// that a flipped bit in a block size is caught as one in an image is.
//
//===----------------------------------------------------------------------===//

#include "Checksum.h"
#include "Database.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace fovea::db {
namespace {

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
  int32_t from = 2; ///< first format version with this column
};
using R = KernelResources;
// The upper limits are beyond every chip's; a block of more than 256 rows would
// break the 32-bit offsets that spec::maxSeqStride() promises.
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
    {"vgpr_spills", nullptr, &R::vgprSpills, -1, 1 << 20, 3},
    {"sgpr_spills", nullptr, &R::sgprSpills, -1, 1 << 20, 3},
};

int64_t checksumOf(const KernelRecord &record, const std::string &problem,
                   const std::string &launches, int32_t format) {
  Checksum sum;
  sum.add(problem).add(record.schedule).add(record.fingerprint);
  sum.add(int64_t(record.abiVersion)).add(record.symbol).add(launches);
  for (const Figure &figure : kFigures)
    if (figure.from <= format)
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

std::string nameOf(const std::string &problem, const std::string &schedule) {
  return "kernel '" + problem + "' with schedule '" + schedule + "'";
}

/// `?,?,...`, one for each of the columns.
std::string placeholders(const std::string &columns) {
  std::string text = "?";
  for (char c : columns)
    if (c == ',')
      text += ",?";
  return text;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Columns of `kernel` in a format version, in the order that readKernel() and,
/// of the version that is written, bindKernel() use.
std::string kernelColumns(int32_t format) {
  std::string columns =
      "problem, schedule, fingerprint, abi_version, symbol, launches";
  for (const Figure &figure : kFigures)
    if (figure.from <= format)
      columns += std::string(", ") + figure.name;
  return columns + ", compile_ms, image_hash, image_bytes, checksum";
}

void bindKernel(Statement &statement, const KernelRecord &record) {
  const std::string problem = record.problem.str();
  const std::string launches = toString(record.launches);
  statement.bind(1, problem);
  statement.bind(2, record.schedule);
  statement.bind(3, record.fingerprint);
  statement.bind(4, int64_t(record.abiVersion));
  statement.bind(5, record.symbol);
  statement.bind(6, launches);
  int index = 7;
  for (const Figure &figure : kFigures)
    statement.bind(index++, int64_t(figure.of(record)));
  statement.bind(index++, record.compileMs);
  statement.bindBlob(index++, record.imageHash.data(), record.imageHash.size());
  statement.bind(index++, int64_t(record.imageBytes));
  statement.bind(index,
                 checksumOf(record, problem, launches, kPackageFormatVersion));
}

/// Reads a row selected as kernelColumns(format); Corrupt on a bad checksum or
/// figure. `known` is false for a problem text that this version can't read,
/// which a later version may have written.
Expected<KernelRecord> readKernel(const Database &database,
                                  const Statement &row, int32_t format,
                                  const std::map<uint64_t, ScoreRecord> &scores,
                                  bool &known) {
  KernelRecord record;
  const std::string problem = row.text(0);
  record.schedule = row.text(1);
  record.fingerprint = row.text(2);
  record.abiVersion = int32_t(row.integer(3));
  record.symbol = row.text(4);
  const std::string launches = row.text(5);
  int column = 6;
  for (const Figure &figure : kFigures)
    figure.of(record) =
        figure.from <= format ? int32_t(row.integer(column++)) : -1;
  record.compileMs = row.real(column++);
  auto [hash, hashBytes] = row.blob(column++);
  if (hashBytes == record.imageHash.size())
    std::copy_n(hash, hashBytes, record.imageHash.begin());
  record.imageBytes = uint64_t(row.integer(column++));
  if (row.integer(column) != checksumOf(record, problem, launches, format))
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
  if (const uint64_t digest = record.problem.score) {
    auto score = scores.find(digest);
    if (score == scores.end())
      return database.corrupt(nameOf(problem, record.schedule) +
                              " has a score program that is not in it");
    record.score = score->second;
  }
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

constexpr const char *kTuningColumns = "problem, max_seqlen_q, max_seqlen_k, "
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
// Score programs
//===----------------------------------------------------------------------===//

constexpr const char *kScoreColumns = "digest, name, text, checksum";

int64_t checksumOf(const ScoreRecord &record, const std::string &digest) {
  return Checksum().add(digest).add(record.name).add(record.text).value();
}

/// What is missing in a record; null: nothing.
const char *missingIn(const ScoreRecord &record) {
  return record.name.empty() ? "name" : record.text.empty() ? "text" : nullptr;
}

/// Reads a row selected as kScoreColumns; Corrupt on a bad checksum or an empty
/// text.
Expected<std::pair<uint64_t, ScoreRecord>> readScore(const Database &database,
                                                     const Statement &row) {
  const std::string digest = row.text(0);
  ScoreRecord record{row.text(1), row.text(2)};
  auto fail = [&](const std::string &why) {
    return database.corrupt("score program '" + digest + "': " + why);
  };
  if (row.integer(3) != checksumOf(record, digest))
    return fail("its checksum is wrong");
  const std::optional<uint64_t> key = parseScoreDigits(digest);
  if (!key)
    return fail("that is no digest");
  if (const char *missing = missingIn(record))
    return fail(std::string("its ") + missing + " is empty");
  return std::make_pair(*key, std::move(record));
}

/// All of them by their digests; of a format version without a place for them
/// none.
Expected<std::map<uint64_t, ScoreRecord>> readScores(Database &database,
                                                     int32_t format) {
  std::map<uint64_t, ScoreRecord> scores;
  if (format < kPackageFormatVersion)
    return scores;
  Expected<Statement> rows = database.prepare(
      (std::string("SELECT ") + kScoreColumns + " FROM score").c_str());
  if (!rows)
    return rows.status();
  int code;
  while ((code = rows->step()) == SQLITE_ROW) {
    Expected<std::pair<uint64_t, ScoreRecord>> score =
        readScore(database, *rows);
    if (!score)
      return score.status();
    scores.insert(std::move(*score));
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "reading its score programs");
  return scores;
}

/// All rows of a query that `read` can read.
template <typename Record, typename Read>
Expected<std::vector<Record>> readAll(Database &database,
                                      const std::string &sql, size_t &unknown,
                                      Read read) {
  Expected<Statement> rows = database.prepare(sql.c_str());
  if (!rows)
    return rows.status();
  std::vector<Record> records;
  int code;
  while ((code = rows->step()) == SQLITE_ROW) {
    bool known = false;
    Expected<Record> record = read(*rows, known);
    if (!record)
      return record.status();
    if (known)
      records.push_back(std::move(*record));
    else
      ++unknown;
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "reading its rows");
  return records;
}

/// A statement that stores a row of these columns.
Expected<Statement> prepareStore(Database &database, const char *table,
                                 const std::string &columns) {
  const std::string sql = std::string("INSERT OR REPLACE INTO ") + table + "(" +
                          columns + ") VALUES(" + placeholders(columns) + ")";
  return database.prepare(sql.c_str());
}

} // namespace

Expected<std::vector<KernelRecord>>
readKernels(Database &database, int32_t format, size_t &unknown) {
  Expected<std::map<uint64_t, ScoreRecord>> scores =
      readScores(database, format);
  if (!scores)
    return scores.status();
  return readAll<KernelRecord>(database,
                               "SELECT " + kernelColumns(format) +
                                   " FROM kernel ORDER BY problem, schedule",
                               unknown, [&](const Statement &row, bool &known) {
                                 return readKernel(database, row, format,
                                                   *scores, known);
                               });
}

Expected<std::vector<TuningRow>> readTunings(Database &database,
                                             size_t &unknown) {
  return readAll<TuningRow>(
      database,
      std::string("SELECT ") + kTuningColumns +
          " FROM tuning ORDER BY problem, max_seqlen_q, max_seqlen_k, "
          "max_batch_heads",
      unknown, [&](const Statement &row, bool &known) {
        return readTuning(database, row, known);
      });
}

Expected<std::optional<KernelRecord>> findKernel(Database &database,
                                                 const ProblemKey &problem,
                                                 const std::string &schedule) {
  const std::string sql = "SELECT " + kernelColumns(kPackageFormatVersion) +
                          " FROM kernel WHERE problem=? AND schedule=?";
  Expected<Statement> select = database.prepare(sql.c_str());
  if (!select)
    return select.status();
  select->bind(1, problem.str());
  select->bind(2, schedule);
  const int code = select->step();
  if (code == SQLITE_DONE)
    return std::optional<KernelRecord>();
  if (code != SQLITE_ROW)
    return database.failure(code, "looking for a kernel");
  std::map<uint64_t, ScoreRecord> scores;
  if (problem.score) {
    Expected<std::optional<ScoreRecord>> score =
        findScore(database, problem.score);
    if (!score)
      return score.status();
    if (*score)
      scores.emplace(problem.score, std::move(**score));
  }
  bool known = false;
  Expected<KernelRecord> record =
      readKernel(database, *select, kPackageFormatVersion, scores, known);
  if (!record)
    return record.status();
  return std::optional<KernelRecord>(std::move(*record));
}

Status storeKernel(Database &database, const KernelRecord &record) {
  Expected<Statement> insert =
      prepareStore(database, "kernel", kernelColumns(kPackageFormatVersion));
  if (!insert)
    return insert.status();
  bindKernel(*insert, record);
  return database.run(*insert, "storing a kernel");
}

Status storeTuning(Database &database, const TuningRow &row) {
  Expected<Statement> insert = prepareStore(database, "tuning", kTuningColumns);
  if (!insert)
    return insert.status();
  bindTuning(*insert, row);
  return database.run(*insert, "storing a tuning row");
}

Expected<std::optional<ScoreRecord>> findScore(Database &database,
                                               uint64_t digest) {
  Expected<int32_t> format = formatOf(database);
  if (!format)
    return format.status();
  if (*format < kPackageFormatVersion)
    return std::optional<ScoreRecord>();
  Expected<Statement> select = database.prepare(
      (std::string("SELECT ") + kScoreColumns + " FROM score WHERE digest=?")
          .c_str());
  if (!select)
    return select.status();
  select->bind(1, scoreDigits(digest));
  const int code = select->step();
  if (code == SQLITE_DONE)
    return std::optional<ScoreRecord>();
  if (code != SQLITE_ROW)
    return database.failure(code, "looking for a score program");
  Expected<std::pair<uint64_t, ScoreRecord>> score =
      readScore(database, *select);
  if (!score)
    return score.status();
  return std::optional<ScoreRecord>(std::move(score->second));
}

Status storeScoreRow(Database &database, uint64_t digest,
                     const ScoreRecord &record) {
  Expected<Statement> insert = prepareStore(database, "score", kScoreColumns);
  if (!insert)
    return insert.status();
  const std::string digits = scoreDigits(digest);
  insert->bind(1, digits);
  insert->bind(2, record.name);
  insert->bind(3, record.text);
  insert->bind(4, checksumOf(record, digits));
  return database.run(*insert, "storing a score program");
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
  if (record.problem.score) {
    if (const char *missing = db::missingIn(record.score))
      return fail(std::string("the ") + missing +
                  " of its score program is empty");
  } else if (record.score != ScoreRecord()) {
    return fail("there is the score program '" + record.score.name +
                "', which the problem does not name");
  }
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
  const bool mayBeOne = record.problem.op != OpKind::Backward;
  if (!mayBeOne && record.launches.empty())
    return fail("the list of its launches is empty");
  if (mayBeOne && record.launches.size() == 1)
    return fail("a forward kernel is one launch, without a list, or several, "
                "but there is the list '" +
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
