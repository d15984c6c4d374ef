//===- ScoreTest.cpp - score programs among the parameters ----------------===//
//
// Which kernels serve a call with a program, what they are passed of what it
// captures, and what is refused of that.
//
//===----------------------------------------------------------------------===//

#include "BackwardTest.h"

#include "Problem.h"
#include "Scores.h"

#include <array>
#include <cstring>
#include <functional>
#include <tuple>

using namespace fovea;
using namespace fovea::test;

namespace {

constexpr const char *kText = "score 1 captures(f32, i32, bf16[batch:?, "
                              "query:?, key:1], f32[?])\nyield x";

class ScoreGroupTest : public RuntimeTest {
protected:
  ScoreGroupTest() {
    cap.type = FOVEA_CAPTURE_F32;
    cap.value = 2.5;
    size.type = FOVEA_CAPTURE_I32;
    size.value = -7;
    bias.type = FOVEA_CAPTURE_BF16;
    bias.rank = 3;
    bias.data = reinterpret_cast<const void *>(0x7000000);
    const fovea_forward_params_t p = makeParams();
    const int64_t extents[] = {p.batch, p.seqlen_q, (p.seqlen_k + 1) / 2 * 2};
    int64_t stride = 1;
    for (int dim = 2; dim >= 0; --dim) {
      bias.extents[dim] = extents[dim];
      bias.strides[dim] = stride;
      stride *= extents[dim];
    }
    table.type = FOVEA_CAPTURE_F32;
    table.rank = 1;
    table.data = reinterpret_cast<const void *>(0x8000000);
    table.extents[0] = 9;
    table.strides[0] = 3;
  }

  fovea_status_t launch(const char *program = "mine") {
    captures = {cap, size, bias, table};
    fovea_score_t score = {};
    score.header.struct_size = sizeof(score);
    score.header.group = FOVEA_GROUP_SCORE;
    score.program = program;
    score.captures = captures.data();
    score.capture_count = count;
    score.capture_size = sizeof(fovea_capture_t);
    fovea_forward_params_t p = makeParams();
    p.groups = &score.header;
    fake.launches.clear();
    return fovea_forward(context.get(), &p, nullptr);
  }
  /// Expects a refusal with all of the texts after a change.
  void expectRefused(const std::function<void()> &change,
                     std::initializer_list<const char *> texts,
                     fovea_status_t status = FOVEA_STATUS_INVALID_ARGUMENT) {
    const auto all = std::tuple(cap, size, bias, table, count);
    change();
    EXPECT_EQ(launch(), status);
    const std::string message = fovea_last_message();
    for (const char *text : texts)
      EXPECT_NE(message.find(text), std::string::npos)
          << "'" << text << "' in: " << message;
    EXPECT_TRUE(fake.launches.empty());
    std::tie(cap, size, bias, table, count) = all;
  }
  KernelRecord record(uint64_t digest, const std::string &name,
                      const std::string &text = kText) {
    return makeScoreRecord(digest, name, text);
  }

  ContextPtr context;
  fovea_capture_t cap = {}, size = {}, bias = {}, table = {};
  std::vector<fovea_capture_t> captures;
  uint32_t count = 4;
};

} // namespace

TEST_F(ScoreGroupTest, KernelsArePassedWhatTheProgramCaptures) {
  write({makeRecord(makeProblem()), record(0xab, "mine")});
  context = makeContext();
  for (const char *program : {"mine", "00000000000000ab"}) {
    ASSERT_EQ(launch(program), FOVEA_STATUS_OK) << fovea_last_message();
    const FakeLaunch &made = fake.launches[0];
    const spec::Signature signature = spec::signatureOf(
        makeProblem(), nullptr, *spec::capturesOfProgram(kText));
    auto passed = [&](const char *name, auto wanted) {
      EXPECT_EQ(passedIn<decltype(wanted)>(made, signature, name), wanted)
          << name;
    };
    passed("capture0", 2.5f);
    passed("capture1", int32_t(-7));
    passed("capture2", uint64_t(0x7000000));
    passed("capture2_stride1", bias.strides[1]);
    passed("capture2_extent2", int32_t(bias.extents[2]));
    passed("capture3", uint64_t(0x8000000));
    passed("capture3_stride0", int64_t(3));
    passed("capture3_extent0", int32_t(9));
  }
}

