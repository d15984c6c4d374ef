//===- BuffersTest.cpp - contents of small and large buffers --------------===//
//
// Small buffers hold what their description says; large ones repeat a block and
// can still be written.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::timing;
using describe::Buffer;
using describe::Fill;

namespace {

Buffer buffer(const char *name, int64_t elements, Fill::Kind kind) {
  Buffer result;
  result.name = name;
  result.type = describe::Type::F32;
  result.shape = {elements};
  result.strides = {1};
  result.bytes = uint64_t(elements) * 4;
  result.fill.kind = kind;
  return result;
}

class BuffersTest : public ::testing::Test {
protected:
  void SetUp() override {
    sim::Status status = sim::Device::create("gfx942", device);
    ASSERT_TRUE(status) << status.message();
  }
  const float *at(const Buffers &buffers, size_t index) {
    return reinterpret_cast<const float *>(buffers.addresses()[index]);
  }
  std::shared_ptr<sim::Device> device;
  std::vector<std::string> notes;
  std::string error;
};

} // namespace

TEST_F(BuffersTest, SmallOnesAreExact) {
  describe::Problem problem;
  problem.buffers = {
      buffer("iota", 100, Fill::Iota), buffer("zeros", 3, Fill::Zeros),
      buffer("nan", 3, Fill::NaN), buffer("empty", 0, Fill::Zeros)};
  auto buffers = Buffers::create(*device, problem, notes, error);
  ASSERT_TRUE(buffers) << error;
  EXPECT_EQ(at(*buffers, 0)[99], 99);
  EXPECT_EQ(at(*buffers, 1)[2], 0);
  EXPECT_TRUE(std::isnan(at(*buffers, 2)[2]));
  EXPECT_TRUE(notes.empty());
  // The device knows where each ends.
  sim::Allocation found;
  ASSERT_TRUE(device->memory().find(buffers->addresses()[0], found));
  EXPECT_EQ(found.size, 400u);
  EXPECT_FALSE(device->memory().find(buffers->addresses()[0] + 400, found));
}

TEST_F(BuffersTest, LargeOnesRepeatAndCanBeWritten) {
  describe::Problem problem;
  const int64_t elements = (int64_t(32) << 30) / 4 + 5; // 32 GiB
  problem.buffers = {buffer("q", elements, Fill::Normal),
                     buffer("zeros", elements, Fill::Zeros),
                     buffer("out", elements, Fill::NaN)};
  auto buffers = Buffers::create(*device, problem, notes, error);
  ASSERT_TRUE(buffers) << error;
  const float *q = at(*buffers, 0);
  const int64_t period = Buffers::kPeriod / 4;
  EXPECT_NE(q[0], q[1]);
  EXPECT_EQ(q[7], q[7 + period]);
  EXPECT_EQ(q[4], q[elements / period * period + 4]);
  EXPECT_EQ(at(*buffers, 1)[elements - 1], 0);
  float *out = const_cast<float *>(at(*buffers, 2));
  EXPECT_TRUE(std::isnan(out[elements - 1]));
  out[3] = 5;
  EXPECT_TRUE(std::isnan(out[3 + period]));
}

TEST_F(BuffersTest, AddressesAreTheSameEachTime) {
  describe::Problem problem;
  problem.buffers = {buffer("a", 100, Fill::Iota), buffer("b", 3, Fill::Zeros)};
  std::vector<uint64_t> first;
  {
    auto buffers = Buffers::create(*device, problem, notes, error);
    ASSERT_TRUE(buffers) << error;
    first = buffers->addresses();
  }
  sim::Allocation found;
  EXPECT_FALSE(device->memory().find(first[0], found));
  auto buffers = Buffers::create(*device, problem, notes, error);
  ASSERT_TRUE(buffers) << error;
  EXPECT_EQ(buffers->addresses(), first);
}

TEST_F(BuffersTest, SaysWhatDiffers) {
  describe::Problem problem;
  problem.buffers = {buffer("lse", 100, Fill::Reference)};
  auto buffers = Buffers::create(*device, problem, notes, error);
  ASSERT_TRUE(buffers) << error;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("'lse'"), std::string::npos);
}

TEST_F(BuffersTest, RefusesMoreThanTheDeviceHas) {
  describe::Problem problem;
  problem.buffers = {buffer("huge", int64_t(1) << 40, Fill::Zeros)};
  EXPECT_FALSE(Buffers::create(*device, problem, notes, error));
  EXPECT_NE(error.find("4398046511104 bytes"), std::string::npos) << error;
}
