//===- faults.hip - kernels that do something wrong -----------------------===//
//
// The launch ends with the documented status and a report that names what was
// touched; after a reset the program goes on.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

extern "C" const char *fovea_sim_last_report(void);
extern "C" int fovea_sim_set(const char *, const char *);

namespace {

constexpr int kIllegalAddress = 700;

__global__ void store(int *to, int value) { to[globalX()] = value; }

__device__ int fromTable[16];
__global__ void beyondTable(int n, int *out) { out[0] = fromTable[n]++; }

void expectFault(fovea::test::Report &report, const char *words) {
  CHECK(hipDeviceSynchronize() == kIllegalAddress);
  const std::string text = fovea_sim_last_report();
  if (text.find(words) == std::string::npos)
    report.fail("the report does not say '" + std::string(words) +
                "': " + text);
  HIP(hipDeviceReset());
  (void)hipGetLastError();
}

HIP_CASE(Faults) {
  HIP(fovea_sim_set("quiet", "1"));
  int *memory = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&memory), 256 * sizeof(int)));
  store<<<2, 160>>>(memory, 1);
  expectFault(report, "past the end of allocation");

  HIP(hipMalloc(reinterpret_cast<void **>(&memory), 256 * sizeof(int)));
  HIP(hipFree(memory));
  store<<<1, 64>>>(memory, 1);
  expectFault(report, "which was freed");

  std::vector<int> host(64);
  store<<<1, 64>>>(host.data(), 1);
  expectFault(report, "store");

  // Another device's memory.
  int *foreign = nullptr;
  HIP(hipSetDevice(1));
  HIP(hipMalloc(reinterpret_cast<void **>(&foreign), 4096));
  HIP(hipSetDevice(0));
  store<<<1, 64>>>(foreign, 1);
  expectFault(report, "of device 1, which this device does not see");
  HIP(hipFree(foreign));

  // A device variable's neighbours are its code object's.
  HIP(hipMalloc(reinterpret_cast<void **>(&memory), 256));
  beyondTable<<<1, 1>>>(1 << 20, memory);
  expectFault(report, "allocation");

  HIP(hipMalloc(reinterpret_cast<void **>(&memory), 256 * sizeof(int)));
  store<<<1, 256>>>(memory, 9);
  HIP(hipDeviceSynchronize());
  HIP(hipFree(memory));
  HIP(fovea_sim_set("quiet", "0"));
}

} // namespace
