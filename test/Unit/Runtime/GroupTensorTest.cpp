//===- GroupTensorTest.cpp - feature groups that have tensors -------------===//
//
// The runtime with tables that have two made-up groups more: of the second one
// a kernel is passed tensors, whatever the first one has. No kernel reads them;
// what HIP is given, and what is refused before, is looked at.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "LaunchCache.h"
#include "RuntimeTest.h"

#include <thread>

// The tables that ship, under other names.
#define featureGroups shippedGroups
#include "../../../package/src/Groups.cpp"
#undef featureGroups
#define groupReaders shippedReaders
#include "../../../runtime/src/Groups.cpp"
#undef groupReaders

using namespace fovea;
using namespace fovea::test;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {

enum { kGroupTide = 1000, kGroupBias = 1001 };

struct Tide {
  fovea_group_t header;
  const float *moon;
  int64_t moonStrideBatch, moonStrideHead;
};
struct Bias {
  fovea_group_t header;
  fovea_mutable_tensor_t sums;
  float factor;
};

constexpr spec::TensorSpec kTideTensors[] = {
    {"moon", "the moon", spec::Shape::Vector, spec::Extent::HeadsQ,
     spec::Extent::SeqlenQ, spec::Elements::F32, /*written=*/false,
     /*optional=*/false}};
constexpr spec::TensorSpec kBiasTensors[] = {
    {"sums", "the sums", spec::Shape::Rows, spec::Extent::HeadsK,
     spec::Extent::SeqlenK, spec::Elements::Problem, /*written=*/true,
     /*optional=*/true}};
constexpr spec::ScalarSpec kBiasScalars[] = {
    {"factor", spec::ArgKind::F32, "factor", "of the sums", {}, 0.5}};
constexpr size_t kTideRow = 1, kBiasRow = 2;

constexpr params::TensorField kTideFields[] = {
    {"tide.moon", offsetof(Tide, moon), offsetof(Tide, moonStrideBatch)}};
constexpr params::TensorField kBiasFields[] = {
    {"bias.sums", offsetof(Bias, sums.data),
     offsetof(Bias, sums.stride_batch)}};

template <typename Given>
rt::Result readTensorsOf(const fovea_group_t *group, rt::GroupArguments &into,
                         Given &given) {
  if (rt::Result result =
          rt::readVersioned("header", reinterpret_cast<const Given *>(group),
                            sizeof(given), given);
      !result.ok())
    return result;
  into.setTensors(&given);
  return rt::Result();
}
rt::Result readTide(const fovea_group_t *group, rt::Problem &,
                    rt::GroupArguments &arguments) {
  Tide given;
  return readTensorsOf(group, arguments, given);
}
rt::Result readBias(const fovea_group_t *group, rt::Problem &,
                    rt::GroupArguments &arguments) {
  Bias given;
  if (rt::Result result = readTensorsOf(group, arguments, given); !result.ok())
    return result;
  arguments.set(0, given.factor);
  return rt::Result();
}

} // namespace

