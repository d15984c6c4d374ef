//===- PackageTest.cpp - what is written is read --------------------------===//

#include "TestPackage.h"

#include <sqlite3.h>

using namespace fovea;
using namespace fovea::test;

namespace {

class PackageTest : public ::testing::Test {
protected:
  TempDir dir;
  const std::string path = dir.file("gfx942.fovea");
  TargetId target = *TargetId::parse("gfx942");

  PackageWriter write() {
    Expected<PackageWriter> writer = PackageWriter::open(path, target);
    EXPECT_TRUE(writer) << writer.status().message();
    return std::move(*writer);
  }
  int64_t count(const char *table) {
    return integer("SELECT count(*) FROM " + std::string(table));
  }
  void run(const char *sql) {
    sqlite3 *db = nullptr;
    sqlite3_open(path.c_str(), &db);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  int64_t integer(const std::string &sql) {
    sqlite3 *db = nullptr;
    sqlite3_open(path.c_str(), &db);
    sqlite3_stmt *stmt = nullptr;
    sqlite3_prepare_v2(db, sql.c_str(), -1, &stmt, nullptr);
    sqlite3_step(stmt);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
  }
};

} // namespace

TEST_F(PackageTest, ReaderReturnsWhatWasPut) {
  const KernelRecord put = makeRecord(makeProblem(128), 128);
  const std::vector<uint8_t> image = makeImage("gfx942", "the code");
  {
    PackageWriter writer = write();
    FOVEA_ASSERT_OK(writer.put(put, image.data(), image.size()));
    FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(64), 64), "other"));
    FOVEA_ASSERT_OK(writer.putTuning(
        {makeProblem(128), 512, 512, TuningRow::kAny, put.schedule}));
  }
  Expected<PackageReader> reader = PackageReader::open(path, "gfx942");
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->target().str(), "gfx942");
  EXPECT_EQ(reader->creator(), "fovea");
  ASSERT_EQ(reader->kernels().size(), 2u);
  auto found = reader->candidates(makeProblem(128));
  ASSERT_EQ(found.size(), 1u);
  const KernelRecord &got = *found[0];
  EXPECT_EQ(got.problem, put.problem);
  EXPECT_EQ(got.schedule, put.schedule);
  EXPECT_EQ(got.fingerprint, put.fingerprint);
  EXPECT_EQ(got.abiVersion, put.abiVersion);
  EXPECT_EQ(got.symbol, put.symbol);
  EXPECT_EQ(got.blockM, put.blockM);
  EXPECT_EQ(got.blockN, put.blockN);
  EXPECT_EQ(got.threads, put.threads);
  EXPECT_EQ(got.resources.vgprs, 128);
  EXPECT_EQ(got.resources.agprs, 64);
  EXPECT_EQ(got.resources.sgprs, 40);
  EXPECT_EQ(got.resources.ldsBytes, 32768);
  EXPECT_EQ(got.resources.scratchBytes, 0);
  EXPECT_EQ(got.resources.occupancy, 2);
  EXPECT_EQ(got.resources.matrixInstructions, 96);
  EXPECT_EQ(got.resources.codeBytes, 4096);
  EXPECT_EQ(got.resources.vgprSpills, 3);
  EXPECT_EQ(got.resources.sgprSpills, 1);
  EXPECT_EQ(got.compileMs, 123.5);
  EXPECT_EQ(got.imageBytes, image.size());
  Expected<std::vector<uint8_t>> loaded = reader->loadImage(got);
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_EQ(*loaded, image);
  FOVEA_ASSERT_OK(reader->verifyImages());
  ASSERT_EQ(reader->tuning().size(), 1u);
  EXPECT_EQ(reader->tuning()[0].maxSeqlenQ, 512);
  EXPECT_EQ(reader->tuning()[0].schedule, put.schedule);
  EXPECT_TRUE(reader->candidates(makeProblem(256)).empty());
}

TEST_F(PackageTest, LaunchesAreKept) {
  const KernelRecord put = makeBackwardRecord(64);
  {
    PackageWriter writer = write();
    FOVEA_ASSERT_OK(putFake(writer, put, "code"));
    FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(64)), "code"));
  }
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  ASSERT_EQ(reader->kernels().size(), 2u);
  auto found = reader->candidates(put.problem);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->launches, put.launches);
  EXPECT_EQ(found[0]->symbolOf(found[0]->launches[1]), "gradients_dkdv");
  EXPECT_TRUE(reader->candidates(makeProblem(64))[0]->launches.empty());
}

