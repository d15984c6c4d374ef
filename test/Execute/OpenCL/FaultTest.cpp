//===- FaultTest.cpp - wrong kernels are reported, and survived -----------===//

#include "HipProgram.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <unistd.h>

using namespace fovea::test;

namespace {

class Faults : public testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(fovea_sim_set("quiet", "1"), 0); }
  void TearDown() override {
    EXPECT_HIP(hipDeviceReset());
    EXPECT_EQ(fovea_sim_set("budget", "0"), 0);
    (void)hipGetLastError();
  }

  /// After a reset the device works as before.
  void expectAlive() {
    ASSERT_HIP(hipDeviceReset());
    Program program("faults", 2);
    Buffer<int32_t> out(64);
    ASSERT_HIP(program.run("fine", {1}, {64}, out.device()));
    EXPECT_EQ(out.read()[21], 63);
  }

  static bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }
};

#define EXPECT_REPORT(part)                                                    \
  EXPECT_TRUE(contains(fovea_sim_last_report(), part))                         \
      << "no '" << part << "' in: " << fovea_sim_last_report()

TEST_F(Faults, StoreOutOfBounds) {
  {
    Program program("faults", 2);
    Buffer<int32_t> out(1000);
    EXPECT_EQ(
        program.run("store_out_of_bounds", {16}, {64}, out.device(), 1000),
        hipErrorIllegalAddress);
    char address[32];
    std::snprintf(address, sizeof(address), "0x%llx",
                  (unsigned long long)(uintptr_t)(out.device() + 1000));
    EXPECT_REPORT("store_out_of_bounds"); // kernel
    EXPECT_REPORT("global_store");        // instruction
    EXPECT_REPORT("lane 40");             // 1000 = 15 * 64 + 40
    EXPECT_REPORT(address);
    EXPECT_REPORT("the end of");
    // The fault stays until the device is reset.
    EXPECT_EQ(hipPeekAtLastError(), hipErrorIllegalAddress);
    EXPECT_EQ(hipGetLastError(), hipErrorIllegalAddress);
    EXPECT_EQ(hipGetLastError(), hipSuccess);
    EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
    EXPECT_EQ(program.run("fine", {1}, {64}, out.device()),
              hipErrorIllegalAddress);
  }
  expectAlive();
}

TEST_F(Faults, LoadOutOfBounds) {
  {
    Program program("faults", 0);
    Buffer<int32_t> in(64), out(64);
    EXPECT_EQ(
        program.run("load_out_of_bounds", {1}, {64}, in.device(), out.device()),
        hipErrorIllegalAddress);
    EXPECT_REPORT("load_out_of_bounds");
    EXPECT_REPORT("_load_dword");
    EXPECT_REPORT("lane 5");
  }
  expectAlive();
}

TEST_F(Faults, NullPointer) {
  {
    Program program("faults", 2);
    Buffer<int32_t> out(64);
    EXPECT_EQ(program.run("null_pointer", {1}, {64}, out.device()),
              hipErrorIllegalAddress);
    EXPECT_REPORT("null pointer");
    EXPECT_REPORT("lane 3");
  }
  expectAlive();
}

TEST_F(Faults, FreedMemory) {
  {
    Program program("faults", 2);
    void *memory;
    ASSERT_HIP(hipMalloc(&memory, 256));
    ASSERT_HIP(hipFree(memory));
    EXPECT_EQ(program.run("fine", {1}, {64}, memory), hipErrorIllegalAddress);
    EXPECT_REPORT("freed");
  }
  expectAlive();
}

TEST_F(Faults, EndlessLoop) {
  {
    ASSERT_EQ(fovea_sim_set("budget", "100000"), 0);
    Program program("faults", 2);
    Buffer<int32_t> out(64);
    EXPECT_EQ(program.run("endless", {1}, {64}, out.device()),
              hipErrorLaunchTimeOut);
    EXPECT_REPORT("endless");
  }
  expectAlive();
}

