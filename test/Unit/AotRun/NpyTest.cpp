//===- NpyTest.cpp - arrays in NumPy's file format ------------------------===//

#include "Npy.h"

#include "fovea/Reference/Types.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

using namespace fovea::run;

namespace {

class Npy : public testing::Test {
protected:
  void TearDown() override { std::remove(path.c_str()); }
  void write(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  /// A version 1 file of `descr` with the header's other parts as given.
  std::string file(const std::string &descr, const std::string &shape,
                   const std::string &data, const char *order = "False") {
    const std::string header = "{'descr': '" + descr +
                               "', 'fortran_order': " + order +
                               ", 'shape': " + shape + ", }\n";
    std::string bytes = "\x93NUMPY";
    bytes += '\1';
    bytes += '\0';
    bytes += char(header.size());
    bytes += '\0';
    return bytes + header + data;
  }
  template <typename T>
  static std::string raw(std::initializer_list<T> values) {
    std::string bytes;
    for (T value : values)
      bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
    return bytes;
  }
  void expectRefused(const std::string &part) {
    NpyArray array;
    std::string error;
    EXPECT_FALSE(readNpy(path, array, error));
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find(path), std::string::npos) << error;
  }
  const std::string path = testing::TempDir() + "fovea-array.npy";
};

TEST_F(Npy, WhatIsWrittenIsRead) {
  std::string error;
  ASSERT_TRUE(writeNpy(path, {1, 2, 1, 3}, {1, 2, 3, 4, 5, -0.5f}, error));
  NpyArray array;
  ASSERT_TRUE(readNpy(path, array, error)) << error;
  EXPECT_EQ(array.shape, (std::vector<int64_t>{1, 2, 1, 3}));
  EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4, 5, -0.5}));
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  EXPECT_EQ((size_t(in.tellg()) - 24) % 64, 0u); // data is aligned
}

TEST_F(Npy, ReadsEveryType) {
  const std::pair<const char *, std::string> files[] = {
      {"<f8", raw<double>({1.5, -2})},
      {"<f4", raw<float>({1.5f, -2})},
      {"<f2", raw<uint16_t>({0x3e00, 0xc000})},
      {"<u2", raw<uint16_t>({0x3fc0, 0xc000})},
      {"|V2", raw<uint16_t>({0x3fc0, 0xc000})}};
  for (const auto &[descr, data] : files) {
    write(file(descr, "(2,)", data));
    NpyArray array;
    std::string error;
    ASSERT_TRUE(readNpy(path, array, error)) << error;
    EXPECT_EQ(array.values, (std::vector<double>{1.5, -2})) << descr;
  }
}

TEST_F(Npy, RefusesWhatItCannotRead) {
  write("");
  expectRefused("not a .npy file");
  write(file("<i4", "(1,)", "1234"));
  expectRefused("float16");
  write(file("<f4", "(1,)", "1234", "True"));
  expectRefused("Fortran");
  write(file("<f4", "(3, 2)", "1234"));
  expectRefused("of 6 elements of 4 bytes the last 5 are missing");
  write(file("<f4", "(999999999999,)", "1234")); // more than any memory
  expectRefused("the last 999999999998 are missing");
  write(file("<f4", "(99999999999, 99999999999)", "1234"));
  expectRefused("shape");
  write(file("<f4", "(-1,)", "1234"));
  expectRefused("shape");
  const std::string whole = file("<f4", "(1,)", "1234");
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    NpyArray array;
    std::string error;
    EXPECT_FALSE(readNpy(path, array, error)) << size;
  }
  std::remove(path.c_str());
  expectRefused("No such file");
  NpyArray array;
  std::string error;
  EXPECT_FALSE(readNpy("/dev/zero", array, error)); // has no end
  EXPECT_EQ(error, "/dev/zero: not a .npy file");
}

} // namespace
