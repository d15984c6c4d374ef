//===- Database.cpp - SQLite behind the package library -------------------===//
//
// Handles, transactions, and result codes as messages.
//
//===----------------------------------------------------------------------===//

#include "Database.h"

#include <climits>
#include <new>
#include <string_view>

namespace fovea::db {

//===----------------------------------------------------------------------===//
// Statement
//===----------------------------------------------------------------------===//

// The first failure of a binding is that of the next step: memory that runs out
// would leave a null, with which a query finds nothing.
void Statement::bound(int code) {
  if (bindError == SQLITE_OK)
    bindError = code;
}
void Statement::bind(int index, int64_t value) {
  bound(sqlite3_bind_int64(stmt.get(), index, value));
}
void Statement::bind(int index, double value) {
  bound(sqlite3_bind_double(stmt.get(), index, value));
}
void Statement::bind(int index, const std::string &value) {
  bound(sqlite3_bind_text64(stmt.get(), index, value.data(), value.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Statement::bindBlob(int index, const void *data, size_t size) {
  bound(sqlite3_bind_blob64(stmt.get(), index, data, size, SQLITE_TRANSIENT));
}
int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(stmt.get(), column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(stmt.get(), column);
}
std::string Statement::text(int column) const {
  const void *data = sqlite3_column_text(stmt.get(), column);
  const int size = sqlite3_column_bytes(stmt.get(), column);
  checkMemory(data);
  return data ? std::string(static_cast<const char *>(data),
                            static_cast<size_t>(size))
              : std::string();
}
std::pair<const uint8_t *, size_t> Statement::blob(int column) const {
  const void *data = sqlite3_column_blob(stmt.get(), column);
  const int size = sqlite3_column_bytes(stmt.get(), column);
  checkMemory(data);
  return {static_cast<const uint8_t *>(data), data ? size_t(size) : 0};
}
void Statement::checkMemory(const void *data) const {
  // Otherwise a null is a null, or nothing at all.
  if (!data && sqlite3_errcode(sqlite3_db_handle(stmt.get())) == SQLITE_NOMEM)
    throw std::bad_alloc();
}

//===----------------------------------------------------------------------===//
// Database
//===----------------------------------------------------------------------===//

const char *const kNewFileLayout =
    "PRAGMA page_size=4096;PRAGMA auto_vacuum=FULL;";

Expected<Database> Database::open(const std::string &path, Mode mode,
                                  int32_t busyTimeoutMs) {
  if (path.empty())
    return Status(StatusCode::InvalidArgument, "package: the path is empty");
  constexpr size_t kLongest = NAME_MAX - std::string_view("-journal").size();
  const size_t nameBytes = path.size() - (path.rfind('/') + 1);
  if (mode != Mode::ReadOnly && nameBytes > kLongest)
    return Status(StatusCode::InvalidArgument,
                  "package '" + path + "': its name has " +
                      std::to_string(nameBytes) + " bytes; it may have " +
                      std::to_string(kLongest) +
                      ", since SQLite keeps a journal beside the file whose "
                      "name is 8 longer");
  // SQLite reads a leading colon as a name of its own (":memory:").
  const std::string name = path[0] == ':' ? "./" + path : path;
  const int flags = mode == Mode::ReadOnly
                        ? SQLITE_OPEN_READONLY
                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // The owner comes first: its own memory may run out.
  Database database(nullptr, path);
  sqlite3 *raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw,
                                   flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  database.handle.reset(raw);
  if (code != SQLITE_OK)
    return database.failure(code, "opening it");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busyTimeoutMs);
  // The file is not trusted: no code from its schema, no writes to its schema,
  // no value longer than an image may be, and stricter checks of its pages.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, int(kMaxImageBytes));
  if (Status status = database.execute("PRAGMA cell_size_check=ON;"
                                       "PRAGMA mmap_size=0;");
      !status.ok())
    return status;
  if (mode == Mode::ReadOnly)
    return database;
  // A new file gets pages into which a compressed image or two fit, and shrinks
  // with what is in it. (Setting the latter writes, even where it is set.)
  Expected<int64_t> pages = database.queryInteger("PRAGMA page_count");
  if (!pages)
    return pages.status();
  if (*pages == 0)
    if (Status status = database.execute(kNewFileLayout); !status.ok())
      return status;
  return database;
}

Status Database::execute(const char *sql) {
  const int code = sqlite3_exec(handle.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : failure(code, "using it");
}

Status Database::copyInto(const std::string &path) {
  // SQLite counts changes of tables, too; to set that number takes a connection
  // that may do more than ours usually do.
  sqlite3_db_config(handle.get(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  Status status = execute("PRAGMA schema_version=1");
  sqlite3_db_config(handle.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (!status.ok())
    return status;
  Expected<Statement> copy = prepare("VACUUM INTO ?");
  if (!copy)
    return copy.status();
  copy->bind(1, path);
  return run(*copy, "writing it anew");
}

void Database::rollBack() noexcept {
  if (!sqlite3_get_autocommit(handle.get()))
    (void)sqlite3_exec(handle.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Expected<Statement> Database::prepare(const char *sql) {
  sqlite3_stmt *raw = nullptr;
  const int code = sqlite3_prepare_v2(handle.get(), sql, -1, &raw, nullptr);
  Statement statement(raw);
  if (code != SQLITE_OK)
    return failure(code, "reading its tables");
  return statement;
}

Expected<int64_t> Database::queryInteger(const char *sql) {
  Expected<Statement> statement = prepare(sql);
  if (!statement)
    return statement.status();
  if (int code = statement->step(); code != SQLITE_ROW)
    return failure(code, "reading it");
  return statement->integer(0);
}

Status Database::run(Statement &statement, const char *doing) {
  const int code = statement.step();
  return code == SQLITE_DONE || code == SQLITE_ROW ? Status()
                                                   : failure(code, doing);
}

namespace {

/// What a primary result code of SQLite means to a user.
struct Meaning {
  int code;
  StatusCode status;
  const char *text;
  const char *remedy = "";
};
constexpr const char *kBuildAgain =
    "; delete the file and build the package again";
constexpr Meaning kMeanings[] = {
    {SQLITE_NOTADB, StatusCode::Corrupt,
     "it is no package: its header is not that of an SQLite file", kWrongPath},
    {SQLITE_CORRUPT, StatusCode::Corrupt, "it is damaged or cut off",
     kBuildAgain},
    {SQLITE_TOOBIG, StatusCode::Corrupt, "it holds a value beyond 256 MiB",
     kBuildAgain},
    {SQLITE_SCHEMA, StatusCode::Corrupt, "its tables changed under way",
     kBuildAgain},
    {SQLITE_ERROR, StatusCode::Corrupt, "its tables are not as expected",
     kBuildAgain},
    {SQLITE_BUSY, StatusCode::Busy,
     "another process keeps it locked; try again when that has ended"},
    {SQLITE_LOCKED, StatusCode::Busy,
     "another user in this process keeps it locked; try again"},
    {SQLITE_FULL, StatusCode::Io, "the disk is full; make room and run again"},
    {SQLITE_READONLY, StatusCode::Io,
     "it can't be written; check the permissions of the file and its folder"},
    {SQLITE_CANTOPEN, StatusCode::Io,
     "it can't be opened; check that the folder exists and the permissions of "
     "the file and its folder"},
    {SQLITE_PERM, StatusCode::Io, "access to it was denied"},
    {SQLITE_IOERR, StatusCode::Io,
     "the file system failed; check free space, quota and file size limit"},
    {SQLITE_NOMEM, StatusCode::OutOfMemory, "memory ran out"},
};

} // namespace

Status Database::failure(int code, const char *doing) const {
  // Read-only users can't undo what a killed writer left half done.
  if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY)
    return Status(StatusCode::Io,
                  "package '" + file +
                      "': an interrupted build left a journal beside it; run "
                      "the build again, it then repairs the file");
  if (code == SQLITE_IOERR_NOMEM)
    code = SQLITE_NOMEM;
  const char *detail = handle ? sqlite3_errmsg(handle.get()) : "no memory";
  for (const Meaning &meaning : kMeanings)
    if (meaning.code == (code & 0xff))
      return Status(meaning.status, "package '" + file + "': " + meaning.text +
                                        meaning.remedy + " (while " + doing +
                                        ": " + detail + ")");
  return Status(StatusCode::Io, "package '" + file + "': " + detail +
                                    " (while " + doing + ", SQLite code " +
                                    std::to_string(code) + ")");
}

Status Database::corrupt(const std::string &what) const {
  return Status(StatusCode::Corrupt,
                "package '" + file + "': " + what + kBuildAgain);
}

Status Database::incompatible(const std::string &what) const {
  return Status(StatusCode::Incompatible, "package '" + file + "': " + what);
}

//===----------------------------------------------------------------------===//
// Transaction
//===----------------------------------------------------------------------===//

Status Transaction::begin(const char *sql) {
  database.rollBack(); // one that could not be, for want of memory
  Status status = database.execute(sql);
  open = status.ok();
  return status;
}

Status Transaction::commit() {
  Status status = database.execute("COMMIT");
  if (status.ok())
    open = false;
  return status;
}

Transaction::~Transaction() {
  // After some failures (disk full) SQLite has rolled back by itself; then this
  // fails, which changes nothing.
  if (open)
    database.rollBack();
}

} // namespace fovea::db
