//===- CompileCacheTest.cpp - the cache's locks ---------------------------===//

#include "CompileCache.h"

#include "../Package/TestPackage.h"

#include <csignal>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::test;

TEST(ByteLockTest, IsLetGoThoughAForkedProcessLives) {
  TempDir dir;
  const std::string path = dir.file("lock");
  auto held = std::make_unique<rt::ByteLock>();
  ASSERT_TRUE(held->take(path, 7, /*seconds=*/0).ok());
  const pid_t child = ::fork();
  if (child == 0)
    for (;;)
      ::pause();
  {
    rt::ByteLock other;
    EXPECT_EQ(other.take(path, 7, /*seconds=*/0).code, FOVEA_STATUS_BUSY);
  }
  held.reset();
  rt::ByteLock next;
  const rt::Result taken = next.take(path, 7, /*seconds=*/0);
  EXPECT_TRUE(taken.ok()) << taken.message;
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}
