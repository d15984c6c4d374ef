//===- FuzzPackage.cpp - any bytes as a package ---------------------------===//
//
// A package must be refused with a reason or read to its end. Checksums keep
// nearly all damage from the code behind them, so the first byte says what the
// others are: a file, or one part of a package whose checksums are right.
//
//===----------------------------------------------------------------------===//

#include "Database.h"
#include "fovea/Package/PackageReader.h"
#include "fovea/Package/PackageWriter.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

using namespace fovea;

namespace {

void require(bool condition) {
  if (!condition)
    __builtin_trap();
}
void check(const Status &status) {
  require(status.ok() || !status.message().empty());
}

/// In memory where there is such a place: a run writes thousands of files.
const std::string &folder() {
  static const std::string path = [] {
    std::string pattern = ::access("/dev/shm", W_OK) == 0
                              ? "/dev/shm/fovea-fuzz-XXXXXX"
                              : "/tmp/fovea-fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }();
  static const int registered = std::atexit([] {
    for (const char *name : {"/f", "/f-journal", "/d"})
      ::unlink((folder() + name).c_str());
    ::rmdir(folder().c_str());
  });
  (void)registered;
  return path;
}

/// The whole file.
void readFile(const uint8_t *data, size_t size) {
  const std::string path = folder() + "/f";
  FILE *file = std::fopen(path.c_str(), "wb");
  require(file && std::fwrite(data, 1, size, file) == size);
  std::fclose(file);
  {
    Expected<PackageReader> package = PackageReader::open(path);
    check(package.status());
    if (package) {
      for (const KernelRecord &kernel : package->kernels()) {
        require(checkKernelRecord(kernel).ok());
        Expected<std::vector<uint8_t>> image = package->loadImage(kernel);
        check(image.status());
        require(!image || image->size() == kernel.imageBytes);
      }
      for (const TuningRow &row : package->tuning())
        require(checkTuningRow(row).ok());
      check(package->verifyImages());
    }
  }
  // A writer may find the same file: it adds to it or leaves it alone.
  TargetId target;
  target.arch = "gfx942";
  check(PackageWriter::open(path, target).status());
  std::remove((path + "-journal").c_str());
}

/// Texts of rows, which must be read back as they are or be refused.
void readTexts(const std::string &text) {
  if (Expected<ProblemKey> key = ProblemKey::parse(text)) {
    Expected<ProblemKey> again = ProblemKey::parse(key->str());
    require(again && *again == *key);
  } else {
    check(key.status());
  }
  if (Expected<std::vector<LaunchRecord>> launches = parseLaunches(text))
    require(toString(*launches) == text);
  else
    check(launches.status());
  if (Expected<TargetId> target = TargetId::parse(text))
    require(bool(TargetId::parse(target->str())));
  else
    check(target.status());
}

db::Database &scratch() {
  static db::Database database = [] {
    Expected<db::Database> made = db::Database::open(
        folder() + "/d", db::Database::Mode::ReadWriteCreate, 0);
    require(bool(made));
    TargetId target;
    target.arch = "gfx942";
    require(db::createTables(*made, target, "fuzz").ok());
    return std::move(*made);
  }();
  return database;
}

/// A block whose row, and that of an image in it, say what the input wants: two
/// bytes each for the sizes of both and the image's place.
void readImage(const uint8_t *data, size_t size) {
  if (size < 6)
    return;
  auto number = [&](int at) { return uint64_t(data[at]) << 8 | data[at + 1]; };
  const uint64_t blockBytes = number(0), bytes = number(2), place = number(4);
  data += 6;
  size -= 6;
  db::Database &database = scratch();
  db::Transaction transaction(database); // never committed
  require(transaction.begin("BEGIN").ok());
  ImageHash hash{};
  {
    Expected<db::Statement> block =
        database.prepare("INSERT INTO block VALUES(1,?,?)");
    require(bool(block));
    block->bind(1, int64_t(blockBytes));
    block->bindBlob(2, data, size);
    require(database.run(*block, "testing").ok());
    Expected<db::Statement> image =
        database.prepare("INSERT INTO image VALUES(?,?,1,?)");
    require(bool(image));
    image->bindBlob(1, hash.data(), hash.size());
    image->bind(2, int64_t(bytes));
    image->bind(3, int64_t(place));
    require(database.run(*image, "testing").ok());
  }
  // Nothing here has a hash of zeros, so all must be refused.
  Expected<std::vector<uint8_t>> image =
      db::readImage(database, kPackageFormatVersion, hash, bytes);
  require(!image);
  check(image.status());
}

/// A code object, whose header is all that is read of it here.
void readCodeObject(const uint8_t *data, size_t size) {
  check(inspectCodeObject(data, size).status());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  switch (data[0]) {
  case 't':
    readTexts(std::string(data + 1, data + size));
    break;
  case 'i':
    readImage(data + 1, size - 1);
    break;
  case 'c':
    readCodeObject(data + 1, size - 1);
    break;
  default: // a package begins with an 'S'
    readFile(data, size);
  }
  return 0;
}
