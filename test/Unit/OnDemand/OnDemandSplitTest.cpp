//===- OnDemandSplitTest.cpp - kernels that split keys, on demand ---------===//
//
// Which of the two kernels of a forward problem are compiled, and which of them
// serves it.
//
//===----------------------------------------------------------------------===//

#include "OnDemandTest.h"

#include <unistd.h>

using namespace fovea::test;

namespace {

constexpr const char *kSplit = "algorithm=split";
constexpr int32_t kGfx90a = 2; ///< of the devices

class OnDemandSplitTest : public OnDemandTest {
protected:
  static fovea_forward_params_t
  shaped(int64_t rows, int64_t keys, int64_t heads = 1, int64_t headDim = 16) {
    fovea_forward_params_t p = forward(headDim);
    p.mask = FOVEA_MASK_NONE;
    p.heads_q = p.heads_k = heads;
    p.seqlen_q = rows;
    p.seqlen_k = keys;
    p.q.stride_head = p.out.stride_head = rows * headDim;
    p.k.stride_head = p.v.stride_head = keys * headDim;
    p.q.stride_batch = p.out.stride_batch = heads * rows * headDim;
    p.k.stride_batch = p.v.stride_batch = heads * keys * headDim;
    return p;
  }
  static fovea_forward_plan_t select(fovea_context_t *context,
                                     const fovea_forward_params_t &p,
                                     int32_t device = 0) {
    fovea_forward_plan_t plan = {};
    plan.struct_size = sizeof plan;
    EXPECT_EQ(fovea_forward_select(context, &p, device, &plan), FOVEA_STATUS_OK)
        << fovea_last_message();
    return plan;
  }
  /// Compilations that have begun of either kernel.
  std::pair<int, int> plainAndSplit() const {
    std::pair<int, int> count;
    for (const std::string &line : compiled())
      ++(line.find(kSplit) == std::string::npos ? count.first : count.second);
    return count;
  }
  static std::string explain(fovea_context_t *context,
                             const fovea_forward_params_t &p) {
    std::string steps;
    EXPECT_EQ(fovea_forward_explain(
                  context, &p, 0,
                  [](void *user, const fovea_candidate_t *step) {
                    *static_cast<std::string *>(user) +=
                        std::to_string(step->state) + " " + step->reason + "\n";
                  },
                  &steps),
              FOVEA_STATUS_OK)
        << fovea_last_message();
    return steps;
  }
  static std::string scheduleOf(fovea_context_t *context, uint32_t kernel) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(fovea_kernel_info(context, kernel, &info), FOVEA_STATUS_OK);
    return info.schedule;
  }

  /// Gives a problem memory on device 0, which ends with the process.
  static void place(fovea_context_t *context, fovea_forward_params_t &p,
                    uint64_t workspace) {
    auto *allocate = reinterpret_cast<int (*)(void **, size_t)>(
        fovea_hip_symbol(context, "hipMalloc"));
    ASSERT_TRUE(allocate) << fovea_last_message();
    auto give = [&](void *&pointer, int64_t bytes) {
      ASSERT_EQ(allocate(&pointer, size_t(bytes)), 0);
    };
    void *q, *k, *v, *out;
    give(q, p.q.stride_batch * 2);
    give(k, p.k.stride_batch * 2);
    give(v, p.v.stride_batch * 2);
    give(out, p.out.stride_batch * 2);
    p.q.data = q;
    p.k.data = k;
    p.v.data = v;
    p.out.data = out;
    p.workspace_bytes = workspace;
    if (workspace)
      give(p.workspace, int64_t(workspace));
  }
  /// A stream that is being captured, until this ends.
  class Captured {
  public:
    explicit Captured(fovea_context_t *context) {
      int (*create)(void **);
      int (*begin)(void *, int);
      find(context, "hipStreamCreate", create);
      find(context, "hipStreamBeginCapture", begin);
      find(context, "hipStreamEndCapture", end);
      EXPECT_EQ(create(&stream), 0);
      EXPECT_EQ(begin(stream, 0), 0);
    }
    ~Captured() {
      void *graph = nullptr;
      EXPECT_EQ(end(stream, &graph), 0);
    }
    Captured(const Captured &) = delete;

    void *stream = nullptr;

