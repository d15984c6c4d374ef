//===- PackageDamageTest.cpp - damaged packages are refused ---------------===//
//
// A package is damaged on purpose, by hand and byte by byte; the reader must
// refuse it with the reason or return exactly what was written.
//
//===----------------------------------------------------------------------===//

#include "TestPackage.h"

#define XXH_INLINE_ALL
#include <iostream>
#include <random>
#include <set>
#include <sqlite3.h>
#include <sstream>
#include <xxhash.h>

using namespace fovea;
using namespace fovea::test;

namespace {

class PackageDamageTest : public ::testing::Test {
protected:
  TempDir dir;
  const std::string path = dir.file("gfx942.fovea");

  void SetUp() override {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer) << writer.status().message();
    for (int32_t dim : {64, 96, 128})
      FOVEA_ASSERT_OK(putFake(*writer, makeRecord(makeProblem(dim), dim),
                              "code " + std::to_string(dim)));
    FOVEA_ASSERT_OK(putFake(*writer, makeBackwardRecord(), "gradients"));
    FOVEA_ASSERT_OK(writer->putTuning(
        {makeProblem(64), 512, TuningRow::kAny, TuningRow::kAny, "s"}));
  }

  /// Adds kernels of one block, and packs.
  void pack() {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer) << writer.status().message();
    for (int32_t dim = 256; dim != 384; dim += 8)
      FOVEA_ASSERT_OK(putFake(*writer, makeRecord(makeProblem(dim)),
                              codeLikePayload(uint32_t(dim))));
    FOVEA_ASSERT_OK(writer->pack());
  }

  void sql(const char *text) {
    sqlite3 *db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char *message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_close(db);
  }

  /// Everything that a package says, as a text; or the empty text and why it
  /// was refused.
  static std::string contents(const std::string &path, Status &refusal) {
    Expected<PackageReader> reader = PackageReader::open(path);
    refusal = reader.status();
    if (!reader)
      return "";
    std::ostringstream out;
    out << reader->target().str() << reader->creator() << "\n";
    for (const KernelRecord &k : reader->kernels()) {
      const KernelResources &r = k.resources;
      out << k.problem.str() << '|' << k.schedule << '|' << k.fingerprint << '|'
          << k.abiVersion << '|' << k.symbol << '|' << toString(k.launches)
          << '|' << k.blockM << '|' << k.blockN << '|' << k.threads << '|'
          << r.vgprs << '|' << r.agprs << '|' << r.sgprs << '|' << r.ldsBytes
          << '|' << r.scratchBytes << '|' << r.occupancy << '|'
          << r.matrixInstructions << '|' << r.codeBytes << '|' << r.vgprSpills
          << '|' << r.sgprSpills << '|' << k.compileMs << '|'
          << toString(k.imageHash) << '|';
      Expected<std::vector<uint8_t>> image = reader->loadImage(k);
      refusal = image.status();
      if (!image)
        return "";
      out.write(reinterpret_cast<const char *>(image->data()),
                std::streamsize(image->size()));
      out << '\n';
    }
    for (const TuningRow &t : reader->tuning())
      out << t.problem.str() << '|' << t.maxSeqlenQ << '|' << t.maxSeqlenK
          << '|' << t.maxBatchHeads << '|' << t.schedule << '\n';
    return out.str();
  }

  Status verdict() {
    Status refusal;
    contents(path, refusal);
    return refusal;
  }
};

} // namespace

