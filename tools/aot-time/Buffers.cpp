//===- Buffers.cpp - a description's buffers, cheap to fill ---------------===//
//
// A block of values lives in a memory file. A large buffer is a row of private
// mappings of it: reading shares the file's pages, writing copies one.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>

using namespace fovea;
using namespace fovea::timing;
using describe::Buffer;
using describe::Fill;

namespace {

constexpr uint64_t kPage = 4096, kAlign = uint64_t(2) << 20;
/// Far from where programs, libraries and sanitizers lie.
constexpr uint64_t kFirst = uint64_t(0x20) << 40;

/// Memory files by what they hold; kept until the process ends, because a sweep
/// asks for the same ones again and again.
class Patterns {
public:
  /// A file of `Buffers::kPeriod` bytes with values like those of `buffer`; -1
  /// with `error` set.
  int find(const Buffer &buffer, std::string &error) {
    const Fill &fill = buffer.fill;
    const Key key{buffer.type, fill.kind, fill.seed, fill.a, fill.b};
    if (auto known = files.find(key); known != files.end())
      return known->second;
    Buffer block = buffer;
    block.shape = {int64_t(Buffers::kPeriod / describe::typeSize(buffer.type))};
    block.strides = {1};
    block.bytes = Buffers::kPeriod;
    std::vector<uint8_t> bytes;
    if (!describe::fillBuffer(block, nullptr, bytes, error))
      return -1;
    const int file = memfd_create("aot-time", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, off_t(bytes.size()))) {
      error = std::string("memory for the contents of buffers: ") +
              std::strerror(errno);
      return -1;
    }
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t wrote = write(file, &bytes[done], bytes.size() - done);
      if (wrote <= 0) {
        error = std::string("memory for the contents of buffers: ") +
                std::strerror(errno);
        close(file);
        return -1;
      }
      done += size_t(wrote);
    }
    return files[key] = file;
  }

private:
  using Key = std::tuple<describe::Type, Fill::Kind, uint64_t, double, double>;
  std::map<Key, int> files;
};

Patterns &patterns() {
  static Patterns all;
  return all;
}

bool repeats(Fill::Kind kind) {
  return kind == Fill::NaN || kind == Fill::Normal || kind == Fill::Uniform ||
         kind == Fill::Value;
}

} // namespace

uint8_t *Buffers::map(uint64_t bytes, std::string &error) {
  const uint64_t whole =
      (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  // The same addresses in every run, where the host has them free: caches see
  // them, and a prediction should not change when it is repeated. Large
  // allocations of a GPU start at multiples of 2 MiB too.
  const uint64_t wanted =
      mappings.empty() ? kFirst
                       : (reinterpret_cast<uint64_t>(mappings.back().begin) +
                          mappings.back().bytes + 2 * kAlign - 1) /
                             kAlign * kAlign;
  void *at =
      mmap(reinterpret_cast<void *>(wanted), whole, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    error = "cannot reserve " + std::to_string(bytes) +
            " bytes of address space: " + std::strerror(errno);
    return nullptr;
  }
  mappings.push_back({static_cast<uint8_t *>(at), whole});
  return mappings.back().begin;
}

bool Buffers::add(const Buffer &given, std::vector<std::string> &notes,
                  std::string &error) {
  Buffer buffer = given;
  if (buffer.fill.kind == Fill::Reference) {
    // Only a run that is checked needs what a forward pass would have made.
    buffer.fill.kind = Fill::Normal;
    buffer.fill.a = 0;
    buffer.fill.b = 1;
    notes.push_back("buffer '" + buffer.name +
                    "' holds random values, not the reference's results");
  }
  uint8_t *at = map(buffer.bytes, error);
  if (!at)
    return false;
  const uint64_t whole = mappings.back().bytes;
  if (buffer.fill.kind != Fill::Zeros || buffer.bytes <= kPeriod) {
    if (buffer.bytes <= kPeriod || !repeats(buffer.fill.kind)) {
      std::vector<uint8_t> bytes;
      if (!describe::fillBuffer(buffer, nullptr, bytes, error))
        return false;
      if (!bytes.empty())
        std::memcpy(at, bytes.data(), bytes.size());
    } else {
      const int file = patterns().find(buffer, error);
      if (file < 0)
        return false;
      for (uint64_t done = 0; done < whole; done += kPeriod)
        if (mmap(at + done, std::min(kPeriod, whole - done),
                 PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file,
                 0) == MAP_FAILED) {
          error = "buffer '" + buffer.name + "' of " +
                  std::to_string(buffer.bytes) +
                  " bytes: " + std::strerror(errno);
          return false;
        }
    }
  }
  const uint64_t address = reinterpret_cast<uint64_t>(at);
  if (sim::Status status = device.memory().registerHost(
          address, std::max<uint64_t>(buffer.bytes, 1));
      !status) {
    error = "buffer '" + buffer.name + "': " + status.message();
    return false;
  }
  where.push_back(address);
  return true;
}

std::unique_ptr<Buffers> Buffers::create(sim::Device &device,
                                         const describe::Problem &problem,
                                         std::vector<std::string> &notes,
                                         std::string &error) {
  uint64_t total = 0;
  for (const Buffer &buffer : problem.buffers)
    total += buffer.bytes;
  if (total > device.memory().capacity()) {
    error = "the buffers have " + std::to_string(total) +
            " bytes, the device " + std::to_string(device.memory().capacity()) +
            "; take a smaller problem";
    return nullptr;
  }
  std::unique_ptr<Buffers> result(new Buffers(device));
  for (const Buffer &buffer : problem.buffers)
    if (!result->add(buffer, notes, error))
      return nullptr;
  return result;
}

Buffers::~Buffers() {
  for (uint64_t address : where)
    (void)device.memory().unregisterHost(address);
  for (const Mapping &mapping : mappings)
    munmap(mapping.begin, mapping.bytes);
}