  private:
    template <typename Function>
    static void find(fovea_context_t *context, const char *name,
                     Function &function) {
      function = reinterpret_cast<Function>(fovea_hip_symbol(context, name));
      ASSERT_TRUE(function) << fovea_last_message();
    }
    int (*end)(void *, void **) = nullptr;
  };
  static void capture(fovea_context_t *context,
                      const fovea_forward_params_t &p) {
    const Captured captured(context);
    EXPECT_EQ(fovea_forward(context, &p, captured.stream), FOVEA_STATUS_OK)
        << fovea_last_message();
  }
};

const std::pair<int, int> kPlainAlone(1, 0), kSplitAlone(0, 1), kBoth(1, 1);

TEST_F(OnDemandSplitTest, FewRowsCompileTheOneThatSplits) {
  const ContextPtr c = context();
  const fovea_forward_plan_t plan = select(c.get(), shaped(1, 8192));
  EXPECT_GT(plan.splits, 1u) << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
  // Lengths change, the kernel does not.
  EXPECT_EQ(select(c.get(), shaped(3, 9000)).kernel, plan.kernel);
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
  const ContextPtr next = context();
  EXPECT_EQ(select(next.get(), shaped(1, 8192)).splits, plan.splits);
  EXPECT_NE(std::string(fovea_last_message()).find("from the cache"),
            std::string::npos)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
}

TEST_F(OnDemandSplitTest, ResultsAreRight) {
  const Ended ended = run("FOVEA_LOG=info " AOT_RUN " --package=" + package() +
                          " --dtype=fp16 --head-dim=16 --seqlen-q=2 "
                          "--seqlen-k=8192 --mask=causal-bottom-right 2>&1");
  expectPass(ended, "shares of the keys");
  EXPECT_NE(ended.text.find("by 'split' for gfx942: compiled on demand"),
            std::string::npos)
      << ended.text;
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
}

// What was compiled for other calls decides nothing.
TEST_F(OnDemandSplitTest, TheOrderOfCallsDoesNotMatter) {
  std::vector<fovea_forward_params_t> calls = {
      shaped(1, 8192), shaped(32, 32), shaped(1, 2200), shaped(4096, 8192, 16),
      shaped(512, 32768, 8)};
  fovea_forward_params_t asked = shaped(3, 500);
  asked.splits = 4;
  calls.push_back(asked);
  std::vector<std::string> expected(calls.size());
  for (size_t first = 0; first != calls.size(); ++first) {
    const ContextPtr c = context();
    for (size_t i = 0; i != calls.size(); ++i) {
      const size_t at = (first + i) % calls.size();
      const fovea_forward_plan_t plan = select(c.get(), calls[at]);
      const std::string found = std::to_string(plan.splits) + " shares, " +
                                scheduleOf(c.get(), plan.kernel);
      if (first == 0)
        expected[at] = found;
      EXPECT_EQ(found, expected[at]) << "call " << at << " after " << first;
    }
  }
  EXPECT_EQ(plainAndSplit(), kBoth);
}

TEST_F(OnDemandSplitTest, AFullGridHasThePlainOneCompiled) {
  const ContextPtr c = context();
  const fovea_forward_plan_t few = select(c.get(), shaped(1, 8192));
  for (const auto &p : {shaped(3, 500), shaped(4096, 8192, 16)}) {
    const fovea_forward_plan_t full = select(c.get(), p);
    EXPECT_NE(full.kernel, few.kernel) << fovea_last_message();
    EXPECT_EQ(full.launch_count, 1u);
    EXPECT_EQ(full.workspace_bytes, 0u);
    EXPECT_NE(explain(c.get(), p)
                  .find("3 it splits the keys and was compiled "
                        "on demand for other calls"),
              std::string::npos)
        << explain(c.get(), p);
  }
  EXPECT_EQ(plainAndSplit(), kBoth);
  EXPECT_EQ(select(c.get(), shaped(1, 8192)).kernel, few.kernel);
  // It may still be named.
  fovea_forward_params_t named = shaped(3, 500);
  named.kernel = few.kernel;
  EXPECT_EQ(select(c.get(), named).kernel, few.kernel);
}

// There kernels of 192 columns have blocks of 256 rows, and what pays beside
// blocks of so many is asked for at all head dimensions.
TEST_F(OnDemandSplitTest, SharesStandAgainstBlocksOf256RowsOnGfx90a) {
  const ContextPtr c = context();
  select(c.get(), shaped(512, 1024, 8), kGfx90a);
  EXPECT_EQ(plainAndSplit().second, 1);
  // Whatever the rows of a block, they do not pay here.
  select(c.get(), shaped(512, 64, 8), kGfx90a);
  EXPECT_EQ(plainAndSplit().second, 1);
}

