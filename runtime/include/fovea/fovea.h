/*===- fovea.h - run attention kernels from packages --------------*- C -*-===*\
|*
|* The C interface of libfovea: open kernel packages, ask whether a problem is
|* supported on a device and why not, and launch its kernel on a HIP stream.
|* C99; usable from C++. Nothing is thrown. The library links neither HIP nor
|* LLVM: a HIP library is opened at run time (docs/Runtime.md).
|*
|* Every function may be called from any thread, with one context shared by all.
|* A pointer in an info structure stays valid until its context is destroyed.
|*
|* Growth without breaking: each structure begins with `struct_size`, which the
|* caller sets to sizeof. Later versions add fields at the end only, whose zero
|* means what an earlier version did. Set a structure to zero before filling it.
|* Functions marked "since 0.2" are not in earlier libraries; fovea_version()
|* tells. C++ programs may prefer fovea.hpp.
|*
\*===----------------------------------------------------------------------===*/

#ifndef FOVEA_FOVEA_H
#define FOVEA_FOVEA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header: major * 10000 + minor * 100 + patch. */
#define FOVEA_VERSION 200

/** What kind of failure it was; fovea_last_message() says which. */
typedef int32_t fovea_status_t;
enum {
  FOVEA_STATUS_OK = 0,
  /** A parameter breaks a stated rule. */
  FOVEA_STATUS_INVALID_ARGUMENT = 1,
  /** No such file, or no kernel for the problem. */
  FOVEA_STATUS_NOT_FOUND = 2,
  /** Well formed, but for another version, chip or chip feature. */
  FOVEA_STATUS_INCOMPATIBLE = 3,
  /** A package or an image in it is damaged. */
  FOVEA_STATUS_CORRUPT = 4,
  /** The file system refused. */
  FOVEA_STATUS_IO = 5,
  /** A build held the package for too long. */
  FOVEA_STATUS_BUSY = 6,
  /** No HIP library, or none of its devices. */
  FOVEA_STATUS_NO_DEVICE = 7,
  /** A call of the HIP library failed; the message names call and kernel. */
  FOVEA_STATUS_HIP_ERROR = 8,
  FOVEA_STATUS_OUT_OF_MEMORY = 9,
  /** A fault of this library. */
  FOVEA_STATUS_INTERNAL = 10
};

/** Version of the library: compare with FOVEA_VERSION. */
FOVEA_API uint32_t fovea_version(void);

/** Name of a status, e.g. "FOVEA_STATUS_NOT_FOUND". Never NULL. */
FOVEA_API const char *fovea_status_name(fovea_status_t status);

/**
 * What the calling thread's latest fovea call had to say: of a failure the
 * thing, the value and the remedy; of fovea_forward_select() the choice; else
 * the empty string. Valid until the thread's next fovea call. Never NULL.
 */
FOVEA_API const char *fovea_last_message(void);

/**
 * What the HIP library returned to that call, a hipError_t, where that is why
 * it gave FOVEA_STATUS_HIP_ERROR; else 0. Where HIP succeeded and gave nonsense
 * it is 0 or hipErrorUnknown.
 */
FOVEA_API int32_t fovea_last_hip_error(void);

/** What a program can do about a failure, beyond its status. */
enum {
  FOVEA_CAUSE_NONE = 0, /**< nothing that has a number here */
  /** `deterministic` is 1; with 0 the call may be served. */
  FOVEA_CAUSE_DETERMINISTIC = 1,
  /** The stream is being captured, and what serves the call is not loaded, or
      not compiled; fovea_forward_prepare() and its likes do both beforehand.
      Goes before other causes. */
  FOVEA_CAUSE_CAPTURED = 2,
  /** No kernel is there, and compiling one failed in a way that may pass: no
      library, no room in the temporary folder. The same call may be served
      later. Goes behind other causes. */
  FOVEA_CAUSE_NOT_COMPILED = 3
};

/**
 * Why that call failed, FOVEA_CAUSE_...: for programs, where
 * fovea_last_message() is for people. Since 0.2.
 */
FOVEA_API int32_t fovea_last_cause(void);

/*===----------------------------------------------------------------------===*\
|* Context
\*===----------------------------------------------------------------------===*/

/** Open packages, the HIP library, and the modules loaded from them. */
typedef struct fovea_context fovea_context_t;

/**
 * Receives a line of the log, without a line end. May be called from several
 * threads at once; may not call functions of this header.
 */
typedef void (*fovea_log_fn)(void *user, const char *line);

typedef struct fovea_context_options {
  uint32_t struct_size; /**< sizeof(fovea_context_options_t) */
  /**
   * "rocm", "sim", "auto", or the path of a HIP library. NULL: as the variable
   * FOVEA_HIP_LIBRARY says; without it, "auto": ROCm's library if it has a
   * device, else the simulated one.
   */
  const char *hip_library;
  /**
   * "off", "info" (which HIP library, which packages) or "dispatch" (also each
   * new choice of a kernel, with all candidates). NULL: as the variable
   * FOVEA_LOG says; without it, off.
   */
  const char *log;
  fovea_log_fn log_fn; /**< NULL: lines go to standard error */
  void *log_user;      /**< handed to log_fn */
  /**
   * Since 0.2. "never", "auto" or "always": whether kernels that are missing are
   * compiled (docs/CompileOnDemand.md). NULL: as the variable FOVEA_COMPILE says;
   * without it, never.
   */
  const char *compile;
} fovea_context_options_t;

/**
 * Creates a context. No HIP library is opened yet: that happens at the first
 * call that needs a device.
 * \param options  NULL: all defaults.
 * \param context  receives the context; fovea_context_destroy() ends it.
 * \return INVALID_ARGUMENT: a value of the options or of a variable is unknown.
 */
FOVEA_API fovea_status_t fovea_context_create(
    const fovea_context_options_t *options, fovea_context_t **context);

