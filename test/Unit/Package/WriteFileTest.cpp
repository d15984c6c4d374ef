//===- WriteFileTest.cpp - files that appear whole or not at all ----------===//

#include "fovea/Package/WriteFile.h"
#include "TestPackage.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace fovea;
using namespace fovea::test;

namespace {

std::string textOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t filesIn(const std::string &folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
}

} // namespace

TEST(WriteFile, ReplacesWholeAndKeepsPermissions) {
  const TempDir folder;
  const std::string path = folder.file("file");
  ASSERT_FALSE(writeWhole(path, "first"));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_FALSE(writeWhole(path, "second"));
  EXPECT_EQ(textOf(path), "second");
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t(0640));
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

// A suffix would make it too long.
TEST(WriteFile, TakesTheLongestNameThereIs) {
  const TempDir folder;
  const std::string path = folder.file(std::string(255, 'x'));
  EXPECT_FALSE(writeWhole(path, "text"));
  EXPECT_EQ(textOf(path), "text");
  EXPECT_TRUE(writeWhole(folder.file(std::string(256, 'x')), "text"));
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

TEST(WriteFile, FollowsLinks) {
  const TempDir folder;
  std::filesystem::create_symlink("file", folder.file("link"));
  ASSERT_FALSE(writeWhole(folder.file("file"), "first"));
  ASSERT_FALSE(writeWhole(folder.file("link"), "second"));
  EXPECT_EQ(textOf(folder.file("file")), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
}

TEST(WriteFile, WhereThereIsNoRoomNothingChanges) {
  EXPECT_EQ(writeWhole("/dev/full", "text"), std::errc::no_space_on_device);
  EXPECT_FALSE(writeWhole("/dev/null", "text"));
  const TempDir folder;
  const std::string path = folder.file("file");
  ASSERT_FALSE(writeWhole(path, "before"));
  struct rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {1000, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  const std::error_code error = writeWhole(path, std::string(5000, 'x'));
  const std::error_code none =
      writeWhole(folder.file("none"), std::string(5000, 'x'));
  ::signal(SIGXFSZ, before);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(error, std::errc::file_too_large);
  EXPECT_EQ(none, std::errc::file_too_large);
  EXPECT_EQ(textOf(path), "before");
  EXPECT_EQ(filesIn(folder.path()), 1u);
}

// SQLite's journal has a suffix that is not ours to choose.
TEST(WriteFile, APackagesNameIsRefusedWhereItsJournalHasNone) {
  const TempDir folder;
  const TargetId target = *TargetId::parse("gfx942");
  const Status refused =
      PackageWriter::open(folder.file(std::string(248, 'x')), target).status();
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_NE(refused.message().find("has 248 bytes; it may have 247"),
            std::string::npos)
      << refused.message();
  const std::string longest = folder.file(std::string(247, 'x'));
  {
    Expected<PackageWriter> writer = PackageWriter::open(longest, target);
    ASSERT_TRUE(writer) << writer.status().message();
  }
  EXPECT_TRUE(PackageReader::open(longest));
}
