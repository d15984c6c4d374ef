//===- OrdersTest.cpp - orders of kernels where memory runs out -----------===//

#include "OnDemand.h"

#include "../Package/TestPackage.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <new>
#include <unistd.h>

using namespace fovea;
using namespace fovea::test;

namespace {
/// The calling thread's: so many allocations succeed, and the next one fails
/// if that is not negative.
thread_local long allowed = -1;
} // namespace

void *operator new(size_t bytes) {
  if (allowed >= 0 && allowed-- == 0)
    throw std::bad_alloc();
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

/// Whichever allocation of a call fails, those that come later are answered.
TEST(OrdersTest, NobodyWaitsForWhatFailed) {
  ::setenv("FOVEA_CACHE_MIB", "0", 1);
  ::setenv("FOVEA_COMPILER_LIBRARY", "/nowhere/libfovea_compiler.so", 1);
  rt::KernelOrder order;
  order.chip = "gfx942";
  order.problem = makeProblem();
  const rt::Log log;
  long failures = 0;
  for (bool isDone = false; !isDone; ++failures) {
    rt::OnDemand orders;
    ASSERT_TRUE(orders.configure("auto").ok());
    auto get = [&] {
      rt::Failure failure;
      return orders.get(order, log, [](rt::OnDemand::Made &&) {}, failure).code;
    };
    allowed = failures;
    try {
      EXPECT_EQ(get(), FOVEA_STATUS_NOT_FOUND);
      isDone = true;
    } catch (const std::bad_alloc &) {
    }
    allowed = -1;
    std::future<fovea_status_t> later = std::async(std::launch::async, get);
    if (later.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      std::fprintf(stderr, "allocation %ld failed, and who asks again waits\n",
                   failures);
      ::_exit(1); // the thread would be waited for
    }
    EXPECT_EQ(later.get(), FOVEA_STATUS_NOT_FOUND);
  }
  EXPECT_GT(failures, 5);
  ::unsetenv("FOVEA_CACHE_MIB");
  ::unsetenv("FOVEA_COMPILER_LIBRARY");
}

} // namespace