TEST_F(Faults, Trap) {
  {
    Program program("faults", 2);
    Buffer<int32_t> out(64);
    EXPECT_EQ(program.run("trap", {1}, {64}, out.device()),
              hipErrorLaunchFailure);
    EXPECT_REPORT("trap");
  }
  expectAlive();
}

TEST_F(Faults, OnlyThisLaunchIsLost) {
  // What ran before the fault stays, what comes after is passed over.
  {
    Program program("faults", 2);
    Buffer<int32_t> before(64), after(64);
    ASSERT_HIP(program.run("fine", {1}, {64}, before.device()));
    int32_t *nothing = nullptr, *address = after.device();
    void *bad[] = {&nothing}, *good[] = {&address};
    hipFunction_t fine = program.function("fine");
    ASSERT_HIP(hipModuleLaunchKernel(fine, 1, 1, 1, 64, 1, 1, 0, nullptr, bad,
                                     nullptr));
    (void)hipModuleLaunchKernel(fine, 1, 1, 1, 64, 1, 1, 0, nullptr, good,
                                nullptr);
    EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
    EXPECT_EQ(before.device()[21], 63);
    EXPECT_EQ(after.device()[21], 0);
  }
  expectAlive();
}

class Images : public Faults {
protected:
  void SetUp() override {
    Faults::SetUp();
    std::ifstream file(std::string(FOVEA_OPENCL_DIR) + "/reduce.O2.hsaco",
                       std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_GT(image.size(), 1000u);
  }
  hipError_t loadFile(const std::vector<char> &bytes) {
    // Of this process alone: these tests run on several chips at once.
    const std::string path = testing::TempDir() + "fovea-image-" +
                             std::to_string(::getpid()) + ".hsaco";
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), std::streamsize(bytes.size()));
    hipModule_t module = nullptr;
    const hipError_t status = hipModuleLoad(&module, path.c_str());
    if (status == hipSuccess)
      (void)hipModuleUnload(module);
    std::remove(path.c_str());
    return status;
  }
  std::vector<char> image;
};

TEST_F(Images, AsBuiltLoadsFromMemoryAndFile) {
  EXPECT_EQ(loadFile(image), hipSuccess);
  hipModule_t module;
  ASSERT_HIP(hipModuleLoadData(&module, image.data()));
  EXPECT_HIP(hipModuleUnload(module));
  ASSERT_HIP(hipModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr));
  EXPECT_HIP(hipModuleUnload(module));
  EXPECT_EQ(hipModuleUnload(module), hipErrorInvalidHandle);
}

// A stale handle is never another's, though the same memory may be used again.
TEST_F(Images, HandlesAreGivenOnce) {
  std::set<hipModule_t> modules;
  std::set<hipFunction_t> functions;
  for (int round = 0; round != 8; ++round) {
    hipModule_t module;
    hipFunction_t function;
    ASSERT_HIP(hipModuleLoadData(&module, image.data()));
    ASSERT_HIP(hipModuleGetFunction(&function, module, "reduce"));
    EXPECT_TRUE(modules.insert(module).second);
    EXPECT_TRUE(functions.insert(function).second);
    for (hipModule_t old : modules)
      EXPECT_EQ(hipModuleGetFunction(&function, old, "reduce"),
                old == module ? hipSuccess : hipErrorInvalidHandle);
    EXPECT_HIP(hipModuleUnload(module));
  }
}

TEST_F(Images, TruncatedAtAnyPlaceIsRefused) {
  for (size_t size = 0; size + 1 < image.size(); size += 97) {
    const std::vector<char> part(image.begin(), image.begin() + long(size));
    EXPECT_NE(loadFile(part), hipSuccess) << size << " bytes";
  }
}

TEST_F(Images, AnyCorruptedHeaderByteIsSurvived) {
  for (size_t at = 0; at < 512; ++at) {
    auto bad = image;
    bad[at] = char(bad[at] ^ 0xff);
    (void)loadFile(bad); // refused or harmless; never a crash
  }
}

