//===- Buffers.h - a description's buffers, cheap to fill -------*- C++ -*-===//
//
// Device memory for timing. A prediction executes a few workgroups, so of large
// buffers only a small part is ever read: these repeat one block of values,
// whose pages exist once in the host's memory until a kernel writes them.
// Gigabytes of tensors cost megabytes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTIME_BUFFERS_H
#define FOVEA_TOOLS_AOTTIME_BUFFERS_H

#include "Description.h"
#include "fovea/Simulator/Device.h"

#include <memory>
#include <string>
#include <vector>

namespace fovea::timing {

class Buffers {
public:
  /// Buffers of at most so many bytes hold exactly what the description says.
  /// Longer ones repeat the first `kPeriod` bytes of it when it is random or a
  /// constant; counted, listed and read values are always complete.
  static constexpr uint64_t kPeriod = uint64_t(4) << 20;

  /// Makes the buffers of `problem` visible to `device`, which must outlive the
  /// result. Null with `error` set when the host has no memory for them, or a
  /// file cannot be read. `notes` receives what differs from the description.
  static std::unique_ptr<Buffers> create(sim::Device &device,
                                         const describe::Problem &problem,
                                         std::vector<std::string> &notes,
                                         std::string &error);
  ~Buffers();
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;

  /// By index in Problem::buffers.
  const std::vector<uint64_t> &addresses() const { return where; }

private:
  explicit Buffers(sim::Device &device) : device(device) {}
  bool add(const describe::Buffer &buffer, std::vector<std::string> &notes,
           std::string &error);
  uint8_t *map(uint64_t bytes, std::string &error);

  struct Mapping {
    uint8_t *begin;
    uint64_t bytes; ///< of whole pages
  };
  sim::Device &device;
  std::vector<Mapping> mappings;
  std::vector<uint64_t> where;
};

} // namespace fovea::timing

#endif // FOVEA_TOOLS_AOTTIME_BUFFERS_H
