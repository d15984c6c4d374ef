//===- ThreadTest.cpp - one context, many threads -------------------------===//

#include "RuntimeTest.h"

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
        p.head_dim = 32 + 8 * thread + 1;
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
