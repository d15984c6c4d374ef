//===- WindowTest.cpp - windows and other groups of parameters ------------===//
//
// Which kernels serve a window, what they are passed, and that no group of a
// call is taken for something that it is not.
//
//===----------------------------------------------------------------------===//

#include "../../Support/KernelArgs.h"
#include "RuntimeTest.h"

#include "Groups.h"

#include <algorithm>
#include <cstring>

using namespace fovea;
using namespace fovea::test;

namespace {

using Params = fovea_forward_params_t;

fovea_window_t windowOf(int64_t left, int64_t right,
                        int32_t leftAlignment = FOVEA_ALIGN_BOTTOM_RIGHT,
                        int32_t rightAlignment = FOVEA_ALIGN_BOTTOM_RIGHT) {
  fovea_window_t window = {};
  window.header.struct_size = sizeof(window);
  window.header.group = FOVEA_GROUP_WINDOW;
  window.left = left;
  window.right = right;
  window.left_alignment = leftAlignment;
  window.right_alignment = rightAlignment;
  return window;
}

KernelRecord windowRecord(int32_t blockM = 128) {
  ProblemKey key = makeProblem();
  key.groups[kWindowGroup] = kWindowVersion;
  KernelRecord record = makeRecord(key, blockM);
  record.symbol = "window_m" + std::to_string(blockM);
  return record;
}

class WindowTest : public RuntimeTest {
protected:
  /// The kernel that is launched; empty: none.
  std::string launched(const fovea_window_t *window,
                       int32_t mask = FOVEA_MASK_NONE) {
    Params p = makeParams();
    p.mask = mask;
    p.groups = window ? &window->header : nullptr;
    fake.launches.clear();
    const fovea_status_t status = fovea_forward(context.get(), &p, nullptr);
    if (status != FOVEA_STATUS_OK)
      EXPECT_EQ(status, FOVEA_STATUS_NOT_FOUND) << fovea_last_message();
    return fake.launches.empty() ? "" : fake.launches[0].function;
  }

  /// What it was passed of the group, behind the forward pass's base group.
  WindowArgs passedWindow() const {
    WindowArgs args;
    std::memcpy(&args, fake.launches[0].argumentSegment.data() + 172,
                sizeof(args));
    return args;
  }

  ContextPtr context;
};

} // namespace

TEST_F(WindowTest, KernelsArePassedTheirGroups) {
  write({windowRecord()});
  context = makeContext();
  const fovea_window_t window =
      windowOf(-5, int64_t(1) << 40, FOVEA_ALIGN_TOP_LEFT);
  ASSERT_EQ(launched(&window), "window_m128");
  const FakeLaunch &launch = fake.launches[0];
  ASSERT_EQ(launch.argumentBytes, 184u);
  WindowArgs args = passedWindow();
  EXPECT_EQ(args.left, -5);
  EXPECT_EQ(args.right, INT32_MAX); // beyond all lengths
  EXPECT_EQ(args.alignment, kRightBottomRight);
  ForwardArgs base;
  std::memcpy(&base, launch.argumentSegment.data(), 172);
  EXPECT_EQ(base.q, kBetweenPlaces);
  EXPECT_EQ(base.seqlenK, 500);
  EXPECT_EQ(base.scale, 0.125f);
  // A mask is a window like others.
  ASSERT_EQ(launched(nullptr, FOVEA_MASK_CAUSAL_BOTTOM_RIGHT), "window_m128");
  args = passedWindow();
  EXPECT_EQ(args.left, INT32_MAX);
  EXPECT_EQ(args.right, 0);
  EXPECT_EQ(args.alignment, kLeftBottomRight | kRightBottomRight);
}

TEST_F(WindowTest, FlashAttnsNumbers) {
  write({windowRecord()});
  context = makeContext();
  const fovea_window_t window = fovea_window_of_flash_attn(-1, 7);
  ASSERT_EQ(launched(&window), "window_m128");
  const WindowArgs args = passedWindow();
  EXPECT_EQ(args.left, INT32_MAX);
  EXPECT_EQ(args.right, 7);
  EXPECT_EQ(args.alignment, kLeftBottomRight | kRightBottomRight);
}

