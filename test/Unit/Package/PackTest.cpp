//===- PackTest.cpp - packed packages, and packages of older versions -----===//

#include "TestPackage.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sqlite3.h>

using namespace fovea;
using namespace fovea::test;

namespace {

class PackTest : public ::testing::Test {
protected:
  TempDir dir;
  const std::string path = dir.file("gfx942.fovea");
  const TargetId target = *TargetId::parse("gfx942");

  PackageWriter write(const std::string &file) {
    Expected<PackageWriter> writer = PackageWriter::open(file, target);
    EXPECT_TRUE(writer) << writer.status().message();
    return std::move(*writer);
  }

  static void put(PackageWriter &writer, int32_t dim) {
    FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(dim)),
                            codeLikePayload(uint32_t(dim))));
  }

  /// Every row of a table as a text.
  static std::string rowsOf(const std::string &file, const char *table) {
    sqlite3 *db = nullptr;
    sqlite3_open(file.c_str(), &db);
    sqlite3_stmt *stmt = nullptr;
    EXPECT_EQ(
        sqlite3_prepare_v2(db, (std::string("SELECT * FROM ") + table).c_str(),
                           -1, &stmt, nullptr),
        SQLITE_OK);
    std::string text;
    while (sqlite3_step(stmt) == SQLITE_ROW)
      for (int i = 0; i != sqlite3_column_count(stmt); ++i)
        text.append(static_cast<const char *>(sqlite3_column_blob(stmt, i)),
                    size_t(sqlite3_column_bytes(stmt, i)))
            .append("|");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return text;
  }

  static int64_t countOf(const std::string &file, const std::string &table) {
    sqlite3 *db = nullptr;
    sqlite3_open(file.c_str(), &db);
    sqlite3_stmt *stmt = nullptr;
    sqlite3_prepare_v2(db, ("SELECT count(*) FROM " + table).c_str(), -1, &stmt,
                       nullptr);
    sqlite3_step(stmt);
    const int64_t count = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return count;
  }

  static void expectSound(const std::string &file, size_t kernels) {
    Expected<PackageReader> reader = PackageReader::open(file);
    ASSERT_TRUE(reader) << reader.status().message();
    EXPECT_EQ(reader->kernels().size(), kernels);
    FOVEA_ASSERT_OK(reader->verifyImages());
    for (const KernelRecord &kernel : reader->kernels()) {
      Expected<std::vector<uint8_t>> image = reader->loadImage(kernel);
      ASSERT_TRUE(image) << image.status().message();
      EXPECT_EQ(*image,
                makeImage("gfx942",
                          codeLikePayload(uint32_t(kernel.problem.headDim))));
    }
  }
};

/// Runs a function before one of the transactions for reading that connections
/// which are opened meanwhile begin.
class BeforeRead {
public:
  BeforeRead(int number, std::function<void()> run)
      : countdown(number), run(std::move(run)) {
    active = this;
    sqlite3_auto_extension(extension());
  }
  ~BeforeRead() {
    sqlite3_cancel_auto_extension(extension());
    active = nullptr;
  }

private:
  static void (*extension())() { return reinterpret_cast<void (*)()>(&onOpen); }
  static int onOpen(sqlite3 *db, char **, const void *) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, &onStatement, nullptr);
  }
  static int onStatement(unsigned, void *, void *, void *sql) {
    if (active && !std::strcmp(static_cast<const char *>(sql), "BEGIN") &&
        --active->countdown == 0)
      active->run();
    return 0;
  }
  static BeforeRead *active;
  int countdown;
  std::function<void()> run;
};
BeforeRead *BeforeRead::active = nullptr;

} // namespace

