//===- LoaderTest.cpp - Code objects, devices and device memory -----------===//
//
// What a code object says about its kernels, and that damaged, truncated and
// foreign ones are refused with a reason.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"

#include <random>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class Loader : public KernelTest {};

const char *const kSource = R"(
__constant int table[4] = {3, 1, 4, 1};
__attribute__((visibility("protected"))) __global int counter = 7;
__attribute__((reqd_work_group_size(64, 2, 1)))
__kernel void first(__global int *out, char c, double d, int n) {
  __local int shared[100];
  shared[LID] = n;
  BARRIER();
  out[LID] = shared[63 - LID] + c + (int)d + table[n & 3] + counter;
}
__kernel void second(__global int *out) { out[GID] = 5; counter = 1; }
)";

TEST_F(Loader, KernelsAndVariables) {
  load(compileOpenCL(kSource, "gfx942", "-O2 -cl-kernel-arg-info"));
  ASSERT_TRUE(Code);
  ASSERT_EQ(Code->kernels().size(), 2u);
  const KernelInfo *k = Code->findKernel("first");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->staticLdsBytes, 400u);
  EXPECT_EQ(k->waveSize, 64u);
  EXPECT_EQ(k->maxWorkgroupSize, 128u);
  EXPECT_EQ(k->requiredWorkgroupSize[1], 2u);
  EXPECT_EQ(k->explicitKernargSize(), 28u);
  ASSERT_GE(k->args.size(), 4u);
  EXPECT_EQ(k->args[0].kind, "global_buffer");
  EXPECT_EQ(k->args[1].offset, 8u);
  EXPECT_EQ(k->args[1].size, 1u);
  EXPECT_EQ(k->args[2].offset, 16u);
  EXPECT_EQ(k->args[2].name, "d");
  EXPECT_EQ(Code->findKernel("third"), nullptr);
  EXPECT_NE(Code->targetId().find("gfx942"), std::string::npos);
  const GlobalVariable *counter = Code->findGlobal("counter");
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(counter->size, 4u);
  EXPECT_EQ(*reinterpret_cast<int *>(counter->address), 7);
  // The workgroup size that the kernel requires is enforced; with it, it runs.
  int *out = buffer<int>(128);
  Args args;
  args.add(out).add(char(2)).add(3.5).add(1);
  Status status = run("first", 1, 64, args);
  EXPECT_EQ(status.code(), ErrorCode::LaunchFailure);
  EXPECT_NE(status.message().find("compiled for (64, 2, 1)"), std::string::npos);
  LaunchConfig config;
  config.block = {64, 2, 1};
  status = run("first", config, args);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(out[10], 1 + 2 + 3 + 1 + 7);
  ASSERT_TRUE(run("second", 1, 64, Args().add(out)).ok());
  EXPECT_EQ(out[63], 5);
  EXPECT_EQ(*reinterpret_cast<int *>(counter->address), 1);
}

TEST_F(Loader, TruncatedImagesAreRefused) {
  std::vector<char> image = compileOpenCL(kSource);
  ASSERT_GT(image.size(), 1000u);
  std::shared_ptr<CodeObject> code;
  for (size_t size = 0; size < image.size(); size += size < 512 ? 1 : 61) {
    std::vector<char> part(image.begin(), image.begin() + static_cast<long>(size));
    Status status = CodeObject::load(Dev, part.data(), part.size(), code);
    EXPECT_FALSE(status.ok()) << size << " bytes";
    EXPECT_FALSE(status.message().empty());
  }
  EXPECT_FALSE(code);
  EXPECT_EQ(Dev->memory().used(), 0u) << "a refused image keeps memory";
}

TEST_F(Loader, DamagedImagesDoNotCrash) {
  std::vector<char> image = compileOpenCL(kSource);
  ASSERT_GT(image.size(), 1024u);
  std::mt19937 rng(9);
  int loaded = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<char> damaged = image;
    for (unsigned n = 1 + rng() % 8; n; --n) {
      // Headers and notes are where the lengths are.
      size_t at = rng() % (rng() % 2 ? 1024 : damaged.size());
      damaged[at] = static_cast<char>(rng());
    }
    std::shared_ptr<CodeObject> code;
    Status status = CodeObject::load(Dev, damaged.data(), damaged.size(), code);
    loaded += status.ok();
    EXPECT_EQ(status.ok(), status.message().empty());
  }
  EXPECT_LT(loaded, 2000);
  EXPECT_EQ(Dev->memory().used(), 0u);
}

TEST_F(Loader, OtherTargetsAreRefused) {
  auto refuse = [&](const std::vector<char> &image, ErrorCode code,
                    const char *text) {
    std::shared_ptr<CodeObject> object;
    Status status = CodeObject::load(Dev, image.data(), image.size(), object);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  };
  const std::string source = "__kernel void k(__global int *p) { p[LID] = 1; }";
  refuse(compileOpenCL(source, "gfx90a"), ErrorCode::TargetMismatch,
         "code object is for gfx90a, the device is gfx942");
  refuse(compileOpenCL(source, "gfx1100"), ErrorCode::TargetMismatch, "gfx1100");
  refuse(compileOpenCL(source, "gfx942:xnack+"), ErrorCode::TargetMismatch, "xnack+");
  refuse(compileOpenCL(source, "gfx942:sramecc-"), ErrorCode::TargetMismatch, "sramecc-");
  refuse(compileOpenCL(source, "gfx942", "-c"), ErrorCode::InvalidImage, "was it linked?");
  refuse(compileOpenCL("int f(void) { return 1; }"), ErrorCode::InvalidImage, "no kernels");
  refuse({'t', 'e', 'x', 't'}, ErrorCode::InvalidImage, "no ELF file");
  // The generic target of the family, and features that agree, are fine.
  load(compileOpenCL(source, "gfx942:sramecc+:xnack-"));
  EXPECT_TRUE(Code);
  load(compileOpenCL(source, "gfx9-4-generic"));
  // Features that the chip does not have, nor its compiler, but an image may.
  std::vector<char> pinned = compileOpenCL(source, "gfx1100");
  pinned[49] |= 3;
  use("gfx1100");
  refuse(pinned, ErrorCode::TargetMismatch, "gfx1100 has no xnack");
  std::shared_ptr<Device> none;
  Status status = Device::create("gfx000", none);
  EXPECT_EQ(status.code(), ErrorCode::NotFound);
  EXPECT_NE(status.message().find("gfx942"), std::string::npos);
}