TEST_F(ScoreGroupTest, BadCapturesAreRefused) {
  write({record(0xab, "mine")});
  context = makeContext();
  ASSERT_EQ(launch(), FOVEA_STATUS_OK) << fovea_last_message();
  expectRefused([&] { cap.type = 9; }, {"score.captures[0].type is 9"});
  expectRefused([&] { cap.type = FOVEA_CAPTURE_BF16; },
                {"score.captures[0].type is bf16 for a scalar"});
  expectRefused([&] { size.value = 0.5; }, {"score.captures[1].value is 0.5"});
  expectRefused([&] { bias.rank = 5; }, {"score.captures[2].rank is 5"});
  expectRefused([&] { bias.rank = 2; },
                {"'mine' captures", "the call gives", "bf16 of rank 2"});
  expectRefused([&] { count = 3; }, {"'mine' captures"});
  expectRefused([&] { count = 9; }, {"score.capture_count is 9"});
  expectRefused([&] { bias.extents[1] -= 1; },
                {"score.captures[2].extents[1] is", "indexes it by query"});
  expectRefused([&] { bias.strides[2] = 2; },
                {"score.captures[2].strides[2] is 2", "compiled for 1"});
  expectRefused([&] { bias.strides[1] += 1; },
                {"score.captures[2].strides[1]", "multiples of 4 bytes"});
  expectRefused([&] { bias.extents[2] += 1; },
                {"score.captures[2].extents[2]", "padding"});
  expectRefused([&] { bias.strides[0] = -2; }, {"must not be negative"});
  expectRefused([&] { bias.strides[1] = 1 << 30; }, {"it is at most"});
  expectRefused([&] { table.strides[0] = 1 << 28; }, {"2^30 bytes"});
  expectRefused([&] { table.data = nullptr; },
                {"score.captures[3].data is NULL"});
  expectRefused([&] { bias.data = reinterpret_cast<const void *>(0x7000002); },
                {"score.captures[2].data", "no multiple of 4"});
  expectRefused([&] { bias.data = makeParams().out.data; },
                {"shares memory with out"});
}

TEST_F(ScoreGroupTest, NamesStandForOneProgram) {
  write({record(0xab, "mine"), record(0xcd, "mine", std::string(kText) + "\n"),
         record(0xef, "mine", "score 1 captures(f32)")});
  context = makeContext();
  EXPECT_EQ(launch(), FOVEA_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(fovea_last_message()).find("names several programs"),
            std::string::npos)
      << fovea_last_message();
  EXPECT_EQ(launch("00000000000000cd"), FOVEA_STATUS_OK)
      << fovea_last_message();
  count = 1;
  EXPECT_EQ(launch(), FOVEA_STATUS_OK) << fovea_last_message();
  count = 4;
  EXPECT_EQ(launch("other"), FOVEA_STATUS_NOT_FOUND);
  EXPECT_EQ(launch(""), FOVEA_STATUS_INVALID_ARGUMENT);
}

