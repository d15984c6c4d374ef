/*===- Place.c - leads the loader to the simulated HIP library ----*- C -*-===*\
|*
|* An audit module (LD_AUDIT, rtld-audit(7)). Whatever file of HIP's name is looked
|* for, with a path or without, through DT_RPATH or by dlopen: the one of that
|* version in the folder FOVEA_SIM_HIP is taken. LD_LIBRARY_PATH does that only for
|* programs that name no place of their own, and PyTorch's wheels, for one, do.
|*
\*===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED unsigned la_version(unsigned version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie,
                            unsigned flag) {
  static const char kName[] = "libamdhip64.so";
  static __thread char path[PATH_MAX]; /* the loader copies it */
  const char *folder = getenv("FOVEA_SIM_HIP");
  const char *file = strrchr(name, '/');
  const char *version;
  int length;
  (void)cookie;
  (void)flag;
  file = file ? file + 1 : name;
  if (!folder || strncmp(file, kName, sizeof kName - 1) != 0)
    return (char *)name;
  /* "", ".6" or ".6.2.41133": files are named by the first number. */
  version = file + sizeof kName - 1;
  length = version[0] == '.' ? 1 + (int)strspn(version + 1, "0123456789") : 0;
  if (version[0] != '\0' && length < 2)
    return (char *)name; /* libamdhip64.so.debug, of another kind */
  length = snprintf(path, sizeof path, "%s/%s%.*s", folder, kName, length,
                    version);
  return length < (int)sizeof path ? path : (char *)name;
}
