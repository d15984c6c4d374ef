/*===- compiler.h - compile attention kernels in process ----------*- C -*-===*\
|*
|* The C interface of libfovea_compiler: a problem and a chip in, a code object
|* out, with what a package says of it and what a launch needs. It is what
|* aot-compile does, without files: equal requests give equal bytes. libfovea
|* opens this library at run time where FOVEA_COMPILE asks for it
|* (docs/CompileOnDemand.md).
|* C99; usable from C++. Nothing is thrown, and no fault of a request ends the
|* process.
|*
|* Every function may be called from any thread. Compilations run at the same
|* time, but for their last step, the linker, of which one runs at a time.
|*
|* Growth without breaking: as in fovea.h, each structure begins with
|* `struct_size`, which the caller sets to sizeof after setting all to zero.
|*
\*===----------------------------------------------------------------------===*/

#ifndef FOVEA_COMPILER_H
#define FOVEA_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FOVEA_COMPILER_API __attribute__((visibility("default")))
#else
#define FOVEA_COMPILER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header: major * 10000 + minor * 100 + patch. */
#define FOVEA_COMPILER_VERSION 200

/** What kind of failure it was; fovea_compiler_last_message() says which. */
typedef int32_t fovea_compiler_status_t;
enum {
  FOVEA_COMPILER_STATUS_OK = 0,
  /** The request breaks a stated rule: an unknown chip, key or name, MLIR that
      does not parse. */
  FOVEA_COMPILER_STATUS_INVALID_ARGUMENT = 1,
  /** The chip cannot run such a kernel, or the compiler cannot make it. */
  FOVEA_COMPILER_STATUS_UNSUPPORTED = 2,
  FOVEA_COMPILER_STATUS_CANCELLED = 3,
  /** The temporary folder takes no more. It may when tried again. */
  FOVEA_COMPILER_STATUS_IO = 4,
  FOVEA_COMPILER_STATUS_OUT_OF_MEMORY = 5,
  /** A fault of this library. */
  FOVEA_COMPILER_STATUS_INTERNAL = 6
};

/** Version of the library: compare with FOVEA_COMPILER_VERSION. */
FOVEA_COMPILER_API uint32_t fovea_compiler_version(void);

/**
 * Names all that decides what a kernel's code is, other than the request: the
 * version, a hash of the compiler, the LLVM and MLIR that are loaded. Equal
 * texts, equal kernels. Never NULL; valid for ever.
 */
FOVEA_COMPILER_API const char *fovea_compiler_build_id(void);

/** Name of a status, e.g. "FOVEA_COMPILER_STATUS_CANCELLED". Never NULL. */
FOVEA_COMPILER_API const char *
fovea_compiler_status_name(fovea_compiler_status_t status);

/**
 * What the calling thread's latest call had to say: of a failure the thing, the
 * value and the remedy, or the diagnostics with their places; of a success
 * warnings, or the empty string. Valid until the thread's next call. Never
 * NULL.
 */
FOVEA_COMPILER_API const char *fovea_compiler_last_message(void);

/** Ends compilations early; one serves any number of them. */
typedef struct fovea_compiler_canceller fovea_compiler_cancel_t;

/** NULL: memory ran out. fovea_compiler_cancel_destroy() ends it. */
FOVEA_COMPILER_API fovea_compiler_cancel_t *fovea_compiler_cancel_create(void);

/**
 * Asks all compilations with this handle to end, now and later ones. They do
 * between passes of MLIR, between those of LLVM's optimisation and before code
 * generation and linking; a call that is past that succeeds. NULL is allowed.
 */
FOVEA_COMPILER_API void fovea_compiler_cancel(fovea_compiler_cancel_t *cancel);

/** No compilation may have it any more. NULL is allowed. */
FOVEA_COMPILER_API void
fovea_compiler_cancel_destroy(fovea_compiler_cancel_t *cancel);