// Compressing takes long, and another build must not wait for it.
TEST_F(PackTest, AnotherBuildGoesOnMeanwhile) {
  PackageWriter::Options impatient;
  impatient.busyTimeoutMs = 0;
  Expected<PackageWriter> other = PackageWriter::open(path, target, impatient);
  ASSERT_TRUE(other) << other.status().message();
  for (int32_t dim = 16; dim != 176; dim += 8)
    put(*other, dim);
  int changes = 0;
  {
    // In the middle of the images, each of which is read by itself.
    BeforeRead add(10, [&] {
      put(*other, 400);
      ++changes;
    });
    PackageWriter writer = write(path);
    FOVEA_ASSERT_OK(writer.pack());
  }
  put(*other, 408);
  {
    BeforeRead drop(3, [&] { // 168 is in the second block
      FOVEA_ASSERT_OK(other->remove(makeProblem(168), makeRecord({}).schedule));
      ++changes;
    });
    PackageWriter writer = write(path);
    FOVEA_ASSERT_OK(writer.pack());
  }
  EXPECT_EQ(changes, 2);
  expectSound(path, 21);
  const std::vector<uint8_t> bytes = readBytes(path);
  FOVEA_ASSERT_OK(other->pack());
  EXPECT_EQ(readBytes(path), bytes) << "it is packed";
}

TEST_F(PackTest, WhatImagesShareIsStoredOnce) {
  PackageWriter writer = write(path);
  for (int32_t dim = 16; dim != 336; dim += 8)
    put(writer, dim);
  const auto before = std::filesystem::file_size(path);
  FOVEA_ASSERT_OK(writer.pack());
  const auto after = std::filesystem::file_size(path);
  EXPECT_LT(after, before / 3);
  expectSound(path, 40);
}

TEST_F(PackTest, TheResultDoesNotDependOnTheOrder) {
  const std::string other = dir.file("other.fovea");
  std::vector<int32_t> dims;
  for (int32_t dim = 16; dim != 176; dim += 8)
    dims.push_back(dim);
  {
    PackageWriter writer = write(path);
    for (int32_t dim : dims)
      put(writer, dim);
    FOVEA_ASSERT_OK(writer.pack());
  }
  std::reverse(dims.begin(), dims.end());
  for (int32_t dim : dims) { // as many builds as kernels
    PackageWriter writer = write(other);
    put(writer, dim);
    FOVEA_ASSERT_OK(writer.pack());
  }
  for (const char *table : {"meta", "block", "image", "kernel"})
    EXPECT_EQ(rowsOf(path, table), rowsOf(other, table)) << table;
}

TEST_F(PackTest, NothingIsWrittenWhenNothingChanged) {
  PackageWriter writer = write(path);
  for (int32_t dim = 16; dim != 176; dim += 8)
    put(writer, dim);
  FOVEA_ASSERT_OK(writer.pack());
  const std::vector<uint8_t> bytes = readBytes(path);
  FOVEA_ASSERT_OK(writer.pack());
  EXPECT_EQ(readBytes(path), bytes);
  put(writer, 16); // the same again
  FOVEA_ASSERT_OK(writer.pack());
  expectSound(path, 20);
}

// Blocks have a limit, and an image that passes it has one to itself.
TEST_F(PackTest, ManyBlocks) {
  PackageWriter writer = write(path);
  std::string large;
  for (uint32_t seed = 0; large.size() < (3 << 20); ++seed)
    large += codeLikePayload(seed);
  FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(64)), large));
  for (int32_t dim : {16, 24, 32, 72, 80})
    FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(dim)),
                            large.substr(size_t(dim), 900 << 10)));
  FOVEA_ASSERT_OK(writer.pack());
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  FOVEA_ASSERT_OK(reader->verifyImages());
  // Two of the small ones fit a block: {16, 24}, {32}, {64}, {72, 80}.
  EXPECT_EQ(countOf(path, "block"), 4);
  EXPECT_EQ(countOf(path, "image"), 6);
}

TEST_F(PackTest, KernelsComeAndGoAfterwards) {
  PackageWriter writer = write(path);
  for (int32_t dim = 16; dim != 176; dim += 8)
    put(writer, dim);
  FOVEA_ASSERT_OK(writer.pack());
  put(writer, 400);
  expectSound(path, 21);
  FOVEA_ASSERT_OK(writer.remove(makeProblem(16), makeRecord({}).schedule));
  FOVEA_ASSERT_OK(writer.pack());
  expectSound(path, 20);
}

