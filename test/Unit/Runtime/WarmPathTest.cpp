//===- WarmPathTest.cpp - what a launch of a loaded kernel does not do ----===//
//
// Counts memory functions, locks and SQLite's functions by putting this
// program's own before those of the C library and SQLite, and expects none of
// them when a loaded kernel is launched. That the counters count is seen at the
// first launch, which needs all three.
//
//===----------------------------------------------------------------------===//

#include "LaunchLoad.h"

#include <atomic>
#include <cerrno>
#include <pthread.h>
#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {

std::atomic<long> allocations, locks, queries;
/// Only between these two does a count mean anything: gtest and the thread
/// library allocate too.
struct Counts {
  long allocations = ::allocations, locks = ::locks, queries = ::queries;
};

template <typename Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define INTERPOSE extern "C" __attribute__((visibility("default")))

// glibc's names for what it does when nobody has put something before it.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}
INTERPOSE void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
INTERPOSE void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
INTERPOSE void *realloc(void *old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
INTERPOSE void *aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
INTERPOSE int posix_memalign(void **memory, size_t alignment, size_t size) {
  ++allocations;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
INTERPOSE void free(void *memory) {
  if (memory)
    ++allocations;
  __libc_free(memory);
}

INTERPOSE int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static auto real = next<int (*)(pthread_mutex_t *)>("pthread_mutex_lock");
  ++locks;
  return real(mutex);
}
INTERPOSE int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
  static auto real = next<int (*)(pthread_rwlock_t *)>("pthread_rwlock_rdlock");
  ++locks;
  return real(lock);
}
INTERPOSE int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
  static auto real = next<int (*)(pthread_rwlock_t *)>("pthread_rwlock_wrlock");
  ++locks;
  return real(lock);
}

struct sqlite3_stmt;
struct sqlite3;
INTERPOSE int sqlite3_step(sqlite3_stmt *statement) {
  static auto real = next<int (*)(sqlite3_stmt *)>("sqlite3_step");
  ++queries;
  return real(statement);
}
INTERPOSE int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes,
                                 sqlite3_stmt **statement, const char **tail) {
  static auto real = next<decltype(&sqlite3_prepare_v2)>("sqlite3_prepare_v2");
  ++queries;
  return real(db, sql, bytes, statement, tail);
}
INTERPOSE int sqlite3_reset(sqlite3_stmt *statement) {
  static auto real = next<int (*)(sqlite3_stmt *)>("sqlite3_reset");
  ++queries;
  return real(statement);
}

namespace {

class WarmPathTest : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    dir = new TempDir;
    const ProblemKey problem = makeProblem(128);
    writeLibrary(dir->file("gfx942.fovea"), {128},
                 {{problem, 512, TuningRow::kAny, TuningRow::kAny,
                   makeRecord(problem, 64).schedule},
                  {problem, 4096, TuningRow::kAny, 8, "not in the package"}});
  }
  static void TearDownTestSuite() { delete dir; }
  void SetUp() override {
    context = makeLoadContext(dir->file("gfx942.fovea"));
  }
  void TearDown() override { fovea_context_destroy(context); }

  static TempDir *dir;
  fovea_context_t *context = nullptr;

  /// Expects that `call` does none of what is counted, a hundred times.
  template <typename Call>
  static void expectNothing(Call call) {
    fovea_status_t status = FOVEA_STATUS_OK;
    const Counts before;
    for (int i = 0; i != 100; ++i)
      status |= call();
    const Counts after;
    EXPECT_EQ(status, FOVEA_STATUS_OK) << fovea_last_message();
    EXPECT_EQ(after.allocations - before.allocations, 0);
    EXPECT_EQ(after.locks - before.locks, 0);
    EXPECT_EQ(after.queries - before.queries, 0);
  }
};
TempDir *WarmPathTest::dir;

} // namespace

TEST_F(WarmPathTest, LoadedKernelsNeedNoMemoryNoLockNoQuery) {
  fovea_forward_params_t forward = makeForwardLoad();
  fovea_backward_params_t atomic = makeBackwardLoad(),
                          deterministic = makeBackwardLoad();
  deterministic.deterministic = 1;
  fovea_forward_params_t small = forward, missed = forward, named = forward;
  small.seqlen_q = 512; // chosen by the tuning table
  missed.batch = missed.heads_q = missed.heads_k = 1; // a row's schedule lacks
  fovea_forward_plan_t plan{};
  plan.struct_size = sizeof(plan);
  ASSERT_EQ(fovea_forward_select(context, &small, 0, &plan), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(plan.chosen_by, FOVEA_CHOSEN_BY_TUNING);
  named.kernel = plan.kernel;

  const Counts before;
  auto launchAll = [&] {
    fovea_status_t status = FOVEA_STATUS_OK;
    for (const fovea_forward_params_t *p : {&forward, &small, &missed, &named})
      status |= fovea_forward(context, p, nullptr);
    for (const fovea_backward_params_t *p : {&atomic, &deterministic})
      status |= fovea_backward(context, p, nullptr);
    return status;
  };
  ASSERT_EQ(launchAll(), FOVEA_STATUS_OK) << fovea_last_message();
  const Counts cold;
  EXPECT_GT(cold.allocations - before.allocations, 0);
  EXPECT_GT(cold.locks - before.locks, 0);
  EXPECT_GT(cold.queries - before.queries, 0);

  const uint64_t launches = emptyHipThread().launches;
  expectNothing(launchAll);
  EXPECT_EQ(emptyHipThread().launches - launches, 100u * (4 + 2 * 3));
}

// What a thread does at its first call is no reason to lock either.
TEST_F(WarmPathTest, EveryThreadAndDevice) {
  const fovea_forward_params_t p = makeForwardLoad();
  auto setDevice = emptyHip<int (*)(int)>("hipSetDevice");
  for (int device = 0; device != kEmptyHipDevices; ++device)
    ASSERT_EQ(fovea_forward_prepare(context, &p, device, nullptr),
              FOVEA_STATUS_OK)
        << fovea_last_message();
  for (int device = 0; device != kEmptyHipDevices; ++device)
    std::thread([&] {
      ASSERT_EQ(setDevice(device), 0);
      // A thread's first launch makes its memory of launches.
      ASSERT_EQ(fovea_forward(context, &p, nullptr), FOVEA_STATUS_OK);
      expectNothing([&] { return fovea_forward(context, &p, nullptr); });
      EXPECT_EQ(emptyHipThread().launches, 101u);
      EXPECT_EQ(emptyHipThread().device, device);
    }).join();
}

// A failure may do what it likes, but leaves the next launch as it was.
TEST_F(WarmPathTest, AfterAFailure) {
  fovea_forward_params_t p = makeForwardLoad(), bad = p;
  bad.head_dim = 600;
  ASSERT_EQ(fovea_forward(context, &p, nullptr), FOVEA_STATUS_OK);
  ASSERT_EQ(fovea_forward(context, &bad, nullptr),
            FOVEA_STATUS_INVALID_ARGUMENT);
  expectNothing([&] { return fovea_forward(context, &p, nullptr); });
  EXPECT_STREQ(fovea_last_message(), "");
}