TEST_F(PackageDamageTest, EachKindOfDamageIsNamed) {
  const struct {
    const char *sql;
    StatusCode code;
    const char *part;
  } cases[] = {
      {"PRAGMA application_id=7", StatusCode::Corrupt, "application id 7"},
      {"PRAGMA user_version=5", StatusCode::Incompatible,
       "format version is 5, this library reads 2 to 4; delete the file and "
       "build it again"},
      {"PRAGMA user_version=1", StatusCode::Incompatible,
       "format version is 1, this library reads 2 to 4"},
      {"PRAGMA user_version=4", StatusCode::Corrupt,
       "5 of the format's 6 tables"},
      {"PRAGMA user_version=2", StatusCode::Corrupt,
       "table 'meta' is not defined as the format says"},
      {"UPDATE kernel SET launches='delta:64:256,dkdv:64:256,dq:128:512' WHERE "
       "launches<>''",
       StatusCode::Corrupt, "checksum of kernel 'backward;"},
      {"DROP TABLE tuning", StatusCode::Corrupt, "4 of the format's 5 tables"},
      {"ALTER TABLE kernel ADD COLUMN extra", StatusCode::Corrupt,
       "table 'kernel' is not defined as the format says"},
      {"CREATE VIEW v AS SELECT 1", StatusCode::Corrupt, "view 'v'"},
      {"CREATE TRIGGER t AFTER DELETE ON kernel BEGIN DELETE FROM image; END",
       StatusCode::Corrupt, "trigger 't'"},
      {"DELETE FROM meta WHERE key='target'", StatusCode::Corrupt,
       "entry 'target' is missing"},
      {"UPDATE meta SET value='gfx950' WHERE key='target'", StatusCode::Corrupt,
       "checksum of its entry 'target'"},
      {"UPDATE kernel SET block_m=64 WHERE block_m=128", StatusCode::Corrupt,
       "checksum of kernel"},
      {"UPDATE kernel SET image_hash=(SELECT hash FROM image LIMIT 1)",
       StatusCode::Corrupt, "checksum of kernel"},
      {"UPDATE tuning SET schedule='x'", StatusCode::Corrupt,
       "checksum of a tuning row"},
      {"DELETE FROM image", StatusCode::Corrupt, "4 kernels without an image"},
      {"UPDATE image SET size=size+1", StatusCode::Corrupt, "should have"},
      {"UPDATE image SET size=1<<40", StatusCode::Corrupt, "should have"},
      {"UPDATE image SET place=1", StatusCode::Corrupt, "should have"},
      {"UPDATE image SET place=-1", StatusCode::Corrupt, "should have"},
      {"UPDATE block SET size=size+1", StatusCode::Corrupt, "by its row"},
      {"UPDATE block SET size=1<<40", StatusCode::Corrupt, "by its row"},
      {"DELETE FROM block", StatusCode::Corrupt, "4 images have no block"},
      {"UPDATE block SET data=zeroblob(40)", StatusCode::Corrupt,
       "no zstd frame"},
      {"UPDATE block SET data=substr(data,1,length(data)-5)",
       StatusCode::Corrupt, "does not decompress"},
      {"UPDATE block SET data=(SELECT b.data FROM block b WHERE b.size="
       "block.size AND b.id<>block.id) WHERE size=127",
       StatusCode::Corrupt, "has another hash"},
  };
  const std::vector<uint8_t> sound = readBytes(path);
  ASSERT_TRUE(verdict().ok()) << verdict().message();
  for (const auto &c : cases) {
    writeBytes(path, sound);
    sql(c.sql);
    SCOPED_TRACE(c.sql);
    expectFailure(verdict(), c.code, c.part);
  }
}

TEST_F(PackageDamageTest, EachKindOfDamageToAScoreProgramIsNamed) {
  FOVEA_ASSERT_OK(
      putFake(*PackageWriter::open(path, *TargetId::parse("gfx942")),
              makeScoreRecord(0xab, "softcap"), "capped"));
  const std::pair<const char *, const char *> cases[] = {
      {"UPDATE score SET name='tanhcap'",
       "score program '00000000000000ab': its checksum is wrong"},
      {"UPDATE score SET text='score 2'", "its checksum is wrong"},
      {"UPDATE score SET digest='00000000000000ac'", "its checksum is wrong"},
      {"DELETE FROM score", "has a score program that is not in it"},
      {"DROP TABLE score", "5 of the format's 6 tables"},
      {"PRAGMA user_version=3", "table 'score' is not defined as the format"},
  };
  const std::vector<uint8_t> sound = readBytes(path);
  ASSERT_TRUE(verdict().ok()) << verdict().message();
  for (const auto &[damage, part] : cases) {
    writeBytes(path, sound);
    sql(damage);
    SCOPED_TRACE(damage);
    expectFailure(verdict(), StatusCode::Corrupt, part);
  }
}

TEST_F(PackageDamageTest, NotSQLite) {
  writeBytes(path, std::vector<uint8_t>(8192, 'x'));
  expectFailure(verdict(), StatusCode::Corrupt, "not that of an SQLite file");
  writeBytes(path, {});
  expectFailure(verdict(), StatusCode::Corrupt, "it is empty");
}

TEST_F(PackageDamageTest, EachKindOfDamageToAPackedPackageIsNamed) {
  const struct {
    const char *sql;
    const char *part;
  } cases[] = {
      {"DELETE FROM block", "20 images have no block"},
      {"UPDATE block SET id=id+100", "20 images have no block"},
      {"UPDATE image SET place=place-1 WHERE place>0", "has another hash"},
      {"UPDATE image SET place=place+(1<<40)", "should have"},
      {"UPDATE block SET data=substr(data,1,length(data)-5)",
       "does not decompress"},
      {"DROP TABLE block", "4 of the format's 5 tables"},
  };
  pack();
  const std::vector<uint8_t> sound = readBytes(path);
  ASSERT_TRUE(verdict().ok()) << verdict().message();
  for (const auto &c : cases) {
    writeBytes(path, sound);
    sql(c.sql);
    SCOPED_TRACE(c.sql);
    expectFailure(verdict(), StatusCode::Corrupt, c.part);
  }
}

