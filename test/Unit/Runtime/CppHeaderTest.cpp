//===- CppHeaderTest.cpp - fovea.hpp --------------------------------------===//

#include "RuntimeTest.h"

#include "fovea/fovea.hpp"

using namespace fovea;
using namespace fovea::test;

namespace {

class CppHeaderTest : public RuntimeTest {
protected:
  static Context makeCppContext() {
    ContextOptions options;
    options.hipLibrary = FAKE_HIP6;
    return Context(options);
  }
  /// What the exception of a call says.
  template <typename Call>
  static std::string errorOf(fovea_status_t status, Call call) {
    try {
      call();
    } catch (const Error &error) {
      EXPECT_STREQ(fovea_status_name(error.status()),
                   fovea_status_name(status));
      return error.what();
    }
    ADD_FAILURE() << "no exception";
    return "";
  }
  static void expectPart(const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos)
        << "'" << part << "' is not in: " << text;
  }
};

} // namespace

TEST_F(CppHeaderTest, DescribesLibraryDevicesAndKernels) {
  write({makeRecord(makeProblem(128))});
  Context context = makeCppContext();
  EXPECT_EQ(version(), uint32_t(FOVEA_VERSION));
  EXPECT_STREQ(context.hipLibrary().reason, "its path was given");
  EXPECT_STREQ(context.device(0).arch, "gfx942:sramecc+:xnack-");
  EXPECT_EQ(context.kernelCount(), 0u);
  context.openPackage(path);
  EXPECT_EQ(context.kernelCount(), 1u);
  EXPECT_EQ(context.kernel(1).block_m, 128);
  int device = -1;
  EXPECT_EQ(context.hipSymbol<int (*)(int *)>("hipGetDevice")(&device), 0);
  EXPECT_EQ(device, 0);
  expectPart(errorOf(FOVEA_STATUS_NOT_FOUND,
                     [&] { context.openPackage(dir.file("none")); }),
             "no such file");
  expectPart(errorOf(FOVEA_STATUS_INVALID_ARGUMENT, [&] { context.device(7); }),
             "device is 7");
  expectPart(errorOf(FOVEA_STATUS_INVALID_ARGUMENT, [&] { context.kernel(2); }),
             "id is 2");
  expectPart(errorOf(FOVEA_STATUS_NOT_FOUND,
                     [&] { context.hipSymbol<void (*)()>("hipNone"); }),
             "no function 'hipNone'");
}

TEST_F(CppHeaderTest, SelectsPreparesExplainsAndLaunches) {
  write({makeRecord(makeProblem(128))});
  Context context = makeCppContext();
  context.openPackage(path);
  auto p = make<fovea_forward_params_t>();
  p = makeParams();
  EXPECT_EQ(context.select(p).kernel, 1u);
  EXPECT_EQ(context.find(p)->grid[1], 3u);
  EXPECT_EQ(context.prepare(p, 0).kernel, 1u);
  const Explanation explanation = context.explain(p);
  EXPECT_EQ(explanation.status, FOVEA_STATUS_OK);
  ASSERT_EQ(explanation.candidates.size(), 1u);
  EXPECT_EQ(explanation.candidates[0].state, FOVEA_CANDIDATE_CHOSEN);
  expectPart(explanation.candidates[0].reason, "chosen by the rule");
  expectPart(explanation.message, "kernel 1");
  context.launch(p, at(0x1234));
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].stream, at(0x1234));
  EXPECT_EQ(lastMessage(), "");

  p.head_dim = 64; // no such kernel
  EXPECT_FALSE(context.find(p));
  expectPart(lastMessage(), "no kernel for");
  const Explanation none = context.explain(p);
  EXPECT_EQ(none.status, FOVEA_STATUS_NOT_FOUND);
  EXPECT_TRUE(none.candidates.empty());
  expectPart(none.message, "no kernel for");
  expectPart(errorOf(FOVEA_STATUS_NOT_FOUND, [&] { context.launch(p); }),
             "no kernel for");
  p.head_dim = 600;
  expectPart(errorOf(FOVEA_STATUS_INVALID_ARGUMENT, [&] { context.find(p); }),
             "head_dim is 600");
  expectPart(
      errorOf(FOVEA_STATUS_INVALID_ARGUMENT, [&] { context.explain(p); }),
      "head_dim is 600");
}

TEST_F(CppHeaderTest, BackwardIsTheSame) {
  {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer);
    KernelRecord record = makeBackwardRecord();
    record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
    FOVEA_ASSERT_OK(putFake(*writer, record,
                            "gradients_delta gradients_dkdv gradients_dq"));
  }
  Context context = makeCppContext();
  context.openPackage(path);
  auto p = makeProblemParams<fovea_backward_params_t>();
  p.dout = p.q;
  p.lse = static_cast<float *>(place(6));
  p.lse_stride_batch = 8 * 300;
  p.lse_stride_head = 300;
  p.dq = {place(7), p.q.stride_batch, p.q.stride_head, p.q.stride_seq};
  const fovea_backward_plan_t plan = context.prepare(p);
  EXPECT_EQ(plan.launch_count, 2u);
  EXPECT_EQ(context.find(p)->workspace_bytes, plan.workspace_bytes);
  EXPECT_EQ(context.explain(p).candidates.size(), 1u);
  p.workspace = place(10);
  p.workspace_bytes = plan.workspace_bytes;
  context.launch(p);
  EXPECT_EQ(fake.launches.size(), 2u);
}

TEST_F(CppHeaderTest, ContextsMoveAndEnd) {
  write({makeRecord(makeProblem(128))});
  std::string lines;
  ContextOptions options;
  options.hipLibrary = FAKE_HIP6;
  options.log = "info";
  options.logger = [&](const char *line) { lines += line; };
  {
    Context first(options);
    first.openPackage(path);
    first.launch(makeParams());
    EXPECT_EQ(fake.liveModules, 1);
    Context second(std::move(first));
    second.launch(makeParams());
    fail("hipModuleUnload", 1, 1); // which is logged while it ends
    second = makeCppContext();
    EXPECT_EQ(fake.liveModules, 0);
  }
  expectPart(lines, "fovea: package ");
  expectPart(lines, "hipModuleUnload failed");
  options.log = "loud";
  expectPart(
      errorOf(FOVEA_STATUS_INVALID_ARGUMENT, [&] { Context bad(options); }),
      "options.log is 'loud'");
}
