/*===- HipSim.h - what the simulated HIP library adds to HIP ------*- C -*-===*\
|*
|* libfovea_hipsim.so exports the HIP API over simulated devices. These
|* functions come on top: reports of what went wrong, counters of what was
|* executed, and settings. A program reaches them with dlsym (the real HIP
|* library has none of them) or by linking to the library. Plain C. See
|* docs/HipSim.md.
|*
\*===----------------------------------------------------------------------===*/

#ifndef FOVEA_HIPSIM_H
#define FOVEA_HIPSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FOVEA_SIM_API __attribute__((visibility("default")))
#else
#define FOVEA_SIM_API
#endif

/** The chip of the only device where FOVEA_SIM_TARGET names none. */
#define FOVEA_SIM_DEFAULT_TARGET "gfx942"

/** What kernels executed on one device. Counts are of wave instructions: one
 * for each instruction a wave issues, whatever its active lanes. */
typedef struct fovea_sim_counters_t {
  size_t struct_size; /**< set to sizeof(fovea_sim_counters_t) by the caller */
  uint64_t launches;  /**< kernel launches that ran, failed ones included */
  uint64_t instructions; /**< the sum of the classes below */
  uint64_t valu;         /**< vector ALU without the next two */
  uint64_t trans;        /**< exponential, logarithm, reciprocal, roots, sine */
  uint64_t mfma;         /**< matrix instructions */
  uint64_t salu;         /**< scalar ALU */
  uint64_t smem;         /**< scalar loads */
  uint64_t vmem;         /**< global, flat, buffer and scratch */
  uint64_t lds;          /**< LDS */
  uint64_t branch;       /**< branches, calls, ends of program */
  uint64_t sync;         /**< barriers, waits, hints */
  uint64_t other;
  uint64_t workgroups;
  uint64_t waves;
  uint64_t barriers;     /**< waves that passed a barrier */
  uint64_t bytes_loaded; /**< vector memory, by active lanes */
  uint64_t bytes_stored;
  double seconds; /**< wall time of the simulator on the host: says
                       nothing about time on a GPU */
} fovea_sim_counters_t;

/** The full text of the last error that any thread met: for a kernel's fault
 * the kernel, program counter, instruction, wave, lane and address; for a
 * refused module or argument the reason. Empty when there was none. The pointer
 * is good until the calling thread calls this again. */
FOVEA_SIM_API const char *fovea_sim_last_report(void);

/** Waits for the device and stores the sums since the last reset in *counters,
 * as many bytes as its struct_size says.
 * \return 0, or hipErrorInvalidValue (1) for a null pointer or a struct_size
 * of 0, hipErrorInvalidDevice (101). */
FOVEA_SIM_API int fovea_sim_counters(int device,
                                     fovea_sim_counters_t *counters);

/** Waits for the device and sets its counters to 0. \return 0 or
 * hipErrorInvalidDevice. */
FOVEA_SIM_API int fovea_sim_reset_counters(int device);

/** Changes a setting for launches that follow. Each is also read from the
 * environment, as FOVEA_SIM_<NAME>, when the library is first used:
 *   "threads"     host threads of a launch; 0: one for each host CPU
 *   "order"       forward or reverse: which workgroups of a launch start first
 *   "budget"      instructions one wave may execute; 0: without limit
 *   "check"       what kernels are watched for: all, none, or names of checks
 *                 with commas between them (docs/Checkers.md)
 *   "poison"      0 or 1: registers, LDS and scratch never written read as NaN
 *   "mfma-fault"  plants a fault in the matrix instructions, for tests that
 *                 should notice: none, swap-rows-of-a, rotate-k,
 *                 swap-blocks-of-d (environment: FOVEA_SIM_MFMA_FAULT)
 *   "quiet"       0 or 1: reports are not printed to stderr
 *   "log"         file to which each launch appends a line of JSON: what it
 *                 executed and what went wrong (docs/HipSim.md)
 *   "time"        0 or 1: before a launch its time on the chip is predicted, for
 *                 the log (docs/Timing.md); takes a log
 * \return 0, or hipErrorInvalidValue (1); the report then names the setting
 * and what it takes. */
FOVEA_SIM_API int fovea_sim_set(const char *name, const char *value);

/** Describes the library and its devices in one line: "fovea simulated HIP:
 * gfx942, gfx942". The pointer stays good. */
FOVEA_SIM_API const char *fovea_sim_describe(void);

#ifdef __cplusplus
}
#endif

#endif /* FOVEA_HIPSIM_H */
