//===- ReadFileTest.cpp - files that are read whole -----------------------===//

#include "fovea/Package/ReadFile.h"
#include "TestPackage.h"

#include <sys/stat.h>
#include <thread>

using namespace fovea;
using namespace fovea::test;

TEST(ReadFile, ReadsToTheLimitAndNoByteFurther) {
  const TempDir folder;
  const std::string path = folder.file("file");
  const std::string most(size_t(1) << 20, 'x');
  std::ofstream(path) << most;
  Expected<std::string> bytes = readWhole(path, 1);
  ASSERT_TRUE(bytes) << bytes.status().message();
  EXPECT_EQ(*bytes, most);
  std::ofstream(path, std::ios::app) << 'y';
  bytes = readWhole(path, 1);
  EXPECT_EQ(bytes.status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(bytes.status().message(),
            "cannot read '" + path +
                "': it is longer than 1 MiB, which no such file is; name one "
                "that ends");
  EXPECT_EQ(readWhole(path, 2)->size(), most.size() + 1);
}

TEST(ReadFile, WhatNeverEndsIsRefused) {
  EXPECT_EQ(readWhole("/dev/zero").status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(*readWhole("/dev/null"), "");
}

TEST(ReadFile, SaysWhyThereIsNothingToRead) {
  const TempDir folder;
  const std::string path = folder.file("file");
  const Status missing = readWhole(path).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_EQ(missing.message(),
            "cannot read '" + path + "': No such file or directory");
  std::ofstream(path) << "text";
  EXPECT_EQ(readWhole(path + "/inner").status().code(), StatusCode::NotFound);
  const Status isFolder = readWhole(folder.path()).status();
  EXPECT_EQ(isFolder.code(), StatusCode::Io);
  EXPECT_EQ(isFolder.message(),
            "cannot read '" + folder.path() + "': Is a directory");
}

TEST(ReadFile, ReadsPipesToTheirEnd) {
  const TempDir folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(300000, 'x'); // more than a pipe holds
  std::thread writer([&] { std::ofstream(path) << text; });
  const Expected<std::string> bytes = readWhole(path);
  writer.join();
  ASSERT_TRUE(bytes) << bytes.status().message();
  EXPECT_EQ(*bytes, text);
}