// Near the border the rule compares both.
TEST_F(OnDemandSplitTest, ACallNearTheBorderHasBothCompiled) {
  const ContextPtr c = context();
  const fovea_forward_params_t p = shaped(1, 2200);
  EXPECT_GT(select(c.get(), p).kernel, 0u);
  EXPECT_EQ(plainAndSplit(), kBoth);
  const std::string steps = explain(c.get(), p);
  EXPECT_NE(steps.find("1 chosen by the rule"), std::string::npos) << steps;
  EXPECT_NE(steps.find("2 accepted, but"), std::string::npos) << steps;
}

TEST_F(OnDemandSplitTest, ALaunchWithoutWorkspaceTakesThePlainOne) {
  const ContextPtr c = context();
  fovea_forward_params_t p = shaped(1, 8192);
  place(c.get(), p, 0);
  EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kPlainAlone);
  // With too little of one, too, which only the kernel tells.
  place(c.get(), p, 16);
  EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kBoth);
  EXPECT_EQ(fovea_kernel_count(c.get()), 2u);
  place(c.get(), p, select(c.get(), p).workspace_bytes);
  EXPECT_GT(p.workspace_bytes, 16u);
  EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kBoth);
}

TEST_F(OnDemandSplitTest, OneThatCannotBeCompiledIsDoneWithout) {
  set("FOVEA_TEST_REFUSE", kSplit);
  const ContextPtr c = context();
  fovea_forward_params_t p = shaped(1, 8192);
  const char *const why = "; one that splits keys: it could not be compiled on "
                          "demand: refused for a test";
  for (int i = 0; i != 2; ++i) {
    EXPECT_EQ(select(c.get(), p).launch_count, 1u);
    EXPECT_NE(std::string(fovea_last_message()).find(why), std::string::npos)
        << fovea_last_message();
    EXPECT_NE(explain(c.get(), p).find(why), std::string::npos)
        << explain(c.get(), p);
    EXPECT_EQ(plainAndSplit(), kBoth); // each tried once
  }
  place(c.get(), p, 1 << 20);
  EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  // Who asks for shares is refused.
  p.splits = 4;
  EXPECT_EQ(fovea_forward_select(c.get(), &p, 0, nullptr),
            FOVEA_STATUS_NOT_FOUND);
  EXPECT_EQ(plainAndSplit(), kBoth);
}

// What may pass is tried again after 1, 2, 4, ... calls that did without.
TEST_F(OnDemandSplitTest, AFailureThatPassesIsPutOff) {
  set("FOVEA_TEST_FAIL", kSplit);
  const ContextPtr c = context();
  fovea_forward_params_t p = shaped(1, 8192);
  place(c.get(), p, 1 << 20);
  std::vector<int> tried;
  int number = 0;
  auto call = [&] {
    const int before = plainAndSplit().second;
    if (++number % 2)
      EXPECT_EQ(select(c.get(), p).launch_count, 1u);
    else
      EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
          << fovea_last_message();
    if (plainAndSplit().second != before)
      tried.push_back(number);
  };
  while (number != 12)
    call();
  EXPECT_EQ(tried, (std::vector<int>{1, 3, 6, 11}));
  const std::string steps = explain(c.get(), p); // one of the calls
  EXPECT_NE(steps.find("; one that splits keys: it could not be compiled"),
            std::string::npos)
      << steps;
  EXPECT_NE(steps.find("; some calls later it is tried again"),
            std::string::npos)
      << steps;
  EXPECT_EQ(plainAndSplit(), std::make_pair(1, 4));
  ::unsetenv("FOVEA_TEST_FAIL");
  // Others are asked for at once, and that one of them could be compiled gives
  // hope for all.
  EXPECT_EQ(select(c.get(), p).splits, 1u);
  EXPECT_GT(select(c.get(), shaped(1, 8192, 1, 24)).splits, 1u);
  EXPECT_EQ(plainAndSplit(), std::make_pair(1, 5));
  EXPECT_GT(select(c.get(), p).splits, 1u);
  EXPECT_EQ(plainAndSplit(), std::make_pair(1, 6));
}