TEST_F(Images, NoElfIsRefused) {
  const char text[] = "#!/bin/sh\necho this is no code object at all\n";
  hipModule_t module;
  EXPECT_EQ(hipModuleLoadData(&module, text), hipErrorInvalidImage);
  EXPECT_EQ(loadFile({text, text + sizeof(text)}), hipErrorInvalidImage);
  EXPECT_EQ(hipModuleLoad(&module, "/nonexistent.hsaco"), hipErrorFileNotFound);
  EXPECT_REPORT("/nonexistent.hsaco");
  // One never ends, the other is a folder.
  for (const char *path : {"/dev/zero", "/"}) {
    EXPECT_EQ(hipModuleLoad(&module, path), hipErrorFileNotFound);
    EXPECT_REPORT(path);
  }
}

TEST_F(Images, AnotherChipsCodeIsRefused) {
  const std::string path =
      std::string(FOVEA_OPENCL_DIR) + "/reduce.gfx1100.hsaco";
  hipModule_t module;
  EXPECT_EQ(hipModuleLoad(&module, path.c_str()), hipErrorNoBinaryForGpu);
  EXPECT_REPORT("gfx1100");
  EXPECT_REPORT("gfx942");
}

TEST_F(Images, OffloadBundlesAreSearched) {
  auto bundle = [&](const std::string &id) {
    std::vector<char> bytes;
    auto put = [&](const void *from, size_t size) {
      const char *p = static_cast<const char *>(from);
      bytes.insert(bytes.end(), p, p + size);
    };
    auto number = [&](uint64_t value) { put(&value, 8); };
    put("__CLANG_OFFLOAD_BUNDLE__", 24);
    number(1);
    number(4096);
    number(image.size());
    number(id.size());
    put(id.data(), id.size());
    bytes.resize(4096);
    put(image.data(), image.size());
    return bytes;
  };
  EXPECT_EQ(loadFile(bundle("hipv4-amdgcn-amd-amdhsa--gfx942")), hipSuccess);
  EXPECT_EQ(loadFile(bundle("hipv4-amdgcn-amd-amdhsa--gfx90a")),
            hipErrorNoBinaryForGpu);
  EXPECT_REPORT("gfx90a");
  auto cut = bundle("hipv4-amdgcn-amd-amdhsa--gfx942");
  cut.resize(5000);
  EXPECT_NE(loadFile(cut), hipSuccess);
  cut.resize(40);
  EXPECT_NE(loadFile(cut), hipSuccess);
}

class Launches : public Faults {};

TEST_F(Launches, WrongGeometryIsRefusedAtTheCall) {
  Program program("faults", 2);
  Buffer<int32_t> out(64);
  EXPECT_EQ(program.run("fine", {0}, {64}, out.device()), hipErrorInvalidValue);
  EXPECT_EQ(program.run("fine", {1}, {64, 0}, out.device()),
            hipErrorInvalidConfiguration);
  EXPECT_EQ(program.run("fine", {1}, {2048}, out.device()),
            hipErrorInvalidValue);
  EXPECT_EQ(program.runWithLds("fine", {1}, {64}, 70000, out.device()),
            hipErrorInvalidValue);
  EXPECT_REPORT("65536");
  hipFunction_t fine = program.function("fine");
  EXPECT_EQ(hipModuleLaunchKernel(fine, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr,
                                  nullptr),
            hipErrorInvalidValue);
  EXPECT_EQ(hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, nullptr,
                                  nullptr, nullptr),
            hipErrorInvalidHandle);
  hipFunction_t missing;
  EXPECT_EQ(hipModuleGetFunction(&missing, program.module, "absent"),
            hipErrorNotFound);
  EXPECT_REPORT("fine"); // the report lists what there is
}