TEST_F(PackageTest, LaunchesHaveOneText) {
  const std::string text = "delta:64:256,dkdv:128:256,dq:128:512";
  EXPECT_EQ(toString(makeBackwardRecord().launches), text);
  Expected<std::vector<LaunchRecord>> parsed = parseLaunches(text);
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(*parsed, makeBackwardRecord().launches);
  ASSERT_TRUE(parseLaunches(""));
  EXPECT_TRUE(parseLaunches("")->empty());
  const std::pair<const char *, const char *> cases[] = {
      {"dq", "'dq' is not of the form suffix:rows:threads"},
      {"dq:64", "'dq:64' is not of the form"},
      {"dq:64:256,", "'' is not of the form"},
      {",dq:64:256", "'' is not of the form"},
      {"dq:0:256", "rows are not in 1 to 256"},
      {"dq:257:256", "rows are not in 1 to 256"},
      {"dq:64:1025", "threads not in 1 to 1024"},
      {"dq:64:256:1", "in 'dq:64:256:1'"},
      {"dq:64x:256", "in 'dq:64x:256'"},
      {"dq:-64:256", "in 'dq:-64:256'"},
      {":64:256", "the suffix is not"},
      {"d q:64:256", "the suffix is not"},
      {"1q:64:256", "the suffix is not"},
      {"dq:064:256", "not canonical"},
      {"dq:64:256,dq:64:256", "'dq' is there twice"},
      {"a:1:1,b:1:1,c:1:1,d:1:1,e:1:1,f:1:1,g:1:1,h:1:1,i:1:1",
       "more than 8 launches"},
  };
  for (const auto &[wrong, part] : cases)
    expectFailure(parseLaunches(wrong).status(), StatusCode::InvalidArgument,
                  part);
}

TEST_F(PackageTest, TuningRowsComeSmallestBucketFirst) {
  PackageWriter writer = write();
  for (int64_t limit : {TuningRow::kAny, int64_t(64), int64_t(4096)})
    FOVEA_ASSERT_OK(writer.putTuning(
        {makeProblem(64), limit, TuningRow::kAny, TuningRow::kAny, "s"}));
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->tuning().size(), 3u);
  EXPECT_EQ(reader->tuning()[0].maxSeqlenQ, 64);
  EXPECT_EQ(reader->tuning()[1].maxSeqlenQ, 4096);

  FOVEA_ASSERT_OK(writer.putTuning({makeProblem(128), 1, 2, 3, "s"}));
  const TuningRow row = {makeProblem(64), 7, 8, 9, "t"};
  TuningRow wrong = row;
  wrong.schedule = "";
  expectFailure(writer.replaceTuning({row, wrong}), StatusCode::InvalidArgument,
                "the schedule is empty");
  EXPECT_EQ(count("tuning"), 4);
  FOVEA_ASSERT_OK(writer.replaceTuning({row}));
  reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->tuning().size(), 2u); // the other problem's is still there
  EXPECT_EQ(reader->tuning()[1].schedule, "t");

  FOVEA_ASSERT_OK(writer.dropTuning(makeProblem(64)));
  FOVEA_ASSERT_OK(writer.dropTuning(makeProblem(64))); // there are none
  EXPECT_EQ(count("tuning"), 1);
}

TEST_F(PackageTest, SameImageIsStoredOnce) {
  PackageWriter writer = write();
  FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(64), 64), "same"));
  FOVEA_ASSERT_OK(putFake(writer, makeRecord(makeProblem(64), 128), "same"));
  EXPECT_EQ(count("kernel"), 2);
  EXPECT_EQ(count("image"), 1);
}

TEST_F(PackageTest, ReplacingOrRemovingAKernelDropsItsImage) {
  PackageWriter writer = write();
  const KernelRecord record = makeRecord(makeProblem(64));
  FOVEA_ASSERT_OK(putFake(writer, record, "first"));
  FOVEA_ASSERT_OK(putFake(writer, record, "second"));
  EXPECT_EQ(count("kernel"), 1);
  EXPECT_EQ(count("image"), 1);
  FOVEA_ASSERT_OK(writer.remove(record.problem, record.schedule));
  EXPECT_EQ(count("kernel"), 0);
  EXPECT_EQ(count("image"), 0);
  expectFailure(writer.remove(record.problem, record.schedule),
                StatusCode::NotFound, "has no kernel");
}