TEST_F(WindowTest, AKernelOfTheMaskComesFirst) {
  ProblemKey causal = makeProblem();
  causal.mask = MaskKind::CausalBottomRight;
  KernelRecord special = makeRecord(causal);
  special.symbol = "causal";
  KernelRecord none = makeRecord(makeProblem());
  none.symbol = "none";
  write({windowRecord(), special, none});
  context = makeContext();
  EXPECT_EQ(launched(nullptr), "none");
  EXPECT_EQ(launched(nullptr, FOVEA_MASK_CAUSAL_BOTTOM_RIGHT), "causal");
  EXPECT_EQ(launched(nullptr, FOVEA_MASK_CAUSAL_TOP_LEFT), "window_m128");
  // 300 queries and 500 keys: what the numbers show is what counts.
  const fovea_window_t same =
      windowOf(1000, 200, FOVEA_ALIGN_TOP_LEFT, FOVEA_ALIGN_TOP_LEFT);
  EXPECT_EQ(launched(&same), "causal");
  const fovea_window_t all = windowOf(500, 299);
  EXPECT_EQ(launched(&all), "none");
  const fovea_window_t less = windowOf(498, 299);
  EXPECT_EQ(launched(&less), "window_m128");
}

TEST_F(WindowTest, WithoutAKernelForItTheMessageNamesTheRemedy) {
  write({makeRecord(makeProblem())});
  context = makeContext();
  const fovea_window_t window = windowOf(100, 0);
  EXPECT_EQ(launched(&window), "");
  const std::string message = fovea_last_message();
  for (const char *part :
       {"window=1", "window(100:0, bottom_right)", "--mask=any"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(WindowTest, TuningRowsOfOtherMasksAreNotMissed) {
  ProblemKey causal = makeProblem();
  causal.mask = MaskKind::CausalTopLeft;
  TuningRow row;
  row.problem = causal;
  row.schedule = "block_m=64,block_n=64,waves=4";
  TuningRow windows = row;
  windows.problem = windowRecord().problem;
  KernelRecord special = makeRecord(causal);
  special.symbol = "causal";
  write({special, windowRecord(64), windowRecord(128)}, {row, windows});
  context = makeContext();
  const fovea_window_t window = windowOf(100, 0);
  EXPECT_EQ(launched(&window), "window_m64");
  Params p = makeParams();
  p.groups = &window.header;
  expectStatus(fovea_forward_select(context.get(), &p, 0, nullptr),
               FOVEA_STATUS_OK, {"chosen by the tuning table"});
  EXPECT_EQ(std::string(fovea_last_message()).find("missed"),
            std::string::npos);
}

TEST_F(WindowTest, GroupsThatAreNoneAreRefused) {
  write({windowRecord()});
  context = makeContext();
  auto refused = [&](const fovea_group_t *groups, fovea_status_t status,
                     std::initializer_list<const char *> parts,
                     int32_t mask = FOVEA_MASK_NONE) {
    Params p = makeParams();
    p.mask = mask;
    p.groups = groups;
    expectStatus(fovea_forward(context.get(), &p, nullptr), status, parts);
  };
  fovea_window_t window = windowOf(1, 1);
  refused(&window.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"mask is causal_top_left beside a window"},
          FOVEA_MASK_CAUSAL_TOP_LEFT);
  fovea_window_t again = window;
  again.header.next = &window.header;
  refused(&again.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"FOVEA_GROUP_WINDOW twice"});
  // Also one that changes nothing.
  fovea_dropout_t none = {}, some = {};
  none.header = {sizeof(none), FOVEA_GROUP_DROPOUT, &some.header};
  some.header = {sizeof(some), FOVEA_GROUP_DROPOUT, nullptr};
  some.p = 0.5f;
  refused(&none.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"FOVEA_GROUP_DROPOUT twice"});
  for (fovea_group_t *ring : {&window.header, &some.header}) {
    ring->next = ring;
    refused(ring, FOVEA_STATUS_INVALID_ARGUMENT, {"is one behind itself?"});
    ring->next = nullptr;
  }
  window.header.group = 1000;
  refused(&window.header, FOVEA_STATUS_INCOMPATIBLE,
          {"group 1000", "update it, or leave the group out"});
  window = windowOf(1, 1, 2);
  refused(&window.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"window.left_alignment is 2"});
  window = windowOf(1, 1, 0, -1);
  refused(&window.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"window.right_alignment is -1"});
  window = windowOf(1, 1);
  window.header.struct_size = 8;
  refused(&window.header, FOVEA_STATUS_INVALID_ARGUMENT,
          {"struct_size is 8", "40 in this version"});
  EXPECT_TRUE(fake.launches.empty());
}