TEST_F(PackageDamageTest, EveryTruncationIsRefused) {
  pack();
  const std::vector<uint8_t> sound = readBytes(path);
  const size_t pageBytes = size_t(sound[16]) << 8 | sound[17];
  std::set<size_t> sizes;
  for (size_t size = 0; size < sound.size(); size += 509)
    sizes.insert(size);
  for (size_t size = 0; size != 120; ++size) // the header, byte by byte
    sizes.insert(size);
  for (size_t page = pageBytes; page < sound.size(); page += pageBytes)
    sizes.insert({page - 1, page, page + 1});
  const std::string damaged = dir.file("cut.fovea");
  for (size_t size : sizes) {
    writeBytes(damaged, {sound.begin(), sound.begin() + long(size)});
    Status refusal;
    contents(damaged, refusal);
    EXPECT_FALSE(refusal.ok()) << "cut to " << size;
    EXPECT_NE(refusal.message().find("build the package again"),
              std::string::npos)
        << refusal.message();
  }
  std::cout << sizes.size() << " truncations of " << sound.size()
            << " bytes, all refused\n";
}

// A writer must not add to what readers would refuse.
TEST_F(PackageDamageTest, WriterRefusesADamagedFileAndKeepsIt) {
  std::vector<uint8_t> bytes = readBytes(path);
  bytes.resize(bytes.size() / 2);
  writeBytes(path, bytes);
  expectFailure(PackageWriter::open(path, *TargetId::parse("gfx942")).status(),
                StatusCode::Corrupt,
                "delete the file and build the package again");
  EXPECT_EQ(readBytes(path), bytes);
}

// The header, the head of each page, and places anywhere: one bit at a time.
TEST_F(PackageDamageTest, FlippedBitsAreRefusedOrHarmless) {
  pack();
  const std::vector<uint8_t> sound = readBytes(path);
  Status refusal;
  const std::string expected = contents(path, refusal);
  ASSERT_TRUE(refusal.ok());
  const size_t pageBytes = size_t(sound[16]) << 8 | sound[17];
  std::vector<std::pair<size_t, int>> flips; ///< byte, bit
  std::mt19937 random(7);
  for (size_t at = 0; at != 100; ++at)
    for (int bit = 0; bit != 8; ++bit)
      flips.emplace_back(at, bit);
  for (size_t page = 0; page < sound.size(); page += pageBytes)
    for (size_t at = 0; at != 16; ++at)
      flips.emplace_back(page + (page ? at : 100 + at), int(random() % 8));
  for (int round = 0; round != 1000; ++round)
    flips.emplace_back(random() % sound.size(), int(random() % 8));
  const std::string damaged = dir.file("flipped.fovea");
  int refused = 0;
  for (const auto &[at, bit] : flips) {
    std::vector<uint8_t> bytes = sound;
    bytes[at] ^= uint8_t(1u << bit);
    writeBytes(damaged, bytes);
    const std::string got = contents(damaged, refusal);
    if (refusal.ok()) {
      EXPECT_EQ(got, expected) << "byte " << at;
    } else {
      EXPECT_FALSE(refusal.message().empty());
      ++refused;
    }
    std::filesystem::remove(damaged + "-wal");
    std::filesystem::remove(damaged + "-shm");
  }
  std::cout << flips.size() << " flipped bits: " << refused
            << " refused, the others read right\n";
  EXPECT_GT(refused, int(flips.size()) / 4);
}

// A later version may store problems with features that this one can't read;
// those rows are passed over, the rest is read. The checksum is made here from
// docs/PackageFormat.md, so the page is tested too.
TEST_F(PackageDamageTest, RowsOfUnknownProblemsArePassedOver) {
  const std::string problem = "forward;dtype=bf16;head_dim=64;window=128",
                    schedule = "s";
  std::string bytes;
  auto addInteger = [&](uint64_t value) {
    for (int i = 0; i != 8; ++i)
      bytes += char(value >> (8 * i));
  };
  addInteger(problem.size());
  bytes += problem;
  for (uint64_t limit : {1, 2, 3})
    addInteger(limit);
  addInteger(schedule.size());
  bytes += schedule;
  const auto sum = int64_t(XXH3_64bits(bytes.data(), bytes.size()));
  sql(("INSERT INTO tuning VALUES('" + problem + "',1,2,3,'" + schedule + "'," +
       std::to_string(sum) + ")")
          .c_str());
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->tuning().size(), 1u);
  EXPECT_EQ(reader->kernels().size(), 4u);
}

TEST_F(PackageDamageTest, ReaderStartedBeforeARewriteSaysSo) {
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  Expected<PackageWriter> writer =
      PackageWriter::open(path, *TargetId::parse("gfx942"));
  ASSERT_TRUE(writer);
  FOVEA_ASSERT_OK(
      putFake(*writer, makeRecord(makeProblem(64), 64), "new content"));
  expectFailure(
      reader->loadImage(*reader->candidates(makeProblem(64))[0]).status(),
      StatusCode::NotFound, "open the package again");
}