// Blocks of kernels that stay as they are are not compressed again, which their
// bytes show when these are not what compressing would give.
TEST_F(PackTest, OnlyWhatChangedIsCompressed) {
  PackageWriter::Options quick;
  quick.compressionLevel = 1;
  {
    Expected<PackageWriter> writer = PackageWriter::open(path, target, quick);
    ASSERT_TRUE(writer);
    for (int32_t dim = 16; dim != 384; dim += 8)
      put(*writer, dim);
    FOVEA_ASSERT_OK(writer->pack());
  }
  EXPECT_EQ(countOf(path, "block"), 3); // to 120, 248 and 376
  const std::string before = rowsOf(path, "block");
  PackageWriter writer = write(path);
  FOVEA_ASSERT_OK(writer.remove(makeProblem(200), makeRecord({}).schedule));
  FOVEA_ASSERT_OK(writer.pack());
  expectSound(path, 45);
  const std::string after = rowsOf(path, "block");
  EXPECT_NE(after, before);
  EXPECT_EQ(after.substr(0, 2000), before.substr(0, 2000));
  EXPECT_EQ(after.substr(after.size() - 2000),
            before.substr(before.size() - 2000));
}

// A reader that is open meanwhile finds each image where it is then.
TEST_F(PackTest, AnOpenReaderGoesOn) {
  PackageWriter writer = write(path);
  for (int32_t dim = 16; dim != 176; dim += 8)
    put(writer, dim);
  FOVEA_ASSERT_OK(writer.pack());
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  for (int32_t dim = 176; dim != 416; dim += 8)
    put(writer, dim);
  FOVEA_ASSERT_OK(reader->verifyImages());
  FOVEA_ASSERT_OK(writer.pack());
  EXPECT_EQ(reader->kernels().size(), 20u);
  FOVEA_ASSERT_OK(reader->verifyImages());
}

//===----------------------------------------------------------------------===//
// A stored file that version 2 of the format's writer made
//===----------------------------------------------------------------------===//

TEST_F(PackTest, PackagesOfVersion2AreRead) {
  const std::string old = dir.file("old.fovea");
  writeBytes(old, readBytes(FOVEA_TEST_INPUTS "/format2.gfx942.fovea"));
  Expected<PackageReader> reader = PackageReader::open(old, "gfx942");
  ASSERT_TRUE(reader) << reader.status().message();
  ASSERT_EQ(reader->kernels().size(), 2u);
  FOVEA_ASSERT_OK(reader->verifyImages());
  const KernelRecord &forward = reader->kernels()[1];
  EXPECT_EQ(forward.problem.str(),
            "forward;dtype=bf16;head_dim=32;mask=causal_bottom_right");
  EXPECT_EQ(forward.blockM, 128);
  EXPECT_EQ(forward.resources.scratchBytes, 0);
  EXPECT_EQ(forward.resources.vgprSpills, -1);
  EXPECT_EQ(toString(reader->kernels()[0].launches),
            "delta:64:256,dkdv:128:256,dq:128:256");
  ASSERT_EQ(reader->tuning().size(), 1u);
  EXPECT_EQ(reader->tuning()[0].maxSeqlenK, 1024);
  EXPECT_EQ(reader->tuning()[0].schedule, forward.schedule);
}

TEST_F(PackTest, AWriterBringsThemToThisVersion) {
  const std::string old = dir.file("old.fovea");
  writeBytes(old, readBytes(FOVEA_TEST_INPUTS "/format2.gfx942.fovea"));
  Expected<PackageReader> before = PackageReader::open(old);
  ASSERT_TRUE(before);
  PackageWriter writer = write(old);
  Expected<bool> current = writer.isCurrent(before->kernels()[0].problem,
                                            before->kernels()[0].schedule,
                                            before->kernels()[0].fingerprint);
  ASSERT_TRUE(current) << current.status().message();
  EXPECT_TRUE(*current);
  put(writer, 64);
  Expected<PackageReader> after = PackageReader::open(old);
  ASSERT_TRUE(after) << after.status().message();
  EXPECT_EQ(after->kernels().size(), 3u);
  EXPECT_EQ(after->tuning().size(), 1u);
  EXPECT_EQ(after->kernels()[0].symbol, before->kernels()[0].symbol);
  EXPECT_EQ(after->kernels()[0].launches, before->kernels()[0].launches);
  EXPECT_EQ(after->creator(), before->creator());
  FOVEA_ASSERT_OK(after->verifyImages());
  // Who has it open goes on as far as images go.
  FOVEA_ASSERT_OK(before->verifyImages());
}

