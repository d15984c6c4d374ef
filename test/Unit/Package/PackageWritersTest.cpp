//===- PackageWritersTest.cpp - writers that race, die or lack space ------===//

#include "TestPackage.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {
const TargetId kTarget{"gfx942"};

/// Runs `body` in a child process; its result is the child's exit code.
template <typename Body>
pid_t inChild(Body body) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  return child;
}
int exitCodeOf(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}
} // namespace

TEST(PackageWritersTest, TwoProcessesFillOnePackage) {
  TempDir dir;
  const std::string path = dir.file("p.fovea");
  auto fill = [&](int first) {
    Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
    if (!writer)
      return 1;
    for (int dim = first; dim <= 256; dim += 16)
      if (!putFake(*writer, makeRecord(makeProblem(dim)), std::to_string(dim))
               .ok())
        return 2;
    return 0;
  };
  pid_t one = inChild([&] { return fill(16); });
  pid_t two = inChild([&] { return fill(24); });
  EXPECT_EQ(exitCodeOf(one), 0);
  EXPECT_EQ(exitCodeOf(two), 0);
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->kernels().size(), 31u);
  FOVEA_ASSERT_OK(reader->verifyImages());
}

TEST(PackageWritersTest, ThreadsShareAWriterWhileAReaderOpens) {
  TempDir dir;
  const std::string path = dir.file("p.fovea");
  Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
  ASSERT_TRUE(writer);
  auto fill = [&](int first) {
    for (int dim = first; dim <= 128; dim += 16)
      EXPECT_TRUE(
          putFake(*writer, makeRecord(makeProblem(dim)), std::to_string(dim))
              .ok());
  };
  std::thread one(fill, 16), two(fill, 24);
  for (int round = 0; round != 10; ++round) {
    Expected<PackageReader> reader = PackageReader::open(path);
    EXPECT_TRUE(reader) << reader.status().message();
  }
  one.join();
  two.join();
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->kernels().size(), 15u);
}

// Whenever the kill comes, what was put before is there and sound, and the next
// run adds to it.
TEST(PackageWritersTest, AKilledBuildGoesOn) {
  TempDir dir;
  const std::string path = dir.file("p.fovea");
  size_t before = 0;
  for (int round = 0; round != 8; ++round) {
    int progress[2];
    ASSERT_EQ(::pipe(progress), 0);
    pid_t child = inChild([&] {
      Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
      for (int n = 0; writer && n != 1000; ++n) {
        KernelRecord record = makeRecord(makeProblem(64));
        record.schedule = std::to_string(round) + "/" + std::to_string(n);
        if (!putFake(*writer, record, record.schedule).ok() ||
            ::write(progress[1], "x", 1) != 1)
          return 2;
      }
      return 1;
    });
    ::close(progress[1]);
    char byte;
    for (int n = 0; n != 3 + round; ++n)
      ASSERT_EQ(::read(progress[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    EXPECT_EQ(exitCodeOf(child), 256 + SIGKILL);
    ::close(progress[0]);
    // A reader can't undo the killed writer's half transaction, if there is
    // one; it says so, and the next writer undoes it.
    Expected<PackageReader> early = PackageReader::open(path);
    if (!early)
      expectFailure(early.status(), StatusCode::Io, "run the build again");
    ASSERT_TRUE(PackageWriter::open(path, kTarget));
    Expected<PackageReader> reader = PackageReader::open(path);
    ASSERT_TRUE(reader) << reader.status().message();
    FOVEA_ASSERT_OK(reader->verifyImages());
    EXPECT_GE(reader->kernels().size(), before + 3 + size_t(round));
    before = reader->kernels().size();
  }
}

TEST(PackageWritersTest, LackOfSpaceIsAnErrorAndHarmsNothing) {
  TempDir dir;
  const std::string path = dir.file("p.fovea");
  {
    Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
    ASSERT_TRUE(writer);
    FOVEA_ASSERT_OK(putFake(*writer, makeRecord(makeProblem(64)), "small"));
  }
  pid_t child = inChild([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
    if (!writer)
      return 1;
    // Random bytes do not compress.
    std::string payload(500000, 0);
    uint32_t state = 1;
    for (char &c : payload)
      c = char((state = state * 1664525 + 1013904223) >> 24);
    Status status = putFake(*writer, makeRecord(makeProblem(128)), payload);
    const bool clear =
        status.code() == StatusCode::Io &&
        status.message().find("check free space") != std::string::npos &&
        status.message().find(path) != std::string::npos;
    return clear ? 0 : 2;
  });
  EXPECT_EQ(exitCodeOf(child), 0);
  Expected<PackageWriter> writer = PackageWriter::open(path, kTarget);
  ASSERT_TRUE(writer) << writer.status().message();
  Expected<PackageReader> reader = PackageReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->kernels().size(), 1u);
  FOVEA_ASSERT_OK(reader->verifyImages());
}
