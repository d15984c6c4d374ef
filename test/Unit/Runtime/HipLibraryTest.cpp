//===- HipLibraryTest.cpp - which HIP library, and why --------------------===//

#include "RuntimeTest.h"

#include <sys/wait.h>

using namespace fovea;
using namespace fovea::test;

namespace {

class HipLibraryTest : public RuntimeTest {
protected:
  fovea_hip_library_info_t info{};
  void SetUp() override { info.struct_size = sizeof(info); }

  /// Runs a test's body in a process of its own: which libraries are loaded is
  /// a property of the process.
  template <typename Body>
  void inProcess(Body body) {
    pid_t child = ::fork();
    if (child == 0) {
      body();
      std::fflush(nullptr);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
};

} // namespace

TEST_F(HipLibraryTest, PathIsTakenAndDescribed) {
  ContextPtr context = makeContext();
  expectStatus(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK);
  EXPECT_EQ(info.kind, FOVEA_HIP_PATH);
  EXPECT_STREQ(info.path, FAKE_HIP6);
  EXPECT_STREQ(info.reason, "its path was given");
  EXPECT_EQ(info.runtime_version, 60234567);
  EXPECT_EQ(info.device_count, 1);
  EXPECT_NE(fovea_hip_symbol(context.get(), "hipGetDeviceCount"), nullptr);
  EXPECT_EQ(fovea_hip_symbol(context.get(), "hipNoSuchThing"), nullptr);
  EXPECT_NE(std::string(fovea_last_message()).find("'hipNoSuchThing'"),
            std::string::npos);
}

TEST_F(HipLibraryTest, VariableIsUsedWithoutTheOption) {
  ::setenv("FOVEA_HIP_LIBRARY", FAKE_HIP5, 1);
  ContextPtr byVariable = makeContext(nullptr);
  ContextPtr byOption = makeContext(FAKE_HIP6);
  ::unsetenv("FOVEA_HIP_LIBRARY");
  expectStatus(fovea_hip_library_info(byVariable.get(), &info),
               FOVEA_STATUS_OK);
  EXPECT_STREQ(info.path, FAKE_HIP5);
  expectStatus(fovea_hip_library_info(byOption.get(), &info), FOVEA_STATUS_OK);
  EXPECT_STREQ(info.path, FAKE_HIP6);
}

// The two layouts of hipDeviceProp_t.
TEST_F(HipLibraryTest, ReadsTheChipFromEitherVersion) {
  for (const char *library : {FAKE_HIP5, FAKE_HIP6}) {
    fakeState(library).archs = {"gfx90a:sramecc+:xnack-", "gfx1151"};
    ContextPtr context = makeContext(library);
    fovea_device_info_t device{};
    device.struct_size = sizeof(device);
    expectStatus(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK);
    EXPECT_STREQ(device.arch, "gfx90a:sramecc+:xnack-");
    EXPECT_EQ(device.compute_units, 304);
    expectStatus(fovea_device_info(context.get(), 1, &device), FOVEA_STATUS_OK);
    EXPECT_STREQ(device.arch, "gfx1151");
    expectStatus(fovea_device_info(context.get(), 2, &device),
                 FOVEA_STATUS_INVALID_ARGUMENT, {"device is 2, not in 0 to 1"});
  }
}

TEST_F(HipLibraryTest, DeviceWithoutAReadableNameIsRefusedAlone) {
  fake.archs = {"gfx942:sramecc+:xnack-", "Radeon"};
  ContextPtr context = makeContext();
  fovea_device_info_t device{};
  device.struct_size = sizeof(device);
  expectStatus(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK);
  expectStatus(fovea_device_info(context.get(), 1, &device),
               FOVEA_STATUS_INCOMPATIBLE, {"device 1", "'Radeon'"});
}

TEST_F(HipLibraryTest, MissingFunctionsAreNamed) {
  ContextPtr context = makeContext(FAKE_HIP_HOLE);
  expectStatus(fovea_hip_library_info(context.get(), &info),
               FOVEA_STATUS_INCOMPATIBLE,
               {FAKE_HIP_HOLE, "lacks hipModuleLaunchKernel"});
}

TEST_F(HipLibraryTest, AbsentLibrariesAreNamed) {
  ContextPtr context = makeContext("/no/such/library.so");
  expectStatus(fovea_hip_library_info(context.get(), &info),
               FOVEA_STATUS_NO_DEVICE, {"/no/such/library.so"});
}

TEST_F(HipLibraryTest, LibraryWithoutDevices) {
  fake.archs.clear();
  ContextPtr context = makeContext();
  expectStatus(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK);
  EXPECT_EQ(info.device_count, 0);
  fovea_forward_params_t params = makeParams();
  expectStatus(fovea_forward(context.get(), &params, nullptr),
               FOVEA_STATUS_NO_DEVICE, {FAKE_HIP6, "has no device"});
}

// The fake stands in for ROCm's library under its name, loaded already as a
// framework would have it.
TEST_F(HipLibraryTest, AutoTakesTheLoadedRocmLibraryIfItHasADevice) {
  inProcess([&] {
    fakeState(FAKE_HIP_ROCM);
    for (const char *choice : {"auto", "rocm"}) {
      ContextPtr context = makeContext(choice);
      expectStatus(fovea_hip_library_info(context.get(), &info),
                   FOVEA_STATUS_OK);
      EXPECT_EQ(info.kind, FOVEA_HIP_ROCM);
      EXPECT_STREQ(info.path, FAKE_HIP_ROCM);
    }
  });
}

// Not to be able to count is no answer, but for "auto", which has another
// library and says why it took that.
TEST_F(HipLibraryTest, RocmLibraryThatCannotCount) {
  inProcess([&] {
    fakeState(FAKE_HIP_ROCM);
    auto fails = [] {
      FakeHipState &rocm = fakeState(FAKE_HIP_ROCM);
      rocm.failFunction = "hipGetDeviceCount";
      rocm.failCountdown = 1;
      rocm.failError = 35;
    };
    fails();
    ContextPtr asked = makeContext("rocm");
    expectStatus(fovea_hip_library_info(asked.get(), &info),
                 FOVEA_STATUS_HIP_ERROR,
                 {FAKE_HIP_ROCM, "hipGetDeviceCount failed", "(35)",
                  "update the amdgpu driver"});
    expectStatus(fovea_hip_library_info(asked.get(), &info), FOVEA_STATUS_OK);
    EXPECT_EQ(info.device_count, 1);
    fails();
    ContextPtr context = makeContext("auto");
    const fovea_status_t status = fovea_hip_library_info(context.get(), &info);
    const std::string said =
        status == FOVEA_STATUS_OK ? info.reason : fovea_last_message();
    EXPECT_NE(said.find("update the amdgpu driver"), std::string::npos) << said;
  });
}

TEST_F(HipLibraryTest, AutoPassesOverARocmLibraryWithoutDevices) {
  inProcess([&] {
    fakeState(FAKE_HIP_ROCM).archs.clear();
    ContextPtr context = makeContext("auto");
    const fovea_status_t status = fovea_hip_library_info(context.get(), &info);
    if (std::filesystem::exists(SIM_BESIDE_FOVEA)) {
      expectStatus(status, FOVEA_STATUS_OK);
      EXPECT_EQ(info.kind, FOVEA_HIP_SIM);
      EXPECT_NE(std::string(info.reason).find("(tried: " FAKE_HIP_ROCM),
                std::string::npos);
      EXPECT_NE(
          std::string(info.reason)
              .find("hipGetDeviceCount returned hipSuccess and 0 devices"),
          std::string::npos);
    } else {
      expectStatus(
          status, FOVEA_STATUS_NO_DEVICE,
          {"0 devices", "libfovea_hipsim.so", "set FOVEA_HIP_LIBRARY"});
    }
  });
}
