//===- Allocations.h - allocations that fail on request ---------*- C++ -*-===//
//
// The program's memory functions, put before those of the C library, so that
// every allocation of a thread can be made to fail: those of libfovea, and of
// SQLite, zstd, the C++ library and the loader beneath it. Under a sanitizer,
// which has memory functions of its own, it is operator new and SQLite's.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_FAULTS_ALLOCATIONS_H
#define FOVEA_TEST_FAULTS_ALLOCATIONS_H

namespace fovea::test {

/// Lets the calling thread's `nth` allocation from now on fail (0: none), and
/// those behind it too if `forEver`.
void failAllocation(long nth, bool forEver);

/// Ends that. \return how many allocations the thread has tried since.
long allocationsTried();

/// Between these two the calling thread's allocations neither fail nor count.
void spareAllocations();
void endSparing();
/// The same, as long as it exists.
struct Unharmed {
  Unharmed() { spareAllocations(); }
  ~Unharmed() { endSparing(); }
  Unharmed(const Unharmed &) = delete;
  Unharmed &operator=(const Unharmed &) = delete;
};

/// Hooks in what can't be hooked in by name; to be called first.
void prepareAllocations();

} // namespace fovea::test

#endif // FOVEA_TEST_FAULTS_ALLOCATIONS_H
