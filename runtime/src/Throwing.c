/* What libstdc++.so.6 has for exceptions, for the linker alone
   (CMakeLists.txt): the functions that know the exceptions of a thread or have
   their memory. What else libstdc++'s archive brings works on what these
   return. */
#define FUNCTION(name)                                                         \
  __attribute__((visibility("default"))) void name(void);                      \
  void name(void) {}

FUNCTION(__cxa_allocate_exception)
FUNCTION(__cxa_free_exception)
FUNCTION(__cxa_throw)
FUNCTION(__cxa_rethrow)
FUNCTION(__cxa_begin_catch)
FUNCTION(__cxa_end_catch)
FUNCTION(__cxa_get_globals)
FUNCTION(__cxa_get_globals_fast)
/* In one object of the archive with __cxa_allocate_exception, which would come
   with them. */
FUNCTION(__cxa_allocate_dependent_exception)
FUNCTION(__cxa_free_dependent_exception)
