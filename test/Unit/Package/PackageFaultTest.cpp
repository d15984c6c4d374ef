//===- PackageFaultTest.cpp - the file system fails under a package -------===//
//
// Every operation on files fails once, and once with all after it. The call
// that meets it must say so, and the package must hold what was committed
// before.
//
//===----------------------------------------------------------------------===//

#include "../../Support/FullGrids.h"
#include "FaultyVfs.h"
#include "TestPackage.h"

#include <iostream>
#include <set>

using namespace fovea;
using namespace fovea::test;

namespace {

const TargetId kTarget = *TargetId::parse("gfx942");

/// Steps of a build. Each returns its Status; the first failure ends it.
struct Build {
  std::string path;
  /// Head dimensions of the kernels whose put returned success, and of the one
  /// that failed, which may be there or not: its commit may have been done.
  std::set<int32_t> stored, open;

  Status run() {
    PackageWriter::Options options;
    options.compressionLevel = 1;
    Expected<PackageWriter> writer =
        PackageWriter::open(path, kTarget, options);
    if (!writer)
      return writer.status();
    for (int32_t dim = 16; dim != 128; dim += 8) {
      open = {dim};
      if (Status status = putFake(*writer, makeRecord(makeProblem(dim)),
                                  codeLikePayload(uint32_t(dim)));
          !status.ok())
        return status;
      stored.insert(dim);
    }
    open.clear();
    if (Status status = writer->pack(); !status.ok())
      return status;
    if (Status status = writer->replaceTuning(
            {{makeProblem(16), 1, 2, 3, makeRecord({}).schedule}});
        !status.ok())
      return status;
    Expected<bool> current =
        writer->isCurrent(makeProblem(24), makeRecord({}).schedule, "test 1");
    if (!current)
      return current.status();
    EXPECT_TRUE(*current);
    open = {24};
    if (Status status =
            writer->remove(makeProblem(24), makeRecord({}).schedule);
        !status.ok())
      return status;
    stored.erase(24);
    return writer->pack();
  }
};

/// What is in the package is whole, and is what the build says it stored.
void expectHeld(const Build &build) {
  // The next writer undoes what was half done.
  Expected<PackageWriter> writer = PackageWriter::open(build.path, kTarget);
  ASSERT_TRUE(writer) << writer.status().message();
  Expected<PackageReader> reader = PackageReader::open(build.path);
  ASSERT_TRUE(reader) << reader.status().message();
  FOVEA_ASSERT_OK(reader->verifyImages());
  std::set<int32_t> found;
  for (const KernelRecord &kernel : reader->kernels()) {
    found.insert(kernel.problem.headDim);
    EXPECT_EQ(
        *reader->loadImage(kernel),
        makeImage("gfx942", codeLikePayload(uint32_t(kernel.problem.headDim))));
  }
  for (int32_t dim : build.stored)
    EXPECT_TRUE(found.count(dim) || build.open.count(dim)) << dim;
  for (int32_t dim : found)
    EXPECT_TRUE(build.stored.count(dim) || build.open.count(dim)) << dim;
}

/// Runs the build with every `step`th operation failing, until one run has no
/// fault.
void everyOperation(int writeCode, bool staysDown, int step) {
  int cases = 0;
  for (int n = 1;; n += step) {
    TempDir dir;
    FaultyVfs vfs;
    Build build{dir.file("p.fovea"), {}, {}};
    vfs.arm(n, writeCode, staysDown);
    const Status status = build.run();
    const bool hit = vfs.hit();
    vfs.arm(0);
    if (!hit) {
      FOVEA_ASSERT_OK(status);
      break;
    }
    ++cases;
    SCOPED_TRACE("operation " + std::to_string(n));
    // SQLite gets over a few of them by itself.
    if (!status.ok()) {
      EXPECT_NE(status.message().find(build.path), std::string::npos)
          << status.message();
      EXPECT_NE(status.code(), StatusCode::InvalidArgument) << status.message();
    }
    expectHeld(build);
    if (::testing::Test::HasFailure())
      return;
    // And the build goes on where it was.
    Build again{build.path, {}, {}};
    FOVEA_ASSERT_OK(again.run());
    expectHeld(again);
  }
  std::cout << cases << " operations made to fail\n";
  EXPECT_GT(cases, 20);
}

} // namespace

// A part, which is other operations of each than of the next; with --full each
// of this.
TEST(PackageFaultTest, AFullDiskOnce) {
  everyOperation(SQLITE_FULL, false, fovea::test::runsFullGrids() ? 1 : 3);
}
TEST(PackageFaultTest, AFullDiskForGood) {
  everyOperation(SQLITE_FULL, true, 5);
}
TEST(PackageFaultTest, AnErrorOnce) {
  everyOperation(SQLITE_IOERR_WRITE, false, 7);
}

TEST(PackageFaultTest, AReaderNamesWhatFailed) {
  TempDir dir;
  Build build{dir.file("p.fovea"), {}, {}};
  FOVEA_ASSERT_OK(build.run());
  FaultyVfs vfs;
  int cases = 0;
  for (int n = 1;; ++n) {
    vfs.arm(n);
    Expected<PackageReader> reader = PackageReader::open(build.path);
    Status status = reader.status();
    if (reader)
      status = reader->verifyImages();
    if (!vfs.hit())
      break;
    ++cases;
    EXPECT_TRUE(status.ok() ||
                status.message().find(build.path) != std::string::npos)
        << status.message();
  }
  std::cout << cases << " operations made to fail\n";
  EXPECT_GT(cases, 20);
}
