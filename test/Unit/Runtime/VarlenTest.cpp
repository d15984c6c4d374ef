//===- VarlenTest.cpp - sequences of different lengths in the C interface -===//

#include "../../Support/KernelArgs.h"
#include "RuntimeTest.h"

#include <cstring>

using namespace fovea;
using namespace fovea::test;

namespace {

const int32_t *words(int number, uintptr_t offset = 0) {
  return static_cast<const int32_t *>(place(number, offset));
}

/// Two sequences of 700 queries and 900 keys in all, of at most 300 and 500.
class VarlenTest : public RuntimeTest {
protected:
  VarlenTest() {
    varlen.header = {sizeof(varlen), FOVEA_GROUP_VARLEN, nullptr};
    varlen.q = {words(20), nullptr, FOVEA_LENGTHS_CUMULATIVE, FOVEA_ROWS_PACKED,
                700};
    varlen.k = {words(21), nullptr, FOVEA_LENGTHS_CUMULATIVE, FOVEA_ROWS_PACKED,
                900};
    forward = makeParams();
    pack(forward);
    backward = makeProblemParams<fovea_backward_params_t>();
    pack(backward);
    backward.dout = {place(5), 0, 700 * 128, 128};
    backward.dq = {place(7), 0, 700 * 128, 128};
    backward.dk = {place(8), 0, 900 * 128, 128};
    backward.dv = {place(9), 0, 900 * 128, 128};
  }

  template <typename Params>
  void pack(Params &p) {
    p.groups = &varlen.header;
    p.q = {place(1), 0, 700 * 128, 128};
    p.k = {place(2), 0, 900 * 128, 128};
    p.v = {place(3), 0, 900 * 128, 128};
    p.out = {place(4), 0, 700 * 128, 128};
    p.lse = static_cast<float *>(place(6));
    p.lse_stride_batch = 0;
    p.lse_stride_head = 700;
  }

  static void addVarlen(ProblemKey &key) {
    key.groups[size_t(spec::findGroup("varlen"))] = 1;
  }
  static KernelRecord record(MaskKind mask = MaskKind::None) {
    ProblemKey key = makeProblem(128, DataType::BF16, mask);
    addVarlen(key);
    return makeRecord(key);
  }
  /// Of a backward pass, with another group.
  static KernelRecord backwardRecord(const char *group = nullptr) {
    KernelRecord record = makeBackwardRecord();
    addVarlen(record.problem);
    if (group)
      record.problem.groups[size_t(spec::findGroup(group))] = 1;
    return record;
  }
  void writeAll(const KernelRecord &record) {
    Expected<PackageWriter> writer = PackageWriter::open(path, {"gfx942"});
    ASSERT_TRUE(writer) << writer.status().message();
    std::string symbols;
    for (const LaunchRecord &launch : record.launches)
      symbols += (symbols.empty() ? "" : " ") + record.symbolOf(launch);
    FOVEA_ASSERT_OK(putFake(*writer, record, symbols));
  }

  fovea_status_t launch() {
    fake.launches.clear();
    return fovea_forward(context.get(), &forward, nullptr);
  }
  /// Of a backward pass the bytes of its workspace.
  uint64_t workspaceOf(fovea_status_t status = FOVEA_STATUS_OK,
                       std::initializer_list<const char *> words = {}) {
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_backward_select(context.get(), &backward, -1, &plan),
                 status, words);
    return plan.workspace_bytes;
  }

  fovea_varlen_t varlen = {};
  fovea_forward_params_t forward;
  fovea_backward_params_t backward;
  ContextPtr context;
};

} // namespace