/**
 * Unloads the modules and closes the packages. All work that was launched
 * through the context must have ended; no other call may use it any more.
 * NULL is allowed.
 */
FOVEA_API void fovea_context_destroy(fovea_context_t *context);

/*===----------------------------------------------------------------------===*\
|* HIP library and devices
\*===----------------------------------------------------------------------===*/

/** How the HIP library was chosen. */
enum {
  FOVEA_HIP_ROCM = 1, /**< ROCm's libamdhip64 */
  FOVEA_HIP_SIM = 2,  /**< the simulated device's libfovea_hipsim */
  FOVEA_HIP_PATH = 3  /**< the library named by path */
};

typedef struct fovea_hip_library_info {
  uint32_t struct_size;
  int32_t kind;            /**< FOVEA_HIP_... */
  const char *path;        /**< file it was loaded from */
  const char *reason;      /**< why this one; what was tried before it */
  int32_t runtime_version; /**< what hipRuntimeGetVersion says */
  int32_t device_count;
} fovea_hip_library_info_t;

/**
 * Opens the HIP library if that has not happened, and tells which it is.
 * \return NO_DEVICE: none could be opened; INCOMPATIBLE: the one asked for
 * lacks functions. The message lists what was tried.
 */
FOVEA_API fovea_status_t fovea_hip_library_info(fovea_context_t *context,
                                                fovea_hip_library_info_t *info);

/**
 * Address of a function of that HIP library, e.g. "hipMalloc", so that a caller
 * without HIP headers can use the same library. NULL when there is no library
 * or no such function; the message says which.
 */
FOVEA_API void *fovea_hip_symbol(fovea_context_t *context, const char *name);

typedef struct fovea_device_info {
  uint32_t struct_size;
  int32_t compute_units;
  const char *arch; /**< HIP's name, e.g. "gfx942:sramecc+:xnack-" */
} fovea_device_info_t;

/**
 * Describes a device of the HIP library.
 * \return NO_DEVICE as fovea_hip_library_info(); INVALID_ARGUMENT: no such
 *   number; HIP_ERROR: HIP could not describe it.
 */
FOVEA_API fovea_status_t fovea_device_info(fovea_context_t *context,
                                           int32_t device,
                                           fovea_device_info_t *info);

/*===----------------------------------------------------------------------===*\
|* Packages and kernels
\*===----------------------------------------------------------------------===*/

/**
 * Opens a package file, or all files *.fovea of a folder, in the order of their
 * names. All or none: when one is refused, none is opened.
 * \return NOT_FOUND: no such file, or a folder without packages; CORRUPT,
 *   INCOMPATIBLE, IO, BUSY: the file was refused, the message says why.
 */
FOVEA_API fovea_status_t fovea_package_open(fovea_context_t *context,
                                            const char *path);

/** Number of kernels in the open packages, and of those compiled on demand
    (docs/CompileOnDemand.md), which have ids too. */
FOVEA_API size_t fovea_kernel_count(fovea_context_t *context);

typedef struct fovea_kernel_info {
  uint32_t struct_size;
  /** Names the kernel in fovea_forward_params_t; 1 to fovea_kernel_count(). */
  uint32_t id;
  const char *package; /**< path of its package; "(memory)" of a kernel that was
                            compiled on demand and could not be kept */
  const char *target;   /**< e.g. "gfx942", "gfx11-generic" */
  const char *problem;  /**< e.g. "forward;dtype=bf16;head_dim=128" */
  const char *schedule; /**< the compiler's text */
  /** Name in the code object, or what the names of its launches begin with. */
  const char *symbol;
  int32_t abi_version;
  /** Query rows a workgroup owns, keys an iteration visits, work-items of a
      workgroup. Of a kernel of several launches these and the resources are the
      largest; occupancy the smallest; instructions and code the sums. */
  int32_t block_m, block_n, threads;
  int32_t vgprs, agprs, sgprs;
  int32_t lds_bytes;     /**< of a workgroup */
  int32_t scratch_bytes; /**< of a lane */
  int32_t occupancy;     /**< waves a SIMD */
  int32_t matrix_instructions;
  int32_t code_bytes;
  double compile_ms;
  /** Since 0.2. Registers spilled; -1: not known, the package is of an older
      format. */
  int32_t vgpr_spills, sgpr_spills;
} fovea_kernel_info_t;

/**
 * Describes a kernel.
 * \param id  1 to fovea_kernel_count(), in the order in which the packages were
 *   opened.
 * \return INVALID_ARGUMENT: no such id.
 */
FOVEA_API fovea_status_t fovea_kernel_info(fovea_context_t *context,
                                           uint32_t id,
                                           fovea_kernel_info_t *info);

/*===----------------------------------------------------------------------===*\
|* Attention, forward
\*===----------------------------------------------------------------------===*/

/** Type of q, k, v, out and gradients. */
enum { FOVEA_DTYPE_F16 = 1, FOVEA_DTYPE_BF16 = 2, FOVEA_DTYPE_F32 = 3 };

/**
 * Which keys a query row sees. Causal top left: row i sees keys 0 to i. Bottom
 * right: row i sees keys 0 to i + seqlen_k - seqlen_q.
 */
enum {
  FOVEA_MASK_NONE = 0,
  FOVEA_MASK_CAUSAL_TOP_LEFT = 1,
  FOVEA_MASK_CAUSAL_BOTTOM_RIGHT = 2
};

/**
 * Since 0.2. Parameters that come together or not at all, in a structure of
 * their own that begins with this and is linked to others by `next`. What a
 * program does not know it leaves out, and what the library does not know it
 * refuses by number, so that bias, sequence offsets or pages can come later
 * without another structure changing. At most one of each group.
 */
typedef struct fovea_group {
  uint32_t struct_size;           /**< sizeof of the whole structure */
  uint32_t group;                 /**< FOVEA_GROUP_... */
  const struct fovea_group *next; /**< or NULL */
} fovea_group_t;

