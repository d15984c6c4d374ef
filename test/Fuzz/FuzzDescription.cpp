//===- FuzzDescription.cpp - any text as a kernel description -------------===//
//
// Reading ends with a problem whose parts fit one another, or with an error
// that names the file. Contents of small buffers are made too.
//
//===----------------------------------------------------------------------===//

#include "Description.h"

#include <cstdint>

using namespace fovea::describe;

/// Bytes of a buffer whose contents are still made; all may be asked for.
static constexpr uint64_t kSmall = 4096;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  for (const Overrides &overrides :
       {Overrides(), Overrides{{"n", "7"}, {"batch", "n*2"}}}) {
    Problem problem;
    std::string error;
    if (!parse(text, "fuzz.json", ".", overrides, problem, error)) {
      if (error.find("fuzz.json") != 0)
        __builtin_trap();
      continue;
    }
    if (!error.empty() || problem.launches.empty())
      __builtin_trap();
    const std::vector<uint64_t> addresses(problem.buffers.size(), 1 << 20);
    for (const Launch &launch : problem.launches) {
      for (const Pointer &pointer : launch.pointers)
        if (pointer.buffer >= problem.buffers.size() ||
            pointer.offset + sizeof(uint64_t) > launch.arguments.size())
          __builtin_trap();
      if (launch.bind(addresses).size() != launch.arguments.size())
        __builtin_trap();
    }
    for (const Buffer &buffer : problem.buffers) {
      if (buffer.shape.size() != buffer.strides.size() || buffer.elements() < 0)
        __builtin_trap();
      // No file is opened, and what the reference computes is not known.
      if (buffer.bytes > kSmall || buffer.fill.kind == Fill::File ||
          buffer.fill.kind == Fill::Reference)
        continue;
      std::vector<uint8_t> bytes;
      if (fillBuffer(buffer, nullptr, bytes, error) &&
          bytes.size() != buffer.bytes)
        __builtin_trap();
    }
  }
  return 0;
}
