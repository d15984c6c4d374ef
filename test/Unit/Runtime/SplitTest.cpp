//===- SplitTest.cpp - kernels that split the keys ------------------------===//

#include "RuntimeTest.h"

#include <cstring>

using namespace fovea;
using namespace fovea::test;

namespace {

using Params = fovea_forward_params_t;
using Plan = fovea_forward_plan_t;

class SplitTest : public RuntimeTest {
protected:
  static KernelRecord makeSplit(const char *problem = nullptr) {
    KernelRecord record = makeRecord(makeProblem(128), 128);
    if (problem)
      record.problem = *ProblemKey::parse(problem);
    record.symbol = "fwd";
    record.schedule = "split";
    record.blockN = 32;
    record.launches = {{"share", 128, 256}, {"combine", 1, 64}};
    return record;
  }
  static KernelRecord makePlain() {
    KernelRecord record = makeRecord(makeProblem(128), 128);
    record.symbol = "plain";
    record.blockN = 32;
    return record;
  }
  /// Stores records, each with an image that has its kernels.
  void writeAll(const std::vector<KernelRecord> &records,
                const std::string &chip = "gfx942") {
    Expected<PackageWriter> writer = PackageWriter::open(path, {chip});
    ASSERT_TRUE(writer) << writer.status().message();
    for (const KernelRecord &record : records) {
      std::string symbols;
      for (const LaunchRecord &launch : record.launches)
        symbols += (symbols.empty() ? "" : " ") + record.symbolOf(launch);
      FOVEA_ASSERT_OK(putFake(*writer, record,
                              symbols.empty() ? record.symbol : symbols, chip));
    }
  }

  static Params makeShort(int64_t rows, int64_t keys, int64_t heads = 8,
                          int64_t headsK = 8) {
    Params p = makeParams();
    p.batch = 1;
    p.heads_q = heads;
    p.heads_k = headsK;
    p.seqlen_q = rows;
    p.seqlen_k = keys;
    p.q = {place(1), heads * rows * 128, rows * 128, 128};
    p.out = {place(4), heads * rows * 128, rows * 128, 128};
    p.k = {place(2), headsK * keys * 128, keys * 128, 128};
    p.v = {place(3), headsK * keys * 128, keys * 128, 128};
    return p;
  }
  Plan select(fovea_context_t *context, const Params &params) {
    Plan plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_forward_select(context, &params, 0, &plan),
                 FOVEA_STATUS_OK);
    return plan;
  }
  /// With the workspace that the plan wants.
  void launch(fovea_context_t *context, Params params) {
    params.workspace_bytes = select(context, params).workspace_bytes;
    params.workspace = place(10);
    expectStatus(fovea_forward(context, &params, nullptr), FOVEA_STATUS_OK);
  }
  static ForwardArgs argsOf(const FakeLaunch &launch) {
    ForwardArgs args{};
    EXPECT_GE(launch.argumentSegment.size(), sizeof(args));
    std::memcpy(&args, launch.argumentSegment.data(), sizeof(args));
    return args;
  }
  /// What the algorithm's own arguments are: at the end.
  static void expectOwn(const FakeLaunch &launch, uint32_t splits,
                        uint32_t packedHeads = 1) {
    const auto &bytes = launch.argumentSegment;
    ASSERT_GE(bytes.size(), 16u);
    uint64_t workspace;
    uint32_t found[2];
    std::memcpy(&workspace, &bytes[bytes.size() - 16], sizeof(workspace));
    std::memcpy(&found, &bytes[bytes.size() - 8], sizeof(found));
    EXPECT_EQ(workspace, kBetweenPlaces * 10);
    EXPECT_EQ(found[0], splits);
    EXPECT_EQ(found[1], packedHeads);
  }
};

} // namespace