TEST_F(VarlenTest, IsPassed) {
  write({record()});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "seqlens_q"), place(20));
  EXPECT_EQ(passed<const void *>(record(), "seqlens_k"), place(21));
  // Where packed ones begin their sums say.
  EXPECT_EQ(passed<const void *>(record(), "starts_q"), place(20));
  EXPECT_EQ(passed<const void *>(record(), "starts_k"), place(21));
  EXPECT_EQ(passed<int32_t>(record(), "varlen_flags"),
            spec::kSeqlensQAreSums | spec::kSeqlensKAreSums |
                spec::kLseHasStarts);
  EXPECT_EQ(passed<int32_t>(record(), "lse_stride_seq"), 1);
  EXPECT_EQ(passed<int32_t>(record(), "packed_rows_q"), 700);
  EXPECT_EQ(passed<int32_t>(record(), "seqlen_q"), 300);
  EXPECT_EQ(fake.launches[0].grid[1], 3u);
  EXPECT_EQ(fake.launches[0].grid[2], 2u);
  // All are in one batch, whatever the distance of batches is said to be.
  forward.q.stride_batch = forward.out.stride_batch = 1;
  forward.lse_stride_batch = 2;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<int64_t>(record(), "q_stride_batch"), 0);
  EXPECT_EQ(passed<int64_t>(record(), "lse_stride_batch"), 0);
  EXPECT_EQ(passed<int64_t>(record(), "k_stride_head"), 900 * 128);
  // Log-sum-exps with the heads of a row beside one another.
  varlen.lse_stride_seq = 8;
  forward.lse_stride_head = 1;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<int32_t>(record(), "lse_stride_seq"), 8);
  EXPECT_EQ(passed<int64_t>(record(), "lse_stride_head"), 1);
  // With batches of their own they begin at 0.
  varlen.lse_stride_seq = 0;
  varlen.lse_layout = FOVEA_LSE_BATCHED;
  forward.lse_stride_batch = 8 * 304;
  forward.lse_stride_head = 304;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<int32_t>(record(), "varlen_flags"),
            spec::kSeqlensQAreSums | spec::kSeqlensKAreSums);
  EXPECT_EQ(passed<int64_t>(record(), "lse_stride_batch"), 8 * 304);
  // Lengths of keys alone, at rows of their own.
  varlen.q = {};
  varlen.k = {words(21), words(22), FOVEA_LENGTHS_EACH, FOVEA_ROWS_PACKED, 900};
  forward.q = {place(1), 8 * 300 * 128, 300 * 128, 128};
  forward.out = {place(4), 8 * 300 * 128, 300 * 128, 128};
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<const void *>(record(), "seqlens_q"), nullptr);
  EXPECT_EQ(passed<const void *>(record(), "starts_q"), nullptr);
  EXPECT_EQ(passed<const void *>(record(), "starts_k"), place(22));
  EXPECT_EQ(passed<int32_t>(record(), "varlen_flags"), 0);
  EXPECT_EQ(passed<int32_t>(record(), "packed_rows_q"), 0);
  EXPECT_EQ(passed<int64_t>(record(), "q_stride_batch"), 8 * 300 * 128);
}

TEST_F(VarlenTest, KernelsServeCallsWithout) {
  write({record()});
  context = makeContext();
  forward = makeParams();
  expectStatus(launch(), FOVEA_STATUS_OK);
  for (const char *name : {"seqlens_q", "seqlens_k", "starts_q", "starts_k"})
    EXPECT_EQ(passed<const void *>(record(), name), nullptr) << name;
  EXPECT_EQ(passed<int32_t>(record(), "varlen_flags"), 0);
  EXPECT_EQ(passed<int32_t>(record(), "lse_stride_seq"), 1);
  EXPECT_EQ(passed<int32_t>(record(), "packed_rows_q"), 0);
}

TEST_F(VarlenTest, NeedsAKernelThatReadsLengths) {
  write({makeRecord(makeProblem())});
  context = makeContext();
  expectStatus(launch(), FOVEA_STATUS_NOT_FOUND,
               {"varlen=1", "lengths that differ", "without varlen"});
}

