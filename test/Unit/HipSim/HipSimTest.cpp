//===- HipSimTest.cpp - the HIP library without kernels -------------------===//
//
// Devices, memory, copies, streams, events and errors. Two devices are asked
// for by the test's environment (CMakeLists.txt).
//
//===----------------------------------------------------------------------===//

#include "HipProgram.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <unistd.h>

using namespace fovea::test;

namespace {

TEST(Devices, CountAndChoice) {
  int count = 0, device = -1;
  ASSERT_HIP(hipInit(0));
  ASSERT_HIP(hipGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
  ASSERT_HIP(hipSetDevice(1));
  ASSERT_HIP(hipGetDevice(&device));
  EXPECT_EQ(device, 1);
  // Each thread has a device of its own.
  std::thread([] {
    int other = -1;
    EXPECT_HIP(hipGetDevice(&other));
    EXPECT_EQ(other, 0);
  }).join();
  ASSERT_HIP(hipSetDevice(0));
  EXPECT_EQ(hipSetDevice(2), hipErrorInvalidDevice);
  EXPECT_EQ(hipSetDevice(-1), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetDeviceCount(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipInit(1), hipErrorInvalidValue);
  hipCtx_t context;
  ASSERT_HIP(hipDevicePrimaryCtxRetain(&context, 1));
  ASSERT_HIP(hipCtxSetCurrent(context));
  ASSERT_HIP(hipGetDevice(&device));
  EXPECT_EQ(device, 1);
  ASSERT_HIP(hipSetDevice(0));
}

TEST(Devices, PropertiesInBothLayouts) {
  hipDeviceProp_tR0600 six;
  hipDeviceProp_tR0000 five;
  std::memset(&six, 0xee, sizeof(six));
  ASSERT_HIP(hipGetDevicePropertiesR0600(&six, 0));
  ASSERT_HIP(hipGetDeviceProperties(&five, 0));
  EXPECT_EQ(std::string(six.gcnArchName).substr(0, 6), "gfx942");
  EXPECT_STREQ(five.gcnArchName, six.gcnArchName);
  EXPECT_NE(std::string(six.name).find("simulated"), std::string::npos);
  EXPECT_EQ(six.warpSize, 64);
  EXPECT_EQ(five.warpSize, 64);
  EXPECT_EQ(six.sharedMemPerBlock, 65536u);
  EXPECT_EQ(six.multiProcessorCount, 304);
  EXPECT_EQ(six.major, 9);
  EXPECT_EQ(six.minor, 4);
  EXPECT_EQ(six.reserved[5], 0); // cleared as a whole
  int value = 0;
  ASSERT_HIP(hipDeviceGetAttribute(&value, 87, 0));
  EXPECT_EQ(value, 64);
  ASSERT_HIP(hipDeviceGetAttribute(&value, 63, 0));
  EXPECT_EQ(value, 304);
  EXPECT_EQ(hipDeviceGetAttribute(&value, 4711, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipDeviceGetAttribute(nullptr, 87, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipGetDevicePropertiesR0600(&six, 9), hipErrorInvalidDevice);
  char name[8];
  ASSERT_HIP(hipDeviceGetName(name, sizeof(name), 0));
  EXPECT_LT(std::strlen(name), sizeof(name));
  size_t bytes = 0;
  ASSERT_HIP(hipDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, six.totalGlobalMem);
  int version = 0;
  ASSERT_HIP(hipRuntimeGetVersion(&version));
  EXPECT_EQ(version / 10000000, 6);
}

TEST(Devices, DescriptionNamesThem) {
  EXPECT_NE(std::string(fovea_sim_describe()).find("gfx942, gfx942"),
            std::string::npos);
}

/// Ends the process with what FOVEA_SIM_TARGET leads to.
[[noreturn]] void describeDevices() {
  int count = -1;
  const hipError_t status = hipGetDeviceCount(&count);
  hipDeviceProp_tR0600 properties = {};
  if (status == hipSuccess)
    (void)hipGetDevicePropertiesR0600(&properties, count - 1);
  std::fprintf(stderr, "%d %d %s %s", int(status), count,
               properties.gcnArchName, fovea_sim_describe());
  std::exit(0);
}

/// The variable is read once a process, so each value gets one of its own.
TEST(Devices, AreChosenByTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string before = std::getenv("FOVEA_SIM_TARGET");
  const struct {
    const char *value, *says;
  } rows[] = {
      {"gfx942,gfx942,gfx942", "0 3 gfx942:sramecc\\+:xnack-"},
      {"gfx942,gfx942:xnack+", "0 2 gfx942:sramecc\\+:xnack\\+"},
      {"gfx942:xnack-:sramecc-", "0 1 gfx942:sramecc-:xnack-"},
      {"gfx90a:xnack+", "0 1 gfx90a:sramecc\\+:xnack\\+"},
      {"gfx90a,gfx1201", "0 2 gfx1201 "},
      {"gfx1201:xnack+", "100 0 .*gfx1201 has no xnack"},
      {"gfx11-generic", "100 0 .*no simulated chip 'gfx11-generic'"},
      {"gfx942,", "100 0 .*single commas"},
      {",gfx942", "100 0 .*single commas"},
      {"", "100 0 .*single commas"},
      {"gfx942:fast+", "100 0 .*no simulated chip 'gfx942:fast"},
      {"gfx1", "100 0 .*no simulated chip 'gfx1'"},
  };
  for (const auto &row : rows) {
    setenv("FOVEA_SIM_TARGET", row.value, 1);
    EXPECT_EXIT(describeDevices(), testing::ExitedWithCode(0), row.says)
        << row.value;
  }
  setenv("FOVEA_SIM_TARGET", before.c_str(), 1);
}

/// A fork has none of the threads that streams work in.
TEST(Devices, AreRefusedInAForkOfWhoUsedThem) {
  GTEST_FLAG_SET(death_test_style, "fast");
  void *memory = nullptr;
  ASSERT_HIP(hipMalloc(&memory, 4));
  ASSERT_HIP(hipMemset(memory, 0, 4));
  ASSERT_HIP(hipDeviceSynchronize());
  EXPECT_EXIT(
      {
        alarm(20); // where it waits for ever
        int word;
        const hipError_t copied =
            hipMemcpy(&word, memory, 4, hipMemcpyDeviceToHost);
        std::fprintf(stderr, "%d %s", copied, fovea_sim_last_report());
        std::exit(hipDeviceSynchronize());
      },
      testing::ExitedWithCode(hipErrorNotInitialized),
      "3 hipMemcpy: this process is a fork of one that used the device");
  ASSERT_HIP(hipFree(memory));
}

TEST(Memory, AllocateCopyFree) {
  void *memory = nullptr;
  ASSERT_HIP(hipMalloc(&memory, 1000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  std::vector<char> in(1000, 'x'), out(1000);
  ASSERT_HIP(hipMemcpy(memory, in.data(), 1000, hipMemcpyHostToDevice));
  ASSERT_HIP(hipMemcpy(out.data(), memory, 1000, hipMemcpyDefault));
  EXPECT_EQ(in, out);
  // A copy that runs past the allocation is refused and changes nothing.
  std::vector<char> big(1001, 'y');
  EXPECT_EQ(hipMemcpy(memory, big.data(), 1001, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_NE(std::string(fovea_sim_last_report()).find("1000 of 1001"),
            std::string::npos)
      << fovea_sim_last_report();
  EXPECT_EQ(hipMemcpy(static_cast<char *>(memory) + 999, big.data(), 2,
                      hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(memory, nullptr, 8, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, big.data(), 8, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(memory, big.data(), 8, hipMemcpyKind(77)),
            hipErrorInvalidMemcpyDirection);
  EXPECT_EQ(hipMemcpy(big.data(), out.data(), 8, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, nullptr, 0, hipMemcpyDefault), hipSuccess);
  EXPECT_EQ(hipFree(static_cast<char *>(memory) + 256), hipErrorInvalidValue);
  ASSERT_HIP(hipFree(memory));
  EXPECT_EQ(hipFree(memory), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(memory, in.data(), 8, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipMalloc(nullptr, 8), hipErrorInvalidValue);
  ASSERT_HIP(hipMalloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(hipMalloc(&memory, size_t(1) << 60), hipErrorOutOfMemory);
  EXPECT_EQ(memory, nullptr);
  (void)hipGetLastError();
}

TEST(Memory, Fills) {
  Buffer<uint32_t> buffer(16);
  ASSERT_HIP(hipMemset(buffer.device(), 0xab, 8));
  ASSERT_HIP(hipMemsetD16(buffer.device() + 2, 0x1234, 2));
  ASSERT_HIP(hipMemsetD32(buffer.device() + 3, -2, 3));
  ASSERT_HIP(hipMemsetD8(buffer.device() + 6, 7, 1));
  const auto got = buffer.read();
  EXPECT_EQ(got[0], 0xababababu);
  EXPECT_EQ(got[1], 0xababababu);
  EXPECT_EQ(got[2], 0x12341234u);
  EXPECT_EQ(got[3], 0xfffffffeu);
  EXPECT_EQ(got[5], 0xfffffffeu);
  EXPECT_EQ(got[6], 7u);
  EXPECT_EQ(hipMemsetD32(buffer.device(), 0, 17), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetD32(buffer.device(), 0, SIZE_MAX / 2),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemset(nullptr, 0, 4), hipErrorInvalidValue);
  (void)hipGetLastError();
}

TEST(Memory, Planes) {
  constexpr size_t kWidth = 30, kRows = 5, kHostPitch = 40;
  size_t pitch = 0;
  void *device = nullptr;
  ASSERT_HIP(hipMallocPitch(&device, &pitch, kWidth, kRows));
  EXPECT_GE(pitch, kWidth);
  EXPECT_EQ(pitch % 128, 0u);
  std::vector<unsigned char> host(kHostPitch * kRows), back(host.size(), 0xee);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<unsigned char>(i);
  ASSERT_HIP(hipMemset2D(device, pitch, 0x55, kWidth, kRows));
  ASSERT_HIP(hipMemcpy2D(device, pitch, host.data(), kHostPitch, kWidth - 1,
                         kRows, hipMemcpyHostToDevice));
  ASSERT_HIP(hipMemcpy2DAsync(back.data(), kHostPitch, device, pitch, kWidth,
                              kRows, hipMemcpyDeviceToHost, nullptr));
  for (size_t i = 0; i < host.size(); ++i) {
    const size_t x = i % kHostPitch;
    EXPECT_EQ(back[i], x < kWidth - 1 ? host[i] : x < kWidth ? 0x55 : 0xee);
  }
  EXPECT_EQ(hipMemcpy2D(device, kWidth - 1, host.data(), kHostPitch, kWidth,
                        kRows, hipMemcpyHostToDevice),
            hipErrorInvalidPitchValue);
  // The last row ends the range; one row more does not fit.
  EXPECT_EQ(hipMemset2DAsync(device, pitch, 0, pitch, kRows, nullptr),
            hipSuccess);
  EXPECT_EQ(hipMemset2D(device, pitch, 0, 1, kRows + 1), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset2D(device, SIZE_MAX / 2, 0, 1, kRows),
            hipErrorInvalidValue);
  ASSERT_HIP(hipDeviceSynchronize());
  ASSERT_HIP(hipFree(device));
  (void)hipGetLastError();
}

TEST(Memory, Peers) {
  void *memory[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_HIP(hipSetDevice(i));
    ASSERT_HIP(hipMalloc(&memory[i], 4096));
    ASSERT_HIP(hipMemset(memory[i], i + 1, 4096));
  }
  ASSERT_HIP(hipSetDevice(0));
  ASSERT_HIP(hipMemcpyPeer(memory[0], 0, memory[1], 1, 100));
  ASSERT_HIP(hipMemcpyPeerAsync(memory[1], 1, memory[0], 0, 200, nullptr));
  ASSERT_HIP(hipDeviceSynchronize());
  unsigned char got[300];
  ASSERT_HIP(hipMemcpy(got, memory[1], sizeof got, hipMemcpyDeviceToHost));
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(got[i], i < 100 ? 2 : i < 200 ? 1 : 2);
  EXPECT_EQ(hipMemcpyPeer(memory[0], 0, memory[1], 7, 100),
            hipErrorInvalidDevice);
  int can = 1;
  ASSERT_HIP(hipDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 0);
  EXPECT_EQ(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessUnsupported);
  EXPECT_EQ(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice);
  EXPECT_EQ(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled);
  for (void *one : memory)
    ASSERT_HIP(hipFree(one));
  (void)hipGetLastError();
}

TEST(Memory, AccountingAndRanges) {
  size_t freeBefore, total, freeAfter, bytes;
  void *memory;
  ASSERT_HIP(hipMemGetInfo(&freeBefore, &total));
  ASSERT_HIP(hipMalloc(&memory, 1 << 20));
  ASSERT_HIP(hipMemGetInfo(&freeAfter, &total));
  EXPECT_EQ(freeBefore - freeAfter, size_t(1) << 20);
  hipDeviceptr_t base;
  ASSERT_HIP(
      hipMemGetAddressRange(&base, &bytes, static_cast<char *>(memory) + 77));
  EXPECT_EQ(base, memory);
  EXPECT_EQ(bytes, size_t(1) << 20);
  hipPointerAttribute_t attributes;
  ASSERT_HIP(hipPointerGetAttributes(&attributes, memory));
  EXPECT_EQ(attributes.type, hipMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_HIP(hipPointerGetAttributes(&attributes, &bytes));
  EXPECT_EQ(attributes.type, hipMemoryTypeUnregistered);
  ASSERT_HIP(hipFree(memory));
  EXPECT_EQ(hipMemGetAddressRange(&base, &bytes, memory), hipErrorNotFound);
}

TEST(Memory, HostAndManaged) {
  void *host, *managed, *device;
  ASSERT_HIP(hipHostMalloc(&host, 5000, 0));
  std::memset(host, 3, 5000);
  hipPointerAttribute_t attributes;
  ASSERT_HIP(hipPointerGetAttributes(&attributes, host));
  EXPECT_EQ(attributes.type, hipMemoryTypeHost);
  ASSERT_HIP(hipHostGetDevicePointer(&device, host, 0));
  EXPECT_EQ(device, host);
  ASSERT_HIP(hipMallocManaged(&managed, 64, 1));
  ASSERT_HIP(hipMemcpy(managed, host, 64, hipMemcpyDefault));
  EXPECT_EQ(static_cast<char *>(managed)[63], 3);
  ASSERT_HIP(hipPointerGetAttributes(&attributes, managed));
  EXPECT_TRUE(attributes.isManaged);
  ASSERT_HIP(hipFree(managed));
  EXPECT_EQ(hipFree(host), hipErrorInvalidValue);
  ASSERT_HIP(hipHostFree(host));
  EXPECT_EQ(hipHostFree(host), hipErrorInvalidValue);
  std::vector<char> own(8192);
  ASSERT_HIP(hipHostRegister(own.data(), own.size(), 0));
  EXPECT_EQ(hipHostRegister(own.data(), own.size(), 0),
            hipErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(hipHostFree(own.data()), hipErrorInvalidValue);
  ASSERT_HIP(hipHostUnregister(own.data()));
  EXPECT_EQ(hipHostUnregister(own.data()), hipErrorHostMemoryNotRegistered);
}

TEST(Memory, BetweenDevices) {
  void *first, *second;
  ASSERT_HIP(hipMalloc(&first, 64));
  ASSERT_HIP(hipSetDevice(1));
  ASSERT_HIP(hipMalloc(&second, 64));
  ASSERT_HIP(hipMemset(second, 5, 64));
  ASSERT_HIP(hipMemcpyDtoD(first, second, 64));
  ASSERT_HIP(hipSetDevice(0));
  char back[64];
  ASSERT_HIP(hipMemcpyDtoH(back, first, 64));
  EXPECT_EQ(back[63], 5);
  hipPointerAttribute_t attributes;
  ASSERT_HIP(hipPointerGetAttributes(&attributes, second));
  EXPECT_EQ(attributes.device, 1);
  ASSERT_HIP(hipFree(second)); // from the other device
  ASSERT_HIP(hipFree(first));
}

/// Holds a stream up until it is let go.
struct Gate {
  std::atomic<bool> open{false};
  static void wait(void *gate) {
    while (!static_cast<Gate *>(gate)->open)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
};

TEST(Streams, RunBesideTheCaller) {
  (void)hipGetLastError();
  hipStream_t stream;
  ASSERT_HIP(hipStreamCreate(&stream));
  Gate gate;
  ASSERT_HIP(hipLaunchHostFunc(stream, Gate::wait, &gate));
  EXPECT_EQ(hipStreamQuery(stream), hipErrorNotReady);
  EXPECT_EQ(hipPeekAtLastError(), hipSuccess); // an answer, no error
  gate.open = true;
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(hipStreamQuery(stream), hipSuccess);
  ASSERT_HIP(hipStreamDestroy(stream));
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorContextIsDestroyed);
  EXPECT_EQ(hipStreamDestroy(stream), hipErrorContextIsDestroyed);
  EXPECT_EQ(hipStreamDestroy(nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamCreate(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamCreateWithFlags(&stream, 77), hipErrorInvalidValue);
  ASSERT_HIP(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -5));
  int priority = 0;
  unsigned flags = 0;
  ASSERT_HIP(hipStreamGetPriority(stream, &priority));
  ASSERT_HIP(hipStreamGetFlags(stream, &flags));
  EXPECT_EQ(priority, -1);
  EXPECT_EQ(flags, hipStreamNonBlocking);
  ASSERT_HIP(hipStreamDestroy(stream));
  (void)hipGetLastError();
}

TEST(Streams, NullStreamWaitsForBlockingOnesAndTheyForIt) {
  hipStream_t blocking, free;
  ASSERT_HIP(hipStreamCreate(&blocking));
  ASSERT_HIP(hipStreamCreateWithFlags(&free, hipStreamNonBlocking));
  Gate gate;
  std::atomic<int> order{0};
  static std::atomic<int> seenNull, seenLater;
  struct Seen {
    std::atomic<int> *counter, *place;
    static void note(void *seen) {
      auto *s = static_cast<Seen *>(seen);
      *s->place = ++*s->counter;
    }
  } onNull{&order, &seenNull}, later{&order, &seenLater};
  ASSERT_HIP(hipLaunchHostFunc(blocking, Gate::wait, &gate));
  ASSERT_HIP(hipLaunchHostFunc(nullptr, Seen::note, &onNull));
  ASSERT_HIP(hipLaunchHostFunc(blocking, Seen::note, &later));
  EXPECT_EQ(hipStreamQuery(nullptr), hipErrorNotReady);
  // A non-blocking stream passes both by.
  ASSERT_HIP(hipLaunchHostFunc(free, [](void *) {}, nullptr));
  ASSERT_HIP(hipStreamSynchronize(free));
  EXPECT_EQ(order, 0);
  gate.open = true;
  ASSERT_HIP(hipDeviceSynchronize());
  EXPECT_EQ(seenNull, 1);
  EXPECT_EQ(seenLater, 2);
  ASSERT_HIP(hipStreamDestroy(blocking));
  ASSERT_HIP(hipStreamDestroy(free));
}

TEST(Streams, WaitForEvents) {
  hipStream_t a, b;
  hipEvent_t event;
  ASSERT_HIP(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
  ASSERT_HIP(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
  ASSERT_HIP(hipEventCreate(&event));
  ASSERT_HIP(hipStreamWaitEvent(b, event, 0)); // not recorded: no wait
  ASSERT_HIP(hipStreamSynchronize(b));
  Gate gate;
  ASSERT_HIP(hipLaunchHostFunc(a, Gate::wait, &gate));
  ASSERT_HIP(hipEventRecord(event, a));
  ASSERT_HIP(hipStreamWaitEvent(b, event, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(hipStreamQuery(b), hipErrorNotReady);
  EXPECT_EQ(hipEventQuery(event), hipErrorNotReady);
  gate.open = true;
  ASSERT_HIP(hipStreamSynchronize(b));
  ASSERT_HIP(hipEventSynchronize(event));
  EXPECT_EQ(hipEventQuery(event), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(b, event, 3), hipErrorInvalidValue);
  ASSERT_HIP(hipEventDestroy(event));
  EXPECT_EQ(hipEventQuery(event), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamWaitEvent(b, nullptr, 0), hipErrorInvalidHandle);
  ASSERT_HIP(hipStreamDestroy(a));
  ASSERT_HIP(hipStreamDestroy(b));
  (void)hipGetLastError();
}

TEST(Events, MeasureTime) {
  hipEvent_t start, stop, untimed;
  float milliseconds = -1;
  ASSERT_HIP(hipEventCreate(&start));
  ASSERT_HIP(hipEventCreate(&stop));
  ASSERT_HIP(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, start, stop),
            hipErrorInvalidHandle);
  ASSERT_HIP(hipEventRecord(start, nullptr));
  ASSERT_HIP(hipLaunchHostFunc(
      nullptr,
      [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); },
      nullptr));
  ASSERT_HIP(hipEventRecord(stop, nullptr));
  ASSERT_HIP(hipEventRecord(untimed, nullptr));
  ASSERT_HIP(hipEventSynchronize(untimed));
  ASSERT_HIP(hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 3.0f);
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, start, untimed),
            hipErrorInvalidHandle);
  EXPECT_EQ(hipEventElapsedTime(nullptr, start, stop), hipErrorInvalidValue);
  EXPECT_EQ(hipEventCreateWithFlags(&start, 0x100), hipErrorInvalidValue);
  for (hipEvent_t event : {start, stop, untimed})
    ASSERT_HIP(hipEventDestroy(event));
  (void)hipGetLastError();
}

TEST(Streams, CopiesWithPinnedMemoryAreAsynchronous) {
  hipStream_t stream;
  void *host;
  Buffer<int> device(256, 9);
  ASSERT_HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  ASSERT_HIP(hipHostMalloc(&host, 1024, 0));
  std::memset(host, 0, 1024);
  Gate gate;
  ASSERT_HIP(hipLaunchHostFunc(stream, Gate::wait, &gate));
  ASSERT_HIP(hipMemcpyAsync(host, device.device(), 1024, hipMemcpyDeviceToHost,
                            stream));
  EXPECT_EQ(static_cast<int *>(host)[5], 0); // the call came back before
  gate.open = true;
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(static_cast<int *>(host)[5], 9);
  void *temporary;
  ASSERT_HIP(hipMallocAsync(&temporary, 512, stream));
  ASSERT_HIP(hipMemsetAsync(temporary, 1, 512, stream));
  ASSERT_HIP(hipFreeAsync(temporary, stream));
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(hipFree(temporary), hipErrorInvalidValue);
  ASSERT_HIP(hipHostFree(host));
  ASSERT_HIP(hipStreamDestroy(stream));
  (void)hipGetLastError();
}

TEST(Streams, PerThreadAndCallbacks) {
  std::atomic<int> calls{0};
  auto callback = [](hipStream_t, hipError_t status, void *data) {
    EXPECT_EQ(status, hipSuccess);
    ++*static_cast<std::atomic<int> *>(data);
  };
  std::thread([&] {
    EXPECT_HIP(hipStreamAddCallback(hipStreamPerThread, callback, &calls, 0));
    EXPECT_HIP(hipStreamSynchronize(hipStreamPerThread));
  }).join();
  ASSERT_HIP(hipStreamAddCallback(hipStreamLegacy, callback, &calls, 0));
  ASSERT_HIP(hipDeviceSynchronize());
  EXPECT_EQ(calls, 2);
}

TEST(Errors, AreKeptForEachThread) {
  EXPECT_EQ(hipSetDevice(99), hipErrorInvalidDevice);
  std::thread([] { EXPECT_EQ(hipGetLastError(), hipSuccess); }).join();
  EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidDevice);
  int device;
  EXPECT_HIP(hipGetDevice(&device)); // a success does not clear it
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST(Errors, HaveNamesAndTexts) {
  EXPECT_STREQ(hipGetErrorName(hipErrorIllegalAddress),
               "hipErrorIllegalAddress");
  EXPECT_STREQ(hipGetErrorString(hipSuccess), "no error");
  EXPECT_STREQ(hipGetErrorName(hipError_t(31337)), "hipErrorUnknown");
}

/// What hipModuleLoadData says of a code object that is an ELF header alone.
hipError_t loadHeader(uint32_t flags, uint8_t abi) {
  alignas(8) uint8_t header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64, abi};
  auto put = [&](size_t at, uint32_t value, size_t bytes) {
    std::memcpy(header + at, &value, bytes);
  };
  put(16, 3, 2);   // a shared object
  put(18, 224, 2); // AMDGPU
  put(48, flags, 4);
  put(52, 64, 2);
  hipModule_t module = nullptr;
  const hipError_t status = hipModuleLoadData(&module, header);
  (void)hipGetLastError();
  return status;
}

/// Another chip, or features that the device (gfx942:sramecc+:xnack-) does not
/// have, are a matter of choosing another binary, and damage is not.
TEST(Errors, CodeOfOtherTargetsIsNoBinaryForTheDevice) {
  fovea_sim_set("quiet", "1");
  constexpr uint8_t v5 = 3, v6 = 4;
  constexpr uint32_t gfx942 = 0x4c, gfx950 = 0x4f, family = 0x5f, any = 0x500;
  EXPECT_EQ(loadHeader(gfx942 | any, v5), hipErrorInvalidImage);
  EXPECT_EQ(loadHeader(gfx942 | 0xe00, v5), hipErrorInvalidImage);
  EXPECT_EQ(loadHeader(gfx950 | any, v5), hipErrorNoBinaryForGpu);
  EXPECT_EQ(loadHeader(gfx942 | 0x700, v5), hipErrorNoBinaryForGpu);
  EXPECT_EQ(loadHeader(gfx942 | 0x900, v5), hipErrorNoBinaryForGpu);
  EXPECT_EQ(loadHeader(family | any | 1 << 24, v6), hipErrorInvalidImage);
  EXPECT_EQ(loadHeader(family | any, v6), hipErrorNoBinaryForGpu);
  EXPECT_EQ(loadHeader(family | any | 1 << 24, v5), hipErrorNoBinaryForGpu);
  EXPECT_EQ(loadHeader(gfx942 | any, 9), hipErrorInvalidImage);
  fovea_sim_set("quiet", "0");
}

TEST(Settings, AreCheckedByName) {
  EXPECT_EQ(fovea_sim_set("threads", "2"), 0);
  EXPECT_EQ(fovea_sim_set("threads", "many"), int(hipErrorInvalidValue));
  EXPECT_NE(std::string(fovea_sim_last_report()).find("many"),
            std::string::npos);
  EXPECT_EQ(fovea_sim_set("order", "reverse"), 0);
  EXPECT_EQ(fovea_sim_set("order", "random"), int(hipErrorInvalidValue));
  EXPECT_EQ(fovea_sim_set("order", "forward"), 0);
  EXPECT_EQ(fovea_sim_set("budget", "-1"), int(hipErrorInvalidValue));
  EXPECT_EQ(fovea_sim_set("check", "waitcnt,everything"),
            int(hipErrorInvalidValue));
  EXPECT_NE(std::string(fovea_sim_last_report()).find("race-lds"),
            std::string::npos);
  EXPECT_EQ(fovea_sim_set("check", "all,-barrier"), 0);
  EXPECT_EQ(fovea_sim_set("check", "none"), 0);
  EXPECT_EQ(fovea_sim_set("mfma-fault", "rotate-k"), 0);
  EXPECT_EQ(fovea_sim_set("mfma-fault", "none"), 0);
  EXPECT_EQ(fovea_sim_set("log", "/no/such/folder/log"),
            int(hipErrorInvalidValue));
  EXPECT_EQ(fovea_sim_set("time", "1"), int(hipErrorInvalidValue));
  EXPECT_NE(std::string(fovea_sim_last_report()).find("FOVEA_SIM_LOG"),
            std::string::npos);
  EXPECT_EQ(fovea_sim_set("time", "0"), 0);
  EXPECT_EQ(fovea_sim_set("colour", "red"), int(hipErrorInvalidValue));
  EXPECT_NE(std::string(fovea_sim_last_report()).find("threads"),
            std::string::npos);
  EXPECT_EQ(fovea_sim_set(nullptr, "1"), int(hipErrorInvalidValue));
  fovea_sim_counters_t counters = {};
  EXPECT_EQ(fovea_sim_counters(0, &counters), int(hipErrorInvalidValue));
  counters.struct_size = sizeof(counters);
  EXPECT_EQ(fovea_sim_counters(7, &counters), int(hipErrorInvalidDevice));
  EXPECT_EQ(fovea_sim_counters(0, &counters), 0);
  (void)hipGetLastError();
}

TEST(Reset, FreesMemoryAndEndsStreams) {
  ASSERT_HIP(hipSetDevice(1));
  void *memory, *managed;
  hipStream_t stream;
  ASSERT_HIP(hipMalloc(&memory, 64));
  ASSERT_HIP(hipMallocManaged(&managed, 64, 1));
  ASSERT_HIP(hipStreamCreate(&stream));
  ASSERT_HIP(hipDeviceReset());
  EXPECT_EQ(hipFree(memory), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(managed), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamQuery(stream), hipErrorContextIsDestroyed);
  size_t free, total;
  ASSERT_HIP(hipMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);
  ASSERT_HIP(hipSetDevice(0));
  (void)hipGetLastError();
}

TEST(Threads, ManyMayCallAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([t] {
      EXPECT_HIP(hipSetDevice(t % 2));
      hipStream_t stream;
      EXPECT_HIP(hipStreamCreate(&stream));
      for (int i = 0; i < 40; ++i) {
        void *memory;
        std::vector<int> in(100, t * 1000 + i), out(100);
        EXPECT_HIP(hipMalloc(&memory, 400));
        EXPECT_HIP(hipMemcpyAsync(memory, in.data(), 400, hipMemcpyHostToDevice,
                                  stream));
        EXPECT_HIP(hipMemcpyAsync(out.data(), memory, 400,
                                  hipMemcpyDeviceToHost, stream));
        EXPECT_HIP(hipStreamSynchronize(stream));
        EXPECT_EQ(in, out);
        EXPECT_HIP(hipFree(memory));
      }
      EXPECT_HIP(hipStreamDestroy(stream));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Library, HasNoFunctionThatItDoesNotImplement) {
  void *library = dlopen(FOVEA_HIPSIM_PATH, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "hipModuleLaunchKernel"), nullptr);
  EXPECT_EQ(dlsym(library, "hipGraphAddKernelNode"), nullptr);
  EXPECT_EQ(dlclose(library), 0);
}

TEST(Library, GivesItsFunctionsByName) {
  hipDriverProcAddressQueryResult found = HIP_GET_PROC_ADDRESS_SUCCESS;
  void *address = nullptr;
  auto find = [&](const char *name, int version) {
    return hipGetProcAddress(name, &address, version, 0, &found);
  };
  ASSERT_HIP(find("hipMalloc", 60300000));
  EXPECT_EQ(address, reinterpret_cast<void *>(&hipMalloc));
  EXPECT_EQ(found, HIP_GET_PROC_ADDRESS_SUCCESS);
  // The structure that programs of that version have.
  ASSERT_HIP(find("hipGetDeviceProperties", 603));
  EXPECT_EQ(address, reinterpret_cast<void *>(&hipGetDevicePropertiesR0600));
  ASSERT_HIP(find("hipGetDeviceProperties", 507));
  EXPECT_EQ(address, reinterpret_cast<void *>(&hipGetDeviceProperties));
  for (const char *name : {"hipGraphAddKernelNode", "malloc", ""}) {
    EXPECT_EQ(find(name, 603), hipErrorInvalidValue) << name;
    EXPECT_EQ(address, nullptr);
    EXPECT_EQ(found, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  }
  EXPECT_EQ(hipGetProcAddress(nullptr, &address, 603, 0, nullptr),
            hipErrorInvalidValue);
  (void)hipGetLastError();
}

TEST(Memory, TellsOfAPointerOneByOne) {
  char *memory = nullptr;
  ASSERT_HIP(hipMalloc(reinterpret_cast<void **>(&memory), 1000));
  auto ask = [](hipPointer_attribute attribute, void *of, auto &value) {
    return hipPointerGetAttribute(&value, attribute,
                                  reinterpret_cast<hipDeviceptr_t>(of));
  };
  void *place = nullptr;
  unsigned type = 0;
  int device = -1;
  bool yes = true;
  uint64_t number = 0;
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 8, place));
  EXPECT_EQ(place, memory + 8);
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory, type));
  EXPECT_EQ(type, unsigned(hipMemoryTypeDevice));
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory, device));
  EXPECT_EQ(device, 0);
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_IS_MANAGED, memory, yes));
  EXPECT_FALSE(yes);
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_MAPPED, memory, yes));
  EXPECT_TRUE(yes);
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 8, number));
  EXPECT_EQ(number, reinterpret_cast<uint64_t>(memory));
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 8, number));
  EXPECT_EQ(number, 1000u);
  EXPECT_EQ(ask(HIP_POINTER_ATTRIBUTE_HOST_POINTER, memory, place),
            hipErrorInvalidValue);
  EXPECT_EQ(ask(hipPointer_attribute(1), memory, place), hipErrorNotSupported);
  // By which launchers know the host's own.
  EXPECT_EQ(ask(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, &place, place),
            hipErrorInvalidValue);
  ASSERT_HIP(hipFree(memory));
  ASSERT_HIP(
      hipHostMalloc(reinterpret_cast<void **>(&memory), 64, /*flags=*/0));
  ASSERT_HIP(ask(HIP_POINTER_ATTRIBUTE_HOST_POINTER, memory, place));
  EXPECT_EQ(place, memory);
  ASSERT_HIP(hipHostFree(memory));
  (void)hipGetLastError();
}

} // namespace