// A library that is missing is looked for where nothing else serves.
TEST_F(OnDemandSplitTest, WithoutALibraryWhatIsThereServes) {
  const std::string path = dir.path() + "/late.so";
  set("FOVEA_COMPILER_LIBRARY", path);
  const ContextPtr c = context();
  ASSERT_EQ(fovea_package_open(c.get(), package().c_str()), FOVEA_STATUS_OK);
  const fovea_forward_params_t p = shaped(1, 8192, 1, 32);
  auto expectPlain = [&] {
    EXPECT_EQ(select(c.get(), p).kernel, 1u);
    const std::string message = fovea_last_message();
    EXPECT_NE(message.find("; one that splits keys: it could not be compiled"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("late.so"), std::string::npos) << message;
  };
  expectPlain();
  ASSERT_EQ(::symlink(COUNTING_COMPILER, path.c_str()), 0);
  expectPlain();
  EXPECT_TRUE(compiled().empty());
  EXPECT_EQ(select(c.get(), shaped(32, 32)).launch_count, 1u);
  EXPECT_GT(select(c.get(), p).splits, 1u);
  EXPECT_EQ(plainAndSplit(), kBoth);
}

TEST_F(OnDemandSplitTest, ACaptureTakesWhatIsThere) {
  const ContextPtr c = context();
  fovea_forward_params_t p = shaped(1, 8192);
  place(c.get(), p, 0);
  ASSERT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK);
  place(c.get(), p, 1 << 20);
  capture(c.get(), p);
  EXPECT_EQ(plainAndSplit(), kPlainAlone);
  EXPECT_EQ(fovea_forward(c.get(), &p, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), kBoth);
}

