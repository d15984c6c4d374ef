//===- ParallelTest.cpp - work on several host threads --------------------===//

#include "fovea/Threads/Parallel.h"

#include <cfenv>
#include <chrono>
#include <cstdio>
#include <gtest/gtest.h>
#include <mutex>
#include <new>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fovea;

namespace {

/// Lets the calls of one piece of work wait until so many have begun.
class Meeting {
public:
  explicit Meeting(unsigned expected) : expected(expected) {}
  /// \return whether all came within half a minute.
  bool arrive() {
    ++arrived;
    for (int i = 0; i != 30000 && arrived < expected; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return arrived >= expected;
  }

private:
  const unsigned expected;
  std::atomic<unsigned> arrived{0};
};

/// The threads that `count` calls of one piece of work run on.
std::set<std::thread::id> threadsOf(unsigned count) {
  Meeting meeting(count);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  runTogether(count, [&] {
    EXPECT_TRUE(meeting.arrive());
    std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  return ids;
}

/// The sum of [0, count), by a loop on `threads` threads.
int64_t sumBelow(int64_t count, unsigned threads) {
  std::atomic<int64_t> sum{0};
  parallelFor(
      count, threads, [] { return 0; }, [&](int, int64_t i) { sum += i; });
  return sum;
}

} // namespace

TEST(Threads, ZeroAsksForOneForEachHardwareThread) {
  EXPECT_EQ(threadsFor(3), 3u);
  EXPECT_EQ(threadsFor(0), std::max(1u, std::thread::hardware_concurrency()));
}

TEST(Threads, RunAtTheSameTimeAsManyAsWereAskedFor) {
  for (unsigned count : {1u, 2u, 9u, 3u})
    EXPECT_EQ(threadsOf(count).size(), count);
  EXPECT_EQ(threadsOf(1).count(std::this_thread::get_id()), 1u);
}

TEST(Threads, AreKeptForTheNextCall) {
  threadsOf(2);
  std::set<std::thread::id> all = threadsOf(2);
  for (int round = 0; round != 20; ++round)
    all.merge(threadsOf(2));
  // Which of the kept ones joins, is open.
  EXPECT_LE(all.size(), threadsFor(0) + 1);
}

TEST(Threads, NoneIsWaitedForThatHasNotBegun) {
  std::atomic<int> begun{0};
  for (int round = 0; round != 1000; ++round)
    runTogether(4, [&] { ++begun; });
  EXPECT_GE(begun, 1000);
  EXPECT_LE(begun, 4000);
}

TEST(Threads, RoundAsTheCallerDoes) {
  threadsOf(4); // has helpers that were made to round to nearest
  std::fesetround(FE_UPWARD);
  Meeting meeting(4);
  std::atomic<int> upward{0};
  runTogether(4, [&] {
    meeting.arrive();
    upward += std::fegetround() == FE_UPWARD;
  });
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upward, 4);
}

TEST(Threads, LoopsTakeEveryIndexOnce) {
  for (unsigned threads : {0u, 1u, 2u, 8u})
    for (int64_t count : {-1, 0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> taken(size_t(std::max<int64_t>(count, 0)));
      parallelFor(
          count, threads, [] { return 0; },
          [&](int, int64_t i) { ++taken[size_t(i)]; });
      for (const std::atomic<int> &times : taken)
        EXPECT_EQ(times, 1);
    }
}

// An exception that left a thread would end the process.
TEST(Threads, WhatAnyThrowsComesOut) {
  for (unsigned threads : {1u, 2u, 8u}) {
    std::atomic<int> states{0};
    EXPECT_THROW(parallelFor(
                     1000, threads, [&] { return ++states; },
                     [](int, int64_t i) {
                       if (i >= 10)
                         throw std::bad_alloc();
                     }),
                 std::bad_alloc);
    EXPECT_THROW(parallelFor(
                     1000, threads, []() -> int { throw std::bad_alloc(); },
                     [](int, int64_t) {}),
                 std::bad_alloc);
    EXPECT_EQ(sumBelow(1000, threads), 1000 * 999 / 2);
  }
}

TEST(Threads, WhatOneHelperThrowsComesOutWhenAllHaveEnded) {
  Meeting meeting(4);
  std::atomic<int> ended{0};
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> thrown{false};
  EXPECT_THROW(runTogether(4,
                           [&] {
                             meeting.arrive();
                             if (std::this_thread::get_id() != caller &&
                                 !thrown.exchange(true))
                               throw std::bad_alloc();
                             std::this_thread::sleep_for(
                                 std::chrono::milliseconds(20));
                             ++ended;
                           }),
               std::bad_alloc);
  EXPECT_EQ(ended, 3);
}

TEST(Threads, WorkMayHaveWorkOfItsOwn) {
  std::atomic<int64_t> sum{0};
  parallelFor(
      20, 4, [] { return 0; },
      [&](int, int64_t) {
        parallelFor(
            10, 4, [] { return 0; },
            [&](int, int64_t i) { sum += sumBelow(i + 1, 3); });
      });
  EXPECT_EQ(sum, 20 * 165); // of i (i + 1) / 2 for i below 10
}

TEST(Threads, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0}, caught{0};
  for (int caller = 0; caller != 8; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round != 200; ++round) {
        wrong += sumBelow(round, unsigned(caller + round % 5)) !=
                 round * (round - 1) / 2;
        try {
          parallelFor(
              round + 1, 4, [] { return 0; },
              [](int, int64_t i) {
                if (i == 0)
                  throw std::bad_alloc();
              });
        } catch (const std::bad_alloc &) {
          ++caught;
        }
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(caught, 8 * 200);
}

// What follows ends or forks processes: not with ThreadSanitizer.

TEST(ThreadsProcess, AForkedOneStartsItsOwn) {
  threadsOf(4);
  std::atomic<bool> stop{false};
  std::thread other([&] { // the pool is hardly ever at rest meanwhile
    while (!stop)
      sumBelow(10, 3);
  });
  for (int round = 0; round != 20; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      _exit(threadsOf(4).size() == 4 && sumBelow(100, 3) == 4950 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  other.join();
  EXPECT_EQ(threadsOf(4).size(), 4u);
}

TEST(ThreadsProcess, EndsWhileHelpersWork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Meeting begun(4);
        std::thread([&] {
          runTogether(3, [&] {
            begun.arrive();
            for (;;)
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
          });
        }).detach();
        begun.arrive();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ThreadsProcess, WithoutMemoryForStacksThereAreFewer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        unsigned long pages = 0;
        std::FILE *file = std::fopen("/proc/self/statm", "r");
        if (!file || std::fscanf(file, "%lu", &pages) != 1)
          std::exit(2);
        std::fclose(file);
        // Half a megabyte is less than a stack.
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max =
            pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) +
            (1 << 19);
        setrlimit(RLIMIT_AS, &limit);
        std::atomic<int> threads{0};
        parallelFor(1000, 64, [&] { return ++threads; }, [](int, int64_t) {});
        std::exit(threads == 1 && sumBelow(100, 5) == 4950 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}