typedef struct fovea_compile_request {
  uint32_t struct_size; /**< sizeof(fovea_compile_request_t) */
  uint32_t reserved;    /**< 0 */
  /** The chip or generic target, "gfx942"; NULL: that of the MLIR text. */
  const char *target;
  /** What to compute: either the text of a problem as packages have it,
      "forward;dtype=bf16;head_dim=128;window=1" (docs/PackageFormat.md), or
     MLIR with one function that holds one attn op. The other is NULL. */
  const char *problem;
  const char *mlir;
  const char *mlir_name; /**< stands for a file in diagnostics; NULL: "mlir" */
  /** Parameters that take the place of the schedule's chosen ones, by the keys
      of a spec's "schedules": "algorithm=split;block_m=64"
      (docs/AotCompile.md). NULL or empty: all are chosen. */
  const char *schedule;
  fovea_compiler_cancel_t *cancel; /**< or NULL */
  /** With `problem`: its score program, by the names of aot-compile --score,
      "softcap,alibi", of the library or of `score_text`. The problem's text may
      leave `score` out; where it has one, it must be this program's. NULL:
      none. */
  const char *score;
  /** With `score`: MLIR with functions that are programs, as for --score-file,
      and what stands for its file in messages. NULL: none; "score.mlir". */
  const char *score_text, *score_text_name;
  /** With `score`: what calls give to the program, as its canonical text names
      captures, 1 for a last stride of 1 and without what indexes a dimension:
      "f32, bf16[?, ?, ?, 1]". It decides among the library's variants of a
      program, and what fits none is refused. NULL: it is not known. */
  const char *captures;
} fovea_compile_request_t;

/** A compiled kernel, or the kernels of an operation that takes several. */
typedef struct fovea_compiled fovea_compiled_t;

/** What there is to know of it. Texts and image live as long as it does. The
    figures are those of a package's row: of several launches the largest of
    registers and sizes, the smallest occupancy, the sums of instructions. */
typedef struct fovea_compiled_info {
  uint32_t struct_size;
  int32_t abi_version; /**< of the base arguments (docs/KernelAbi.md) */
  const void *image;   /**< the code object */
  uint64_t image_bytes;
  const char *target; /**< "gfx942" */
  /** Of MLIR that is no package's problem, such as one with a score program,
      the empty text. */
  const char *problem;
  const char *schedule; /**< the compiler's text */
  const char *symbol;   /**< of the kernel; of several their beginning */
  /** "delta:64:256,dq:128:256": suffix, rows of a workgroup and its work-items
      of each launch, in their order; empty of one launch of `symbol`. */
  const char *launches;
  const char *contract; /**< as aot-compile --emit=contract: JSON */
  const char *report;   /**< as aot-compile --report=json */
  int32_t block_m, block_n, threads;
  int32_t vgprs, agprs, sgprs;
  int32_t vgpr_spills, sgpr_spills;
  int32_t lds_bytes;     /**< of a workgroup */
  int32_t scratch_bytes; /**< of a lane */
  int32_t occupancy;     /**< waves a SIMD */
  int32_t matrix_instructions;
  int32_t code_bytes;
  int32_t reserved;
  double compile_ms; /**< CPU time */
  /** Of a score program its name and its canonical text
      (docs/ScorePrograms.md); without one, empty. */
  const char *score_name, *score_text;
} fovea_compiled_info_t;

/**
 * Finds the score program of a request, which needs no target, and compiles
 * nothing, in some milliseconds: of the info, `problem` has its digits,
 * `score_name` and `score_text` it, and the others are 0 or empty.
 * \param found  as fovea_compile()'s `compiled`
 */
FOVEA_COMPILER_API fovea_compiler_status_t fovea_compile_find_score(
    const fovea_compile_request_t *request, fovea_compiled_t **found);

/**
 * Compiles one kernel; takes 0.1 to some seconds of the calling thread, and a
 * stack of 8 MiB as threads have it by default.
 * \param compiled  receives the kernel; fovea_compiled_destroy() ends it. NULL
 *   after a failure.
 */
FOVEA_COMPILER_API fovea_compiler_status_t fovea_compile(
    const fovea_compile_request_t *request, fovea_compiled_t **compiled);

FOVEA_COMPILER_API fovea_compiler_status_t fovea_compiled_info(
    const fovea_compiled_t *compiled, fovea_compiled_info_t *info);

/** NULL is allowed. */
FOVEA_COMPILER_API void fovea_compiled_destroy(fovea_compiled_t *compiled);

#ifdef __cplusplus
}
#endif

#endif /* FOVEA_COMPILER_H */