TEST_F(SplitTest, LaunchesTakeAsLongWhateverTheColumns) {
  // The compiler's blocks on gfx942.
  for (int32_t columns : {64, 256}) {
    KernelRecord plain = makePlain(), split = makeSplit();
    plain.problem = split.problem = makeProblem(columns);
    plain.blockN = split.blockN = columns == 64 ? 64 : 32;
    if (columns == 64) {
      split.blockM = 64;
      split.launches[0].blockRows = 64;
    }
    writeAll({plain, split});
  }
  ContextPtr context = makeContext();
  auto sharesOf = [&](int64_t rows, int64_t keys, int64_t heads,
                      int64_t columns) {
    Params params = makeShort(rows, keys, heads, heads);
    params.head_dim = columns;
    for (fovea_tensor_t *tensor : {&params.q, &params.k, &params.v})
      *tensor = {tensor->data, tensor->stride_batch * columns / 128,
                 tensor->stride_head * columns / 128, columns};
    params.out = {params.out.data, params.out.stride_batch * columns / 128,
                  params.out.stride_head * columns / 128, columns};
    return select(context.get(), params).splits;
  };
  // Of fewer columns blocks take less against them, of more more.
  EXPECT_EQ(sharesOf(512, 512, 8, 64), 1u) << fovea_last_message();
  EXPECT_GT(sharesOf(64, 2048, 32, 64), 1u) << fovea_last_message();
  EXPECT_GT(sharesOf(512, 512, 8, 256), 1u) << fovea_last_message();
}

TEST_F(SplitTest, StandsAgainstWhatATuningRowNames) {
  // Rows are of as many keys as rows, and of kernels that do not split.
  KernelRecord small = makePlain();
  small.symbol = "small";
  small.schedule = "small";
  writeAll({makePlain(), makeSplit(), small});
  {
    Expected<PackageWriter> writer = PackageWriter::open(path, {"gfx942"});
    ASSERT_TRUE(writer) << writer.status().message();
    FOVEA_ASSERT_OK(
        writer->putTuning({makeProblem(128), TuningRow::kAny, TuningRow::kAny,
                           TuningRow::kAny, small.schedule}));
  }
  ContextPtr context = makeContext();
  const Plan few = select(context.get(), makeShort(1, 32768));
  EXPECT_EQ(few.splits, 36u) << fovea_last_message();
  EXPECT_EQ(few.chosen_by, FOVEA_CHOSEN_BY_RULE);
  // As many keys as rows, and no workspace.
  const Plan many = select(context.get(), makeShort(8192, 8192));
  EXPECT_EQ(many.splits, 1u) << fovea_last_message();
  EXPECT_EQ(many.chosen_by, FOVEA_CHOSEN_BY_TUNING);
  const Params alone = makeShort(1, 32768);
  expectStatus(fovea_forward(context.get(), &alone, nullptr), FOVEA_STATUS_OK);
  ASSERT_FALSE(fake.launches.empty());
  EXPECT_EQ(fake.launches.back().function, "small");
}

TEST_F(SplitTest, RuleFillsTheDeviceAndNoMore) {
  writeAll({makePlain(), makeSplit()});
  ContextPtr context = makeContext(); // 304 compute units
  const struct {
    int64_t rows, keys, heads, headsK;
    uint32_t splits;
  } cases[] = {
      // Nearly a workgroup a unit, in shares of as many blocks each.
      {1, 32768, 8, 8, 36},
      {128, 32768, 8, 8, 36},
      // Four heads of eight rows each.
      {1, 32768, 32, 4, 64},
      // What products take has all units twice, but those that would be shared
      // by three.
      {512, 32768, 8, 8, 18},
      // Not more shares than blocks.
      {1, 256, 8, 8, 8},
      {1, 64, 8, 8, 1},
      // What shares leave is not for nothing.
      {512, 1024, 32, 32, 2},
      {512, 512, 32, 32, 1},
      // The device is full, if only of one workgroup a unit: what keeps two of
      // them busy is not what the costs of a kernel that does not split say.
      {4800, 4096, 8, 8, 1},
      {8192, 4096, 8, 8, 1},
      {16384, 4096, 8, 8, 1},
      {16384, 32768, 8, 8, 1},
      {1, 0, 8, 8, 1},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.keys) + " " +
                 std::to_string(c.heads) + "/" + std::to_string(c.headsK));
    const Params params = makeShort(c.rows, c.keys, c.heads, c.headsK);
    const Plan plan = select(context.get(), params);
    EXPECT_EQ(plan.splits, c.splits) << fovea_last_message();
    EXPECT_EQ(plan.launch_count, c.splits > 1 ? 2u : 1u);
    EXPECT_EQ(plan.kernel, c.splits > 1 ? 2u : 1u);
    EXPECT_EQ(plan.workspace_bytes,
              c.splits > 1 ? 4u * 132 * c.heads * c.rows * c.splits : 0u);
    // The same device and problem, the same number.
    EXPECT_EQ(select(context.get(), params).splits, plan.splits);
  }
}