// One code object a family, run on each member and refused by all others.
TEST_F(Loader, GenericTargetsRunOnTheirMembers) {
  const std::string source =
      "__kernel void k(__global int *p) { p[GID] = 3 * (int)GID + 1; }";
  unsigned ran = 0;
  for (const char *family :
       {"gfx9-4-generic", "gfx11-generic", "gfx12-generic"}) {
    const std::vector<char> image =
        compileOpenCL(source, family, "-O2 -mcode-object-version=6");
    for (const ChipInfo &chip : knownChips()) {
      SCOPED_TRACE(std::string(family) + " on " + std::string(chip.target));
      use(std::string(chip.target));
      auto refuse = [&](const std::vector<char> &bad, const char *text) {
        std::shared_ptr<CodeObject> none;
        Status status = CodeObject::load(Dev, bad.data(), bad.size(), none);
        EXPECT_EQ(status.code(), ErrorCode::TargetMismatch) << status.message();
        EXPECT_NE(status.message().find(text), std::string::npos)
            << status.message();
      };
      if (chip.genericTarget != family) {
        refuse(image, family);
        continue;
      }
      std::vector<char> changed = image;
      changed[51] = 0;
      refuse(changed, "gives no generic version");
      changed = image;
      changed[8] = 3;
      refuse(changed, "in version 5; generic targets need version 6");
      load(image);
      int *out = buffer<int>(256);
      ASSERT_TRUE(run("k", 4, 64, Args().add(out)).ok());
      for (int i = 0; i < 256; ++i)
        ASSERT_EQ(out[i], 3 * i + 1);
      ++ran;
    }
  }
  EXPECT_EQ(ran, 2u + 8u + 2u);
}

TEST_F(Loader, LaunchesThatDoNotFit) {
  load(compileOpenCL(kSource));
  int *out = buffer<int>(64);
  auto refuse = [&](LaunchConfig config, const Args &args, const char *text) {
    Status status = run("second", config, args);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  };
  Args args;
  args.add(out);
  LaunchConfig config;
  config.block = {2048, 1, 1};
  refuse(config, args, "2048");
  config.block = {64, 1, 1};
  config.grid = {0, 1, 1};
  refuse(config, args, "at least 1");
  config.grid = {1, 1, 1};
  config.dynamicLdsBytes = 100000;
  refuse(config, args, "100000 bytes of LDS; gfx942 has 65536");
  config.dynamicLdsBytes = 0;
  refuse(config, Args(), "takes 8 bytes of arguments; 0 were passed");
  EXPECT_TRUE(run("second", config, args).ok());
}

TEST_F(Loader, DeviceMemory) {
  DeviceMemory &memory = Dev->memory();
  uint64_t a = 0, b = 0;
  ASSERT_TRUE(memory.allocate(100, 1, a).ok());
  ASSERT_TRUE(memory.allocate(0, 4096, b).ok());
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(b % 4096, 0u);
  EXPECT_EQ(memory.used(), 101u);
  Allocation found;
  EXPECT_TRUE(memory.find(a + 99, found));
  EXPECT_EQ(found.base, a);
  EXPECT_FALSE(memory.find(a + 100, found));
  EXPECT_FALSE(memory.find(a - 1, found));
  EXPECT_EQ(memory.free(a + 8).code(), ErrorCode::InvalidArgument);
  EXPECT_TRUE(memory.free(a).ok());
  EXPECT_NE(memory.free(a).message().find("freed before"), std::string::npos);
  EXPECT_FALSE(memory.find(a, found));
  uint64_t c = 0;
  EXPECT_EQ(memory.allocate(memory.capacity() + 1, 256, c).code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(memory.allocate(8, 3, c).code(), ErrorCode::InvalidArgument);
  std::vector<int> host(10);
  uint64_t h = reinterpret_cast<uint64_t>(host.data());
  EXPECT_TRUE(memory.registerHost(h, 40).ok());
  EXPECT_FALSE(memory.registerHost(h + 8, 40).ok());
  EXPECT_TRUE(memory.find(h + 39, found));
  EXPECT_TRUE(found.external);
  EXPECT_FALSE(memory.free(h).ok());
  EXPECT_TRUE(memory.unregisterHost(h).ok());
  EXPECT_FALSE(memory.find(h, found));
  EXPECT_TRUE(memory.free(b).ok());
  // Address space is used over and over: far more than is ever reserved.
  ASSERT_TRUE(memory.allocate(64, 256, a).ok());
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(memory.allocate(memory.capacity() - 64, 256, b).ok()) << i;
    EXPECT_TRUE(a + 64 <= b || b + memory.capacity() - 64 <= a);
    ASSERT_TRUE(memory.free(b).ok());
  }
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(memory.allocate(8, 256, b).ok());
    ASSERT_TRUE(memory.free(b).ok());
  }
  EXPECT_TRUE(memory.find(a, found));
  EXPECT_EQ(memory.used(), 64u);
}

} // namespace