enum {
  FOVEA_GROUP_WINDOW = 1,
  FOVEA_GROUP_DLSE = 2,
  FOVEA_GROUP_SINKS = 3,
  FOVEA_GROUP_SCORE = 4,
  FOVEA_GROUP_DSINKS = 5,
  FOVEA_GROUP_BLOCKS = 6,
  FOVEA_GROUP_VARLEN = 7,
  FOVEA_GROUP_DROPOUT = 8,
  FOVEA_GROUP_HEAD_DIMS = 9
};

/** From which diagonal a side of a window counts. */
enum {
  FOVEA_ALIGN_TOP_LEFT = 0,    /**< j = i */
  FOVEA_ALIGN_BOTTOM_RIGHT = 1 /**< j = i + seqlen_k - seqlen_q */
};

/** No bound on a side of a window, whatever the lengths. */
#define FOVEA_WINDOW_INFINITE INT64_MAX

/**
 * Since 0.2. Which keys a query row sees, in place of a mask (which is then
 * FOVEA_MASK_NONE): row i sees key j of 0 to seqlen_k - 1 if
 *   i + dl - left <= j <= i + dr + right
 * with dl and dr 0 for a side aligned top left, seqlen_k - seqlen_q for one
 * aligned bottom right. Either side may be negative: the window then lies
 * beside the diagonal, and may be empty. No sum overflows. A row that sees no
 * key has zeros and a log-sum-exp of -infinity, and no gradient.
 *
 * flash-attn's numbers are those of both sides bottom right, with -1 in the
 * place of FOVEA_WINDOW_INFINITE (fovea_window_of_flash_attn). Causal masks are
 * left infinite and right 0.
 */
typedef struct fovea_window {
  fovea_group_t header; /**< {sizeof(fovea_window_t), FOVEA_GROUP_WINDOW} */
  int64_t left, right;  /**< keys */
  int32_t left_alignment, right_alignment; /**< FOVEA_ALIGN_... */
} fovea_window_t;

/** A window as flash-attn's window_size = (left, right) means it: both ends
    counted from the bottom right, a negative number infinite. */
static inline fovea_window_t fovea_window_of_flash_attn(int64_t left,
                                                        int64_t right) {
  fovea_window_t window;
  window.header.struct_size = (uint32_t)sizeof(window);
  window.header.group = FOVEA_GROUP_WINDOW;
  window.header.next = 0;
  window.left = left < 0 ? FOVEA_WINDOW_INFINITE : left;
  window.right = right < 0 ? FOVEA_WINDOW_INFINITE : right;
  window.left_alignment = FOVEA_ALIGN_BOTTOM_RIGHT;
  window.right_alignment = FOVEA_ALIGN_BOTTOM_RIGHT;
  return window;
}

/**
 * Since 0.2. Of a backward pass: the gradient of the log-sum-exp, where other
 * results than the output were made of it, as when parts of the keys are
 * merged. Delta, the dot product of out and dout by row, is less by it. That of
 * a row that saw no key is not looked at.
 */
typedef struct fovea_dlse {
  fovea_group_t header; /**< {sizeof(fovea_dlse_t), FOVEA_GROUP_DLSE} */
  /** (batch, heads_q, seqlen_q), fp32, the sequence contiguous. NULL: zeros. */
  const float *dlse;
  int64_t dlse_stride_batch, dlse_stride_head; /**< in elements */
} fovea_dlse_t;

/**
 * Since 0.2. Of a forward pass: a learnt logit for each query head, of the
 * natural logarithm and not multiplied by the scale, that takes part in the
 * softmax as a key without a value would:
 *   lse = log(exp(sink) + sum over keys of exp(scale * q.k^T)).
 * No mask hides it: a row that sees no key has zeros in out and its head's sink
 * in lse. A sink of -infinity is none, to the last bit. The gradients of q, k
 * and v need none of it: it is in lse. That of the sinks is fovea_dsinks_t's.
 */
typedef struct fovea_sinks {
  fovea_group_t header;      /**< {sizeof(fovea_sinks_t), FOVEA_GROUP_SINKS} */
  const float *sinks;        /**< (heads_q), fp32. NULL: none. */
  int64_t sinks_stride_head; /**< in elements, at least 0 */
} fovea_sinks_t;

/**
 * Since 0.2. Of a backward pass: the gradient of the forward pass's sinks,
 *   dsinks = - sum over batches and queries of exp(sink - lse) * delta,
 * delta being the dot product of out and dout by row, less dlse where that is
 * given (fovea_dlse_t). Every element is written, 0 of a sink of -infinity and
 * where there are no rows. The bits are the same in every run, whatever the
 * algorithm.
 */
typedef struct fovea_dsinks {
  fovea_group_t header; /**< {sizeof(fovea_dsinks_t), FOVEA_GROUP_DSINKS} */
  const float *sinks;   /**< (heads_q), fp32. NULL: all -infinity. */
  int64_t sinks_stride_head; /**< in elements, at least 0 */
  /** Receives the gradient, (heads_q), fp32, in memory of its own, as dq's.
      NULL: it is not wanted; a call that chooses then takes a stride other
      than 0 for one that is. */
  float *dsinks;
  int64_t dsinks_stride_head; /**< in elements; of several heads at least 1 */
} fovea_dsinks_t;

/**
 * Since 0.2. Lists of blocks, one for each batch, query head and block of the
 * other side: of shape (batch, heads_q, blocks), and behind it a dimension of
 * `entries`. The last dimension of each is contiguous; strides are in elements,
 * at least 0, and 0 of what all have in common. Of a list the first num_blocks
 * entries count, in any order, no block twice. All zero: no lists.
 */
