//===- PackTest.cpp - packed packages, and packages of older versions -----===//

#include "TestPackage.h"

#include <algorithm>
#include <cstring>
#include <functional>
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
    // Of the images' 40 transactions, for the dictionary and for themselves.
    BeforeRead add(10, [&] {
      put(*other, 400);
      ++changes;
    });
    PackageWriter writer = write(path);
    FOVEA_ASSERT_OK(writer.pack());
  }
  put(*other, 408);
  {
    BeforeRead drop(10, [&] {
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
  EXPECT_FALSE(rowsOf(path, "dictionary").empty());
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
  for (const char *table : {"meta", "dictionary", "image", "kernel"})
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

TEST_F(PackTest, FewImagesStandByThemselves) {
  PackageWriter writer = write(path);
  for (int32_t dim : {16, 24, 32})
    put(writer, dim);
  FOVEA_ASSERT_OK(writer.pack());
  EXPECT_TRUE(rowsOf(path, "dictionary").empty());
  expectSound(path, 3);
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

// A reader that is open meanwhile finds each image with its own dictionary.
TEST_F(PackTest, AnOpenReaderGoesOn) {
  PackageWriter writer = write(path);
  for (int32_t dim = 16; dim != 176; dim += 8)
    put(writer, dim);
  FOVEA_ASSERT_OK(writer.pack());
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  for (int32_t dim = 176; dim != 416; dim += 8)
    put(writer, dim);
  const std::string before = rowsOf(path, "dictionary");
  FOVEA_ASSERT_OK(writer.pack());
  EXPECT_NE(rowsOf(path, "dictionary"), before);
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