TEST_F(SplitTest, NeverMoreSharesThanBlocks) {
  writeAll({makeSplit()});
  ContextPtr context = makeContext();
  for (int64_t keys : {0, 1, 31, 32, 33, 100, 1000, 4096, 100000})
    for (int64_t rows : {1, 5, 128, 300})
      for (uint32_t asked : {0u, 2u, 40u, 1024u}) {
        Params params = makeShort(rows, keys);
        params.splits = asked;
        const Plan plan = select(context.get(), params);
        const uint32_t blocks =
            uint32_t(std::max<int64_t>((keys + 31) / 32, 1));
        EXPECT_LE(plan.splits, blocks);
        if (asked)
          EXPECT_EQ(plan.splits, std::min(asked, blocks));
      }
  // A window shows fewer.
  writeAll({makeSplit("forward;dtype=bf16;head_dim=128;window=1")});
  context = makeContext();
  Params params = makeShort(1, 4096);
  fovea_window_t window = fovea_window_of_flash_attn(99, 0);
  params.groups = &window.header;
  params.splits = 1024;
  EXPECT_EQ(select(context.get(), params).splits, 4u);
}

// What a launch costs beside its blocks, blocks of the same units, and whether
// two workgroups of so many waves share one of these.
TEST_F(SplitTest, CostsAreOfTheChipAndTheKernel) {
  const struct {
    const char *chip;
    int32_t rows, threads;
    uint32_t splits;
    int64_t keys;
  } cases[] = {
      {"gfx942", 128, 256, 8, 1024},    {"gfx90a", 128, 256, 8, 1024},
      {"gfx950", 128, 256, 1, 1024},    {"gfx950", 256, 512, 8, 1024},
      {"gfx950", 256, 512, 18, 131072}, {"gfx942", 256, 512, 18, 131072},
      {"gfx942", 256, 256, 36, 131072}};
  for (const auto &one : cases) {
    SCOPED_TRACE(one.chip + std::string(", ") + std::to_string(one.rows));
    std::filesystem::remove(path);
    fake.archs = {one.chip + std::string(":sramecc+:xnack-")};
    KernelRecord split = makeSplit(), plain = makePlain();
    for (KernelRecord *record : {&split, &plain})
      record->blockM = one.rows;
    split.launches[0] = {"share", one.rows, one.threads};
    writeAll({plain, split}, one.chip);
    ContextPtr context = makeContext();
    EXPECT_EQ(select(context.get(), makeShort(512, one.keys, 8, 8)).splits,
              one.splits);
  }
}

TEST_F(SplitTest, ManySharesAreOfKernelsThatCombineThemAtOnce) {
  // As their schedule tells; threads alone do not (those of wide rows of V).
  for (auto [schedule, splits] :
       {std::pair("split", 128),
        {"split;share:block_n=256;combine:block_m=1,block_n=64,waves=4", 128},
        {"split;share:block_n=64;combine_v2:block_m=1,block_n=256,waves=4",
         256}}) {
    std::filesystem::remove(path);
    KernelRecord split = makeSplit();
    split.blockM = 16;
    split.blockN = 64;
    split.schedule = schedule;
    split.launches = {{"share", 16, 256}, {"combine", 1, 256}};
    writeAll({makePlain(), split});
    ContextPtr context = makeContext();
    EXPECT_EQ(select(context.get(), makeShort(1, 32768, 8, 1)).splits,
              uint32_t(splits))
        << schedule;
  }
}

