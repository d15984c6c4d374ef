//===- FaultTest.cpp - failing HIP calls and images that must not pass ----===//

#include "RuntimeTest.h"

#include <sqlite3.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace fovea;
using namespace fovea::test;

namespace {
using FaultTest = RuntimeTest;
} // namespace

// Each HIP call fails once, at its first and at a later use; the failure is
// clean and named, and the next call of the runtime works.
TEST_F(FaultTest, EveryFailingCallIsNamedAndNotKept) {
  write({makeRecord(makeProblem(128), 128)});
  const struct {
    const char *function;
    std::initializer_list<const char *> parts;
  } cases[] = {
      {"hipGetDevice", {"hipGetDevice failed"}},
      {"hipModuleLoadData", {"hipModuleLoadData failed", "kernel 1"}},
      {"hipModuleGetFunction", {"hipModuleGetFunction failed", "kernel 1"}},
      {"hipModuleLaunchKernel",
       {"hipModuleLaunchKernel failed", "kernel 1", "lengths 300x500"}},
  };
  for (const auto &c : cases)
    for (int nth : {1, 2}) {
      SCOPED_TRACE(c.function);
      fake.archs = {"gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-"};
      fake.launches.clear();
      ContextPtr context = makeContext();
      fovea_forward_params_t p = makeParams();
      fail(c.function, nth, 719);
      for (int round = 1; round <= 3; ++round) {
        fake.currentDevice = round == 2; // the second load, on another device
        fovea_status_t status = fovea_forward(context.get(), &p, nullptr);
        if (round == nth) {
          expectStatus(status, FOVEA_STATUS_HIP_ERROR, c.parts);
          expectStatus(status, FOVEA_STATUS_HIP_ERROR,
                       {"hipErrorFake (719): the fake says no"});
        } else {
          expectStatus(status, FOVEA_STATUS_OK);
        }
      }
      EXPECT_EQ(fake.launches.size(), 2u);
    }
  EXPECT_EQ(fake.liveModules, 0);
}

// hipDeviceReset takes the modules with it: the kernel is loaded once more, but
// a device that goes on refusing is not asked for ever.
TEST_F(FaultTest, ModulesThatAResetTookAreLoadedAgain) {
  write({makeRecord(makeProblem(128), 128)});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  fake.reset();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 2);
  EXPECT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.liveModules, 1);
}

// The status of a dead module is also that of a stream that is none. The module
// is asked, and stays: nobody would unload it otherwise.
TEST_F(FaultTest, ModulesThatLiveAreNotLoadedAgain) {
  write({makeRecord(makeProblem(128), 128)});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  constexpr int kInvalidHandle = 400;
  fail("hipModuleLaunchKernel", 1, kInvalidHandle);
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  EXPECT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 1);
  context.reset();
  EXPECT_EQ(fake.liveModules, 0);
}

TEST_F(FaultTest, FailuresWhileDevicesAreRead) {
  fovea_device_info_t info{};
  info.struct_size = sizeof(info);
  for (const char *function :
       {"hipGetDeviceProperties", "hipDeviceGetAttribute"}) {
    ContextPtr context = makeContext();
    fail(function, 1, 3);
    expectStatus(fovea_device_info(context.get(), 0, &info),
                 FOVEA_STATUS_HIP_ERROR, {function, "device 0"});
    expectStatus(fovea_device_info(context.get(), 0, &info), FOVEA_STATUS_OK);
  }
  ContextPtr context = makeContext();
  fail("hipGetDeviceCount", 1, 100);
  expectStatus(fovea_device_info(context.get(), 0, &info),
               FOVEA_STATUS_NO_DEVICE,
               {"has no device", "hipGetDeviceCount failed", "/dev/kfd"});
  expectStatus(fovea_device_info(context.get(), 0, &info), FOVEA_STATUS_OK);
  fail("hipRuntimeGetVersion", 1, 3);
  ContextPtr unversioned = makeContext();
  expectStatus(fovea_device_info(unversioned.get(), 0, &info), FOVEA_STATUS_OK);
}

TEST_F(FaultTest, UnloadFailureIsNoCrash) {
  write({makeRecord(makeProblem(128))});
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_OK);
  fail("hipModuleUnload", 1, 1);
  context.reset();
  EXPECT_EQ(fake.calls["hipModuleUnload"], 1);
}

TEST_F(FaultTest, SymbolThatTheImageLacks) {
  KernelRecord record = makeRecord(makeProblem(128));
  {
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer);
    FOVEA_ASSERT_OK(putFake(*writer, record, "another_kernel"));
  }
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr),
               FOVEA_STATUS_HIP_ERROR,
               {"kernel 1 'kernel_m128'", "hipErrorNotFound (500)"});
}

// A package that lies about its chip: the image's own header is what counts,
// and HIP never sees it.
TEST_F(FaultTest, ImageOfAnotherChipIsRefusedBeforeHip) {
  write({makeRecord(makeProblem(128))}, {}, "gfx950");
  const std::string key = "target", value = "gfx942";
  std::string bytes;
  for (const std::string &text : {key, value}) {
    uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char *>(&size), sizeof(size));
    bytes += text;
  }
  const auto sum = int64_t(XXH3_64bits(bytes.data(), bytes.size()));
  sqlite3 *db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db,
                         ("UPDATE meta SET value='gfx942', checksum=" +
                          std::to_string(sum) + " WHERE key='target'")
                             .c_str(),
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);

  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr),
               FOVEA_STATUS_INCOMPATIBLE,
               {"kernel 1", "its image was refused", "it is for gfx950",
                "compile for gfx942"});
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 0);
}

TEST_F(FaultTest, DamagedImageIsRefusedBeforeHip) {
  write({makeRecord(makeProblem(128))});
  sqlite3 *db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE block SET data=zeroblob(99)", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  ContextPtr context = makeContext();
  fovea_forward_params_t p = makeParams();
  expectStatus(fovea_forward(context.get(), &p, nullptr), FOVEA_STATUS_CORRUPT,
               {"no zstd frame", path.c_str()});
  EXPECT_EQ(fake.calls["hipModuleLoadData"], 0);
}