spec::Rows<spec::GroupSpec> fovea::spec::featureGroups() {
  static const GroupSpec all[] = {shippedGroups()[0],
                                  {"tide", 1, kTideTensors, {}},
                                  {"bias", 3, kBiasTensors, kBiasScalars}};
  return all;
}
spec::Rows<rt::GroupReader> fovea::rt::groupReaders() {
  static const GroupReader all[] = {
      shippedReaders()[0],
      {kGroupTide, "TIDE", "tide", readTide, nullptr, kTideFields},
      {kGroupBias, "BIAS", "bias", readBias, nullptr, kBiasFields}};
  return all;
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace {

/// Of a problem with these groups.
KernelRecord recordOf(std::initializer_list<size_t> rows) {
  ProblemKey key = makeProblem();
  for (size_t row : rows)
    key.groups[row] = spec::featureGroups()[row].version;
  return makeRecord(key);
}

class GroupTensors : public RuntimeTest {
protected:
  GroupTensors() {
    tide.header = {sizeof(tide), kGroupTide, nullptr};
    tide.moon = static_cast<const float *>(place(6));
    tide.moonStrideBatch = 8 * 304;
    tide.moonStrideHead = 304;
    bias.header = {sizeof(bias), kGroupBias, nullptr};
    bias.sums = {place(7), 2 * 500 * 136, 500 * 136, 136};
    bias.factor = 2;
  }

  fovea_status_t launch(const fovea_group_t *group) {
    fovea_forward_params_t p = makeParams();
    p.groups = group;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  }

  Tide tide;
  Bias bias;
  ContextPtr context;
};

} // namespace

TEST_F(GroupTensors, KernelsArePassedThem) {
  // The tensor of the second group is the sixth of the one kernel and the
  // seventh of the other.
  for (const KernelRecord &record :
       {recordOf({kBiasRow}), recordOf({kTideRow, kBiasRow})}) {
    const bool both = record.problem.groups[kTideRow] != 0;
    std::filesystem::remove(path);
    write({record});
    context = makeContext();
    bias.header.next = both ? &tide.header : nullptr;
    expectStatus(launch(&bias.header), FOVEA_STATUS_OK);
    EXPECT_EQ(passed<const void *>(record, "sums"), place(7));
    EXPECT_EQ(passed<int64_t>(record, "sums_stride_batch"), 2 * 500 * 136);
    EXPECT_EQ(passed<int64_t>(record, "sums_stride_head"), 500 * 136);
    EXPECT_EQ(passed<int64_t>(record, "sums_stride_seq"), 136);
    EXPECT_EQ(passed<float>(record, "factor"), 2);
    EXPECT_EQ(passed<const void *>(record, "out"), place(4));
    if (both) {
      EXPECT_EQ(passed<const void *>(record, "moon"), place(6));
      EXPECT_EQ(passed<int64_t>(record, "moon_stride_batch"), 8 * 304);
      EXPECT_EQ(passed<int64_t>(record, "moon_stride_head"), 304);
    }
    // A call without the groups: neutral scalars, and null for tensors.
    expectStatus(launch(nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(passed<const void *>(record, "sums"), nullptr);
    EXPECT_EQ(passed<int64_t>(record, "sums_stride_head"), 0);
    EXPECT_EQ(passed<float>(record, "factor"), 0.5f);
    if (both)
      EXPECT_EQ(passed<const void *>(record, "moon"), nullptr);
    // And with one whose tensor is absent.
    bias.sums = {};
    bias.header.next = nullptr;
    expectStatus(launch(&bias.header), FOVEA_STATUS_OK);
    EXPECT_EQ(passed<const void *>(record, "sums"), nullptr);
    EXPECT_EQ(passed<float>(record, "factor"), 2);
    bias.sums = {place(7), 2 * 500 * 136, 500 * 136, 136};
  }
}

TEST_F(GroupTensors, AreCheckedAsTheOthers) {
  write({recordOf({kTideRow, kBiasRow})});
  context = makeContext();
  auto refused = [&](std::initializer_list<const char *> words) {
    bias.header.next = &tide.header;
    expectStatus(launch(&bias.header), FOVEA_STATUS_INVALID_ARGUMENT, words);
    EXPECT_TRUE(fake.launches.empty());
  };
  const Tide soundTide = tide;
  const Bias soundBias = bias;
  tide.moon = nullptr;
  refused({"tide.moon is NULL"});
  tide.moon = static_cast<const float *>(place(6, 2));
  refused({"tide.moon is ", "no multiple of the element size (4 bytes)"});
  tide = soundTide;
  tide.moonStrideHead = -1;
  refused({"tide.moon.stride_head is -1"});
  tide = soundTide;
  bias.sums.stride_seq = 100;
  refused({"bias.sums.stride_seq is 100", "rows would overlap"});
  bias.sums.stride_seq = 4194304;
  refused({"bias.sums.stride_seq is 4194304"});
  bias = soundBias;
  bias.sums.data = place(4);
  refused({"bias.sums (from ", "out (from ", "share memory"});
  bias.sums.data = const_cast<float *>(tide.moon);
  refused({"bias.sums (from ", "tide.moon (from ", "share memory"});
  bias = soundBias;
  bias.header.next = &tide.header;
  expectStatus(launch(&bias.header), FOVEA_STATUS_OK);
}

// The runtime's objects are linked into this program, so that what others see
// of a memory by its time alone can be asked.
TEST_F(GroupTensors, ALaunchIsRememberedTheSecondTime) {
  write({recordOf({})});
  context = makeContext();
  const fovea_forward_params_t p = makeParams();
  auto isRemembered = [&] {
    bool isAlike = false;
    if (rt::LaunchCache *cache = rt::LaunchCache::ofThread())
      cache->find(rt::Call(&p), [&]() -> const rt::DeviceView * {
        isAlike = true;
        return nullptr;
      });
    return isAlike;
  };
  std::thread([&] { // which has launched nothing
    for (int i = 0; i != 2; ++i) {
      EXPECT_FALSE(isRemembered());
      ASSERT_EQ(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK)
          << fovea_last_message();
    }
    EXPECT_TRUE(isRemembered());
  })
      .join();
}
