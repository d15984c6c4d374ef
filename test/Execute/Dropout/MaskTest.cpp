//===- MaskTest.cpp - kernels that write the mask of dropout --------------===//
//
// Every element of attn.dropout_mask's kernels on simulated devices, and what
// lies between its rows, against the oracle's map of counters.
//
//===----------------------------------------------------------------------===//

#include "DeviceCopies.h"
#include "GroupKernel.h"
#include "fovea/Reference/Dropout.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

namespace {

struct Chip {
  const char *name, *dtype;
};
void PrintTo(const Chip &chip, std::ostream *os) { *os << chip.name; }

struct Row {
  int64_t batch, heads, seqQ, seqK;
  float p;
  uint64_t seed, offset;
  bool swapsWords = false;
  int64_t gap = 0; ///< elements behind each row
  bool onDevice = false;
};
const Row kRows[] = {
    {2, 3, 37, 203, 0.3f, 0x1bf52, 0x1d4b42, false, /*gap=*/6},
    {1, 2, 16, 300, 0.9f, 42, 0, /*swapsWords=*/true},
    // The counter passes 2^32, and 2^64.
    {1, 1, 40, 64, 0.5f, 0xdeadbeefcafe1234, 0xfffffff0, false, 0, true},
    {2, 1, 33, 31, 0.1f, ~uint64_t(0), ~uint64_t(99), true, 0, true},
    {1, 1, 3, 5, 1, 1, 0},
    {1, 2, 18, 257, 0, 1, 0},
    {1, 1, 1, 1, 1 - 0x1p-24f, 9, 0},
    {1, 1, 17, 0, 0.5f, 1, 0},
};

class DropoutMask : public testing::TestWithParam<Chip> {
protected:
  void SetUp() override {
    const bool isHalf = StringRef(GetParam().dtype) == "f16";
    type = isHalf ? reference::ElemType::F16 : reference::ElemType::BF16;
    CompiledKernel::Request request = {GetParam().name, {}, {}, {}, {}, {}};
    request.function = llvm::formatv(R"(
      !mask = memref<?x?x?x?x{0}, strided<[?, ?, ?, 1]>>
      !number = memref<1xi64>
      func.func @kernel(%mask: !mask, %a: !number, %b: !number, %c: !number,
                        %d: !number, %threshold: i32, %scale: f32, %flags: i32,
                        %seed: i64, %offset: i64) {{
        attn.dropout_mask %mask dropout(%a, %b, %c, %d, %threshold, %scale,
            %flags, %seed, %offset : !number, !number, !number, !number, i32,
            f32, i32, i64, i64) : !mask
        return
      })",
                                     GetParam().dtype);
    ProblemKey &problem = request.record.problem;
    problem.op = fovea::OpKind::DropoutMask;
    problem.dtype = isHalf ? DataType::F16 : DataType::BF16;
    problem.groups = spec::neededGroups(problem.op);
    request.record.abiVersion = fovea::abiVersionOf(problem.op);
    ASSERT_EQ(compiled.compile(request), "");
    std::string error;
    session = compiled.open(error);
    ASSERT_TRUE(session) << error;
  }

