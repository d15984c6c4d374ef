//===- WorkspaceTest.cpp - the bytes that kernels work in -----------------===//

#include "Choice.h"
#include "Params.h"

#include "../Package/TestPackage.h"

#include <limits>
#include <string>

using namespace fovea;
using namespace fovea::test;

namespace {

constexpr int64_t kHeads = int64_t(1) << 30, kRows = int64_t(1) << 30;

/// Sequences that are short each, packed into more rows than bytes can count.
TEST(WorkspaceTest, PackedRowsHaveNoBytes) {
  const KernelRecord record = makeBackwardRecord();
  rt::Kernel kernel{};
  kernel.record = &record;
  rt::Candidate candidate;
  candidate.kernel = &kernel;
  rt::Problem problem{};
  problem.sizes.batch = 1;
  problem.sizes.headsQ = 3;
  problem.sizes.seqlenQ = 5;
  for (const spec::AlgorithmSpec &algorithm :
       spec::specOf(OpKind::Backward).algorithms) {
    if (algorithm.sumsNarrowly()) // of the longest sequence's rows for each
      continue;
    SCOPED_TRACE(algorithm.name);
    candidate.algorithm = &algorithm;
    problem.sizes.headsQ = 3;
    problem.sizes.packedQ = 7;
    EXPECT_EQ(rt::workspaceOf(candidate, problem, 1),
              uint64_t(algorithm.workspace.bytes(1, 3, 7, 128)));
    problem.sizes.headsQ = kHeads;
    problem.sizes.packedQ = kRows;
    EXPECT_EQ(rt::workspaceOf(candidate, problem, 1),
              std::numeric_limits<uint64_t>::max());
  }
}

TEST(WorkspaceTest, SuchCallsAreRefused) {
  const int32_t sums[] = {0, 1};
  fovea_varlen_t varlen = {};
  varlen.header = {sizeof(varlen), FOVEA_GROUP_VARLEN, nullptr};
  varlen.q.layout = FOVEA_ROWS_PACKED;
  varlen.q.kind = FOVEA_LENGTHS_CUMULATIVE;
  varlen.q.lengths = sums;
  varlen.q.total = kRows;
  fovea_backward_params_t params = {};
  params.struct_size = sizeof(params);
  params.dtype = FOVEA_DTYPE_BF16;
  params.scale = 1;
  params.batch = params.seqlen_q = params.seqlen_k = 1;
  params.heads_q = params.heads_k = kHeads;
  params.head_dim = 128;
  params.groups = &varlen.header;
  rt::Problem problem{};
  const rt::Result result = rt::readParams(&params, problem);
  EXPECT_EQ(result.code, FOVEA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(result.message, "heads_q x varlen.q.total (1073741824 x "
                            "1073741824) is more than 2^50");
}

} // namespace
