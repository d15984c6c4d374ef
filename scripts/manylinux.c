/* What LLVM's archives and libstdc++'s take from a C library newer than that of
   manylinux.sh; stat and the like are in its libc_nonshared.a. Hidden: nobody
   else's calls come here. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo */
#pragma GCC visibility push(hidden)

/* 2.32: whether reference counts may do without atomic instructions. They may
 * not. */
char __libc_single_threaded = 0;

/* 2.33: LLVM's statistics of memory, of which mallinfo counts to 4 GiB. */
struct mallinfo2 mallinfo2(void) {
  const struct mallinfo old = mallinfo();
  return (struct mallinfo2){(unsigned)old.arena,    (unsigned)old.ordblks,
                            (unsigned)old.smblks,   (unsigned)old.hblks,
                            (unsigned)old.hblkhd,   (unsigned)old.usmblks,
                            (unsigned)old.fsmblks,  (unsigned)old.uordblks,
                            (unsigned)old.fordblks, (unsigned)old.keepcost};
}

/* 2.36 */
uint32_t arc4random(void) {
  uint32_t number;
  ssize_t got;
  do
    got = getrandom(&number, sizeof number, 0);
  while (got < 0 && errno == EINTR);
  if (got != sizeof number)
    abort(); /* a kernel before 3.17 */
  return number;
}
