//===- CompileCache.h - compiled kernels for the next process ---*- C++ -*-===//
//
// Packages of kernels that were compiled on demand, one a chip and build of the
// compiler, in a folder that processes share. docs/CompileOnDemand.md states
// the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_COMPILECACHE_H
#define FOVEA_RUNTIME_SRC_COMPILECACHE_H

#include "CompilerApi.h"

#include <csignal>

namespace fovea::rt {

/// Where a file passes the process's limit of file sizes, a signal would end
/// the process before the call could fail. Held back in this thread meanwhile.
class BlockFileSizeSignal {
public:
  BlockFileSizeSignal();
  ~BlockFileSizeSignal();
  BlockFileSizeSignal(const BlockFileSizeSignal &) = delete;
  BlockFileSizeSignal &operator=(const BlockFileSizeSignal &) = delete;

private:
  sigset_t before;
  bool wasPending;
};

/// A byte of a lock file, held until the end or the process's end. Of an open
/// file description, so that threads exclude one another as processes do.
class ByteLock {
public:
  ByteLock() = default;
  ~ByteLock();
  ByteLock(const ByteLock &) = delete;
  ByteLock &operator=(const ByteLock &) = delete;

  /// Waits for the byte. IO: there is no such file and it can't be made; BUSY:
  /// not in time.
  Result take(const std::string &path, uint64_t byte, int seconds);

private:
  int file = -1;
};

/// The cache as it is for one order.
class CompileCache {
public:
  /// \param folder  empty: none; nothing but fingerprint() may be called then
  CompileCache(const std::string &folder, uint64_t mostBytes,
               const KernelOrder &order, const std::string &buildId);

  /// The package's file.
  const std::string &path() const { return file; }
  /// By which a kernel of it is known to be this order's.
  const std::string &fingerprint() const { return print; }

  /// Looks for the kernel. Not OK: the cache is of no use for storing either.
  Result find(OrderedKernel &kernel, bool &found);
  /// Waits until no other process or thread compiles the order; then it is this
  /// one that does, until the cache's end.
  Result lockOrder();
  /// Stores the kernel and makes room.
  Result store(const OrderedKernel &kernel);

private:
  /// Removes packages that were not used for longest.
  void trim() const;
  std::string lockPath() const { return folder + "/lock"; }

  const std::string folder;
  const uint64_t mostBytes;
  const KernelOrder order;
  std::string file, print;
  ByteLock orderLock;
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_COMPILECACHE_H
