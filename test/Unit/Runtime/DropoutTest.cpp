//===- DropoutTest.cpp - dropout in the C interface -----------------------===//

#include "RuntimeTest.h"

#include <cmath>
#include <limits>

using namespace fovea;
using namespace fovea::test;

namespace {

class DropoutCall : public RuntimeTest {
protected:
  DropoutCall() {
    dropout.header = {sizeof(dropout), FOVEA_GROUP_DROPOUT, nullptr};
    dropout.p = 0.5f;
  }

  static KernelRecord record() {
    ProblemKey key = makeProblem();
    key.groups[size_t(spec::findGroup("dropout"))] = 1;
    return makeRecord(key);
  }

  fovea_status_t launch() {
    fovea_forward_params_t p = makeParams();
    p.groups = &dropout.header;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  }

  fovea_dropout_t dropout = {};
  ContextPtr context;
};

} // namespace

TEST_F(DropoutCall, IsPassed) {
  write({record()});
  context = makeContext();
  dropout.word_order = FOVEA_PHILOX_0213;
  dropout.seed_value = 0xfedcba9876543210;
  dropout.offset_value = 7;
  dropout.seed = static_cast<const uint64_t *>(place(6));
  dropout.offset_out = static_cast<uint64_t *>(place(7));
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "philox_seed"), place(6));
  EXPECT_EQ(passed<const void *>(record(), "philox_offset"), nullptr);
  EXPECT_EQ(passed<const void *>(record(), "philox_seed_out"), nullptr);
  EXPECT_EQ(passed<const void *>(record(), "philox_offset_out"), place(7));
  EXPECT_EQ(passed<uint64_t>(record(), "dropout_seed"), 0xfedcba9876543210);
  EXPECT_EQ(passed<uint64_t>(record(), "dropout_offset"), 7u);
  EXPECT_EQ(passed<int32_t>(record(), "dropout_flags"), 1);
  EXPECT_EQ(passed<float>(record(), "dropout_scale"), 2);
}

/// Kept is what is more than AOTriton's bound: one more is the least.
TEST_F(DropoutCall, HasTritonsThreshold) {
  write({record()});
  context = makeContext();
  for (auto [p, bound] : {std::pair(0.1f, -1717986944),
                          {0.2f, -1288490240},
                          {0.25f, -1073741824},
                          {0.5f, 0},
                          {0.75f, 1073741824},
                          {0.9f, 1717986816}}) {
    dropout.p = p;
    expectStatus(launch(), FOVEA_STATUS_OK);
    EXPECT_EQ(passed<int32_t>(record(), "dropout_threshold"), bound + 1) << p;
  }
  dropout.p = 1 - 0x1p-24f;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<float>(record(), "dropout_scale"), 0x1p24f);
  dropout.p = 1; // all gradients are 0
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<float>(record(), "dropout_scale"), 0);
}

TEST_F(DropoutCall, OfNothingIsNone) {
  write({makeRecord(makeProblem())});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_NOT_FOUND, {"dropout=1"});
  dropout.p = 0;
  dropout.seed = reinterpret_cast<const uint64_t *>(3); // not looked at
  expectStatus(launch(), FOVEA_STATUS_OK);
}

TEST_F(DropoutCall, OfNothingKeepsAll) {
  write({record()});
  context = makeContext();
  dropout.p = 0;
  dropout.seed = static_cast<const uint64_t *>(place(6));
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<int32_t>(record(), "dropout_threshold"),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(passed<float>(record(), "dropout_scale"), 1);
  EXPECT_EQ(passed<const void *>(record(), "philox_seed"), nullptr);
}

TEST_F(DropoutCall, IsChecked) {
  write({record()});
  context = makeContext();
  for (float p : {-0.1f, 1.1f, NAN}) {
    dropout.p = p;
    expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
                 {"dropout.p is ", "not in 0 to 1"});
  }
  dropout.p = 0.5f;
  dropout.word_order = 2;
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"dropout.word_order is 2"});
  dropout.word_order = 0;
  dropout.seed = reinterpret_cast<const uint64_t *>(
      static_cast<const char *>(place(6)) + 4);
  expectStatus(
      launch(), FOVEA_STATUS_INVALID_ARGUMENT,
      {"dropout.seed is ", "no multiple of the element size (8 bytes)"});
  // What is written may not be read meanwhile.
  dropout.seed = static_cast<const uint64_t *>(place(6));
  dropout.seed_out = static_cast<uint64_t *>(place(6));
  expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT, {"share memory"});
}

TEST_F(DropoutCall, OfABackwardPassWritesNoSeeds) {
  write({record()});
  context = makeContext();
  auto p = makeProblemParams<fovea_backward_params_t>();
  p.groups = &dropout.header;
  dropout.offset_out = static_cast<uint64_t *>(place(7));
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"dropout.offset_out"});
}