TEST_F(PackageTest, CurrentMeansSameFingerprintAndSound) {
  const KernelRecord record = makeRecord(makeProblem(64));
  auto current = [&](const std::string &fingerprint) {
    PackageWriter writer = write();
    Expected<bool> answer =
        writer.isCurrent(record.problem, record.schedule, fingerprint);
    EXPECT_TRUE(answer) << answer.status().message();
    return answer && *answer;
  };
  EXPECT_FALSE(current("test 1"));
  {
    PackageWriter writer = write();
    FOVEA_ASSERT_OK(putFake(writer, record, "code"));
  }
  EXPECT_TRUE(current("test 1"));
  EXPECT_FALSE(current("test 2"));

  sqlite3 *db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db, "UPDATE block SET data = zeroblob(12)", nullptr, nullptr,
               nullptr);
  sqlite3_close(db);
  EXPECT_FALSE(current("test 1")) << "a damaged image must be built again";
  {
    PackageWriter writer = write();
    FOVEA_ASSERT_OK(putFake(writer, record, "code"));
  }
  EXPECT_TRUE(current("test 1"));
}

TEST_F(PackageTest, WriterRefusesWhatReadersWould) {
  PackageWriter writer = write();
  KernelRecord record = makeRecord(makeProblem(64));
  record.blockM = 512;
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "block_m is 512, not in 1 to 256");
  record = makeRecord(makeProblem(60));
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "head_dim '60'");
  record = makeRecord(makeProblem(64));
  record.symbol.clear();
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "symbol is empty");
  record = makeRecord(makeProblem(64));
  record.launches = {{"dq", 64, 256}};
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "a forward kernel is one launch");
  record = makeBackwardRecord();
  record.launches.clear();
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "the list of its launches is empty");
  record.launches = {{"dq", 0, 256}};
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "rows are not in 1 to 256");
  // One launch that would read as two.
  record.launches = {{"delta:64:256,dq", 64, 256}};
  expectFailure(putFake(writer, record, "x"), StatusCode::InvalidArgument,
                "a suffix of the launches");
  record = makeRecord(makeProblem(64));
  expectFailure(putFake(writer, record, "x", "gfx950"),
                StatusCode::Incompatible, "its image is for gfx950");
  expectFailure(writer.put(record, "no ELF", 6), StatusCode::Corrupt,
                "fewer than an ELF header");
  EXPECT_EQ(count("kernel"), 0);
}

TEST_F(PackageTest, ScoreProgramsComeAndGoWithTheirKernels) {
  const KernelRecord plain = makeRecord(makeProblem());
  const KernelRecord capped = makeScoreRecord(0xab, "softcap", "score 1\nx");
  PackageWriter writer = write();
  FOVEA_ASSERT_OK(putFake(writer, plain, "plain"));
  EXPECT_EQ(integer("PRAGMA user_version"), kPlainPackageFormatVersion);
  FOVEA_ASSERT_OK(putFake(writer, capped, "capped"));
  EXPECT_EQ(integer("PRAGMA user_version"), kPackageFormatVersion);
  FOVEA_ASSERT_OK(writer.pack());
  {
    Expected<PackageReader> reader = PackageReader::open(path);
    ASSERT_TRUE(reader) << reader.status().message();
    ASSERT_EQ(reader->kernels().size(), 2u);
    ASSERT_EQ(reader->candidates(capped.problem).size(), 1u);
    EXPECT_EQ(reader->candidates(capped.problem)[0]->score, capped.score);
    EXPECT_EQ(reader->candidates(plain.problem)[0]->score, ScoreRecord());
    FOVEA_ASSERT_OK(reader->verifyImages());
  }
  Expected<bool> current =
      writer.isCurrent(capped.problem, capped.schedule, capped.fingerprint);
  ASSERT_TRUE(current) << current.status().message();
  EXPECT_TRUE(*current);

  // The last name counts.
  KernelRecord renamed = capped;
  renamed.score.name = "tanhcap";
  renamed.schedule = "another";
  FOVEA_ASSERT_OK(putFake(writer, renamed, "capped"));
  EXPECT_EQ(integer("SELECT count(*) FROM score"), 1);
  EXPECT_EQ(PackageReader::open(path)->candidates(capped.problem)[0]->score,
            renamed.score);

  FOVEA_ASSERT_OK(writer.remove(capped.problem, capped.schedule));
  EXPECT_EQ(integer("SELECT count(*) FROM score"), 1);
  FOVEA_ASSERT_OK(writer.remove(renamed.problem, renamed.schedule));
  EXPECT_EQ(integer("PRAGMA user_version"), kPlainPackageFormatVersion);
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->kernels().size(), 1u);
}