typedef struct fovea_block_lists {
  const int32_t *num_blocks; /**< lengths of the lists */
  int64_t num_blocks_stride_batch, num_blocks_stride_head;
  const int32_t *indices; /**< numbers of blocks, from 0 on */
  int64_t indices_stride_batch, indices_stride_head;
  int64_t indices_stride_block; /**< between lists; at most 2097151 */
  int64_t entries; /**< of a list in memory, those that do not count too */
} fovea_block_lists_t;

/**
 * Since 0.2. Which blocks of keys each block of queries sees (FlexAttention's
 * BlockMask, docs/BlockLists.md), beside mask, window and score program. Blocks
 * in no list are not visited, whatever lies there. A row without a block has
 * zeros and a log-sum-exp of -infinity, and no gradient.
 *
 * A block is listed in `full` if every query of it sees every key, and both
 * sequences have all of it: kernels need not mask it, nor ask a score program's
 * predicate. Its score is computed in every block that is listed. A forward
 * pass reads kv and full_kv alone, a backward pass all four; that they agree is
 * not checked.
 *
 * Numbers outside of the sequence's blocks never lead outside of a tensor; in
 * kv and q they are blocks past the last, in the full ones results are
 * undefined.
 */
typedef struct fovea_blocks {
  fovea_group_t header; /**< {sizeof(fovea_blocks_t), FOVEA_GROUP_BLOCKS} */
  /** Queries and keys of a block, each a multiple of 128, to 2^30; the last
      block of a sequence may be shorter. */
  int64_t q_block, kv_block;
  /** Of each block of queries the blocks of keys that it sees in part. None:
      every block is seen in part. */
  fovea_block_lists_t kv;
  fovea_block_lists_t full_kv; /**< in whole. None: no block is. */
  /** Of each block of keys the blocks of queries that see it in part, and in
      whole: what kv and full_kv say, the other way round. */
  fovea_block_lists_t q, full_q;
} fovea_blocks_t;

/** What `lengths` of fovea_sequences_t are. */
enum {
  FOVEA_LENGTHS_EACH = 0, /**< (batch): the length of each sequence */
  /** (batch + 1), never falling: sequence z has lengths[z + 1] - lengths[z] */
  FOVEA_LENGTHS_CUMULATIVE = 1
};
/** Where sequences lie in q and what has its rows, or in k and what has its. */
enum {
  FOVEA_ROWS_BATCHED = 0, /**< (batch, heads, seqlen, head_dim): each in its own
                             batch */
  FOVEA_ROWS_PACKED = 1   /**< (1, heads, total, head_dim): all in one batch,
                             whose stride_batch is not looked at */
};
/** Where the rows of lse and dlse lie. */
enum {
  FOVEA_LSE_AS_Q =
      0, /**< as those of q: (heads_q, total) where they are packed */
  FOVEA_LSE_BATCHED = 1 /**< (batch, heads_q, seqlen_q), from 0 on, always */
};

/** Since 0.2. The lengths and places of the sequences of one side. */
typedef struct fovea_sequences {
  /** On the device, read by the kernels; see `kind`. Less than 0 counts as 0,
      more than the call's seqlen as that. NULL: all have it. */
  const int32_t *lengths;
  /** On the device, (batch): the row, of the batch's, with which each sequence
      begins. NULL: row 0; packed, the cumulative lengths are meant. */
  const int32_t *starts;
  int32_t kind;   /**< FOVEA_LENGTHS_... */
  int32_t layout; /**< FOVEA_ROWS_... */
  /** Rows of packed tensors. Of batches: those that each has, if they are not
      the call's seqlen, of which no sequence with lengths may then have more
      (places of dropped weights are counted by seqlen); 0: they are. */
  int64_t total;
} fovea_sequences_t;

/**
 * Since 0.2. Sequences of different lengths (docs/VariableLengths.md). The
 * call's batch is their number, and its seqlen_q and seqlen_k are the most that
 * any has, by which the grid is made: a sequence that has more loses the rest.
 * Masks and windows count from each sequence's own corners. Rows of no sequence
 * are neither read nor written.
 *
 * Each sequence has the bits that it would have alone. All zero: as without the
 * group.
 */
typedef struct fovea_varlen {
  fovea_group_t header; /**< {sizeof(fovea_varlen_t), FOVEA_GROUP_VARLEN} */
  fovea_sequences_t q, k;
  /** Distance of queries in lse and dlse, in elements; 0: 1. With
      FOVEA_LSE_AS_Q and heads_q here, and stride_head 1, lse is
      (total, heads_q). */
  int64_t lse_stride_seq;
  int32_t lse_layout; /**< FOVEA_LSE_... */
  uint32_t reserved;  /**< 0 */
} fovea_varlen_t;

/** Which of the four words of a call of the generator is whose key's. */
enum {
  FOVEA_PHILOX_0123 = 0, /**< in order, as AOTriton has it from 0.14 on */
  FOVEA_PHILOX_0213 = 1  /**< of keys 0 to 3 the words 0, 2, 1, 3, as AOTriton
                            0.10 to 0.13 have it */
};

/**
 * Since 0.2. Weights are dropped by chance (docs/Dropout.md): with probability
 * p a weight is 0 in the product with V, else 1/(1-p) times what it is. The sum
 * that weights are divided by, and lse, are of all weights. A backward call
 * with the seed and offset of the forward one drops the same.
 *
 * The random word of query i and key j of batch (or sequence) z and query head
 * h is word j mod 4 of Philox4x32-10 with the key `seed` and the counter offset
 * + ((z heads_q + h) seqlen_q + i) ceil(seqlen_k / 4) + j / 4, seqlen being the
 * call's, in 64 bits. A weight is kept if the word, with sign, is more than (p
 * - 0.5f) * 2^32, computed in fp32 and truncated, as AOTriton's kernels do.
 * With p 0 nothing of this is read or written; with p 1 out and all gradients
 * are 0.
 */