TEST_F(VarlenTest, IsChecked) {
  write({record()});
  context = makeContext();
  const fovea_varlen_t sound = varlen;
  const fovea_forward_params_t soundParams = forward;
  auto refused = [&](std::initializer_list<const char *> words) {
    expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT, words);
    EXPECT_TRUE(fake.launches.empty());
    varlen = sound;
    forward = soundParams;
  };
  for (auto [name, side] :
       {std::pair("varlen.q", &varlen.q), {"varlen.k", &varlen.k}}) {
    auto refusedSide = [&, name = std::string(name)](const char *word) {
      refused({(name + word).c_str()});
    };
    side->kind = 2;
    refusedSide(".kind is 2, not FOVEA_LENGTHS_EACH (0) or "
                "FOVEA_LENGTHS_CUMULATIVE (1)");
    side->kind = -1;
    refusedSide(".kind is -1");
    side->layout = 2;
    refusedSide(".layout is 2, not FOVEA_ROWS_BATCHED (0) or "
                "FOVEA_ROWS_PACKED (1)");
    side->layout = FOVEA_ROWS_BATCHED;
    side->lengths = nullptr;
    side->total = 1;
    refusedSide(".total is 1, and without lengths each sequence has the "
                "call's ");
    side->total = -1;
    refusedSide(".total is -1, not in 0 to 2147483135");
    side->total = int64_t(1) << 31;
    refusedSide(".total is 2147483648");
    side->kind = FOVEA_LENGTHS_EACH;
    refusedSide(".starts is NULL, and packed rows have no cumulative lengths");
    side->lengths = nullptr;
    refusedSide(".starts is NULL");
  }
  varlen.lse_layout = 2;
  refused({"varlen.lse_layout is 2, not FOVEA_LSE_AS_Q (0)"});
  varlen.lse_stride_seq = -1;
  refused({"varlen.lse_stride_seq is -1, not in 0 to 2097151"});
  varlen.lse_stride_seq = 2097152;
  refused({"varlen.lse_stride_seq is 2097152"});
  varlen.reserved = 1;
  refused({"varlen.reserved is 1"});
  varlen.header.struct_size = 8;
  refused({"varlen.header.struct_size is 8"});
  varlen.q.lengths = words(20, 2);
  refused({"varlen.q.lengths is ", "no multiple of the element size (4"});
  varlen.k.starts = words(22, 1);
  refused({"varlen.k.starts is ", "no multiple of the element size (4"});
  fovea_varlen_t again = varlen;
  varlen.header.next = &again.header;
  refused({"groups has FOVEA_GROUP_VARLEN twice"});
  expectStatus(launch(), FOVEA_STATUS_OK);
}

// Rows of all sequences are those of one batch.
TEST_F(VarlenTest, ShapesAreThoseOfPackedRows) {
  write({record()});
  context = makeContext();
  const fovea_forward_params_t sound = forward;
  const fovea_varlen_t soundVarlen = varlen;
  auto refused = [&](std::initializer_list<const char *> words) {
    expectStatus(launch(), FOVEA_STATUS_INVALID_ARGUMENT, words);
    forward = sound;
    varlen = soundVarlen;
  };
  forward.out.stride_head = 699 * 128;
  refused({"out.stride_head is 89472: rows would overlap; it must be at least "
           "89600"});
  forward.lse_stride_head = 699;
  refused({"lse", "is 699: rows would overlap", "at least 700"});
  // Heads of a row beside one another, and fewer of them than there are.
  varlen.lse_stride_seq = 7;
  forward.lse_stride_head = 1;
  refused({"lse's rows by varlen.lse_stride_seq is 7: rows would overlap",
           "at least 8"});
  // Which batches need distances.
  varlen.lse_layout = FOVEA_LSE_BATCHED;
  forward.lse_stride_head = 300;
  refused({"lse", "stride_batch is 0: rows would overlap"});
  // The last of 700 rows: of 300 they would be apart.
  const uintptr_t last = 2 * (7 * 700 * 128 + 699 * 128);
  forward.q.data = place(4, last);
  refused({"out (from ", "q (from ", "share memory"});
  forward.q.data = place(4, last + 2 * 128);
  expectStatus(launch(), FOVEA_STATUS_OK);
  forward = sound;
  // Sums have one number more than there are sequences.
  forward.out.data = place(20, 8);
  refused({"out (from ", "varlen.q.lengths (from ", "share memory"});
  forward.out.data = place(20, 12);
  expectStatus(launch(), FOVEA_STATUS_OK);
  forward = sound;
  varlen.q.kind = varlen.k.kind = FOVEA_LENGTHS_EACH;
  varlen.q.starts = words(22);
  varlen.k.starts = words(23);
  forward.out.data = place(20, 8);
  expectStatus(launch(), FOVEA_STATUS_OK);
  forward.out.data = place(20, 4);
  refused({"out (from ", "varlen.q.lengths (from "});
  forward.lse = static_cast<float *>(place(23, 4));
  varlen.k.starts = words(23);
  refused({"lse", "varlen.k.starts (from "});
}

