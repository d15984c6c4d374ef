//===- NarrowSumsTest.cpp - kernels that sum dQ in 16 bits ----------------===//

#include "BackwardTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

class NarrowSumsTest : public BackwardTest {
protected:
  /// A record of the algorithm that adds dQ up in 16 bits.
  static KernelRecord makeNarrowRows(int32_t rows = 64) {
    KernelRecord record = makeRows(rows, rows);
    record.schedule = "atomic16";
    record.launches = {{"prepare16", rows, 256},
                       {"fused16", rows, 512},
                       {"convert16", rows, 128}};
    return record;
  }
};

} // namespace

// Sums of dQ in 16 bits are taken by whom asks for them, and by nobody else.
TEST_F(NarrowSumsTest, AreForThoseWhoAsk) {
  writeBackward(makeNarrowRows());
  {
    ContextPtr context = makeContext();
    Params p = makeBackward();
    p.workspace_bytes = uint64_t(1) << 40;
    for (uint32_t kernel : {0, 1}) {
      p.kernel = kernel;
      expectStatus(fovea_backward(context.get(), &p, nullptr),
                   FOVEA_STATUS_NOT_FOUND,
                   {"its algorithm is 'atomic16'", "narrow_sums is 0",
                    "--algorithm=atomic"});
    }
    EXPECT_EQ(launched(), "");
    p.kernel = 0;
    p.narrow_sums = 1;
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), "bwd_prepare16 bwd_fused16 bwd_convert16");
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(plan.workspace_bytes, 2u * 8 * (320 + 32) * (4 + 2 * 128));
    // A caller of an earlier library, whose structure ends before the field.
    p.struct_size = offsetof(Params, narrow_sums);
    expectStatus(fovea_backward(context.get(), &p, nullptr),
                 FOVEA_STATUS_NOT_FOUND, {"narrow_sums is 0"});
  }
  writeBackward(makeAtomicRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.workspace_bytes = uint64_t(1) << 40;
  // One choice after the other, of the same sizes.
  for (uint32_t narrow : {0, 1, 0}) {
    p.narrow_sums = narrow;
    expectStatus(fovea_backward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), narrow ? "bwd_prepare16 bwd_fused16 bwd_convert16"
                                 : "bwd_prepare bwd_fused bwd_convert");
  }
}

// Their rows of a tuning table stand beside those of the others.
TEST_F(NarrowSumsTest, HaveTuningRowsOfTheirOwn) {
  auto withRows = [](KernelRecord record, const char *schedule) {
    record.schedule = schedule;
    return record;
  };
  const KernelRecord narrow = withRows(makeNarrowRows(32), "atomic16;of 32"),
                     wide = withRows(makeAtomicRows(32), "atomic;of 32");
  writeBackward(makeNarrowRows());
  writeBackward(narrow);
  writeBackward(makeAtomicRows());
  writeBackward(wide);
  {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, TargetId{"gfx942"});
    ASSERT_TRUE(writer);
    // A row whose kernel the package lacks is none of the others', either.
    FOVEA_ASSERT_OK(writer->putTuning({narrow.problem, 200, TuningRow::kAny,
                                       TuningRow::kAny, "atomic16;of 16"}));
    for (const KernelRecord &record : {narrow, wide})
      FOVEA_ASSERT_OK(writer->putTuning(
          {record.problem, record.schedule == narrow.schedule ? 512 : 2048,
           TuningRow::kAny, TuningRow::kAny, record.schedule}));
  }
  ContextPtr context = makeContext();
  Params p = makeBackward();
  fovea_backward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  for (uint32_t isNarrow : {0, 1}) {
    p.narrow_sums = isNarrow;
    p.seqlen_q = 150;
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(plan.chosen_by,
              isNarrow ? FOVEA_CHOSEN_BY_RULE : FOVEA_CHOSEN_BY_TUNING);
    p.seqlen_q = 300;
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(plan.chosen_by, FOVEA_CHOSEN_BY_TUNING) << isNarrow;
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(info.schedule, (isNarrow ? narrow : wide).schedule);
  }
}

// Of blocks that fill the chip as well, or leave few units idle, the largest.
TEST_F(NarrowSumsTest, OfShortSequencesTakeSmallBlocks) {
  for (int32_t rows : {192, 128}) {
    KernelRecord record = makeNarrowRows(rows);
    record.blockM = rows;
    record.schedule = "atomic16 of " + std::to_string(rows);
    writeBackward(record);
  }
  ContextPtr context = makeContext(); // 304 compute units
  Params p = makeBackward();
  p.batch = 4;
  p.heads_q = p.heads_k = 16;
  p.narrow_sums = 1;
  for (const auto &[length, rows] :
       {std::pair(512, 128), {1024, 128}, {2048, 192}, {4096, 192}}) {
    p.seqlen_q = p.seqlen_k = length;
    auto pack = [&, rowsOfHead = length](auto &...tensors) {
      ((tensors.stride_seq = 128, tensors.stride_head = 128 * rowsOfHead,
        tensors.stride_batch = p.heads_q * tensors.stride_head),
       ...);
    };
    pack(p.q, p.k, p.v, p.out, p.dout, p.dq, p.dk, p.dv);
    p.lse_stride_head = length;
    p.lse_stride_batch = p.heads_q * length;
    fovea_backward_plan_t plan{};
    plan.struct_size = sizeof(plan);
    expectStatus(fovea_backward_select(context.get(), &p, 0, &plan),
                 FOVEA_STATUS_OK);
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    expectStatus(fovea_kernel_info(context.get(), plan.kernel, &info),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(info.schedule, "atomic16 of " + std::to_string(rows)) << length;
  }
}

// Other kernels are no answer to who asks for narrow sums.
TEST_F(NarrowSumsTest, AreNotReplaced) {
  writeBackward(makeAtomicRows());
  ContextPtr context = makeContext();
  Params p = makeBackward();
  p.narrow_sums = 1;
  expectStatus(fovea_backward(context.get(), &p, nullptr),
               FOVEA_STATUS_NOT_FOUND,
               {"its algorithm is 'atomic', which sums dq in fp32",
                "--algorithm=atomic16"});
  EXPECT_EQ(launched(), "");
}