typedef struct fovea_dropout {
  fovea_group_t header;
  float p;            /**< 0 to 1 */
  int32_t word_order; /**< FOVEA_PHILOX_... */
  uint64_t seed_value,
      offset_value; /**< added, modulo 2^64, to the numbers at */
  const uint64_t *seed,
      *offset; /**< on the device, read by the kernels; NULL: 0 */
  /** Of a forward call: on the device, receive the sums, for the backward call.
      NULL: they are not written. */
  uint64_t *seed_out, *offset_out;
} fovea_dropout_t;

/**
 * Since 0.2. Rows of v, out, dout and dv have another length than those of q,
 * k, dq and dk, which have the call's head_dim (docs/HeadDimensions.md).
 */
typedef struct fovea_head_dims {
  fovea_group_t
      header;         /**< {sizeof(fovea_head_dims_t), FOVEA_GROUP_HEAD_DIMS} */
  int64_t head_dim_v; /**< 1 to 512; 0: head_dim */
} fovea_head_dims_t;

/** Types of what a score program captures. Of a boolean, one byte, true is what
    is not 0. Scalars are F32 or I32. */
enum {
  FOVEA_CAPTURE_F32 = 1,
  FOVEA_CAPTURE_F16 = 2,
  FOVEA_CAPTURE_BF16 = 3,
  FOVEA_CAPTURE_I32 = 4,
  FOVEA_CAPTURE_BOOL = 5
};

/**
 * Since 0.2. A scalar, or a tensor in device memory, that a score program
 * reads. A dimension that the program indexes by batch, query head, query or
 * key has at least the problem's extent; where these broadcast, its stride is
 * 0. Where the program says that the last stride is 1, the address, and the
 * other strides and the last extent in bytes, are multiples of 4: of padded
 * rows give the extent with the padding.
 */
typedef struct fovea_capture {
  int32_t type; /**< FOVEA_CAPTURE_... */
  int32_t rank; /**< 1 to 4 dimensions; 0: a scalar */
  double value; /**< of a scalar; rounded to F32, or a whole number for I32 */
  const void *data; /**< of a tensor: a multiple of its elements' size */
  int64_t extents[4];
  int64_t strides[4]; /**< in elements, at least 0 */
  /** Of a backward call, of what is F32, F16 or BF16: F32 in device memory that
      the gradient is added to, of the capture's extents, or one element of a
      scalar. It may share memory with nothing else of the call. NULL: the
      gradient is not wanted. */
  void *gradient;
  /** Of the gradient, in elements, at least 0; where one is 0, it is summed
      over that dimension, which `deterministic` refuses. */
  int64_t gradient_strides[4];
} fovea_capture_t;

/**
 * Since 0.2. A program that acts on the scaled products of queries and keys
 * before the softmax (docs/ScorePrograms.md), and what it reads. Only kernels
 * that were compiled with it serve the call.
 */
typedef struct fovea_score {
  fovea_group_t header; /**< {sizeof(fovea_score_t), FOVEA_GROUP_SCORE} */
  /** The name under which it was compiled, of the programs of that name the one
      that takes these captures; or the 16 digits of its key. */
  const char *program;
  const fovea_capture_t *captures; /**< in the program's order */
  uint32_t capture_count;          /**< 0 to 8 */
  uint32_t capture_size;           /**< sizeof(fovea_capture_t) */
  /** Where FOVEA_COMPILE is auto or always: MLIR text with functions that are
      programs (docs/ScorePrograms.md), of which `program` names one, or several
      and those of the library, as for aot-compile --score-file. Then the text
      and not the name decides which kernel serves the call, by the program's
      digest; one that is missing is compiled. NULL: `program` names programs of
      kernels at hand, then of the compiler's library. With never it is not
      looked at. */
  const char *text;
  /** Of a backward call, captures as bits by number: their gradients, where
      they are wanted, are stored in the capture's type, F16 or BF16, and not
      added to F32. The program indexes these captures by batch, query head,
      query and key, and the gradient has memory of its own for each. Every
      place of queries and keys that there are is written, 0 where it is not
      visible; the capture's padding is not. */
  uint32_t stored_gradients;
  uint32_t reserved; /**< 0 */
} fovea_score_t;

/** What a launch is made of. */
typedef struct fovea_launch {
  uint32_t grid[3]; /**< workgroups */
  uint32_t threads; /**< work-items of a workgroup */
} fovea_launch_t;

/**
 * A tensor of shape (batch, heads, sequence, head_dim) in device memory, the
 * head dimension contiguous, the others in any order. Strides in elements, at
 * least 0; stride_seq at most 4194303, of f32 2097151.
 */
typedef struct fovea_tensor {
  const void *data; /**< a multiple of the element size */
  int64_t stride_batch, stride_head, stride_seq;
} fovea_tensor_t;

/**
 * The same, written to. Its rows may not overlap, and it may share memory with
 * no other tensor of the call, the log-sum-exp and the workspace included:
 * kernels read while they write. Tensors may lie between one another's rows, as
 * when they are packed into one buffer. A launch whose tensors are found to
 * share a byte is refused as INVALID_ARGUMENT, with both names; that is always
 * found out where the strides of the two are equal or both are without gaps,
 * and for others as far as a few steps tell. What is not found out is
 * undefined. Tensors that are only read may share memory as they like.
 */
typedef struct fovea_mutable_tensor {
  void *data;
  int64_t stride_batch, stride_head, stride_seq;
} fovea_mutable_tensor_t;

