//===- DescriptionTest.cpp - descriptions of this project's kernels -------===//
//
// The description made for a kernel of a package gives the arguments and the
// grid that docs/KernelAbi.md states.
//
//===----------------------------------------------------------------------===//

#include "Description.h"
#include "../../Support/KernelArgs.h"
#include "fovea/Package/Description.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace fovea;

namespace {

struct Query {
  OpKind op = OpKind::Forward;
  int headDim = 128;
  MaskKind mask = MaskKind::None;
  DescriptionOptions options;
};

describe::Problem problemOf(const Query &query,
                            const describe::Overrides &overrides) {
  KernelRecord record;
  record.problem = {query.op, DataType::BF16, query.headDim, query.mask};
  record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Forward);
  record.symbol = "kernel";
  record.blockM = 128;
  record.threads = 256;
  if (query.op == OpKind::Backward) {
    record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
    record.launches = {{"delta", 64, 128}, {"dkdv", 128, 256}, {"dq", 32, 64}};
  }
  describe::Problem problem;
  std::string error;
  const Expected<std::string> text =
      describeKernel(record, "gfx942:xnack-", "k", query.options);
  if (!text)
    ADD_FAILURE() << text.status().message();
  else
    EXPECT_TRUE(describe::parse(*text, "k", "", overrides, problem, error))
        << error;
  return problem;
}

fovea::test::ForwardArgs argumentsOf(const describe::Problem &problem) {
  std::vector<uint64_t> addresses;
  for (const describe::Buffer &buffer : problem.buffers)
    addresses.push_back(uint64_t(buffer.name[0]));
  const std::vector<uint8_t> bytes = problem.launches.at(0).bind(addresses);
  fovea::test::ForwardArgs args = {};
  std::memcpy(&args, bytes.data(), std::min(bytes.size(), sizeof(args)));
  return args;
}

const describe::Overrides kSizes = {{"batch", "2"},
                                    {"heads", "6"},
                                    {"heads_k", "3"},
                                    {"seqlen_q", "300"},
                                    {"seqlen_k", "500"}};

} // namespace

TEST(DescriptionTest, ArgumentsAndGrid) {
  Query query;
  query.headDim = 64;
  const describe::Problem problem = problemOf(query, kSizes);
  EXPECT_EQ(problem.target, "gfx942");
  const describe::Launch &launch = problem.launches.at(0);
  EXPECT_EQ(launch.grid, (std::array<uint32_t, 3>{6, 3, 2}));
  EXPECT_EQ(launch.block, (std::array<uint32_t, 3>{256, 1, 1}));
  const fovea::test::ForwardArgs args = argumentsOf(problem);
  EXPECT_EQ(args.q, uint64_t('q'));
  EXPECT_EQ(args.out, uint64_t('o'));
  EXPECT_EQ(args.lse, uint64_t('l'));
  EXPECT_EQ(args.seqlenQ, 300);
  EXPECT_EQ(args.seqlenK, 500);
  EXPECT_EQ(args.headsQ, 6);
  EXPECT_EQ(args.groupSize, 2);
  EXPECT_FLOAT_EQ(args.scale, 0.125f);
  EXPECT_DOUBLE_EQ(launch.flops, 4.0 * 2 * 6 * 300 * 500 * 64);
}

TEST(DescriptionTest, Layouts) {
  // Strides of batch, head and row: of q and out, then of k and v.
  using Strides = std::array<int64_t, 3>;
  const struct {
    const char *layout;
    Strides wide, keys;
  } cases[] = {
      {"bhsd", {6 * 300 * 64, 300 * 64, 64}, {3 * 500 * 64, 500 * 64, 64}},
      {"bshd", {6 * 300 * 64, 64, 6 * 64}, {3 * 500 * 64, 64, 3 * 64}},
      {"sbhd", {6 * 64, 64, 2 * 6 * 64}, {3 * 64, 64, 2 * 3 * 64}},
  };
  for (const auto &test : cases) {
    Query query;
    query.headDim = 64;
    query.options.layout = test.layout;
    const fovea::test::ForwardArgs args = argumentsOf(problemOf(query, kSizes));
    EXPECT_EQ((Strides{args.qStrideBatch, args.qStrideHead, args.qStrideSeq}),
              test.wide)
        << test.layout;
    EXPECT_EQ(
        (Strides{args.outStrideBatch, args.outStrideHead, args.outStrideSeq}),
        test.wide)
        << test.layout;
    EXPECT_EQ((Strides{args.kStrideBatch, args.kStrideHead, args.kStrideSeq}),
              test.keys)
        << test.layout;
    EXPECT_EQ((Strides{args.vStrideBatch, args.vStrideHead, args.vStrideSeq}),
              test.keys)
        << test.layout;
    EXPECT_EQ(args.lseStrideBatch, 6 * 300);
    EXPECT_EQ(args.lseStrideHead, 300);
  }
}

TEST(DescriptionTest, MaskedWorkIsCreditedByHalf) {
  Query query;
  query.headDim = 16;
  const double all = 4.0 * 2 * 6 * 16;
  query.mask = MaskKind::CausalTopLeft;
  EXPECT_DOUBLE_EQ(problemOf(query, kSizes).launches.at(0).flops,
                   all * 300 * 300 / 2);
  query.mask = MaskKind::CausalBottomRight;
  EXPECT_DOUBLE_EQ(problemOf(query, kSizes).launches.at(0).flops,
                   all * (300 * 500 - 300 * 300 / 2));
  EXPECT_DOUBLE_EQ(problemOf(query, {{"seqlen", "64"}}).launches.at(0).flops,
                   4.0 * 16 * 16 * 64 * 64 / 2);
}

TEST(DescriptionTest, BackwardIsSeveralLaunches) {
  Query query;
  query.op = OpKind::Backward;
  query.headDim = 64;
  const describe::Problem problem = problemOf(query, kSizes);
  ASSERT_EQ(problem.launches.size(), 3u);
  EXPECT_EQ(problem.launches[0].grid, (std::array<uint32_t, 3>{6, 5, 2}));
  EXPECT_EQ(problem.launches[1].grid, (std::array<uint32_t, 3>{3, 4, 2}));
  EXPECT_EQ(problem.launches[2].grid, (std::array<uint32_t, 3>{6, 10, 2}));
  EXPECT_EQ(problem.launches[1].block, (std::array<uint32_t, 3>{256, 1, 1}));
  // Five products of the two dimensions and the head dimension.
  EXPECT_DOUBLE_EQ(problem.launches[0].flops + problem.launches[1].flops +
                       problem.launches[2].flops,
                   10.0 * 2 * 6 * 300 * 500 * 64);
  std::vector<uint64_t> addresses;
  std::vector<std::string> names;
  for (const describe::Buffer &buffer : problem.buffers) {
    addresses.push_back(addresses.size() + 1);
    names.push_back(buffer.name);
  }
  const std::vector<uint8_t> bytes = problem.launches[1].bind(addresses);
  fovea::test::BackwardArgs args = {};
  std::memcpy(&args, bytes.data(), std::min(bytes.size(), sizeof args));
  EXPECT_EQ(names.at(args.dq - 1), "dq");
  EXPECT_EQ(names.at(args.workspace - 1), "workspace");
  EXPECT_EQ(args.doutStrideBatch, 6 * 300 * 64);
  EXPECT_EQ(args.dkStrideBatch, 3 * 500 * 64);
  EXPECT_EQ(args.dvStrideSeq, 64);
  EXPECT_EQ(args.groupSize, 2);
}