TEST_F(PackageTest, ADamagedScoreProgramIsBuiltAgain) {
  const KernelRecord capped = makeScoreRecord(0xab, "softcap");
  FOVEA_ASSERT_OK(
      putFake(*std::make_unique<PackageWriter>(write()), capped, "capped"));
  PackageWriter writer = write();
  run("UPDATE score SET text='score 2'");
  Expected<bool> current =
      writer.isCurrent(capped.problem, capped.schedule, capped.fingerprint);
  ASSERT_TRUE(current) << current.status().message();
  EXPECT_FALSE(*current);
  FOVEA_ASSERT_OK(putFake(writer, capped, "capped"));
  EXPECT_TRUE(PackageReader::open(path));
}

TEST_F(PackageTest, ScoreProgramsThatAreRefused) {
  PackageWriter writer = write();
  FOVEA_ASSERT_OK(putFake(writer, makeScoreRecord(0xab, "softcap"), "x"));
  expectFailure(putFake(writer, makeScoreRecord(0xab, "other", "score 2"), "x"),
                StatusCode::InvalidArgument,
                "the text of its score program 'other' is not that of "
                "'softcap', which has the same digest");
  expectFailure(putFake(writer, makeScoreRecord(0xac, "", "text"), "x"),
                StatusCode::InvalidArgument,
                "the name of its score program is empty");
  expectFailure(putFake(writer, makeScoreRecord(0xac, "name", ""), "x"),
                StatusCode::InvalidArgument,
                "the text of its score program is empty");
  expectFailure(putFake(writer, makeScoreRecord(0, "softcap"), "x"),
                StatusCode::InvalidArgument,
                "the score program 'softcap', which the problem does not name");
  EXPECT_EQ(count("kernel"), 1);
}

TEST_F(PackageTest, OnePackageHoldsOneTarget) {
  write();
  expectFailure(PackageWriter::open(path, *TargetId::parse("gfx950")).status(),
                StatusCode::Incompatible, "it is for gfx942, not for gfx950");
  expectFailure(
      PackageWriter::open(path, *TargetId::parse("gfx942:xnack+")).status(),
      StatusCode::Incompatible, "not for gfx942:xnack+");
  expectFailure(PackageReader::open(path, "gfx950").status(),
                StatusCode::Incompatible, "not for gfx950");
}

TEST_F(PackageTest, TargetsAreChipsOrGenericTargets) {
  for (const char *text : {"gfx943", "gfx1100:xnack+"})
    expectFailure(PackageWriter::open(path, *TargetId::parse(text)).status(),
                  StatusCode::InvalidArgument, "gfx1100");
  EXPECT_FALSE(std::filesystem::exists(path));
  Expected<PackageWriter> writer =
      PackageWriter::open(path, *TargetId::parse("gfx11-generic"));
  ASSERT_TRUE(writer) << writer.status().message();
  const KernelRecord record = makeRecord(makeProblem(128));
  expectFailure(putFake(*writer, record, "code", "gfx1100"),
                StatusCode::Incompatible,
                "its image is for gfx1100, the package for gfx11-generic");
  // The image's own header counts: not V6, not stored.
  std::vector<uint8_t> image = makeImage("gfx11-generic", "code");
  image[8] = 3;
  expectFailure(writer->put(record, image.data(), image.size()),
                StatusCode::Incompatible, "code object version 5");
  FOVEA_ASSERT_OK(putFake(*writer, record, "code", "gfx11-generic"));
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->target().str(), "gfx11-generic");
  FOVEA_ASSERT_OK(reader->verifyImages());
}

TEST_F(PackageTest, PathsThatCannotBeOpened) {
  expectFailure(PackageReader::open(dir.file("none")).status(),
                StatusCode::NotFound, "no such file");
  expectFailure(PackageReader::open(dir.path()).status(),
                StatusCode::InvalidArgument, "is a folder");
  expectFailure(
      PackageWriter::open(dir.file("no/such/folder.fovea"), target).status(),
      StatusCode::Io, "check that the folder exists");
  expectFailure(PackageWriter::open(dir.path(), target).status(),
                StatusCode::Io, "can't be opened");
  expectFailure(PackageWriter::open("", target).status(),
                StatusCode::InvalidArgument, "empty");
  expectFailure(PackageWriter::open(path, TargetId{"nonsense"}).status(),
                StatusCode::InvalidArgument, "does not name a chip");
}