/// Once the workspace's size is known: what is behind that is nobody's.
TEST_F(BackwardTest, CapturesLieOutsideTheWorkspace) {
  KernelRecord record = makeAtomicRows();
  record.problem.score = 0xab;
  record.problem.scoreGradients = 1;
  record.score = {"mine", "score 1 captures(f32[head:?])\nyield x"};
  writeBackward(record);
  ContextPtr context = makeContext();
  constexpr int64_t kUsed = 2 * 8 * 300 * (128 + 1) * 4;
  auto launch = [&](void *data, void *gradient) {
    fovea_capture_t capture = {};
    capture.type = FOVEA_CAPTURE_F32;
    capture.rank = 1;
    capture.data = data;
    capture.gradient = gradient;
    capture.extents[0] = 8;
    capture.strides[0] = capture.gradient_strides[0] = 1;
    fovea_score_t score = {};
    score.header = {sizeof(score), FOVEA_GROUP_SCORE, nullptr};
    score.program = "mine";
    score.captures = &capture;
    score.capture_count = 1;
    score.capture_size = sizeof(capture);
    Params p = makeBackward();
    p.groups = &score.header;
    p.workspace_bytes = kUsed + 64;
    fake.launches.clear();
    return fovea_backward(context.get(), &p, nullptr);
  };
  auto expectShared = [&](void *data, void *gradient, const char *text) {
    // What was launched twice is what a thread remembers.
    EXPECT_EQ(launch(place(11), place(12)), FOVEA_STATUS_OK)
        << fovea_last_message();
    EXPECT_EQ(launch(place(11), place(12)), FOVEA_STATUS_OK);
    EXPECT_EQ(launch(data, gradient), FOVEA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(fovea_last_message()).find(text), std::string::npos)
        << fovea_last_message();
    EXPECT_TRUE(fake.launches.empty());
  };
  expectShared(place(11), place(10, 4),
               "score.captures[0].gradient (from 175921860444164 on, 32 bytes) "
               "shares memory with workspace; give each memory of its own");
  expectShared(place(10, kUsed - 4), place(12),
               "score.captures[0].data (from 175921862920956 on, 32 bytes) "
               "shares memory with workspace, which the kernels write; give "
               "each memory of its own");
  EXPECT_EQ(launch(place(11), place(10, kUsed)), FOVEA_STATUS_OK)
      << fovea_last_message();
}

TEST(StoredGradientTest, PlacesHaveMemoryOfTheirOwn) {
  const auto wanted = *spec::capturesOfProgram(
      "score 1 captures(bf16[batch:?, head:?, query:?, key:1])\nyield x");
  fovea_capture_t bias = {};
  bias.type = FOVEA_CAPTURE_BF16;
  bias.rank = 4;
  bias.data = reinterpret_cast<const void *>(0x7000000);
  bias.gradient = reinterpret_cast<void *>(0x8000000);
  rt::Problem problem{};
  problem.sizes.batch = 2;
  problem.sizes.headsQ = 3;
  problem.sizes.seqlenQ = 5;
  problem.sizes.seqlenK = 8;
  problem.wanted = spec::kDk;
  problem.score.program = "mine";
  problem.score.captures = &bias;
  problem.score.capture_count = 1;
  problem.score.capture_size = sizeof(bias);
  problem.score.stored_gradients = 1;
  std::copy_n(std::array{2, 3, 5, 8}.begin(), 4, bias.extents);
  std::copy_n(std::array{120, 40, 8, 1}.begin(), 4, bias.strides);

  auto message = [&](const std::array<int64_t, 4> &strides) {
    std::copy(strides.begin(), strides.end(), bias.gradient_strides);
    return rt::checkCaptures(problem, wanted, /*isLaunch=*/false).message;
  };
  auto overlap = [](const char *dim, const char *stride, const char *least) {
    return std::string("score.captures[0].gradient_strides[") + dim + "] is " +
           stride +
           ": places of a gradient that is stored would overlap; it must be at "
           "least " +
           least + ", what the dimensions of smaller stride span";
  };
  EXPECT_EQ(message({120, 40, 8, 1}), "");
  EXPECT_EQ(message({8, 16, 48, 1}), ""); // dimensions in another order
  EXPECT_EQ(message({120, 40, 7, 1}), overlap("2", "7", "8"));
  EXPECT_EQ(message({119, 40, 8, 1}), overlap("0", "119", "120"));
  EXPECT_EQ(message({120, 40, 8, 0}), overlap("3", "0", "1"));
  problem.sizes.batch = 1;
  EXPECT_EQ(message({0, 40, 8, 1}), "");
}