// Groups are read in their order, and this one before those that it shapes.
TEST_F(VarlenTest, StandsAnywhereAmongGroups) {
  writeAll(backwardRecord("dlse"));
  context = makeContext();
  fovea_dlse_t dlse = {};
  dlse.header = {sizeof(dlse), FOVEA_GROUP_DLSE, nullptr};
  dlse.dlse = static_cast<const float *>(place(12));
  dlse.dlse_stride_head = 700;
  auto both = [&](bool isFirst) {
    varlen.header.next = isFirst ? &dlse.header : nullptr;
    dlse.header.next = isFirst ? nullptr : &varlen.header;
    backward.groups = isFirst ? &varlen.header : &dlse.header;
  };
  backward.workspace = place(10);
  backward.workspace_bytes = 1 << 20;
  for (bool isFirst : {true, false}) {
    both(isFirst);
    // Behind what 300 rows of the last head would be.
    backward.dq.data = place(12, 4 * (7 * 700 + 600));
    expectStatus(fovea_backward(context.get(), &backward, nullptr),
                 FOVEA_STATUS_INVALID_ARGUMENT,
                 {"dq (from ", "dlse.dlse (from ", "share memory"});
    backward.dq.data = place(12, 4 * 8 * 700);
    expectStatus(fovea_backward(context.get(), &backward, nullptr),
                 FOVEA_STATUS_OK);
  }
}

TEST_F(VarlenTest, TheWorkspaceHasThePackedRows) {
  writeAll(backwardRecord());
  context = makeContext();
  EXPECT_EQ(workspaceOf(), 4u * 8 * 700);
  varlen.q.total = 1000; // another call, of the same sizes
  backward.dq.stride_head = 1000 * 128;
  EXPECT_EQ(workspaceOf(), 4u * 8 * 1000);
  varlen.q.layout = FOVEA_ROWS_BATCHED;
  varlen.q.total = 0;
  for (fovea_tensor_t *tensor : {&backward.q, &backward.out, &backward.dout})
    *tensor = {tensor->data, 8 * 300 * 128, 300 * 128, 128};
  backward.dq = {place(7), 8 * 300 * 128, 300 * 128, 128};
  backward.lse_stride_batch = 8 * 300;
  backward.lse_stride_head = 300;
  EXPECT_EQ(workspaceOf(), 4u * 2 * 8 * 300);
}

TEST_F(VarlenTest, SumsInMemoryHaveThePackedRows) {
  KernelRecord record = backwardRecord();
  record.schedule = "atomic";
  record.launches = {
      {"prepare", 64, 256}, {"fused", 64, 512}, {"convert", 64, 128}};
  writeAll(record);
  context = makeContext();
  EXPECT_EQ(workspaceOf(), 4u * 8 * 700 * (1 + 128));
}

// In pairs of rows those of two sequences would share a word: each sequence has
// a batch's, of the longest.
TEST_F(VarlenTest, NarrowSumsHaveARoomForEachSequence) {
  KernelRecord record = backwardRecord();
  record.schedule = "atomic16";
  record.launches = {
      {"prepare16", 64, 256}, {"fused16", 64, 512}, {"convert16", 64, 128}};
  writeAll(record);
  context = makeContext();
  workspaceOf(FOVEA_STATUS_NOT_FOUND, {"narrow_sums is 0"});
  backward.narrow_sums = 1;
  EXPECT_EQ(workspaceOf(), 2u * 8 * (320 + 32) * (4 + 2 * 128));
}

// Where most workgroups of a batch's grid would find nothing to do.
TEST_F(VarlenTest, GridsCountTheBlocksThatThereAre) {
  write({record()});
  context = makeContext();
  forward.batch = 40;
  const fovea_varlen_t sound = varlen;
  auto gridIs = [&](unsigned y, unsigned z, int32_t flags) {
    expectStatus(launch(), FOVEA_STATUS_OK);
    ASSERT_EQ(fake.launches.size(), 1u);
    EXPECT_EQ(fake.launches[0].grid[1], y);
    EXPECT_EQ(fake.launches[0].grid[2], z);
    EXPECT_EQ(passed<int32_t>(record(), "varlen_flags") &
                  (spec::kGridIsPackedQ | spec::kGridIsPackedK),
              flags);
    EXPECT_EQ(passed<int32_t>(record(), "sequences"), 40);
    varlen = sound;
  };
  // 40 x 3 blocks are more than twice 700 / 128 + 40.
  gridIs(45, 1, spec::kGridIsPackedQ | spec::kGridIsPackedK);
  varlen.q.total = 128 * 20; // and no more than twice 60
  forward.q.stride_head = forward.out.stride_head = 128 * 20 * 128;
  forward.lse_stride_head = 128 * 20;
  gridIs(3, 40, spec::kGridIsPackedK);
  varlen.k.total = 128 * 40;
  gridIs(45, 1, spec::kGridIsPackedQ);
  // Sequences that say where they begin may be in any order.
  varlen.q.starts = words(22);
  gridIs(3, 40, spec::kGridIsPackedK);
  varlen.q.starts = varlen.q.lengths;
  gridIs(45, 1, spec::kGridIsPackedQ | spec::kGridIsPackedK);
}

