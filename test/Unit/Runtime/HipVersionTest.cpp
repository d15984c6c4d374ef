//===- HipVersionTest.cpp - HIP 5, 6, 7 and what is none of them ----------===//
//
// Fake libraries with the interface of each release of HIP, and with structures
// that no release has.
//
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

std::string fakeOf(int version) {
  return std::string(FAKE_HIP_FOLDER "/libfovea_fakehip") +
         std::to_string(version) + ".so";
}

class HipVersionTest : public RuntimeTest {
protected:
  fovea_hip_library_info_t info{};
  fovea_device_info_t device{};
  std::vector<std::string> lines;
  void SetUp() override {
    info.struct_size = sizeof(info);
    device.struct_size = sizeof(device);
  }

  /// A context whose log goes to `lines`.
  ContextPtr makeLogging(const std::string &library) {
    fovea_context_options_t options{};
    options.struct_size = sizeof(options);
    options.hip_library = library.c_str();
    options.log = "info";
    options.log_user = &lines;
    options.log_fn = [](void *user, const char *line) {
      static_cast<std::vector<std::string> *>(user)->push_back(line);
    };
    fovea_context_t *context = nullptr;
    expectStatus(fovea_context_create(&options, &context), FOVEA_STATUS_OK);
    return ContextPtr(context);
  }
  bool logged(const std::string &part) const {
    for (const std::string &line : lines)
      if (line.find(part) != std::string::npos)
        return true;
    return false;
  }
};

} // namespace

TEST_F(HipVersionTest, EveryKnownReleaseIsReadAndNamed) {
  for (int version : {5, 6, 7}) {
    SCOPED_TRACE(version);
    FakeHipState &state = fakeState(fakeOf(version));
    state.archs = {"gfx90a:sramecc+:xnack-", "gfx1151"};
    state.computeUnits = 40;
    ContextPtr context = makeLogging(fakeOf(version));
    expectStatus(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK);
    EXPECT_EQ(info.runtime_version, version * 10000000 + 234567);
    EXPECT_STREQ(info.reason, "its path was given");
    EXPECT_TRUE(logged("(HIP " + std::to_string(version) + ".2.34567)"));
    expectStatus(fovea_device_info(context.get(), 1, &device), FOVEA_STATUS_OK);
    EXPECT_STREQ(device.arch, "gfx1151");
    EXPECT_EQ(device.compute_units, 40);
    // ROCm counts pairs of them on RDNA.
    state.physicalUnits = 80;
    ContextPtr pairs = makeLogging(fakeOf(version));
    expectStatus(fovea_device_info(pairs.get(), 1, &device), FOVEA_STATUS_OK);
    EXPECT_EQ(device.compute_units, 80);
    // Some of a chip's may be another's.
    state.physicalUnits = 120;
    ContextPtr part = makeLogging(fakeOf(version));
    expectStatus(fovea_device_info(part.get(), 1, &device), FOVEA_STATUS_OK);
    EXPECT_EQ(device.compute_units, 40);
    // Which structure: the old one has one name only.
    EXPECT_EQ(fovea_hip_symbol(context.get(), "hipGetDevicePropertiesR0600") !=
                  nullptr,
              version >= 6);
  }
}

TEST_F(HipVersionTest, OlderThan5IsRefused) {
  fakeState(fakeOf(4));
  // As HIP 4.5 says it, and in the numbers of before.
  for (int said : {40521432, 3241}) {
    fakeState(fakeOf(4)).runtimeVersion = said;
    ContextPtr context = makeLogging(fakeOf(4));
    expectStatus(fovea_hip_library_info(context.get(), &info),
                 FOVEA_STATUS_INCOMPATIBLE,
                 {fakeOf(4).c_str(), "is older than HIP 5; update ROCm",
                  said > 10000000 ? "HIP 4.5.21432" : "HIP version 3241"});
  }
}

TEST_F(HipVersionTest, NewerThan7IsTakenWithANote) {
  fakeState(fakeOf(8));
  ContextPtr context = makeLogging(fakeOf(8));
  expectStatus(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK);
  EXPECT_STREQ(info.reason,
               "its path was given; HIP 8.2.34567 is newer than this library, "
               "which takes it for HIP 7");
  EXPECT_TRUE(logged("newer than this library"));
  expectStatus(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK);
  EXPECT_STREQ(device.arch, "gfx942:sramecc+:xnack-");
}

TEST_F(HipVersionTest, WithoutAVersionItsFunctionsDecide) {
  for (int version : {5, 6}) {
    fakeState(fakeOf(version)).runtimeVersion = 0;
    ContextPtr context = makeLogging(fakeOf(version));
    expectStatus(fovea_hip_library_info(context.get(), &info), FOVEA_STATUS_OK);
    EXPECT_EQ(info.runtime_version, 0);
    EXPECT_NE(std::string(info.reason).find("does not tell its version"),
              std::string::npos);
    expectStatus(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK);
    EXPECT_STREQ(device.arch, "gfx942:sramecc+:xnack-");
  }
  // Nor can HIP 4 be taken for HIP 5: its attributes give it away.
  fakeState(fakeOf(4)).runtimeVersion = 0;
  ContextPtr context = makeLogging(fakeOf(4));
  expectStatus(fovea_device_info(context.get(), 0, &device),
               FOVEA_STATUS_HIP_ERROR, {"hipDeviceGetAttribute failed"});
}

// A field more anywhere before what is read, or nothing written at all.
TEST_F(HipVersionTest, StructureOfNoKnownLayoutIsRefused) {
  for (int version : {5, 6, 7}) {
    SCOPED_TRACE(version);
    const size_t units = version == 5 ? 336 : 388,
                 name = version == 5 ? 396 : 1160;
    for (size_t bytes : {4, 8, 64})
      for (size_t at : {size_t(0), units - 4, units, units + 4, name - 4}) {
        SCOPED_TRACE(std::to_string(bytes) + " at " + std::to_string(at));
        FakeHipState &state = fakeState(fakeOf(version));
        state.newFieldAt = at;
        state.newFieldBytes = bytes;
        ContextPtr context = makeLogging(fakeOf(version));
        expectStatus(fovea_device_info(context.get(), 0, &device),
                     FOVEA_STATUS_INCOMPATIBLE,
                     {"device 0: hipGetDeviceProperties",
                      fakeOf(version).c_str(), ".2.34567)",
                      "does not give a hipDeviceProp_t of HIP 5 to 7",
                      "use a ROCm of these versions, or a later Fovea"});
      }
    {
      // The name where it was, and what is before it in another order.
      fakeState(fakeOf(version)).propertiesUnits = 64;
      ContextPtr context = makeLogging(fakeOf(version));
      expectStatus(fovea_device_info(context.get(), 0, &device),
                   FOVEA_STATUS_INCOMPATIBLE,
                   {"its compute units are 64, by hipDeviceGetAttribute 304"});
    }
    fakeState(fakeOf(version)).propertiesWritten = false;
    ContextPtr context = makeLogging(fakeOf(version));
    expectStatus(fovea_device_info(context.get(), 0, &device),
                 FOVEA_STATUS_INCOMPATIBLE, {"hipDeviceProp_t"});
    // What was wrong may have passed, as after an update of the driver.
    fakeState(fakeOf(version));
    expectStatus(fovea_device_info(context.get(), 0, &device), FOVEA_STATUS_OK);
  }
}
