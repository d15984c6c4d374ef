//===- ParallelTest.cpp - a parallel loop with per-thread state -----------===//

#include "Parallel.h"

#include <gtest/gtest.h>
#include <new>

using namespace fovea::reference;

// An exception that left a thread would end the process.
TEST(Parallel, WhatAnyThreadThrowsComesOut) {
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
    std::atomic<int64_t> sum{0};
    parallelFor(
        1000, threads, [] { return 0; }, [&](int, int64_t i) { sum += i; });
    EXPECT_EQ(sum, 1000 * 999 / 2);
  }
}