// What is the same of 300 queries and 300 keys is not of each sequence.
TEST_F(VarlenTest, MasksAreThoseOfEachSequence) {
  write({record(MaskKind::CausalTopLeft)});
  context = makeContext();
  forward = makeParams();
  forward.seqlen_k = 300;
  forward.mask = FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
  expectStatus(launch(), FOVEA_STATUS_OK);
  pack(forward);
  expectStatus(launch(), FOVEA_STATUS_NOT_FOUND, {"causal_bottom_right"});
  forward.mask = FOVEA_MASK_CAUSAL_TOP_LEFT;
  expectStatus(launch(), FOVEA_STATUS_OK);
  // Nor does one query see all keys by the first diagonal.
  forward.seqlen_q = 1;
  forward.mask = FOVEA_MASK_NONE;
  expectStatus(launch(), FOVEA_STATUS_NOT_FOUND);
}

TEST_F(VarlenTest, OneQueryAndLengthsOfKeys) {
  KernelRecord record;
  record = makeRecord(
      *ProblemKey::parse("forward;dtype=bf16;head_dim=128;window=1;varlen=1"));
  record.symbol = "fwd";
  record.schedule = "split";
  record.blockN = 32;
  record.launches = {{"share", 128, 256}, {"combine", 1, 64}};
  writeAll(record);
  context = makeContext();
  const fovea_window_t causal = fovea_window_of_flash_attn(-1, 0),
                       narrow = fovea_window_of_flash_attn(99, 0);
  fovea_window_t topLeft = causal;
  topLeft.right_alignment = FOVEA_ALIGN_TOP_LEFT;
  const fovea_sequences_t keys = {words(21), nullptr, FOVEA_LENGTHS_EACH,
                                  FOVEA_ROWS_BATCHED, 0};
  const fovea_sequences_t queries = {words(20), nullptr, FOVEA_LENGTHS_EACH,
                                     FOVEA_ROWS_BATCHED, 0};
  const fovea_sequences_t places = {nullptr, words(20), FOVEA_LENGTHS_EACH,
                                    FOVEA_ROWS_BATCHED, 0};
  const struct {
    const char *what;
    fovea_sequences_t q;
    const fovea_window_t *window;
    bool isPacked; ///< the heads of a group are the rows of one
  } rows[] = {
      {"no mask", {}, nullptr, true},
      {"the last query sees all", {}, &causal, true},
      {"the first sees one", {}, &topLeft, true},
      {"a window of each sequence", {}, &narrow, true},
      {"there may be no query", queries, nullptr, false},
      {"elsewhere in each sequence", places, nullptr, false},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.what);
    forward = makeParams();
    forward.seqlen_q = 1;
    forward.q.stride_head = forward.out.stride_head = 128;
    forward.splits = 3;
    forward.workspace = place(10);
    forward.workspace_bytes = 1 << 20;
    varlen.q = row.q;
    varlen.k = keys;
    fovea_window_t window = row.window ? *row.window : fovea_window_t();
    varlen.header.next = row.window ? &window.header : nullptr;
    forward.groups = &varlen.header;
    expectStatus(launch(), FOVEA_STATUS_OK);
    ASSERT_EQ(fake.launches.size(), 2u);
    const FakeLaunch &split = fake.launches[0];
    EXPECT_EQ(split.grid[0], row.isPacked ? 2u : 8u);
    ForwardArgs args;
    std::memcpy(&args, split.argumentSegment.data(), 172);
    EXPECT_EQ(args.seqlenQ, 1);
    EXPECT_EQ(args.seqlenK, 500); // the most: each sequence's is on the device
    EXPECT_EQ(fake.launches[1].grid[0], 8u);
  }
}

// Of nothing there is nothing to launch.
TEST_F(VarlenTest, NoRowsAtAll) {
  write({record()});
  context = makeContext();
  varlen.q.total = 0;
  forward.q.data = nullptr;
  forward.out.data = nullptr;
  expectStatus(launch(), FOVEA_STATUS_OK);
  EXPECT_TRUE(fake.launches.empty());
}
