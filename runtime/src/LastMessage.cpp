//===- LastMessage.cpp - what the calling thread's call said --------------===//
//
// A thread-local std::string would have its destructor registered at the
// thread's first call, and glibc ends the process when there is no memory for
// that. So a thread's text lies on the heap, and a pthread key, whose failures
// can be seen, frees it at the thread's end.
//
//===----------------------------------------------------------------------===//

#include "LastMessage.h"

#include <new>
#include <pthread.h>

namespace fovea::rt {
namespace {

/// What lastMessage() returns: that of `owned`, or a text that stays.
thread_local const char *current = "";
thread_local std::string *owned = nullptr;

struct Key {
  pthread_key_t key;
  bool made;
  Key()
      : made(pthread_key_create(&key, [](void *text) {
               current = "";
               owned = nullptr;
               delete static_cast<std::string *>(text);
             }) == 0) {}
  /// Threads that end after the library is closed must not call into it.
  ~Key() {
    if (made)
      pthread_key_delete(key);
    made = false;
  }
} key;

} // namespace

void keepMessage(const char *text) noexcept { current = text; }

void keepMessage(std::string &&text) noexcept {
  if (text.empty()) { // as of nearly every launch
    current = "";
    return;
  }
  if (!owned) {
    auto *made = new (std::nothrow) std::string;
    if (made && (!key.made || pthread_setspecific(key.key, made) != 0)) {
      delete made;
      made = nullptr;
    }
    owned = made;
  }
  if (!owned) {
    current = "memory ran out, and with it the message";
    return;
  }
  *owned = std::move(text);
  current = owned->c_str();
}

const char *lastMessage() noexcept { return current; }

} // namespace fovea::rt
