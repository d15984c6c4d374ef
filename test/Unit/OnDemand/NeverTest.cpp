//===- NeverTest.cpp - what is loaded of the compiler ---------------------===//

#include "LaunchLoad.h"
#include "fovea/fovea.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace {

bool isLoaded(const std::string &name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos)
      return true;
  return false;
}

fovea_status_t select(std::string *said = nullptr) {
  fovea_context_t *context = nullptr;
  EXPECT_EQ(fovea_context_create(nullptr, &context), FOVEA_STATUS_OK)
      << fovea_last_message();
  fovea_forward_params_t p = {};
  p.struct_size = sizeof p;
  p.dtype = FOVEA_DTYPE_F16;
  p.scale = 1;
  p.batch = p.heads_q = p.heads_k = p.seqlen_q = p.seqlen_k = 1;
  p.head_dim = 16;
  p.q.stride_seq = p.k.stride_seq = p.v.stride_seq = p.out.stride_seq = 16;
  const fovea_status_t status = fovea_forward_select(context, &p, 0, nullptr);
  if (said)
    *said = fovea_last_message();
  fovea_context_destroy(context);
  return status;
}

TEST(NeverTest, NothingOfLlvmIsLoaded) {
  ::setenv("FOVEA_HIP_LIBRARY", EMPTY_HIP, 1);
  ::setenv("FOVEA_CACHE_MIB", "0", 1);
  EXPECT_EQ(select(), FOVEA_STATUS_NOT_FOUND);
  ::setenv("FOVEA_COMPILE", "never", 1);
  EXPECT_EQ(select(), FOVEA_STATUS_NOT_FOUND);
  for (const char *name : {"libLLVM", "libMLIR", "libfovea_compiler"})
    EXPECT_FALSE(isLoaded(name)) << name;
  // And with auto it is, where it is needed: found beside libfovea.
  ::setenv("FOVEA_COMPILE", "auto", 1);
  std::string said;
  EXPECT_EQ(select(&said), FOVEA_STATUS_OK) << said;
  EXPECT_NE(said.find("in memory alone: FOVEA_CACHE_MIB is 0"),
            std::string::npos)
      << said;
  for (const char *name : {"libLLVM", "libMLIR", "libfovea_compiler"})
    EXPECT_TRUE(isLoaded(name)) << name;
}

} // namespace
