//===- graphs.hip - captured streams and graphs ---------------------------===//
//
// Kernels, copies and fills that are captured from one stream and from several,
// launched more than once; and calls that a capture does not allow.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

namespace {

constexpr int kCount = 512, kBytes = kCount * sizeof(int);

__global__ void add(int *to, const int *from, int value) {
  to[globalX()] += from[globalX()] + value;
}

HIP_CASE(Graphs) {
  hipStream_t stream, side;
  hipEvent_t fork, join;
  HIP(hipStreamCreate(&stream));
  HIP(hipStreamCreate(&side));
  HIP(hipEventCreate(&fork));
  HIP(hipEventCreate(&join));
  Buffer<int> a(report, size_t(kCount), 1), b(report, size_t(kCount), 2),
      c(report, size_t(kCount), 3);

  // c = 0; beside it a += b + 10; then c += a + 1 and b = c.
  HIP(hipStreamBeginCapture(stream, 0));
  int capturing = 0;
  HIP(hipStreamIsCapturing(stream, &capturing));
  CHECK(capturing == 1);
  HIP(hipEventRecord(fork, stream));
  HIP(hipStreamWaitEvent(side, fork, 0));
  HIP(hipMemsetAsync(c, 0, kBytes, stream));
  add<<<2, 256, 0, side>>>(a, b, 10);
  HIP(hipEventRecord(join, side));
  HIP(hipStreamWaitEvent(stream, join, 0));
  add<<<2, 256, 0, stream>>>(c, a, 1);
  HIP(hipMemcpyAsync(b, c, kBytes, hipMemcpyDeviceToDevice, stream));
  constexpr int kCapturedEvent = 907;
  CHECK(hipEventQuery(join) == kCapturedEvent);
  hipGraph_t graph;
  HIP(hipStreamEndCapture(stream, &graph));
  HIP(hipStreamIsCapturing(side, &capturing));
  CHECK(capturing == 0);
  (void)hipGetLastError();

  size_t nodes = 0;
  HIP(hipGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 4);
  // Nothing has run yet.
  CHECK(a.read()[3] == 1 && b.read()[3] == 2 && c.read()[3] == 3);
  hipGraphExec_t executable;
  HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  HIP(hipGraphDestroy(graph));
  int expectedA = 1, expectedB = 2;
  for (int round = 0; round < 3; ++round) {
    HIP(hipGraphLaunch(executable, round == 1 ? side : stream));
    HIP(hipStreamSynchronize(round == 1 ? side : stream));
    expectedA += expectedB + 10;
    expectedB = expectedA + 1;
    CHECK(a.read() == std::vector<int>(kCount, expectedA));
    CHECK(b.read() == std::vector<int>(kCount, expectedB));
  }
  HIP(hipGraphExecDestroy(executable));
  CHECK(hipGraphLaunch(executable, stream) != 0);
  for (hipEvent_t event : {fork, join})
    HIP(hipEventDestroy(event));
  for (hipStream_t one : {stream, side})
    HIP(hipStreamDestroy(one));
  (void)hipGetLastError();
}

// Numbers of hipError_t.
constexpr int kIllegalState = 401, kUnsupported = 900, kInvalidated = 901,
              kUnmatched = 903, kUnjoined = 904, kImplicit = 906;

HIP_CASE(CaptureRefusals) {
  hipStream_t stream, side;
  hipEvent_t event;
  hipGraph_t graph;
  HIP(hipStreamCreate(&stream));
  HIP(hipStreamCreate(&side));
  HIP(hipEventCreate(&event));
  Buffer<int> a(report, size_t(kCount), 1);
  CHECK(hipStreamEndCapture(stream, &graph) == kIllegalState);
  CHECK(hipStreamBeginCapture(nullptr, 0) == kUnsupported);

  // A wait invalidates the capture.
  HIP(hipStreamBeginCapture(stream, 0));
  CHECK(hipStreamBeginCapture(stream, 0) == kIllegalState);
  CHECK(hipStreamSynchronize(stream) == kUnsupported);
  add<<<2, 256, 0, stream>>>(a, a, 1);
  CHECK(hipGetLastError() == kInvalidated);
  CHECK(hipStreamEndCapture(stream, &graph) == kInvalidated);

  // So does the null stream, which would wait.
  HIP(hipStreamBeginCapture(stream, 0));
  add<<<2, 256>>>(a, a, 1);
  CHECK(hipGetLastError() == kImplicit);
  CHECK(hipStreamEndCapture(stream, &graph) == kInvalidated);

  HIP(hipStreamBeginCapture(stream, 2));
  CHECK(hipDeviceSynchronize() == kUnsupported);
  CHECK(hipStreamEndCapture(stream, &graph) == kInvalidated);

  // A stream that was drawn in and is not waited for.
  HIP(hipStreamBeginCapture(stream, 0));
  HIP(hipEventRecord(event, stream));
  HIP(hipStreamWaitEvent(side, event, 0));
  add<<<2, 256, 0, side>>>(a, a, 1);
  CHECK(hipStreamEndCapture(side, &graph) == kUnmatched);
  CHECK(hipStreamEndCapture(stream, &graph) == kUnjoined);

  CHECK(a.read()[0] == 1);
  HIP(hipEventDestroy(event));
  HIP(hipStreamDestroy(stream));
  HIP(hipStreamDestroy(side));
  (void)hipGetLastError();
}

} // namespace
