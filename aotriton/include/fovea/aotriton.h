/*===- aotriton.h - why a call of AOTriton's interface was refused -*- C -*-===*\
|*
|* What libfovea_aotriton offers beside AOTriton's interface. C99; usable from
|* C++.
|*
\*===----------------------------------------------------------------------===*/

#ifndef FOVEA_AOTRITON_H
#define FOVEA_AOTRITON_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What the calling thread's latest call of the interface had to say: of a
 * failure the function, the value and the remedy; of a call that was handed on
 * to another library why, and to which; else the empty string. Valid until the
 * thread's next call. Never NULL.
 */
__attribute__((visibility("default"))) const char *
fovea_aotriton_last_message(void);

/**
 * The status of that call, a hipError_t: what it returned, or would have
 * returned where it threw instead. 0 before the first call.
 */
__attribute__((visibility("default"))) int fovea_aotriton_last_status(void);

/**
 * Address of a function of the HIP library that the calls use, e.g.
 * "hipMalloc", so that a caller without HIP's headers makes tensors that mean
 * something to them. NULL when there is no such library or function;
 * fovea_aotriton_last_message() says which.
 */
__attribute__((visibility("default"))) void *
fovea_aotriton_hip_symbol(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* FOVEA_AOTRITON_H */