typedef struct fovea_forward_params {
  uint32_t struct_size; /**< sizeof(fovea_forward_params_t) */
  int32_t dtype;        /**< FOVEA_DTYPE_... */
  int32_t mask;         /**< FOVEA_MASK_... */
  /** Multiplies q.k^T before the softmax; 1/sqrt(head_dim) is usual. At most
   *  2.358e38 in magnitude: times log2(e) it must be a number in fp32. Where
   *  scale * q.k^T is none, results are infinite or NaN. */
  float scale;
  int64_t batch;
  int64_t heads_q;
  int64_t heads_k; /**< divides heads_q; query head h uses key head
                        h / (heads_q / heads_k) */
  int64_t seqlen_q, seqlen_k;
  int64_t head_dim;           /**< of q and k, 1 to 576 */
  fovea_tensor_t q;           /**< (batch, heads_q, seqlen_q, head_dim) */
  fovea_tensor_t k;           /**< (batch, heads_k, seqlen_k, head_dim) */
  fovea_tensor_t v;           /**< (batch, heads_k, seqlen_k, head_dim) */
  fovea_mutable_tensor_t out; /**< (batch, heads_q, seqlen_q, head_dim) */
  /** NULL, or receives the log-sum-exp: natural logarithm, fp32, shape (batch,
      heads_q, seqlen_q), the sequence contiguous. Its memory is its own, as
      out's. */
  float *lse;
  int64_t lse_stride_batch, lse_stride_head; /**< in elements */
  uint32_t kernel;   /**< id of the kernel to use; 0: the library picks */
  uint32_t reserved; /**< 0 */
  const fovea_group_t *groups; /**< since 0.2: the first one, or NULL */
  /** Since 0.2. As in fovea_backward_params_t, of the plan's size. Kernels that
      split the keys need one; a launch with less runs one that does not, if
      there is one or it may be compiled on demand (and `kernel` and `splits`
      leave the choice). fovea_forward_prepare() with less loads both. */
  void *workspace;
  uint64_t workspace_bytes;
  /** Since 0.2. How many workgroups share out the keys of a block of rows: 0:
      as many as fill the device, by the rule of docs/SplitKeys.md; 1: keys are
      not split; 2 to 1024: so many, or as many as the keys have blocks if these
      are fewer. The bits of results depend on the number; of one number they
      are the same in every run. */
  uint32_t splits;
  uint32_t reserved2; /**< 0 */
  /** Since 0.2. Of calls that plan (select, prepare, explain): the hipStream_t
      on which the launch will be. While it is being captured they compile and
      load nothing and choose among the kernels that are loaded on the device,
      as a launch into it does. NULL: it will not be captured, or nobody knows.
      Launches have theirs as an argument, and do not look at this. */
  void *stream;
} fovea_forward_params_t;

/** How a kernel came to be chosen. */
enum {
  FOVEA_CHOSEN_BY_CALLER = 1, /**< `kernel` named it */
  FOVEA_CHOSEN_BY_TUNING = 2, /**< the package's tuning table */
  FOVEA_CHOSEN_BY_RULE = 3    /**< docs/Runtime.md, Choice of the kernel */
};

typedef struct fovea_forward_plan {
  uint32_t struct_size;
  uint32_t kernel; /**< its id; 0: nothing to compute, no launch */
  int32_t chosen_by;
  uint32_t grid[3]; /**< workgroups, of the first launch */
  uint32_t threads; /**< work-items of a workgroup */
  /** Since 0.2. Launches in all, and what memory they need; may be 0. */
  uint32_t launch_count;
  uint64_t workspace_bytes;
  /** Since 0.2. Shares of the keys; 1: they are not split. */
  uint32_t splits;
  uint32_t reserved; /**< 0 */
  /** Since 0.2. 1: `stream` is being captured, and what is loaded decided: its
      kernel and workspace serve any launch of the parameters, but others may
      be better for those that are not captured. */
  uint32_t provisional;
  uint32_t reserved2; /**< 0 */
} fovea_forward_plan_t;

/**
 * Tells whether a device can run the problem, and with which kernel. Looks at
 * everything in `params` but the addresses and the workspace. The message then
 * describes the choice, or lists each candidate with the reason why it was
 * refused.
 * \param device  number of the device; -1: the calling thread's current one.
 * \param plan  NULL, or receives the choice.
 * \return INVALID_ARGUMENT: a value breaks a rule above, or `stream` is being
 *   captured and no kernel that fits is loaded (FOVEA_CAUSE_CAPTURED);
 *   NOT_FOUND: no kernel fits; NO_DEVICE, INCOMPATIBLE, HIP_ERROR as
 *   fovea_device_info(); HIP_ERROR also when HIP does not tell whether the
 *   stream is captured.
 */
FOVEA_API fovea_status_t fovea_forward_select(
    fovea_context_t *context, const fovea_forward_params_t *params,
    int32_t device, fovea_forward_plan_t *plan);

/**
 * Since 0.2. Does what fovea_forward_select() does and loads the chosen kernel
 * on the device, so that a launch with these parameters, whatever its
 * addresses, does nothing but launch: for a first call without delay, for
 * launches into a stream that is being captured, and for a support query that
 * has seen HIP take the image. Launches of other sizes may choose another
 * kernel; `kernel` in the parameters prepares one by its id.
 * Call it before a capture begins; captures by other threads are not disturbed
 * where HIP has hipThreadExchangeStreamCaptureMode. The calling thread's current
 * device is the same before and after.
 * \return as fovea_forward_select(); also CORRUPT, IO, INCOMPATIBLE when the
 *   kernel's image was refused, and HIP_ERROR when HIP refused it.
 */
FOVEA_API fovea_status_t fovea_forward_prepare(
    fovea_context_t *context, const fovea_forward_params_t *params,
    int32_t device, fovea_forward_plan_t *plan);

/** What became of a candidate. */
enum {
  FOVEA_CANDIDATE_CHOSEN = 1,
  /** It could run the problem, but another comes before it. */
  FOVEA_CANDIDATE_ACCEPTED = 2,
  /** It can't run the problem on the device. */
  FOVEA_CANDIDATE_REFUSED = 3,
  /** No kernel: a row of a package's tuning table holds the problem, but what
      it names can't be taken. The choice goes on with the next package's table,
      then with the rule. */
  FOVEA_CANDIDATE_TUNING_MISSED = 4
};

