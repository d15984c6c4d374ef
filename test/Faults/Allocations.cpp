//===- Allocations.cpp - allocations that fail on request -----------------===//

#include "Allocations.h"

#include <cerrno>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOVEA_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FOVEA_SANITIZED 1
#endif
#ifdef FOVEA_SANITIZED
#include <sqlite3.h>
#endif

namespace {

// Of this thread; of types that need no construction, since memory functions
// run before and after everything else.
thread_local long tried, failing;
thread_local bool counting, lasting;
thread_local int unharmed;

/// Whether an allocation may not succeed.
bool fails() {
  if (!counting || unharmed != 0)
    return false;
  ++tried;
  const bool now =
      failing != 0 && (tried == failing || (lasting && tried > failing));
  if (now)
    errno = ENOMEM;
  return now;
}

} // namespace

namespace fovea::test {

void failAllocation(long nth, bool forEver) {
  tried = 0;
  failing = nth;
  lasting = forEver;
  counting = true;
}
long allocationsTried() {
  counting = false;
  return tried;
}
void spareAllocations() { ++unharmed; }
void endSparing() { --unharmed; }

} // namespace fovea::test

#ifndef FOVEA_SANITIZED

void fovea::test::prepareAllocations() {}

#define INTERPOSE extern "C" __attribute__((visibility("default")))

// glibc's names for what it does when nobody has put something before it.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
}
INTERPOSE void *malloc(size_t size) {
  return fails() ? nullptr : __libc_malloc(size);
}
INTERPOSE void *calloc(size_t count, size_t size) {
  return fails() ? nullptr : __libc_calloc(count, size);
}
INTERPOSE void *realloc(void *old, size_t size) {
  return fails() ? nullptr : __libc_realloc(old, size);
}
INTERPOSE void *aligned_alloc(size_t alignment, size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}
INTERPOSE int posix_memalign(void **result, size_t alignment, size_t size) {
  if (fails())
    return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}

#else

namespace {
sqlite3_mem_methods original;
void *sqliteMalloc(int size) {
  return fails() ? nullptr : original.xMalloc(size);
}
void *sqliteRealloc(void *old, int size) {
  return fails() ? nullptr : original.xRealloc(old, size);
}
} // namespace

void fovea::test::prepareAllocations() {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &original);
  sqlite3_mem_methods methods = original;
  methods.xMalloc = sqliteMalloc;
  methods.xRealloc = sqliteRealloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

void *operator new(size_t size) {
  void *memory = fails() ? nullptr : std::malloc(size ? size : 1);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return fails() ? nullptr : std::malloc(size ? size : 1);
}
// What is built on these in the C++ library needs no definition here.
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

#endif
