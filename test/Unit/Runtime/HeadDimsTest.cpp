//===- HeadDimsTest.cpp - head dimensions in the C interface --------------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

class HeadDimsCall : public RuntimeTest {
protected:
  HeadDimsCall() {
    dims.header = {sizeof(dims), FOVEA_GROUP_HEAD_DIMS, nullptr};
  }

  static KernelRecord record(int32_t dim, bool cuts, int32_t dimV = 0) {
    ProblemKey key = makeProblem();
    key.headDim = dim;
    key.headDimV = dimV;
    key.groups[kHeadDimsGroup] = cuts ? kHeadDimsVersion : 0;
    KernelRecord record = makeRecord(key);
    record.symbol = (cuts ? "cuts" : "exact") + std::to_string(dim) +
                    (dimV ? "x" + std::to_string(dimV) : "");
    return record;
  }

  /// Of tensors with rows `apart` from one another.
  fovea_status_t launch(int64_t dim, int64_t apart = 1024) {
    fovea_forward_params_t p = makeParams();
    p.head_dim = dim;
    p.groups = dims.head_dim_v ? &dims.header : nullptr;
    for (fovea_tensor_t *tensor : {&p.q, &p.k, &p.v}) {
      tensor->stride_seq = apart;
      tensor->stride_head = apart * 4;
      tensor->stride_batch = apart * 32;
    }
    p.out.stride_seq = apart;
    p.out.stride_head = apart * 4;
    p.out.stride_batch = apart * 32;
    p.seqlen_q = p.seqlen_k = 4;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  }

  fovea_head_dims_t dims = {};
  ContextPtr context;
};

} // namespace

TEST_F(HeadDimsCall, TakesTheFewestColumnsThatHoldBoth) {
  write({record(128, true), record(64, false), record(64, true),
         record(96, false)});
  context = makeContext();
  const struct {
    int64_t dim, dimV;
    const char *kernel;
  } rows[] = {{64, 0, "exact64"},  {64, 64, "exact64"}, {64, 63, "cuts64"},
              {7, 0, "cuts64"},    {1, 64, "cuts64"},   {96, 0, "exact96"},
              {96, 72, "cuts128"}, {65, 0, "cuts128"},  {72, 128, "cuts128"}};
  for (const auto &row : rows) {
    dims.head_dim_v = row.dimV;
    expectStatus(launch(row.dim), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), row.kernel) << row.dim << "/" << row.dimV;
    if (launched().substr(0, 4) == "cuts") {
      EXPECT_EQ(passed<int32_t>(record(64, true), "head_dim_qk"), row.dim);
      EXPECT_EQ(passed<int32_t>(record(64, true), "head_dim_v"),
                row.dimV ? row.dimV : row.dim);
    }
  }
}

/// Of kernels for two numbers of columns, too: what counts is their sum.
TEST_F(HeadDimsCall, TakesKernelsWhoseVHasOtherColumns) {
  write({record(192, true), record(192, true, 128), record(128, true, 224),
         record(192, false, 128), record(128, false)});
  context = makeContext();
  const struct {
    int64_t dim, dimV;
    const char *kernel;
  } rows[] = {{192, 128, "exact192x128"}, {128, 0, "exact128"},
              {192, 0, "cuts192"},        {185, 128, "cuts192x128"},
              {192, 129, "cuts192"},      {128, 136, "cuts128x224"},
              {120, 112, "cuts192x128"},  {129, 1, "cuts192x128"}};
  for (const auto &row : rows) {
    dims.head_dim_v = row.dimV;
    expectStatus(launch(row.dim), FOVEA_STATUS_OK);
    EXPECT_EQ(launched(), row.kernel) << row.dim << "/" << row.dimV;
  }
  dims.head_dim_v = 200;
  expectStatus(launch(136), FOVEA_STATUS_NOT_FOUND,
               {"head_dim=136;head_dim_v=200",
                "have head_dim 128 128/224 192/128 192"});
}

/// Where there is no exact one, one that could cut does as well.
TEST_F(HeadDimsCall, MayHaveNothingToCut) {
  write({record(64, true)});
  context = makeContext();
  expectStatus(launch(64), FOVEA_STATUS_OK);
  EXPECT_EQ(passed<int32_t>(record(64, true), "head_dim_qk"), 64);
}

TEST_F(HeadDimsCall, SaysWhatThereIsNot) {
  write({record(64, true), record(96, false)});
  context = makeContext();
  dims.head_dim_v = 65;
  expectStatus(launch(8), FOVEA_STATUS_NOT_FOUND, {"rows of 8 and, of V, 65"});
  dims.head_dim_v = 96;
  expectStatus(launch(80), FOVEA_STATUS_NOT_FOUND,
               {"head_dim=80;head_dim_v=96", "have head_dim 64 96"});
}

TEST_F(HeadDimsCall, RefusesWhatIsNone) {
  write({record(64, true)});
  context = makeContext();
  for (int64_t dim : {-1, 513}) {
    dims.head_dim_v = dim;
    expectStatus(launch(64), FOVEA_STATUS_INVALID_ARGUMENT,
                 {"head_dims.head_dim_v is"});
  }
  dims.head_dim_v = 0;
  expectStatus(launch(0), FOVEA_STATUS_INVALID_ARGUMENT, {"head_dim is 0"});
}

/// Rows are read in words, which short ones have no room to end with, or, by
/// kernels of few columns, in elements.
TEST_F(HeadDimsCall, RefusesShortRowsAnOddNumberOfElementsApart) {
  write({record(64, true), record(64, false)});
  context = makeContext();
  expectStatus(launch(7, 7), FOVEA_STATUS_NOT_FOUND,
               {"q.stride_seq is 7, which is odd, for rows of 7 elements",
                "--head-dim=16 --groups=head_dims"});
  expectStatus(launch(7, 8), FOVEA_STATUS_OK);
  expectStatus(launch(6, 7), FOVEA_STATUS_OK);
  expectStatus(launch(37, 37), FOVEA_STATUS_OK);
  expectStatus(launch(64, 65), FOVEA_STATUS_OK);
}

TEST_F(HeadDimsCall, ReadsElementsOfShortRows) {
  write({record(16, true), record(24, true), record(64, true),
         record(64, true, 16)});
  context = makeContext();
  // The choice is remembered, and does not serve the other distance.
  dims.head_dim_v = 24;
  expectStatus(launch(7, 32), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "cuts24");
  expectStatus(launch(7, 31), FOVEA_STATUS_NOT_FOUND, {"q.stride_seq is 31"});
  dims.head_dim_v = 0;
  expectStatus(launch(7, 31), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "cuts16");
  dims.head_dim_v = 5;
  expectStatus(launch(61, 61), FOVEA_STATUS_OK);
  EXPECT_EQ(launched(), "cuts64x16");
}
