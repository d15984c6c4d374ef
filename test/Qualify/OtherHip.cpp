//===- OtherHip.cpp - a HIP library that gives other answers --------------===//
//
// The simulated HIP library with a device that computes a value wrongly, and
// that does not say that it is simulated: what a report of a GPU is tested with.
// What is not here comes from the library that this one is linked to.
//
//   FOVEA_OTHERHIP_WRONG=NAME:OFFSET:WORD:BITS[,...]   of the kernels of that
//       name: behind the address at OFFSET of their arguments, the WORD-th word
//       has these bits turned over
//   FOVEA_OTHERHIP_MICROSECONDS   of a launch, by events
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// A program asks for it to know a simulated device: as if it was not there.
asm(".globl fovea_sim_counters\n.set fovea_sim_counters, 0\n");

namespace {

template <typename... Args>
int handOn(const char *name, Args... args) {
  void *address = dlsym(RTLD_NEXT, name);
  if (!address) {
    std::fprintf(stderr, "otherhip: nobody to hand %s on to\n", name);
    std::abort();
  }
  return reinterpret_cast<int (*)(Args...)>(address)(args...);
}

struct Fault {
  std::string name;
  size_t offset = 0, word = 0;
  uint32_t bits = 0;
};

std::vector<Fault> readFaults() {
  std::vector<Fault> faults;
  const char *text = std::getenv("FOVEA_OTHERHIP_WRONG");
  while (text && *text) {
    Fault fault;
    char name[128] = "";
    if (std::sscanf(text, "%127[^:]:%zu:%zu:%x", name, &fault.offset,
                    &fault.word, &fault.bits) != 4) {
      std::fprintf(stderr, "otherhip: no fault: '%s'\n", text);
      std::abort();
    }
    fault.name = name;
    faults.push_back(fault);
    text = std::strchr(text, ',');
    text += text != nullptr;
  }
  return faults;
}

std::map<void *, std::string> names; // of functions
unsigned launches = 0;
std::map<void *, unsigned> launchesAt; // events

} // namespace

EXPORT int hipModuleGetFunction(void **function, void *module,
                                const char *name) {
  const int error = handOn(__func__, function, module, name);
  if (error == 0)
    names[*function] = name;
  return error;
}

EXPORT int hipModuleLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX,
                                 unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, void *stream,
                                 void **kernelParams, void **extra) {
  const int error = handOn(__func__, function, gridX, gridY, gridZ, blockX,
                           blockY, blockZ, sharedBytes, stream, kernelParams,
                           extra);
  ++launches;
  for (const Fault &fault : readFaults()) {
    if (error || !extra || names[function] != fault.name)
      continue;
    if (const int failed = handOn("hipDeviceSynchronize"))
      return failed;
    // {1: buffer, its address, 2: size, its address, 3: end}
    uint32_t *out = nullptr;
    std::memcpy(&out, static_cast<char *>(extra[1]) + fault.offset, sizeof out);
    out[fault.word] ^= fault.bits; // device addresses are the host's
  }
  return error;
}

EXPORT int hipEventRecord(void *event, void *stream) {
  launchesAt[event] = launches;
  return handOn(__func__, event, stream);
}

EXPORT int hipEventElapsedTime(float *milliseconds, void *start, void *stop) {
  const char *text = std::getenv("FOVEA_OTHERHIP_MICROSECONDS");
  if (!text)
    return handOn(__func__, milliseconds, start, stop);
  *milliseconds = float(launchesAt[stop] - launchesAt[start]) *
                  std::strtof(text, nullptr) * 1e-3f;
  return 0;
}