TEST_F(SplitTest, WithoutWorkspaceKeysAreNotSplit) {
  writeAll({makePlain(), makeSplit()});
  ContextPtr context = makeContext();
  Params params = makeShort(1, 4096);
  const uint64_t bytes = select(context.get(), params).workspace_bytes;
  ASSERT_GT(bytes, 0u);
  expectStatus(fovea_forward(context.get(), &params, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "plain");
  params.workspace = place(10);
  params.workspace_bytes = bytes - 1;
  expectStatus(fovea_forward(context.get(), &params, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "plain");
  params.workspace_bytes = bytes;
  expectStatus(fovea_forward(context.get(), &params, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "fwd_share fwd_combine");
  // Whoever insists is told what is missing.
  params.splits = 4;
  params.workspace_bytes = 16;
  expectStatus(fovea_forward(context.get(), &params, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"it splits the keys into 4 and needs a workspace of 16896 "
                "bytes, the call has 16",
                "it does not split the keys, and splits is 4"});
  params.workspace = place(4, 256);
  params.workspace_bytes = 16896;
  expectStatus(fovea_forward(context.get(), &params, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"workspace", "share memory"});
}

TEST_F(SplitTest, ANumberOfSharesIsAFieldWithLimits) {
  writeAll({makePlain(), makeSplit()});
  ContextPtr context = makeContext();
  Params params = makeShort(1, 4096);
  params.splits = 1;
  EXPECT_EQ(select(context.get(), params).kernel, 1u);
  params.kernel = 2;
  expectStatus(fovea_forward_select(context.get(), &params, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND, {"it splits the keys, and splits is 1"});
  params.kernel = 0;
  params.splits = 1025;
  expectStatus(fovea_forward_select(context.get(), &params, 0, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT,
               {"splits is 1025, not in 0 to 1024"});
  params.splits = 2;
  params.reserved2 = 1;
  expectStatus(fovea_forward_select(context.get(), &params, 0, nullptr),
               FOVEA_STATUS_INVALID_ARGUMENT, {"reserved2 is 1"});
  // Programs that do not know the field.
  params.reserved2 = 0;
  params.struct_size = 248;
  EXPECT_GT(select(context.get(), params).splits, 2u);
}

// Kernels divide numbers of heads and blocks by f32.
TEST_F(SplitTest, MoreHeadsThanItCanNumberAreRefused) {
  writeAll({makePlain(), makeSplit()});
  ContextPtr context = makeContext();
  Params params = makeShort(1, 4096);
  params.splits = 2;
  params.heads_q = params.heads_k = spec::kMostOfSplitLaunch;
  EXPECT_EQ(select(context.get(), params).kernel, 2u);
  params.heads_q = params.heads_k = spec::kMostOfSplitLaunch + 1;
  expectStatus(fovea_forward_select(context.get(), &params, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"heads_q 2097152 or the blocks of seqlen_k 4096 are more than "
                "2097151"});
}

TEST_F(SplitTest, RowsOfFewSharesAreCombinedByBlocks) {
  // And kernels of before by theirs.
  const struct {
    const char *suffix;
    int32_t splits;
    unsigned blocks;
  } cases[] = {{"combine_v2", 2, 9},   {"combine_v2", 16, 9},
               {"combine_v2", 17, 33}, {"combine", 2, 9},
               {"combine", 8, 9},      {"combine", 9, 33}};
  ContextPtr context;
  for (const auto &[suffix, splits, blocks] : cases) {
    std::filesystem::remove(path);
    KernelRecord split = makeSplit();
    split.launches[1].suffix = suffix;
    split.launches[1].blockRows = 4;
    writeAll({split});
    context = makeContext();
    Params params = makeShort(33, 4096);
    params.splits = splits;
    launch(context.get(), params);
    EXPECT_EQ(fake.launches.back().grid[1], blocks) << suffix << " " << splits;
  }
  // Grids may be of one row each.
  Params params = makeShort(65536, 4096);
  params.splits = 2;
  expectStatus(fovea_forward_select(context.get(), &params, 0, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"65536 blocks of 1 rows, more than 65535"});
}

TEST_F(SplitTest, LaunchesCarryGridsAndArguments) {
  writeAll({makeSplit()});
  ContextPtr context = makeContext();
  Params params = makeShort(200, 4096, 8, 2);
  params.splits = 3;
  launch(context.get(), params);
  ASSERT_EQ(fake.launches.size(), 2u);
  const FakeLaunch &split = fake.launches[0], &combine = fake.launches[1];
  EXPECT_EQ(split.grid[0], 8u);
  EXPECT_EQ(split.grid[1], 2u);
  EXPECT_EQ(split.grid[2], 3u);
  EXPECT_EQ(split.block[0], 256u);
  EXPECT_EQ(combine.grid[0], 8u);
  EXPECT_EQ(combine.grid[1], 200u);
  EXPECT_EQ(combine.grid[2], 1u);
  EXPECT_EQ(combine.block[0], 64u);
  for (const FakeLaunch &one : fake.launches) {
    EXPECT_EQ(argsOf(one).seqlenQ, 200);
    EXPECT_EQ(argsOf(one).groupSize, 4);
    expectOwn(one, 3);
    EXPECT_EQ(argsOf(one).k, kBetweenPlaces * 2);
  }
}

// Keys are read once for all heads that share them.
TEST_F(SplitTest, RowsOfHeadsAreThoseOfOne) {
  for (const char *problem :
       {"forward;dtype=bf16;head_dim=128;window=1",
        "forward;dtype=bf16;head_dim=128;mask=causal_bottom_right"}) {
    SCOPED_TRACE(problem);
    writeAll({makeSplit(problem)});
    ContextPtr context = makeContext();
    const struct {
      int64_t rows, stride;
      uint32_t packed, blocks;
    } cases[] = {
        {1, 128, 4, 1},
        {33, 128, 4, 2}, // 132 rows of blocks of 128
        {96, 128, 4, 3},
        {97, 128, 1, 1},  // four blocks either way
        {129, 128, 1, 2}, // more than a block has
        {2, int64_t(1) << 28, 4, 1},
        {2, int64_t(1) << 29, 1, 1}, // further apart than offsets reach
    };
    for (const auto &c : cases) {
      SCOPED_TRACE(c.rows);
      Params params = makeShort(c.rows, 4096, 8, 2);
      params.q.stride_seq = c.stride;
      if (c.stride > 128) {
        params.q.stride_seq = 128;
        params.q.stride_head = c.stride;
      }
      params.mask = FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
      params.splits = 5;
      fake.launches.clear();
      launch(context.get(), params);
      ASSERT_EQ(fake.launches.size(), 2u);
      const FakeLaunch &share = fake.launches[0], &combine = fake.launches[1];
      EXPECT_EQ(share.grid[0], 8u / c.packed);
      EXPECT_EQ(share.grid[1], c.blocks);
      EXPECT_EQ(share.grid[2], 5u);
      EXPECT_EQ(combine.grid[0], 8u);
      EXPECT_EQ(combine.grid[1], uint32_t(c.rows));
      for (const FakeLaunch &one : fake.launches) {
        expectOwn(one, 5, c.packed);
        EXPECT_EQ(argsOf(one).seqlenQ, c.rows);
        EXPECT_EQ(argsOf(one).headsQ, 8);
        EXPECT_EQ(argsOf(one).groupSize, 4);
      }
    }
  }
}
