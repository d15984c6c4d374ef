//===- Session.cpp - the context that calls use, and memory ---------------===//

#include "Session.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sstream>

namespace fovea::operators {
namespace {

/// Gives a context, or NULL and a text why there is none.
using Provider = fovea_context_t *(*)(char *message, size_t bytes);

std::mutex mutex;
std::atomic<Provider> provider;
std::atomic<fovea_context_t *> current;
/// Held to change `current`, but for one of our own: what another thread ends
/// while it is asked for must not become the one of calls to come.
std::mutex changing;
uint64_t forgotten = 0; ///< how often; guarded by `changing`

// HIP does not survive a fork, nor does what is loaded through it.
[[maybe_unused]] const int atFork =
    pthread_atfork([] { changing.lock(); }, [] { changing.unlock(); },
                   [] {
                     ++forgotten;
                     current = nullptr;
                     changing.unlock();
                   });

uint64_t timesForgotten() {
  std::lock_guard<std::mutex> lock(changing);
  return forgotten;
}

/// As fovea.default_library() has it, without what wheels have brought.
fovea_context_t *make() {
  auto options = fovea::make<fovea_context_options_t>();
  const char *compile = std::getenv("FOVEA_COMPILE");
  options.compile = compile && *compile ? nullptr : "auto";
  fovea_context_t *made = nullptr;
  check(fovea_context_create(&options, &made));
  const char *named = std::getenv("FOVEA_KERNELS");
  std::istringstream paths(named ? named : "");
  for (std::string path; std::getline(paths, path, ':');)
    if (!path.empty())
      check(fovea_package_open(made, path.c_str()));
  return made;
}

} // namespace

void check(fovea_status_t status) {
  if (status != FOVEA_STATUS_OK)
    throw Error(status, fovea_last_message(), fovea_last_cause());
}

fovea_context_t *context() {
  if (fovea_context_t *known = current)
    return known;
  // Python's lock is taken by the provider: not with ours held.
  if (const Provider ask = provider) {
    char message[4096] = "";
    const uint64_t before = timesForgotten();
    fovea_context_t *given = ask(message, sizeof(message));
    if (!given)
      throw std::runtime_error(message);
    std::lock_guard<std::mutex> lock(changing);
    if (forgotten == before)
      current = given;
    return given;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (!current)
    current = make(); // for as long as the process lives, as work may run
  return current;
}

Hip::Hip(fovea_context_t *context) {
  auto info = fovea::make<fovea_hip_library_info_t>();
  operators::check(fovea_hip_library_info(context, &info)); // why there is none
  const auto find = [&](const char *name, auto &function, bool isNeeded = true) {
    void *address = fovea_hip_symbol(context, name);
    if (!address && isNeeded)
      throw Error(FOVEA_STATUS_INCOMPATIBLE,
                  std::string("the HIP library has no ") + name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
  };
  find("hipMalloc", malloc);
  find("hipFree", free);
  find("hipMemcpy", memcpy);
  find("hipStreamSynchronize", streamSynchronize);
  find("hipGetErrorName", errorName, false);
  find("fovea_sim_last_report", lastReport, false);
}

void Hip::check(const char *name, int error) const {
  if (!error)
    return;
  constexpr int kOutOfMemory = 2;
  std::string text = std::string(name) + ": " +
                     (errorName ? errorName(error) : std::to_string(error));
  const char *report = lastReport ? lastReport() : nullptr;
  if (error != kOutOfMemory && report && *report)
    text += std::string("\n") + report;
  throw Error(error == kOutOfMemory ? FOVEA_STATUS_OUT_OF_MEMORY
                                    : FOVEA_STATUS_HIP_ERROR,
              text);
}

// Blocks of the device are aligned to it, and arrays keep their place within. Behind
// the last there is memory, since rows of 1, 3, 5 or 7 elements of 16 bits are read in
// words (docs/HeadDimensions.md).
constexpr uintptr_t kAlignment = 256, kWord = 4;
constexpr int kToDevice = 1, kToHost = 2;

Mirror::~Mirror() {
  for (void *allocation : allocations)
    hip.free(allocation);
}

void Mirror::add(const void *begin, size_t bytes, bool written) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  spans.push_back({first, first + bytes, written, 0});
}

void Mirror::copyIn() {
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  std::vector<Span> merged;
  for (const Span &span : spans) {
    if (merged.empty() || span.begin >= merged.back().end) {
      merged.push_back(span);
      continue;
    }
    merged.back().end = std::max(merged.back().end, span.end);
    merged.back().written |= span.written;
  }
  spans = std::move(merged);
  for (Span &span : spans) {
    const uintptr_t within = span.begin % kAlignment;
    const size_t bytes = span.end - span.begin;
    span.address =
        reinterpret_cast<uintptr_t>(block(bytes + within + kWord)) + within;
    hip.check("hipMemcpy",
              hip.memcpy(reinterpret_cast<void *>(span.address),
                         reinterpret_cast<void *>(span.begin), bytes, kToDevice));
  }
}

void *Mirror::block(size_t bytes) {
  void *made = nullptr;
  hip.check("hipMalloc", hip.malloc(&made, bytes));
  allocations.push_back(made);
  return made;
}

void *Mirror::address(const void *host) const {
  const auto given = reinterpret_cast<uintptr_t>(host);
  const auto after =
      std::find_if(spans.begin(), spans.end(),
                   [&](const Span &span) { return given < span.end; });
  return reinterpret_cast<void *>(after->address + given - after->begin);
}

void Mirror::copyOut() {
  for (const Span &span : spans)
    if (span.written)
      hip.check("hipMemcpy",
                hip.memcpy(reinterpret_cast<void *>(span.begin),
                           reinterpret_cast<void *>(span.address),
                           span.end - span.begin, kToHost));
}

} // namespace fovea::operators

//===----------------------------------------------------------------------===//
// For the Python package
//===----------------------------------------------------------------------===//

extern "C" {

/// Who gives the context of calls to come; it is asked once, until one is
/// forgotten.
FOVEA_API void fovea_torch_set_provider(fovea::operators::Provider given) {
  fovea::operators::provider = given;
}

/// The context ends, or is no longer the one; NULL: whichever it is.
FOVEA_API void fovea_torch_forget(fovea_context_t *context) {
  using namespace fovea::operators;
  std::lock_guard<std::mutex> lock(changing);
  ++forgotten;
  if (!context || current == context)
    current = nullptr;
}
}
