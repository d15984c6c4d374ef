//===- FuzzFatBinary.cpp - any bytes as a fat binary ----------------------===//
//
// Reading must end in a Status, with a known size and without one: then the
// bytes lie before memory that nobody may touch, as far as an offset can reach.
//
//===----------------------------------------------------------------------===//

#include "FuzzChips.h"
#include "fovea/Simulator/FatBinary.h"

#include <cstring>
#include <sys/mman.h>

using namespace fovea;

namespace {

constexpr size_t kRoom = size_t(256) << 10, kBeyond = size_t(9) << 30;

uint8_t *guarded() {
  static uint8_t *const memory = [] {
    void *place =
        mmap(nullptr, kRoom + kBeyond, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED ||
        mprotect(place, kRoom, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    return static_cast<uint8_t *>(place);
  }();
  return memory;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > kRoom)
    return 0;
  uint8_t *const copy = guarded() + kRoom - size;
  if (size)
    std::memcpy(copy, data, size);
  for (const auto &device : test::fuzzDevices()) {
    std::vector<uint8_t> known, unknown;
    const sim::Status whole = sim::extractCodeObject(
        sim::ImageBytes::sized(data, size), device->chip(), known);
    const sim::Status probed = sim::extractCodeObject(
        sim::ImageBytes::unsized(copy), device->chip(), unknown);
    // Without a size an ELF file ends where its headers say, not later.
    if (probed && (!whole || unknown.size() > known.size()))
      __builtin_trap();
    if ((!whole && whole.message().empty()) ||
        (!probed && probed.message().empty()))
      __builtin_trap();
  }
  return 0;
}
