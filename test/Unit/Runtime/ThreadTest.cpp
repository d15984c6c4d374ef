//===- ThreadTest.cpp - one context, many threads -------------------------===//

#include "RuntimeTest.h"

#include <atomic>
#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {
using ThreadTest = RuntimeTest;
} // namespace

// Threads launch, ask, fail and open packages at once. Modules are loaded once;
// each thread reads its own messages. test/Tsan has ThreadSanitizer look on.
TEST_F(ThreadTest, OneContextSharedByAll) {
  write({makeRecord(makeProblem(64), 64), makeRecord(makeProblem(96), 64),
         makeRecord(makeProblem(128), 64), makeRecord(makeProblem(128), 128)});
  writeTo(dir.file("more.fovea"), {makeRecord(makeProblem(256), 64)});
  constexpr int kThreads = 8, kRounds = 60;
  {
    ContextPtr owner = makeContext();
    fovea_context_t *context = owner.get();
    auto work = [&](int thread) {
      for (int round = 0; round != kRounds; ++round) {
        fovea_forward_params_t p = makeParams();
        p.head_dim = std::array{64, 96, 128}[size_t(round + thread) % 3];
        expectStatus(fovea_forward(context, &p, nullptr), FOVEA_STATUS_OK);
        p.head_dim = 513 + 8 * thread;
        expectStatus(fovea_forward(context, &p, nullptr),
                     FOVEA_STATUS_INVALID_ARGUMENT,
                     {("head_dim is " + std::to_string(p.head_dim)).c_str()});
        if (thread == 0 && round % 20 == 0)
          expectStatus(
              fovea_package_open(context, dir.file("more.fovea").c_str()),
              FOVEA_STATUS_OK);
        fovea_kernel_info_t info{};
        info.struct_size = sizeof(info);
        expectStatus(fovea_kernel_info(
                         context, uint32_t(fovea_kernel_count(context)), &info),
                     FOVEA_STATUS_OK);
        EXPECT_NE(std::string(info.problem).find("head_dim"),
                  std::string::npos);
      }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread != kThreads; ++thread)
      threads.emplace_back(work, thread);
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(fake.launches.size(), size_t(kThreads * kRounds));
    // The kernels of one symbol share an image.
    EXPECT_LE(fake.calls["hipModuleLoadData"], 2);
    EXPECT_EQ(fake.calls["hipGetDeviceCount"], 1);
    EXPECT_EQ(fovea_kernel_count(context), 4u + 3u);
  }
  EXPECT_EQ(fake.liveModules, 0);
}

// HIP's calls fail now and then, and the device is reset under the threads:
// each launch either happens or is told to have failed, and no module is lost.
TEST_F(ThreadTest, FaultsAmongThreads) {
  write({makeRecord(makeProblem(64), 64), makeRecord(makeProblem(96), 128),
         makeRecord(makeProblem(128), 32)});
  constexpr int kThreads = 4, kRounds = 150;
  std::atomic<int> launched{0}, failed{0}, running{kThreads};
  {
    ContextPtr owner = makeContext();
    auto work = [&](int thread) {
      for (int round = 0; round != kRounds; ++round) {
        fovea_forward_params_t p = makeParams();
        p.head_dim = std::array{64, 96, 128}[size_t(round + thread) % 3];
        const fovea_status_t status =
            round % 5 == 4 ? fovea_forward_prepare(owner.get(), &p, 0, nullptr)
                           : fovea_forward(owner.get(), &p, nullptr);
        if (status == FOVEA_STATUS_OK) {
          launched += round % 5 != 4;
        } else {
          ++failed;
          expectStatus(status, FOVEA_STATUS_HIP_ERROR, {" failed: ", "; "});
        }
      }
      --running;
    };
    fail("hipModuleLoadData", 1, 719); // one at least, however threads run
    std::vector<std::thread> threads;
    for (int thread = 0; thread != kThreads; ++thread)
      threads.emplace_back(work, thread);
    const char *const functions[] = {
        "hipGetDeviceProperties", "hipDeviceGetAttribute",
        "hipGetDevice",           "hipModuleLoadData",
        "hipModuleGetFunction",   "hipStreamIsCapturing",
        "hipModuleLaunchKernel",  "hipSetDevice"};
    while (failed == 0 && running != 0) // another fault would take its place
      std::this_thread::yield();
    for (size_t i = 0; running != 0; ++i) {
      fail(functions[i % std::size(functions)], 1, 719);
      if (i % 3 == 0) {
        std::lock_guard<std::mutex> lock(fake.mutex);
        fake.reset();
      }
      std::this_thread::yield();
    }
    for (std::thread &thread : threads)
      thread.join();
    fail("", 0, 0);
    // With the faults gone all is well.
    fovea_forward_params_t p = makeParams();
    expectStatus(fovea_forward(owner.get(), &p, nullptr), FOVEA_STATUS_OK);
    ++launched;
    EXPECT_EQ(int(fake.launches.size()), launched.load());
    EXPECT_GT(failed.load(), 0);
  }
  EXPECT_EQ(fake.liveModules, 0);
}
