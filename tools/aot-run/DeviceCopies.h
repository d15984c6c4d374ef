//===- DeviceCopies.h - a case's tensors in memory of a device --*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTRUN_DEVICECOPIES_H
#define FOVEA_TOOLS_AOTRUN_DEVICECOPIES_H

#include "HipCalls.h"

#include <vector>

namespace fovea::run {

/// Allocations of a device, freed at the end.
class DeviceCopies {
public:
  /// \param what  begins messages: "the captures"
  explicit DeviceCopies(const char *what) : what(what) {}
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies &) = delete;

  /// Empty, or what the device's library answered, as from all.
  std::string open(fovea_context_t *context);
  /// Copies to an allocation that ends with the last byte; null of no bytes.
  /// Once open.
  std::string put(const void *from, size_t bytes, void *&address);
  /// Lists of integers, each with the place of a parameter that gets its
  /// address. Opens, too.
  struct Integers {
    const int32_t **address;
    std::vector<int32_t> values;
  };
  std::string putAll(fovea_context_t *context,
                     const std::vector<Integers> &lists);
  std::string read(void *to, const void *address, size_t bytes) const;

private:
  std::string answer(HipStatus status) const;

  const char *what;
  HipCalls hip;
  std::vector<void *> addresses;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_DEVICECOPIES_H
