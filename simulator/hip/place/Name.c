/*===- Name.c - one of HIP's names --------------------------------*- C -*-===*\
|*
|* A library with the soname and the symbol versions of ROCm's HIP library, and
|* with its symbols by libfovea_hipsim, which it needs.
|*
\*===----------------------------------------------------------------------===*/

/* The major version of ROCm whose name this file has. */
__attribute__((visibility("default"))) int fovea_sim_hip_major(void);
int fovea_sim_hip_major(void) { return FOVEA_HIP_MAJOR; }
