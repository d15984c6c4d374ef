//===- RealHipTest.cpp - ROCm's library where there is no GPU -------------===//
//
// What libfovea makes of the real libamdhip64: on a machine without a GPU (or
// with hidden ones) it has no device, and that has to be said plainly.
//
//===----------------------------------------------------------------------===//

#include "fovea/fovea.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <regex>
#include <string>
#include <sys/wait.h>

namespace {

struct ContextDeleter {
  void operator()(fovea_context_t *context) const {
    fovea_context_destroy(context);
  }
};
using ContextPtr = std::unique_ptr<fovea_context_t, ContextDeleter>;

ContextPtr makeContext(const char *library) {
  fovea_context_options_t options{};
  options.struct_size = sizeof(options);
  options.hip_library = library;
  fovea_context_t *context = nullptr;
  EXPECT_EQ(fovea_context_create(&options, &context), FOVEA_STATUS_OK)
      << fovea_last_message();
  return ContextPtr(context);
}

bool contains(const std::string &text, const std::string &pattern) {
  return std::regex_search(text, std::regex(pattern));
}

/// Where the library is from, which release it is, and that it has no device.
constexpr const char *kNoDevice =
    "/libamdhip64\\.so[.0-9]* \\(HIP [5-7]\\.[0-9]+\\.[0-9]+\\) has no device: "
    "hipGetDeviceCount failed: hipErrorNoDevice \\(100\\)";
constexpr const char *kRemedy =
    "set FOVEA_HIP_LIBRARY to sim to use the simulated device";

/// Runs a command; its output, standard error too, and its exit code.
std::string run(const std::string &command, int &exitCode) {
  std::string output;
  FILE *pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << command;
    return output;
  }
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
    output.append(buffer, got);
  const int status = ::pclose(pipe);
  exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

} // namespace

TEST(RealHip, AskedForItIsOpenedAndHasNoDevice) {
  ContextPtr context = makeContext("rocm");
  fovea_hip_library_info_t info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK)
      << fovea_last_message()
      << "\nscripts/install-deps.sh installs Debian's libamdhip64-5";
  EXPECT_EQ(info.kind, FOVEA_HIP_ROCM);
  EXPECT_EQ(info.device_count, 0);
  EXPECT_GE(info.runtime_version, 50000000);
  EXPECT_LT(info.runtime_version, 80000000);
  EXPECT_TRUE(contains(info.path, "/libamdhip64\\.so[.0-9]*$")) << info.path;
  for (int32_t number : {-1, 0}) {
    fovea_device_info_t device{};
    device.struct_size = sizeof(device);
    EXPECT_EQ(fovea_device_info(context.get(), number, &device),
              FOVEA_STATUS_NO_DEVICE);
    EXPECT_TRUE(contains(fovea_last_message(), kNoDevice))
        << fovea_last_message();
    EXPECT_TRUE(contains(fovea_last_message(), kRemedy))
        << fovea_last_message();
  }
}

TEST(RealHip, AutoChoosesTheSimulatedOneAndSaysWhy) {
  ContextPtr context = makeContext("auto");
  fovea_hip_library_info_t info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(info.kind, FOVEA_HIP_SIM);
  EXPECT_TRUE(contains(info.path, "/libfovea_hipsim\\.so$")) << info.path;
  EXPECT_TRUE(contains(info.reason, kNoDevice)) << info.reason;
  EXPECT_TRUE(contains(info.reason, "so the simulated one$")) << info.reason;
  fovea_device_info_t device{};
  device.struct_size = sizeof(device);
  EXPECT_EQ(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_STREQ(device.arch, "gfx942:sramecc+:xnack-");
}

// To a program's user: an exit code, and the same words.
TEST(RealHip, ProgramsEndWithTheReason) {
  const std::string commands[] = {
      "FOVEA_HIP_LIBRARY=rocm " FOVEA_CTS " " FOVEA_PLAIN_PACKAGE, FOVEA_AOT_RUN
      " --hip=rocm --package=" FOVEA_PLAIN_PACKAGE " --head-dim=64"};
  for (const std::string &command : commands) {
    SCOPED_TRACE(command);
    int exitCode = 0;
    const std::string output = run(command, exitCode);
    EXPECT_GT(exitCode, 1) << output; // 1: wrong results
    EXPECT_LT(exitCode, 128) << output;
    EXPECT_TRUE(contains(output, kNoDevice)) << output;
    EXPECT_TRUE(contains(output, kRemedy)) << output;
  }
}