TEST_F(Launches, AttributesAndOccupancy) {
  Program program("reduce", 2);
  hipFunction_t reduce = program.function("reduce");
  int value = 0;
  ASSERT_HIP(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                 reduce));
  EXPECT_EQ(value, 1024);
  hipFuncAttributes attributes;
  ASSERT_HIP(hipFuncGetAttributes(&attributes, reduce));
  EXPECT_EQ(attributes.sharedSizeBytes, 1024u);
  EXPECT_GT(attributes.numRegs, 0);
  ASSERT_HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&value, reduce,
                                                                256, 0));
  EXPECT_EQ(value, 8); // 8 waves a SIMD, 4 waves a workgroup
  ASSERT_HIP(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
      &value, reduce, 256, 31 * 1024));
  EXPECT_EQ(value, 2); // LDS
  int grid = 0;
  ASSERT_HIP(
      hipModuleOccupancyMaxPotentialBlockSize(&grid, &value, reduce, 0, 0));
  EXPECT_GT(value, 0);
  EXPECT_GT(grid, 0);
}

TEST_F(Launches, CountersTellWhatRan) {
  Program program("reduce", 2);
  Buffer<int32_t> in(512), out(2);
  ASSERT_EQ(fovea_sim_reset_counters(0), 0);
  ASSERT_HIP(program.run("reduce", {2}, {256}, in.device(), out.device(), 512));
  fovea_sim_counters_t counters = {};
  counters.struct_size = sizeof(counters);
  ASSERT_EQ(fovea_sim_counters(0, &counters), 0);
  EXPECT_EQ(counters.launches, 1u);
  EXPECT_EQ(counters.workgroups, 2u);
  EXPECT_EQ(counters.waves, 8u);
  EXPECT_GT(counters.lds, 0u);
  EXPECT_EQ(counters.mfma, 0u);
  EXPECT_EQ(counters.bytes_loaded, 512u * 4);
  EXPECT_EQ(counters.instructions,
            counters.valu + counters.trans + counters.mfma + counters.salu +
                counters.smem + counters.vmem + counters.lds + counters.branch +
                counters.sync + counters.other);
}

TEST_F(Launches, StreamsKeepTheirOrder) {
  Program program("faults", 2);
  hipStream_t streams[3];
  std::vector<std::unique_ptr<Buffer<int32_t>>> buffers;
  hipFunction_t fine = program.function("fine");
  for (auto &stream : streams)
    ASSERT_HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (int i = 0; i < 3; ++i) {
    buffers.push_back(std::make_unique<Buffer<int32_t>>(64));
    int32_t *address = buffers.back()->device();
    void *params[] = {&address};
    for (int repeat = 0; repeat < 5; ++repeat) {
      ASSERT_HIP(hipMemsetAsync(address, 0xff, 256, streams[i]));
      ASSERT_HIP(hipModuleLaunchKernel(fine, 1, 1, 1, 64, 1, 1, 0, streams[i],
                                       params, nullptr));
    }
  }
  for (auto &stream : streams) {
    ASSERT_HIP(hipStreamSynchronize(stream));
    EXPECT_HIP(hipStreamDestroy(stream));
  }
  for (auto &buffer : buffers)
    EXPECT_EQ(buffer->read()[21], 63);
}

TEST_F(Launches, PlantedMatrixFaultsShow) {
  const unsigned n = 16;
  std::vector<uint16_t> a(n * n), b(n * n);
  for (unsigned i = 0; i < n * n; ++i) {
    a[i] = uint16_t(0x3c00 + 0x40 * (i * 7 % 13)); // 1 to 2, all different
    b[i] = uint16_t(0x3c00 + 0x40 * (i * 5 % 11));
  }
  Program program("mfma_f16", 2);
  Buffer<uint16_t> da(a), db(b);
  auto product = [&] {
    Buffer<float> c(n * n);
    EXPECT_HIP(program.run("mfma16_f16", {1}, {64}, da.device(), db.device(),
                           c.device(), int(n), int(n)));
    return c.read();
  };
  const auto right = product();
  for (const char *fault : {"swap-rows-of-a", "rotate-k", "swap-blocks-of-d"}) {
    ASSERT_EQ(fovea_sim_set("mfma-fault", fault), 0);
    EXPECT_NE(product(), right) << fault;
  }
  ASSERT_EQ(fovea_sim_set("mfma-fault", "none"), 0);
  EXPECT_EQ(product(), right);
}

} // namespace
