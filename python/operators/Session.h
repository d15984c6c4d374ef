//===- Session.h - the context that calls use, and memory -------*- C++ -*-===//

#pragma once

#include "fovea/fovea.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fovea::operators {

void check(fovea_status_t status);

/// Of the process: the Python package's default library where it has said how to
/// come by it, else one of our own, of the packages that FOVEA_KERNELS names.
fovea_context_t *context();

/// The HIP library's functions that calls need.
struct Hip {
  explicit Hip(fovea_context_t *context);
  void check(const char *name, int error) const;

  int (*malloc)(void **, size_t);
  int (*free)(void *);
  int (*memcpy)(void *, const void *, size_t, int);
  int (*streamSynchronize)(void *);

private:
  const char *(*errorName)(int);
  const char *(*lastReport)(); // of the simulated library alone
};

/// Memory of the host, as a device sees it for the time of a call, as
/// fovea/_memory.py has it: memory that overlaps has one copy and keeps its places
/// in it, so that what the library says of shared memory holds, and bytes between
/// the rows of a result come back as they went.
class Mirror {
public:
  explicit Mirror(const Hip &hip) : hip(hip) {}
  Mirror(const Mirror &) = delete;
  ~Mirror();

  void add(const void *begin, size_t bytes, bool written);
  void copyIn();
  void *block(size_t bytes); ///< memory of the device alone
  void *address(const void *host) const;
  void copyOut();

private:
  struct Span {
    uintptr_t begin, end;
    bool written;
    uintptr_t address;
  };
  const Hip &hip;
  std::vector<Span> spans;
  std::vector<void *> allocations;
};

} // namespace fovea::operators