// A tensor of a table is a field of the structure, at its place.
// A group of one operation, whose tensor has heads alone.
TEST_F(WindowTest, SinksArePassedAndChecked) {
  ProblemKey key = makeProblem();
  key.groups[size_t(spec::findGroup("sinks"))] = 1;
  const KernelRecord record = makeRecord(key);
  write({record});
  context = makeContext();
  fovea_sinks_t sinks = {{sizeof(sinks), FOVEA_GROUP_SINKS, nullptr},
                         static_cast<const float *>(place(6)),
                         3};
  auto launch = [&](const fovea_group_t *group) {
    Params p = makeParams();
    p.groups = group;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  };
  expectStatus(launch(&sinks.header), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<uint64_t>(record, "sinks"),
            uint64_t(reinterpret_cast<uintptr_t>(place(6))));
  EXPECT_EQ(passed<uint64_t>(record, "sinks_stride_head"), 3u);
  // The kernel serves calls without them.
  expectStatus(launch(nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<uint64_t>(record, "sinks"), 0u);
  sinks.sinks_stride_head = -1;
  expectStatus(launch(&sinks.header), FOVEA_STATUS_INVALID_ARGUMENT,
               {"sinks.sinks.stride_head is -1"});
  sinks.sinks_stride_head = 1;
  sinks.sinks = static_cast<const float *>(place(6, 2));
  expectStatus(launch(&sinks.header), FOVEA_STATUS_INVALID_ARGUMENT,
               {"sinks.sinks is ", "no multiple of the element size"});
  sinks.sinks = static_cast<const float *>(place(4));
  expectStatus(launch(&sinks.header), FOVEA_STATUS_INVALID_ARGUMENT,
               {"out (from ", "sinks.sinks (from ", "share memory"});
  const fovea_dlse_t dlse = {
      {sizeof(dlse), FOVEA_GROUP_DLSE, nullptr}, nullptr, 0, 0};
  expectStatus(launch(&dlse.header), FOVEA_STATUS_INVALID_ARGUMENT,
               {"FOVEA_GROUP_DLSE", "of backward alone", "forward call"});
}

TEST(ParametersTables, AreThoseOfTheOperations) {
  for (const spec::OperationSpec &operation : spec::allOperations()) {
    std::vector<const spec::TensorSpec *> tensors;
    for (const spec::TensorSpec &tensor : operation.base.tensors)
      tensors.push_back(&tensor);
    for (const spec::AlgorithmSpec &algorithm : operation.algorithms)
      for (const spec::TensorSpec &tensor : algorithm.own.tensors)
        tensors.push_back(&tensor);
    const auto fields = params::tensorFieldsOf(operation.op);
    for (size_t i = 0; i != std::max(tensors.size(), fields.size()); ++i)
      EXPECT_STREQ(i < fields.size() ? fields[i].name : "nothing",
                   i < tensors.size() ? tensors[i]->name : "nothing")
          << "row " << i << " of the tensors of attn." << operation.name
          << " in fovea/Parameters.h, and of its table";
  }
}
TEST(ParametersTables, AreThoseOfTheGroups) {
  for (const spec::GroupSpec &group : spec::featureGroups()) {
    const auto readers = rt::groupReaders();
    const auto *reader = std::find_if(
        readers.begin(), readers.end(), [&](const rt::GroupReader &row) {
          return std::string(row.name) == group.name;
        });
    ASSERT_NE(reader, readers.end())
        << "runtime/src/Groups.cpp has no row of the group " << group.name;
    EXPECT_EQ(reader->tensors.size(), group.tensors.size())
        << "fields of the tensors of the group " << group.name;
  }
}
