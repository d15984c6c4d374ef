//===- BlocksTest.cpp - lists of blocks in the C interface ----------------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

class ListedBlocks : public RuntimeTest {
protected:
  ListedBlocks() {
    blocks.header = {sizeof(blocks), FOVEA_GROUP_BLOCKS, nullptr};
    blocks.q_block = 128;
    blocks.kv_block = 256;
    // 3 blocks of queries, 2 of keys.
    blocks.kv = listsAt(6, 3, 2);
    blocks.full_kv = listsAt(8, 3, 2);
  }

  /// Dense lists of so many rows.
  static fovea_block_lists_t listsAt(int number, int64_t rows,
                                     int64_t entries) {
    return {static_cast<const int32_t *>(place(number)),
            8 * rows,
            rows,
            static_cast<const int32_t *>(place(number + 1)),
            8 * rows * entries,
            rows * entries,
            entries,
            entries};
  }

  static KernelRecord record(OpKind op = OpKind::Forward) {
    ProblemKey key = makeProblem();
    key.op = op;
    key.groups[size_t(spec::findGroup("blocks"))] = 1;
    return makeRecord(key);
  }

  fovea_status_t launch() {
    fovea_forward_params_t p = makeParams();
    p.groups = &blocks.header;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  }

  fovea_blocks_t blocks = {};
  ContextPtr context;
};

} // namespace

TEST_F(ListedBlocks, ArePassed) {
  write({record()});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "kv_num_blocks"), place(6));
  EXPECT_EQ(passed<const void *>(record(), "kv_indices"), place(7));
  EXPECT_EQ(passed<const void *>(record(), "full_kv_indices"), place(9));
  EXPECT_EQ(passed<int64_t>(record(), "kv_num_blocks_stride_batch"), 24);
  EXPECT_EQ(passed<int64_t>(record(), "kv_indices_stride_head"), 6);
  EXPECT_EQ(passed<int64_t>(record(), "full_kv_indices_stride_block"), 2);
  EXPECT_EQ(passed<int32_t>(record(), "q_block"), 128);
  EXPECT_EQ(passed<int32_t>(record(), "kv_block"), 256);
  EXPECT_EQ(passed<int32_t>(record(), "kv_entries"), 2);
  EXPECT_EQ(passed<int32_t>(record(), "q_entries"), 0);
  // Lists of queries are of the backward pass: what a caller has of them is
  // neither looked at nor passed on.
  blocks.q = listsAt(10, 2, 3);
  blocks.q.indices_stride_block = -1;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "q_num_blocks"), nullptr);
  // Broadcast ones.
  blocks.kv.num_blocks_stride_batch = blocks.kv.indices_stride_head = 0;
  expectStatus(launch(), FOVEA_STATUS_OK);
  // None are all blocks.
  blocks.kv = blocks.full_kv = {};
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "kv_num_blocks"), nullptr);
}

TEST_F(ListedBlocks, NeedAKernelThatReadsThem) {
  write({makeRecord(makeProblem())});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_NOT_FOUND, {"blocks=1"});
}

// Which masks every block that it visits.
TEST_F(ListedBlocks, AKernelThatReadsThemIsNoChoiceWithout) {
  KernelRecord plain = makeRecord(makeProblem(), /*blockM=*/160),
               lists = record();
  plain.symbol = "plain";
  lists.symbol = "lists";
  write({plain, lists});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.at(0).function, "lists");
  fovea_forward_params_t p = makeParams();
  fake.launches.clear();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.at(0).function, "plain");
}

TEST_F(ListedBlocks, AreChecked) {
  write({record()});
  context = makeContext();
  const fovea_blocks_t sound = blocks;
  auto refused = [&](std::initializer_list<const char *> words) {
    expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT, words);
    EXPECT_TRUE(fake.launches.empty());
    blocks = sound;
  };
  blocks.q_block = 64;
  refused({"blocks.q_block is 64", "multiple of 128"});
  blocks.kv_block = 192;
  refused({"blocks.kv_block is 192"});
  blocks.kv_block = 3 << 20; // sums to be divided by it grow with its square
  refused({"blocks.kv.entries is 2, not in 0 to 0 for blocks of 3145728"});
  blocks.kv_block = int64_t(1) << 31;
  refused({"blocks.kv_block is 2147483648"});
  blocks.kv.indices = nullptr;
  refused({"blocks.kv.indices is NULL and the other is not"});
  blocks.full_kv.num_blocks = nullptr;
  refused({"blocks.full_kv.num_blocks is NULL"});
  blocks.kv = {};
  refused({"blocks.full_kv is given without blocks.kv"});
  blocks.kv.entries = -1;
  refused({"blocks.kv.entries is -1"});
  blocks.kv.entries = int64_t(1) << 23;
  refused({"blocks.kv.entries is 8388608, not in 0 to 8388607"});
  blocks.kv.indices = static_cast<const int32_t *>(place(7, 2));
  refused({"blocks.kv.indices is ", "no multiple of the element size (4"});
  blocks.full_kv.num_blocks_stride_head = -1;
  refused({"blocks.full_kv.num_blocks.stride_head is -1"});
  blocks.kv.indices_stride_block = -2;
  refused({"blocks.kv.indices.stride_block is -2"});
  // Kernels write the output while they read lists.
  blocks.kv.indices = static_cast<const int32_t *>(place(4));
  refused({"out (from ", "blocks.kv.indices (from ", "share memory"});
  blocks.full_kv.num_blocks = static_cast<const int32_t *>(place(4, 8));
  refused({"out (from ", "blocks.full_kv.num_blocks (from "});
  expectStatus(launch(), FOVEA_STATUS_OK);
}

TEST_F(ListedBlocks, GoBothWaysInABackwardPass) {
  auto launchBackward = [&] {
    fovea_backward_params_t p = makeProblemParams<fovea_backward_params_t>();
    p.groups = &blocks.header;
    p.dq = {place(10), 8 * 300 * 128, 300 * 128, 128};
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    return fovea_backward_select(context.get(), &p, -1, &plan);
  };
  context = makeContext();
  expectStatus(launchBackward(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"blocks.q is not given and blocks.kv is"});
  blocks.q = listsAt(11, 2, 3);
  expectStatus(launchBackward(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"blocks.full_q is not given and blocks.full_kv is"});
  blocks.full_q = listsAt(13, 2, 3);
  blocks.full_kv = {};
  expectStatus(launchBackward(), FOVEA_STATUS_INVALID_ARGUMENT,
               {"blocks.full_q is given without blocks.full_kv"});
}