  void expectMask(const Row &row) {
    SCOPED_TRACE(testing::Message()
                 << row.seqQ << "x" << row.seqK << " p " << row.p);
    // Heads of a query lie behind one another.
    const int64_t seqStride = (row.seqK + row.gap) * row.heads,
                  batchStride = row.seqQ * seqStride + row.gap;
    std::vector<uint16_t> values(size_t(row.batch * batchStride), 0x7fff);
    const std::vector<uint16_t> before = values;
    run::DeviceCopies copies("the mask");
    ASSERT_EQ(copies.open(session->context()), "");
    void *mask = nullptr, *numbers[2] = {};
    ASSERT_EQ(copies.put(values.data(), values.size() * 2, mask), "");
    fovea_dropout_mask_params_t params = {};
    params.struct_size = sizeof(params);
    params.dtype = dataTypeInfo(type).number;
    params.batch = row.batch;
    params.heads_q = row.heads;
    params.seqlen_q = row.seqQ;
    params.seqlen_k = row.seqK;
    params.mask = {mask, batchStride, row.seqK + row.gap, seqStride};
    fovea_dropout_t group = {};
    group.header = {sizeof(group), FOVEA_GROUP_DROPOUT, nullptr};
    group.p = row.p;
    group.word_order = row.swapsWords ? FOVEA_PHILOX_0213 : FOVEA_PHILOX_0123;
    group.seed_value = row.seed;
    group.offset_value = row.offset;
    if (row.onDevice) {
      const uint64_t there[] = {0x123456789abcdef0, ~uint64_t(4)};
      for (int i = 0; i != 2; ++i)
        ASSERT_EQ(copies.put(&there[i], sizeof(there[i]), numbers[i]), "");
      group.seed = static_cast<const uint64_t *>(numbers[0]);
      group.offset = static_cast<const uint64_t *>(numbers[1]);
      group.seed_value -= there[0];
      group.offset_value -= there[1];
    }
    params.groups = &group.header;
    ASSERT_EQ(fovea_dropout_mask(session->context(), &params, nullptr),
              FOVEA_STATUS_OK)
        << fovea_last_message();
    if (!values.empty())
      ASSERT_EQ(copies.read(values.data(), mask, values.size() * 2), "");
    const reference::Dropout dropout = {
        row.p,     row.seed, row.offset, row.swapsWords,
        row.heads, row.seqQ, row.seqK,   /*firstBatch=*/0};
    std::vector<uint16_t> expected = before;
    for (int64_t b = 0; b != row.batch; ++b)
      for (int64_t h = 0; h != row.heads; ++h)
        for (int64_t i = 0; i != row.seqQ; ++i)
          for (int64_t j = 0; j != row.seqK; ++j) {
            const bool isKept = row.p == 0 || dropout.keeps(b, h, i, j);
            expected[size_t(b * batchStride + h * (row.seqK + row.gap) +
                            i * seqStride + j)] =
                reference::encode(type, isKept ? 0.5 : -0.5);
          }
    int64_t wrong = 0;
    for (size_t i = 0; i != values.size(); ++i)
      wrong += values[i] != expected[i];
    EXPECT_EQ(wrong, 0);
  }

  reference::ElemType type;
  CompiledKernel compiled;
  std::unique_ptr<run::Session> session;
};
class DropoutMaskCall : public DropoutMask {};

} // namespace

TEST_P(DropoutMask, IsTheReferences) {
  for (const Row &row : kRows)
    expectMask(row);
}

/// Nothing is launched; reasons name the field.
TEST_P(DropoutMaskCall, IsRefused) {
  uint16_t memory[64];
  fovea_dropout_mask_params_t sound = {};
  sound.struct_size = sizeof(sound);
  sound.dtype = dataTypeInfo(type).number;
  sound.batch = sound.heads_q = 1;
  sound.seqlen_q = sound.seqlen_k = 8;
  sound.mask = {memory, 64, 64, 8};
  auto expect = [&](const char *word, auto spoil) {
    fovea_dropout_mask_params_t params = sound;
    spoil(params);
    EXPECT_EQ(fovea_dropout_mask(session->context(), &params, nullptr),
              FOVEA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(StringRef(fovea_last_message()).find(word), StringRef::npos)
        << fovea_last_message();
  };
  using P = fovea_dropout_mask_params_t;
  expect("mask.data", [](P &p) { p.mask.data = nullptr; });
  expect("mask.stride_seq is 7", [](P &p) { p.mask.stride_seq = 7; });
  expect("seqlen_k is -1", [](P &p) { p.seqlen_k = -1; });
  expect("dtype is 9", [](P &p) { p.dtype = 9; });
  expect("reserved is 1", [](P &p) { p.reserved = 1; });
  fovea_dropout_t dropout = {};
  dropout.header = {sizeof(dropout), FOVEA_GROUP_DROPOUT, nullptr};
  dropout.p = 0.5f;
  uint64_t number;
  dropout.seed_out = &number;
  expect("dropout.seed_out", [&](P &p) { p.groups = &dropout.header; });
  fovea_window_t window = fovea_window_of_flash_attn(1, 1);
  expect("FOVEA_GROUP_WINDOW", [&](P &p) { p.groups = &window.header; });
  fovea_score_t score = {};
  score.header = {sizeof(score), FOVEA_GROUP_SCORE, nullptr};
  expect("FOVEA_GROUP_SCORE", [&](P &p) { p.groups = &score.header; });
  fovea_forward_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  ASSERT_EQ(fovea_dropout_mask_select(session->context(), &sound, -1, &plan),
            FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plan.launch_count, 1u);
  EXPECT_EQ(plan.workspace_bytes, 0u);
}

static std::string chipOf(const testing::TestParamInfo<Chip> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(
    All, DropoutMask,
    testing::Values(Chip{"gfx908", "bf16"}, Chip{"gfx90a", "f16"},
                    Chip{"gfx942", "bf16"}, Chip{"gfx950", "f16"},
                    Chip{"gfx1100", "bf16"}, Chip{"gfx1201", "f16"}),
    chipOf);
INSTANTIATE_TEST_SUITE_P(All, DropoutMaskCall,
                         testing::Values(Chip{"gfx942", "bf16"}), chipOf);