// Who plans each call may have warmed up with other shapes.
TEST_F(OnDemandSplitTest, APlanForACaptureIsOfWhatIsLoaded) {
  const ContextPtr c = context();
  fovea_forward_params_t many = shaped(64, 64), p = shaped(1, 8192);
  place(c.get(), many, 0);
  ASSERT_EQ(fovea_forward(c.get(), &many, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  const uint32_t plain = select(c.get(), many).kernel;
  // Each plan serves a launch, by its kernel and without.
  auto launchPlanned = [&](void *stream) {
    const fovea_forward_plan_t plan = select(c.get(), p);
    place(c.get(), p, plan.workspace_bytes);
    for (const uint32_t kernel : {plan.kernel, 0u}) {
      p.kernel = kernel;
      EXPECT_EQ(fovea_forward(c.get(), &p, stream), FOVEA_STATUS_OK)
          << fovea_last_message();
    }
    return plan;
  };
  auto expectPlain = [&] {
    const Captured captured(c.get());
    p.stream = captured.stream;
    const fovea_forward_plan_t plan = launchPlanned(captured.stream);
    EXPECT_EQ(plan.kernel, plain);
    EXPECT_EQ(plan.splits, 1u);
    EXPECT_EQ(plan.workspace_bytes, 0u);
    EXPECT_EQ(plan.provisional, 1u);
  };
  expectPlain();
  EXPECT_EQ(plainAndSplit(), kPlainAlone);
  // Compiled is not loaded.
  p.stream = nullptr;
  const fovea_forward_plan_t split = select(c.get(), p);
  EXPECT_GT(split.splits, 1u);
  EXPECT_EQ(split.provisional, 0u);
  EXPECT_EQ(plainAndSplit(), kBoth);
  expectPlain();
  // Not even where a launch brings a workspace.
  place(c.get(), p, split.workspace_bytes);
  capture(c.get(), p);
  // Once it has been launched it is captured, too.
  p.stream = nullptr;
  EXPECT_EQ(launchPlanned(nullptr).kernel, split.kernel);
  const Captured captured(c.get());
  p.stream = captured.stream;
  const fovea_forward_plan_t plan = launchPlanned(captured.stream);
  EXPECT_EQ(plan.kernel, split.kernel);
  EXPECT_EQ(plan.splits, split.splits);
  EXPECT_EQ(plan.provisional, 0u);
  EXPECT_EQ(plainAndSplit(), kBoth);
}

// What is prepared is also what a launch of the same parameters takes.
TEST_F(OnDemandSplitTest, PreparingServesACaptureWithoutWorkspace) {
  for (const uint64_t workspace : {0, 16}) {
    const ContextPtr c = context();
    fovea_forward_params_t p = shaped(1, 8192);
    place(c.get(), p, workspace);
    fovea_forward_plan_t plan = {};
    plan.struct_size = sizeof plan;
    ASSERT_EQ(fovea_forward_prepare(c.get(), &p, 0, &plan), FOVEA_STATUS_OK)
        << fovea_last_message();
    EXPECT_GT(plan.splits, 1u);
    capture(c.get(), p);
    place(c.get(), p, plan.workspace_bytes);
    capture(c.get(), p);
    EXPECT_EQ(plainAndSplit(), kBoth);
  }
  // With enough of one nothing else is needed.
  const ContextPtr c = context();
  fovea_forward_params_t p = shaped(1, 8192, 1, 24);
  place(c.get(), p, 1 << 20);
  ASSERT_EQ(fovea_forward_prepare(c.get(), &p, 0, nullptr), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plainAndSplit(), std::make_pair(1, 2));
}

TEST_F(OnDemandSplitTest, APackageMayHaveIt) {
  const ContextPtr c = context();
  ASSERT_EQ(fovea_package_open(c.get(), package().c_str()), FOVEA_STATUS_OK);
  // The package has a plain one of this head dimension.
  EXPECT_EQ(select(c.get(), shaped(32, 32, 1, 32)).kernel, 1u);
  EXPECT_TRUE(compiled().empty());
  EXPECT_GT(select(c.get(), shaped(1, 8192, 1, 32)).splits, 1u);
  EXPECT_EQ(plainAndSplit(), kSplitAlone);

  const std::string both = dir.path() + "/both.fovea";
  ASSERT_EQ(std::system((AOT_COMPILE " --target=gfx942 --op=forward "
                                     "--dtype=fp16 --head-dim=32 "
                                     "--algorithm=flash,split --emit=package "
                                     "-q -o " +
                         both)
                            .c_str()),
            0);
  const ContextPtr next = context();
  ASSERT_EQ(fovea_package_open(next.get(), both.c_str()), FOVEA_STATUS_OK);
  EXPECT_GT(select(next.get(), shaped(1, 8192, 1, 32)).splits, 1u);
  EXPECT_EQ(select(next.get(), shaped(32, 32, 1, 32)).launch_count, 1u);
  EXPECT_EQ(fovea_kernel_count(next.get()), 2u);
  EXPECT_EQ(plainAndSplit(), kSplitAlone);

  // Without one what serves is the same, whatever was called before.
  const ContextPtr none = context();
  int split = 0, plain = 0;
  for (int64_t heads : {1, 8, 32})
    for (int64_t rows : {1, 16, 64, 128, 512, 2048})
      for (int64_t keys : {64, 256, 512, 1024, 2048, 4096, 16384, 65536}) {
        const fovea_forward_params_t p = shaped(rows, keys, heads, 32);
        const fovea_forward_plan_t found = select(none.get(), p),
                                   wanted = select(next.get(), p);
        ++(wanted.splits > 1 ? split : plain);
        EXPECT_EQ(found.splits, wanted.splits)
            << heads << " heads, " << rows << "x" << keys;
        EXPECT_EQ(found.launch_count, wanted.launch_count)
            << heads << " heads, " << rows << "x" << keys;
      }
  EXPECT_GT(split, 20);
  EXPECT_GT(plain, 20);
  EXPECT_EQ(plainAndSplit(), kBoth);
}

// The choice ends at the plain kernel, whatever larger head dimensions have.
TEST_F(OnDemandSplitTest, OneOfOtherHeadDimensionsIsNoneThatIsThere) {
  const ContextPtr c = context();
  const std::string mine = dir.path() + "/24.fovea",
                    larger = dir.path() + "/32.fovea";
  const std::string compile = AOT_COMPILE " --target=gfx942 --op=forward "
                                          "--dtype=fp16 --emit=package -q ";
  ASSERT_EQ(std::system((compile + "--head-dim=24 -o " + mine).c_str()), 0);
  ASSERT_EQ(std::system((compile +
                         "--head-dim=32 --groups=head_dims "
                         "--algorithm=split -o " +
                         larger)
                            .c_str()),
            0);
  for (const std::string &path : {mine, larger})
    ASSERT_EQ(fovea_package_open(c.get(), path.c_str()), FOVEA_STATUS_OK);
  EXPECT_GT(select(c.get(), shaped(1, 8192, 1, 24)).splits, 1u);
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
}

TEST_F(OnDemandSplitTest, AlwaysCompilesWhatPays) {
  set("FOVEA_COMPILE", "always");
  const ContextPtr c = context();
  ASSERT_EQ(fovea_package_open(c.get(), package().c_str()), FOVEA_STATUS_OK);
  EXPECT_GT(select(c.get(), shaped(1, 8192, 1, 32)).splits, 1u);
  EXPECT_EQ(plainAndSplit(), kSplitAlone);
  EXPECT_EQ(select(c.get(), shaped(32, 32, 1, 32)).launch_count, 1u);
  EXPECT_EQ(plainAndSplit(), kBoth);
}

} // namespace
