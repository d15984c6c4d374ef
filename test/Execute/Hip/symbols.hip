//===- symbols.hip - variables of the device ------------------------------===//
//
// __device__, __constant__ and __managed__ variables, reached from the host by
// the registered symbols; each device has its own, loaded when first used.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

__device__ int counter = 41;
__device__ double matrix[8][8];
__constant__ float weights[16] = {1, 2, 3, 4};
__device__ int *pointerToCounter = &counter;
__managed__ int shared = 5;
__managed__ double sharedTable[4] = {1, 2, 3, 4};

__global__ void useSymbols(float *out) {
  const uint32_t t = threadX();
  out[t] = weights[t % 16] * 2;
  matrix[t / 8][t % 8] += t;
  if (t == 0) {
    *pointerToCounter += 1;
    shared += 10;
    sharedTable[2] *= 2;
  }
}

// Numbers of hipError_t.
constexpr int kInvalidValue = 1, kInvalidSymbol = 13, kInvalidDirection = 21;

HIP_CASE(Variables) {
  float newWeights[8];
  for (int i = 0; i < 8; ++i)
    newWeights[i] = 0.5f * float(i);
  HIP(hipMemcpyToSymbol(weights, newWeights, sizeof(newWeights),
                        4 * sizeof(float), hipMemcpyHostToDevice));
  double start[64];
  for (int i = 0; i < 64; ++i)
    start[i] = i * 100;
  HIP(hipMemcpyToSymbol(matrix, start, sizeof(start), 0,
                        hipMemcpyHostToDevice));
  int before = 0, after = 0;
  HIP(hipMemcpyFromSymbol(&before, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  Buffer<float> out(report, size_t(64));
  useSymbols<<<1, 64>>>(out);
  finish(report);
  const float want[16] = {1, 2,    3, 4,    0, 0.5f, 1, 1.5f,
                          2, 2.5f, 3, 3.5f, 0, 0,    0, 0};
  const auto got = out.read();
  for (int t = 0; t < 64; ++t)
    CHECK(got[size_t(t)] == want[t % 16] * 2);
  HIP(hipMemcpyFromSymbol(&after, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  CHECK(after == before + 1);
  double row[8];
  HIP(hipMemcpyFromSymbol(row, matrix, sizeof(row), 3 * sizeof(row),
                          hipMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i)
    CHECK(row[i] == (24 + i) * 101);
}

HIP_CASE(SymbolAddresses) {
  size_t bytes = 0;
  void *address = nullptr;
  HIP(hipGetSymbolSize(&bytes, matrix));
  CHECK(bytes == sizeof(matrix));
  HIP(hipGetSymbolAddress(&address, matrix));
  double first[2] = {3, 4}, back[2] = {};
  HIP(hipMemcpy(address, first, sizeof(first), hipMemcpyHostToDevice));
  HIP(hipMemcpyFromSymbol(back, matrix, sizeof(back), 0,
                          hipMemcpyDeviceToHost));
  CHECK(back[0] == 3 && back[1] == 4);
  int host = 0;
  CHECK(hipGetSymbolAddress(&address, &host) == kInvalidSymbol);
  CHECK(hipGetSymbolSize(&bytes, nullptr) == kInvalidSymbol);
  CHECK(hipMemcpyToSymbol(matrix, first, sizeof(first), sizeof(matrix) - 8,
                          hipMemcpyHostToDevice) == kInvalidValue);
  CHECK(hipMemcpyToSymbol(matrix, first, sizeof(first), 0,
                          hipMemcpyDeviceToHost) == kInvalidDirection);
  (void)hipGetLastError();
}

HIP_CASE(ManagedVariables) {
  const int before = shared;
  const double table = sharedTable[2];
  shared += 1000;
  Buffer<float> out(report, size_t(64));
  useSymbols<<<1, 64>>>(out);
  finish(report);
  CHECK(shared == before + 1010);
  CHECK(sharedTable[2] == 2 * table);
  CHECK(sharedTable[3] == 4);
}

/// A second device has the variables' initial values and its own memory.
HIP_CASE(SecondDevice) {
  int devices = 0;
  HIP(hipGetDeviceCount(&devices));
  CHECK(devices == 2);
  HIP(hipMemcpyToSymbol(&counter, &devices, sizeof(int), 0,
                        hipMemcpyHostToDevice));
  HIP(hipSetDevice(1));
  int value = 0;
  HIP(hipMemcpyFromSymbol(&value, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  CHECK(value == 41);
  const int managed = shared;
  {
    Buffer<float> out(report, size_t(64));
    useSymbols<<<1, 64>>>(out);
    finish(report);
    CHECK(out.read()[1] == 4);
  }
  HIP(hipMemcpyFromSymbol(&value, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  CHECK(value == 42);
  CHECK(shared == managed + 10);
  // After a reset they start again; what is managed stays.
  HIP(hipDeviceReset());
  HIP(hipMemcpyFromSymbol(&value, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  CHECK(value == 41);
  CHECK(shared == managed + 10);
  HIP(hipSetDevice(0));
  HIP(hipMemcpyFromSymbol(&value, &counter, sizeof(int), 0,
                          hipMemcpyDeviceToHost));
  CHECK(value == 2);
}

} // namespace
