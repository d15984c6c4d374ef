//===- streams.hip - work in several streams and from several threads -----===//
//
// Kernels, copies and fills that are ordered by streams and events, and host
// threads that launch at the same time, the first use of the code included.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <thread>

namespace {

__global__ void addTo(int *data, int value, int loops) {
  int x = data[globalX()];
  for (int i = 0; i < loops; ++i)
    x += value;
  data[globalX()] = x;
}

__global__ void sumOf(const int *a, const int *b, int *out) {
  out[globalX()] = a[globalX()] + 10 * b[globalX()];
}

constexpr int kCount = 1024;

HIP_CASE(StreamsAndEvents) {
  hipStream_t left, right;
  hipEvent_t leftDone, summed, start;
  HIP(hipStreamCreate(&left));
  HIP(hipStreamCreateWithFlags(&right, 1));
  HIP(hipEventCreate(&leftDone));
  HIP(hipEventCreate(&summed));
  HIP(hipEventCreate(&start));
  int *host = nullptr;
  HIP(hipHostMalloc(reinterpret_cast<void **>(&host), kCount * sizeof(int), 0));
  Buffer<int> a(report, size_t(kCount)), b(report, size_t(kCount)),
      c(report, size_t(kCount));
  HIP(hipEventRecord(start, right));
  for (int round = 0; round < 4; ++round) {
    addTo<<<kCount / 256, 256, 0, left>>>(a, 1, 300);
    addTo<<<kCount / 128, 128, 0, right>>>(b, 2, 50);
    HIP(hipEventRecord(leftDone, left));
    HIP(hipStreamWaitEvent(right, leftDone, 0));
    sumOf<<<kCount / 64, 64, 0, right>>>(a, b, c);
    HIP(hipMemcpyAsync(host, c, kCount * sizeof(int), hipMemcpyDeviceToHost,
                       right));
    HIP(hipEventRecord(summed, right));
    HIP(hipStreamWaitEvent(left, summed, 0));
    HIP(hipEventSynchronize(summed));
    for (int i = 0; i < kCount; i += 97)
      CHECK(host[i] == 300 * (round + 1) + 1000 * (round + 1));
  }
  HIP(hipMemsetAsync(a, 0, kCount * sizeof(int), left));
  void *arguments[3];
  int *pointer = a, value = 7, loops = 3;
  arguments[0] = &pointer, arguments[1] = &value, arguments[2] = &loops;
  HIP(hipExtLaunchKernel(reinterpret_cast<const void *>(addTo), dim3(4),
                         dim3(256), arguments, 0, left, start, summed, 0));
  HIP(hipStreamSynchronize(left));
  float milliseconds = -1;
  HIP(hipEventElapsedTime(&milliseconds, start, summed));
  CHECK(milliseconds >= 0);
  CHECK(a.read()[1000] == 21);
  finish(report);
  HIP(hipHostFree(host));
  for (hipEvent_t event : {leftDone, summed, start})
    HIP(hipEventDestroy(event));
  HIP(hipStreamDestroy(left));
  HIP(hipStreamDestroy(right));
}

__global__ void firstUse(int *out, int value) { out[globalX()] = value; }

HIP_CASE(HostThreads) {
  constexpr int kThreads = 6;
  std::vector<fovea::test::Report> reports(kThreads);
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n)
    threads.emplace_back([n, &mine = reports[size_t(n)]] {
      fovea::test::Report &report = mine;
      int devices = 1;
      HIP(hipGetDeviceCount(&devices));
      HIP(hipSetDevice(n % devices));
      hipStream_t stream;
      HIP(hipStreamCreate(&stream));
      {
        Buffer<int> out(report, size_t(kCount));
        for (int round = 0; round < 5; ++round) {
          firstUse<<<4, 256, 0, stream>>>(out, n * 100 + round);
          addTo<<<4, 256, 0, stream>>>(out, 1, 1);
          HIP(hipStreamSynchronize(stream));
          for (int x : out.read())
            CHECK(x == n * 100 + round + 1);
        }
      }
      HIP(hipStreamDestroy(stream));
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &one : reports) {
    report.compared += one.compared;
    if (!one.ok())
      report.fail(one.text);
  }
}

} // namespace