// One that is for another target, or damaged, stays as it is.
TEST_F(PackTest, WhatIsRefusedIsNotChanged) {
  const std::string old = dir.file("old.fovea");
  const std::vector<uint8_t> bytes =
      readBytes(FOVEA_TEST_INPUTS "/format2.gfx942.fovea");
  writeBytes(old, bytes);
  expectFailure(PackageWriter::open(old, *TargetId::parse("gfx950")).status(),
                StatusCode::Incompatible, "choose another file");
  EXPECT_EQ(readBytes(old), bytes);
}

static std::string bytesOf(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// However the kernels came there: in another order, in several builds, beside
// others that went again.
TEST_F(PackTest, SettledPackagesOfEqualKernelsAreEqualBytes) {
  const std::string other = dir.file("other.fovea");
  {
    PackageWriter writer = write(path);
    for (int32_t dim = 16; dim != 80; dim += 8)
      put(writer, dim);
    FOVEA_ASSERT_OK(writer.pack());
    FOVEA_ASSERT_OK(writer.settle());
  }
  {
    PackageWriter writer = write(other);
    for (int32_t dim = 96; dim != 40; dim -= 8)
      put(writer, dim);
    FOVEA_ASSERT_OK(writer.pack());
  }
  {
    PackageWriter writer = write(other);
    for (int32_t dim = 40; dim != 8; dim -= 8)
      put(writer, dim);
    for (int32_t dim = 80; dim != 104; dim += 8)
      FOVEA_ASSERT_OK(writer.remove(makeProblem(dim),
                                    makeRecord(makeProblem(dim)).schedule));
    FOVEA_ASSERT_OK(writer.pack());
    EXPECT_NE(bytesOf(path), bytesOf(other));
    FOVEA_ASSERT_OK(writer.settle());
  }
  EXPECT_EQ(bytesOf(path), bytesOf(other));
  expectSound(path, 8);
  // Another build goes on with it, and comes to the same.
  {
    PackageWriter writer = write(path);
    put(writer, 16);
    FOVEA_ASSERT_OK(writer.pack());
    FOVEA_ASSERT_OK(writer.settle());
  }
  EXPECT_EQ(bytesOf(path), bytesOf(other));
}

TEST_F(PackTest, PartsSayWhatTheyAre) {
  PackageWriter::Options options;
  options.shard = ShardInfo{2, 8, "0123", "a build"};
  {
    Expected<PackageWriter> writer = PackageWriter::open(path, target, options);
    ASSERT_TRUE(writer) << writer.status().message();
    put(*writer, 64);
  }
  auto shardOf = [&] {
    Expected<PackageReader> reader = PackageReader::open(path);
    EXPECT_TRUE(reader) << reader.status().message();
    return reader ? reader->shard() : std::nullopt;
  };
  const std::optional<ShardInfo> shard = shardOf();
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->str(), "2/8");
  EXPECT_EQ(shard->plan, "0123");
  EXPECT_EQ(shard->build, "a build");
  EXPECT_FALSE(shard->finished);
  // One that is there stays what it is.
  options.shard->index = 3;
  ASSERT_TRUE(PackageWriter::open(path, target, options));
  EXPECT_EQ(shardOf()->str(), "2/8");
  FOVEA_ASSERT_OK(PackageWriter::open(path, target, options)->finishShard());
  EXPECT_TRUE(shardOf()->finished);
  // Entries that are damaged, or without the others.
  sqlite3 *db = nullptr;
  sqlite3_open(path.c_str(), &db);
  for (const char *sql : {"UPDATE meta SET value='3/8' WHERE key='shard'",
                          "DELETE FROM meta WHERE key='shard'"}) {
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    Expected<PackageReader> reader = PackageReader::open(path);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.status().code(), StatusCode::Corrupt);
    EXPECT_NE(reader.status().message().find("'shard'"), std::string::npos)
        << reader.status().message();
  }
  sqlite3_close(db);
}
