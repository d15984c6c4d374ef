//===- KernelTest.h - Building and running kernels in tests -----*- C++ -*-===//
//
// Compiles OpenCL C or assembles AMDGPU assembly with LLVM's tools, loads the
// result into a simulated device and launches it.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_KERNELTEST_H
#define FOVEA_TEST_UNIT_SIMULATOR_KERNELTEST_H

#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/Device.h"
#include "fovea/Simulator/Launch.h"

#include "gtest/gtest.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace fovea::sim::test {

/// The code object of OpenCL C source; empty, with a test failure, on errors.
std::vector<char> compileOpenCL(const std::string &source,
                                const std::string &target = "gfx942",
                                const std::string &flags = "-O2");

/// The code object of assembly source, complete with directives.
std::vector<char> assemble(const std::string &source,
                           const std::string &target = "gfx942");

/// Which of \p lines of assembly are instructions of \p target, by position.
std::vector<bool> assembles(const std::vector<std::string> &lines,
                            const std::string &target);

/// The machine code of single instructions, by llvm-mc; empty on errors.
std::string runTool(const std::string &command);

/// The bytes of a kernel argument segment, with natural alignment.
class Args {
public:
  template <class T>
  Args &add(T value) {
    Bytes.resize((Bytes.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    size_t at = Bytes.size();
    Bytes.resize(at + sizeof(T));
    std::memcpy(Bytes.data() + at, &value, sizeof(T));
    return *this;
  }
  std::vector<uint8_t> Bytes;
};

/// A device with code, and buffers that outlive the test.
class KernelTest : public ::testing::Test {
protected:
  void SetUp() override { use("gfx942"); }
  /// Goes on with a new device.
  void use(const std::string &target) {
    Code.reset();
    ASSERT_TRUE(Device::create(target, Dev).ok());
  }
  void load(const std::vector<char> &image) {
    Status status = CodeObject::load(Dev, image.data(), image.size(), Code);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  template <class T>
  T *buffer(const std::vector<T> &contents) {
    T *p = buffer<T>(contents.size());
    std::memcpy(static_cast<void *>(p), contents.data(),
                contents.size() * sizeof(T));
    return p;
  }
  template <class T>
  T *buffer(size_t count) {
    uint64_t address = 0;
    Status status = Dev->memory().allocate(count * sizeof(T), 256, address);
    EXPECT_TRUE(status.ok()) << status.message();
    return reinterpret_cast<T *>(address);
  }
  /// Launches the kernel \p name with \p groups workgroups of \p block items.
  Status run(const std::string &name, unsigned groups, unsigned block,
             const Args &args) {
    LaunchConfig config;
    config.grid = {groups, 1, 1};
    config.block = {block, 1, 1};
    return run(name, config, args);
  }
  Status run(const std::string &name, const LaunchConfig &config,
             const Args &args) {
    if (!Code)
      return {ErrorCode::NotFound, "no code object"};
    const KernelInfo *kernel = Code->findKernel(name);
    if (!kernel)
      return {ErrorCode::NotFound, "no kernel " + name};
    return launch(*Code, *kernel, withArgs(config, args), &Count);
  }
  /// \p config with \p args, which must outlive it.
  static LaunchConfig withArgs(LaunchConfig config, const Args &args) {
    config.kernarg = args.Bytes.data();
    config.kernargBytes = args.Bytes.size();
    return config;
  }

  std::shared_ptr<Device> Dev;
  std::shared_ptr<CodeObject> Code;
  Counters Count;
};

/// Source of the work-item functions, which are library code elsewhere.
extern const char *const kOpenCLPrelude;

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_KERNELTEST_H
