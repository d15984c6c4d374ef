//===- OperatorsSessionTest.cpp - the context of PyTorch's operators ------===//

#include "Session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using fovea::operators::context;

extern "C" {
void fovea_torch_set_provider(fovea_context_t *(*given)(char *, size_t));
void fovea_torch_forget(fovea_context_t *context);
}

namespace {

/// Nothing looks at what is given.
fovea_context_t *given(uintptr_t number) {
  return reinterpret_cast<fovea_context_t *>(16 * number);
}
uintptr_t asked = 0;
bool isEndedMeanwhile = false; ///< as by another thread

fovea_context_t *provide(char *, size_t) {
  fovea_context_t *context = given(++asked);
  if (isEndedMeanwhile)
    fovea_torch_forget(context);
  return context;
}

TEST(OperatorsSessionTest, IsAskedForAgainWhenItHasEnded) {
  fovea_torch_set_provider(provide);
  EXPECT_EQ(context(), given(1));
  EXPECT_EQ(context(), given(1));
  fovea_torch_forget(given(7)); // another one
  EXPECT_EQ(context(), given(1));
  fovea_torch_forget(given(1));
  EXPECT_EQ(context(), given(2));
  fovea_torch_forget(nullptr);
  EXPECT_EQ(context(), given(3));

  fovea_torch_forget(nullptr);
  isEndedMeanwhile = true;
  EXPECT_EQ(context(), given(4));
  isEndedMeanwhile = false;
  EXPECT_EQ(context(), given(5));
  EXPECT_EQ(context(), given(5));

  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(context() == given(6) && context() == given(6) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(context(), given(5));
}

} // namespace
