//===- OfThread.h - what a thread has on the heap ---------------*- C++ -*-===//
//
// A thread-local object with a destructor would have that registered at the
// thread's first call, and glibc ends the process when there is no memory for
// it; one that is large is taken out of the stack of each thread of a program
// that links the library. So a thread's object lies on the heap from when it is
// wanted on, and a pthread key, whose failures can be seen, frees it at the
// thread's end.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_OFTHREAD_H
#define FOVEA_RUNTIME_SRC_OFTHREAD_H

#include <new>
#include <pthread.h>

namespace fovea::rt {

template <typename T>
class OfThread {
public:
  /// The calling thread's; null: none was made.
  static T *get() noexcept { return object; }

  /// The same, made if there is none. Null: memory ran out.
  static T *make() noexcept {
    if (object)
      return object;
    T *made = new (std::nothrow) T();
    if (made && (!key.made || pthread_setspecific(key.key, made) != 0)) {
      delete made;
      made = nullptr;
    }
    return object = made;
  }

private:
  struct Key {
    pthread_key_t key;
    bool made;
    Key()
        : made(pthread_key_create(&key, [](void *made) {
                 object = nullptr;
                 delete static_cast<T *>(made);
               }) == 0) {}
    /// Threads that end after the library is closed must not call into it.
    ~Key() {
      if (made)
        pthread_key_delete(key);
      made = false;
    }
  };
  static inline thread_local T *object = nullptr;
  static inline Key key;
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_OFTHREAD_H