/** Since 0.2. A step of a choice. The library sets struct_size. */
typedef struct fovea_candidate {
  uint32_t struct_size;
  uint32_t kernel;    /**< its id; 0 of FOVEA_CANDIDATE_TUNING_MISSED */
  int32_t state;      /**< FOVEA_CANDIDATE_... */
  uint32_t reserved;  /**< 0 */
  const char *name;   /**< names kernel or tuning row, for people */
  const char *reason; /**< why it is in that state, and the remedy */
} fovea_candidate_t;

/**
 * Receives the steps of a choice, in the thread that asked. The structure and
 * its texts are valid until it returns. May call functions of this header.
 */
typedef void (*fovea_explain_fn)(void *user,
                                 const fovea_candidate_t *candidate);

/**
 * Since 0.2. Chooses as fovea_forward_select() does and tells how: tuning rows
 * that were missed, then the chosen kernel, the other accepted ones in the
 * order in which they would be chosen, and the refused ones by their ids. With
 * `kernel` in the parameters, that one alone. FOVEA_LOG=dispatch prints the same.
 * \param explain  called for each step; not at all when there is nothing to
 *   compute or no kernel for the problem in any package, which the message says.
 * \return as fovea_forward_select(), after the last step.
 */
FOVEA_API fovea_status_t fovea_forward_explain(
    fovea_context_t *context, const fovea_forward_params_t *params,
    int32_t device, fovea_explain_fn explain, void *user);

/**
 * Enqueues one attention forward pass on the calling thread's current device
 * and returns before it has run:
 *   out = softmax(scale * q.k^T + mask) . v, summed in fp32.
 * A row that sees no key gets zeros, and -infinity in lse. With batch, heads_q
 * or seqlen_q 0 there is nothing to do and nothing is launched.
 * \param params  not kept after the return.
 * \param stream  hipStream_t of the current device; NULL: the default stream.
 *   Into one that is being captured only kernels are launched that have been
 *   launched or prepared on the device before; INVALID_ARGUMENT, of
 *   FOVEA_CAUSE_CAPTURED, where none of these fits.
 * \return as fovea_forward_select(); INVALID_ARGUMENT also when what is written
 *   shares memory with another tensor; NOT_FOUND also when only kernels that
 *   split the keys are left and the workspace is too small; CORRUPT or IO when
 * the kernel's image could not be read, and HIP_ERROR when HIP refused module
 * or launch. Source: docs/KernelAbi.md; Dao 2023 (FlashAttention-2),
 * Algorithm 1.
 */
FOVEA_API fovea_status_t fovea_forward(fovea_context_t *context,
                                       const fovea_forward_params_t *params,
                                       void *stream);

/*===----------------------------------------------------------------------===*\
|* Attention, backward
\*===----------------------------------------------------------------------===*/

/** The forward pass's fields mean what they mean there, and have its values. */
typedef struct fovea_backward_params {
  uint32_t struct_size; /**< sizeof(fovea_backward_params_t) */
  int32_t dtype;        /**< FOVEA_DTYPE_... */
  int32_t mask;         /**< FOVEA_MASK_... */
  float scale;
  int64_t batch;
  int64_t heads_q, heads_k;
  int64_t seqlen_q, seqlen_k;
  int64_t head_dim;
  fovea_tensor_t q;    /**< (batch, heads_q, seqlen_q, head_dim) */
  fovea_tensor_t k;    /**< (batch, heads_k, seqlen_k, head_dim) */
  fovea_tensor_t v;    /**< as k */
  fovea_tensor_t out;  /**< as q: the forward pass's output */
  fovea_tensor_t dout; /**< as q: the gradient of out */
  /** The forward pass's log-sum-exp, (batch, heads_q, seqlen_q). */
  const float *lse;
  int64_t lse_stride_batch, lse_stride_head; /**< in elements */
  /**
   * Receive the gradients of q, k and v, in those shapes; the last two summed
   * over the query heads that share a key head. All zero (data and strides):
   * the gradient is not wanted. dk and dv are wanted both or not at all.
   */
  fovea_mutable_tensor_t dq, dk, dv;
  /** Device memory for the kernels, aligned to 16 bytes, of at least the plan's
      workspace_bytes; it holds nothing before or after. The plan's bytes share
      memory with none of the tensors. No two passes that may run at the same
      time share one. */
  void *workspace;
  uint64_t workspace_bytes;
  /** 1: gradients must be the same to the last bit in every run on a chip;
      kernels that add dq up with atomics are refused, by name. 0: not needed;
      either algorithm may run (docs/Runtime.md, Choice of the kernel). */
  uint32_t deterministic;
  uint32_t kernel;   /**< id of the kernel to use; 0: the library picks */
  uint32_t reserved; /**< 0 */
  const fovea_group_t *groups; /**< since 0.2: the first one, or NULL */
  /** Since 0.2. 1: dq is summed in memory in `dtype`, which rounds each sum
      (docs/Accuracy.md, Narrow sums); only kernels that do so are taken. 0:
     they are refused, by name. */
  uint32_t narrow_sums;
  uint32_t reserved2; /**< 0 */
  void *stream;       /**< since 0.2: as in fovea_forward_params_t */
} fovea_backward_params_t;

typedef struct fovea_backward_plan {
  uint32_t struct_size;
  uint32_t kernel; /**< its id; 0: nothing to compute, no launch */
  int32_t chosen_by;
  uint32_t launch_count;    /**< of `launches` in use */
  uint64_t workspace_bytes; /**< what the launches need; may be 0 */
  fovea_launch_t launches[4];
  uint32_t provisional; /**< since 0.2: as in fovea_forward_plan_t */
  uint32_t reserved;    /**< 0 */
} fovea_backward_plan_t;

