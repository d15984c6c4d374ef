//===- DispatchTsan.cpp - many threads, many devices ----------------------===//
//
// Threads share contexts on the empty HIP library and do at once what programs
// do: open packages, launch, prepare, ask, explain, fail, and reset devices.
// Each checks its own results; ThreadSanitizer checks what they share.
//
//===----------------------------------------------------------------------===//

#include "LaunchLoad.h"

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {

constexpr int kThreads = 6, kRounds = 150;

/// Runs `body(thread)` in several threads, which begin at the same time.
template <typename Body>
void inThreads(Body body) {
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread != kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (--waiting; waiting > 0;)
        std::this_thread::yield();
      body(thread);
    });
  for (std::thread &thread : threads)
    thread.join();
}

class DispatchTsan : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    dir = new TempDir;
    const ProblemKey problem = makeProblem(128);
    writeLibrary(file(128), {128},
                 {{problem, 600, TuningRow::kAny, TuningRow::kAny,
                   makeRecord(problem, 64).schedule}},
                 /*payloadBytes=*/1000);
    for (int32_t headDim : {64, 96})
      writeLibrary(file(headDim), {headDim}, {}, /*payloadBytes=*/1000);
  }
  static void TearDownTestSuite() { delete dir; }

  static std::string file(int32_t headDim) {
    return dir->file(std::to_string(headDim) + ".fovea");
  }
  static TempDir *dir;
};
TempDir *DispatchTsan::dir;

fovea_status_t setDevice(int device) {
  static auto function = emptyHip<int (*)(int)>("hipSetDevice");
  return function(device);
}

/// Expects a call to do its work. \param resets  other threads reset devices:
/// one after the other may meet the call and its repetition; false then.
bool succeeds(fovea_status_t status, bool resets) {
  const std::string message = fovea_last_message();
  if (resets && status == FOVEA_STATUS_HIP_ERROR) {
    EXPECT_NE(message.find("(400)"), std::string::npos) << message;
    return false;
  }
  EXPECT_EQ(status, FOVEA_STATUS_OK) << message;
  return status == FOVEA_STATUS_OK;
}

/// Launches a pass and checks what HIP was given.
template <typename Params>
void launch(fovea_context_t *context, const Params &p, uint64_t launches,
            fovea_status_t (*function)(fovea_context_t *, const Params *,
                                       void *),
            void *stream, bool resets) {
  const EmptyHipThread &note = emptyHipThread();
  const uint64_t before = note.launches;
  if (!succeeds(function(context, &p, stream), resets))
    return;
  // What a reset has undone is launched again.
  if (resets)
    EXPECT_GE(note.launches - before, launches);
  else
    EXPECT_EQ(note.launches - before, launches);
  const auto args = expectedArgs(p);
  EXPECT_EQ(note.argumentBytes, sizeof(args));
  EXPECT_EQ(std::memcmp(note.arguments, &args, sizeof(args)), 0);
  EXPECT_EQ(note.stream, stream);
}

/// A thread's calls on a context that all share.
void work(fovea_context_t *context, int thread,
          const std::vector<std::string> &packages, bool resets) {
  static auto reset = emptyHip<int (*)()>("hipDeviceReset");
  std::minstd_rand random(unsigned(thread) + 1);
  const auto pick = [&](unsigned count) { return int(random() % count); };
  void *stream = reinterpret_cast<void *>(uintptr_t(thread) + 1);
  const uintptr_t shift = uintptr_t(thread) << 32;
  for (int round = 0; round != kRounds; ++round) {
    const int device = pick(kEmptyHipDevices);
    ASSERT_EQ(setDevice(device), 0);
    fovea_forward_params_t forward = makeForwardLoad(shift);
    forward.mask = pick(3);
    forward.seqlen_q = pick(2) ? 1000 : 500;
    fovea_backward_params_t backward = makeBackwardLoad(shift);
    backward.deterministic = uint32_t(pick(2));
    switch (pick(12)) {
    case 0:
      if (round % 10 == 0) {
        EXPECT_EQ(
            fovea_package_open(context, packages[size_t(pick(2))].c_str()),
            FOVEA_STATUS_OK)
            << fovea_last_message();
      }
      break;
    case 1:
      succeeds(fovea_forward_prepare(context, &forward, pick(kEmptyHipDevices),
                                     nullptr),
               resets);
      break;
    case 2: {
      int steps = 0;
      EXPECT_EQ(fovea_backward_explain(
                    context, &backward, device,
                    [](void *user, const fovea_candidate_t *candidate) {
                      EXPECT_NE(std::string(candidate->name), "");
                      ++*static_cast<int *>(user);
                    },
                    &steps),
                FOVEA_STATUS_OK);
      EXPECT_EQ(steps, 6); // both algorithms, with each mask
      break;
    }
    case 3: {
      forward.head_dim = 1000 + thread;
      EXPECT_EQ(fovea_forward(context, &forward, stream),
                FOVEA_STATUS_INVALID_ARGUMENT);
      EXPECT_NE(std::string(fovea_last_message())
                    .find("head_dim is " + std::to_string(1000 + thread)),
                std::string::npos);
      break;
    }
    case 4: {
      fovea_kernel_info_t info{};
      info.struct_size = sizeof(info);
      const auto last = uint32_t(fovea_kernel_count(context));
      EXPECT_EQ(fovea_kernel_info(context, last, &info), FOVEA_STATUS_OK);
      EXPECT_EQ(std::string(info.target), "gfx942");
      break;
    }
    case 5:
      if (resets && round % 5 == 0) {
        EXPECT_EQ(reset(), 0);
      }
      break;
    case 6:
    case 7:
      launch(context, backward, 3, fovea_backward, stream, resets);
      break;
    default:
      launch(context, forward, 1, fovea_forward, stream, resets);
    }
  }
}

} // namespace