/**
 * Tells whether a device can run the problem, with which kernels, and how much
 * workspace they need. Looks at everything in `params` but the addresses and
 * the workspace; a gradient whose strides are given is taken as wanted. The
 * message is as that of fovea_forward_select().
 * \param device  number of the device; -1: the calling thread's current one.
 * \param plan  NULL, or receives the choice.
 * \return as fovea_forward_select(); INVALID_ARGUMENT also when no gradient is
 *   wanted.
 */
FOVEA_API fovea_status_t fovea_backward_select(
    fovea_context_t *context, const fovea_backward_params_t *params,
    int32_t device, fovea_backward_plan_t *plan);

/**
 * Since 0.2. As fovea_forward_prepare(), for all kernels of the pass.
 * \return as fovea_forward_prepare().
 */
FOVEA_API fovea_status_t fovea_backward_prepare(
    fovea_context_t *context, const fovea_backward_params_t *params,
    int32_t device, fovea_backward_plan_t *plan);

/**
 * Since 0.2. As fovea_forward_explain().
 * \return as fovea_backward_select(), after the last step.
 */
FOVEA_API fovea_status_t fovea_backward_explain(
    fovea_context_t *context, const fovea_backward_params_t *params,
    int32_t device, fovea_explain_fn explain, void *user);

/**
 * Enqueues one attention backward pass on the calling thread's current device,
 * all its kernels on `stream`, and returns before they have run. With p =
 * exp(scale * q.k^T - lse) where the mask shows the key, else 0, and delta the
 * dot product of out and dout by row:
 *   dv = p^T . dout,  ds = p * (dout . v^T - delta),
 *   dq = scale * ds . k,  dk = scale * ds^T . q,
 * summed in fp32. A row that sees no key has a zero gradient and adds nothing
 * to others; so has a key that no row sees, and everything where there are no
 * queries or no keys. Gradients without elements may have any address.
 * Nothing is launched when parameters, choice or loading are refused; when HIP
 * refuses a launch, the ones before it have been enqueued and the gradients are
 * undefined.
 * \param params  not kept after the return.
 * \param stream  hipStream_t of the current device; NULL: the default stream.
 * \return as fovea_forward(); INVALID_ARGUMENT also for too small a workspace.
 * Source: docs/KernelAbi.md; Dao 2023 (FlashAttention-2), Algorithm 2.
 */
FOVEA_API fovea_status_t fovea_backward(fovea_context_t *context,
                                        const fovea_backward_params_t *params,
                                        void *stream);

/*===----------------------------------------------------------------------===*\
|* The mask of dropout
\*===----------------------------------------------------------------------===*/

/** Since 0.2. Which weights dropout keeps, without queries and keys. */
typedef struct fovea_dropout_mask_params {
  uint32_t struct_size; /**< sizeof(fovea_dropout_mask_params_t) */
  int32_t dtype;        /**< FOVEA_DTYPE_..., of the mask */
  int64_t batch;
  int64_t heads_q;
  int64_t seqlen_q, seqlen_k; /**< those of the attention's call */
  /** Receives (batch, heads_q, seqlen_q, seqlen_k), the keys contiguous: 0.5
      where a weight is kept, -0.5 where it is dropped. stride_seq, between
      queries, is any, odd too. */
  fovea_mutable_tensor_t mask;
  uint32_t kernel;   /**< id of the kernel to use; 0: the library picks */
  uint32_t reserved; /**< 0 */
  /** A fovea_dropout_t without seed_out and offset_out; without one, or with p
      0, all are kept. No other group. */
  const fovea_group_t *groups;
  void *stream; /**< since 0.2: as in fovea_forward_params_t */
} fovea_dropout_mask_params_t;

/** Since 0.2. As fovea_forward_select(), _prepare() and _explain(); the plan
   has one launch and no workspace. */
FOVEA_API fovea_status_t fovea_dropout_mask_select(
    fovea_context_t *context, const fovea_dropout_mask_params_t *params,
    int32_t device, fovea_forward_plan_t *plan);
FOVEA_API fovea_status_t fovea_dropout_mask_prepare(
    fovea_context_t *context, const fovea_dropout_mask_params_t *params,
    int32_t device, fovea_forward_plan_t *plan);
FOVEA_API fovea_status_t fovea_dropout_mask_explain(
    fovea_context_t *context, const fovea_dropout_mask_params_t *params,
    int32_t device, fovea_explain_fn explain, void *user);

/**
 * Since 0.2. Enqueues the kernel that writes the mask of a call of attention
 * with the same dropout, batch, heads and lengths (docs/Dropout.md), whatever
 * the attention's mask shows, and returns before it has run. Seed and offset
 * are read on the device when it runs. Without elements nothing is launched.
 * \param params  not kept after the return.
 * \param stream  hipStream_t of the current device; NULL: the default stream.
 * \return as fovea_forward().
 */
FOVEA_API fovea_status_t
fovea_dropout_mask(fovea_context_t *context,
                   const fovea_dropout_mask_params_t *params, void *stream);

/**
 * Since 0.2. Tells what a score program captures and computes, where
 * FOVEA_COMPILE is auto or always: its canonical text, whose first line names
 * the captures in their order (docs/ScorePrograms.md).
 * \param dtype    FOVEA_DTYPE_..., of the calls: types of captures may follow
 * it
 * \param program, text  as of fovea_score_t
 * \param canonical  receives the text, which is valid until the context is
 *   destroyed.
 * \return INVALID_ARGUMENT: there is no such program, or the text is wrong;
 *   NOT_FOUND: nothing is compiled, or the compiler's library is not there.
 */
FOVEA_API fovea_status_t fovea_score_text(fovea_context_t *context,
                                          int32_t dtype, const char *program,
                                          const char *text,
                                          const char **canonical);

#ifdef __cplusplus
}
#endif

#endif /* FOVEA_FOVEA_H */