TEST_F(DispatchTsan, OneContextManyDevices) {
  fovea_context_t *context = makeLoadContext(file(128));
  inThreads([&](int thread) {
    work(context, thread, {file(64), file(96)}, /*resets=*/false);
  });
  fovea_context_destroy(context);
}

TEST_F(DispatchTsan, DevicesAreResetMeanwhile) {
  fovea_context_t *context = makeLoadContext(file(128));
  inThreads([&](int thread) {
    work(context, thread, {file(64), file(96)}, /*resets=*/true);
  });
  // What is left can be used.
  const fovea_forward_params_t p = makeForwardLoad();
  for (int device = 0; device != kEmptyHipDevices; ++device) {
    ASSERT_EQ(setDevice(device), 0);
    launch(context, p, 1, fovea_forward, nullptr, /*resets=*/false);
  }
  fovea_context_destroy(context);
}

// The first call of all threads at once: one opens HIP, one makes each view,
// one loads each kernel.
TEST_F(DispatchTsan, FirstCallsMeet) {
  for (int round = 0; round != 10; ++round) {
    fovea_context_t *context = makeLoadContext(file(128));
    inThreads([&](int thread) {
      ASSERT_EQ(setDevice(thread % 2), 0);
      const fovea_forward_params_t p = makeForwardLoad();
      launch(context, p, 1, fovea_forward, nullptr, /*resets=*/false);
    });
    fovea_context_destroy(context);
  }
}

TEST_F(DispatchTsan, ContextsOfTheirOwn) {
  inThreads([&](int thread) {
    fovea_context_t *context = makeLoadContext(file(128));
    ASSERT_EQ(setDevice(thread % kEmptyHipDevices), 0);
    const fovea_backward_params_t p = makeBackwardLoad();
    launch(context, p, 3, fovea_backward, nullptr, /*resets=*/false);
    fovea_context_destroy(context);
  });
}

// Every new choice is logged by one of the threads that make it.
TEST_F(DispatchTsan, ChoicesAreLoggedOnce) {
  struct Lines {
    std::mutex mutex;
    std::multiset<std::string> choices;
  } lines;
  fovea_context_options_t options{};
  options.struct_size = sizeof(options);
  options.hip_library = EMPTY_HIP;
  options.log = "dispatch";
  options.log_user = &lines;
  options.log_fn = [](void *user, const char *line) {
    auto &all = *static_cast<Lines *>(user);
    std::lock_guard<std::mutex> lock(all.mutex);
    if (std::string(line).find("chosen kernel") != std::string::npos)
      all.choices.insert(line);
  };
  fovea_context_t *context = nullptr;
  ASSERT_EQ(fovea_context_create(&options, &context), FOVEA_STATUS_OK);
  ASSERT_EQ(fovea_package_open(context, file(128).c_str()), FOVEA_STATUS_OK);
  inThreads([&](int) {
    ASSERT_EQ(setDevice(0), 0);
    for (int mask : {0, 1, 2}) {
      fovea_forward_params_t p = makeForwardLoad();
      p.mask = mask;
      launch(context, p, 1, fovea_forward, nullptr, /*resets=*/false);
    }
  });
  EXPECT_EQ(lines.choices.size(), 3u);
  fovea_context_destroy(context);
}
