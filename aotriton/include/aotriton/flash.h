//===- flash.h - attention, forward and backward ----------------*- C++ -*-===//
//
// The calls that PyTorch and TransformerEngine make. Structures have the layout
// that clients were compiled with, which differs between versions: each call
// takes the number of the layout and refuses another. docs/AOTriton.md says
// what is served, and what is refused with which status.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_FLASH_H
#define FOVEA_AOTRITON_FLASH_H

#include <aotriton/config.h>
#include <aotriton/cpp_tune.h>
#include <aotriton/runtime.h>
#include <aotriton/util.h>
#include <aotriton/v2/flash.h>

namespace AOTRITON_NS::v2::flash {

/// \return hipSuccess when the open packages have kernels of both passes for
///   some problem on the stream's device; hipErrorNoBinaryForGpu when not;
///   others: docs/AOTriton.md.
hipError_t AOTRITON_API check_gpu(Stream stream);

/// Writes which weights dropout keeps, 0.5 and -0.5, of every place of `r`.
hipError_t AOTRITON_API debug_simulate_encoded_softmax(
    TensorView<4> r, float dropout_p, TensorView<0> philox_seed,
    TensorView<0> philox_offset1, uint64_t philox_offset2, Stream stream);

} // namespace AOTRITON_NS::v2::flash

namespace AOTRITON_NS::v3::flash {

using T4 = TensorView<4>;
using T2 = TensorView<2>;
using T1 = TensorView<1>;
using T0 = TensorView<0>;
#if AOTRITON_VERSION_MINOR >= 11
using LT2 = LazyTensor<2>;
using LT4 = LazyTensor<4>;
#endif

struct AOTRITON_API attn_options {
#if AOTRITON_VERSION_MINOR >= 11
  /// -1: the library chooses. AOTriton's backends on Triton, 0 and in backward
  /// passes 1: the same as `deterministic`. Others are refused, as by AOTriton
  /// where they cannot take a call: hipErrorPeerAccessUnsupported.
  int force_backend_index = -1;
#endif
#if AOTRITON_VERSION_MINOR >= 12
  /// Gradients are the same to the last bit in every run, or it is an error.
  bool deterministic = false;
#endif
};

struct AOTRITON_API CausalType {
  static constexpr int8_t None = 0;
  /// A query at i sees the keys from i - window_left to i + window_right.
  static constexpr int8_t WindowedAttention = 3;
};

/// Values of window_left and window_right that mean a causal mask.
struct AOTRITON_API WindowValue {
  static constexpr int32_t TopLeftAligned = INT32_MIN + 1;
  static constexpr int32_t BottomRightAligned = INT32_MIN + 2;
};

#if AOTRITON_VERSION_MINOR < 14
struct AOTRITON_API VarlenType {
  static constexpr int8_t None = 0;
  static constexpr int8_t CompactVarlen = 1;
  static constexpr int8_t PaddedVarlen = 2;
#if AOTRITON_VERSION_MINOR >= 12
  static constexpr int8_t StridedVarlen = 3;
#endif
};
#else
/// How sequences of different lengths lie in memory, for each side. All zero is
/// dense.
struct AOTRITON_API VarlenStacked {
  static constexpr uint32_t BHSD = 0; ///< a sequence in each batch
  static constexpr uint32_t THD = 1;  ///< all in the rows of one batch
};
/// Of the sequences, N of them, which the queries tell.
struct AOTRITON_API VarlenLength {
  static constexpr uint32_t MAX = 0;        ///< all Max_seqlen, or the tensor's
  static constexpr uint32_t CUMULATIVE = 1; ///< differences of N + 1 numbers
  static constexpr uint32_t INDIVIDUAL = 2; ///< N numbers
};
struct AOTRITON_API VarlenPosition {
  /// Row 0, or of THD as many rows apart as Max_seqlen says.
  static constexpr uint32_t IMPLIED = 0;
  static constexpr uint32_t REUSE = 1; ///< the numbers that give the lengths
  static constexpr uint32_t ARRAY = 2; ///< N numbers, of THD queries N + 1
};
/// Of L: heads first, or rows.
struct AOTRITON_API VarlenLseLayout {
  static constexpr uint32_t HT = 0;
  static constexpr uint32_t TH = 1;
};
struct AOTRITON_API VarlenMode {
  uint8_t stacked : 1;
  uint8_t length : 2;
  uint8_t position : 2;
  uint8_t reserved : 3;
};
struct alignas(uint32_t) VarlenBits {
  VarlenMode qmode;
  VarlenMode kmode;
  uint16_t lse_layout : 2;
  uint16_t reserved : 14;
};
#endif

/// Shapes: Q, Out (batch, heads_q, seqlen_q, head_dim); K, V (batch, heads_k,
/// seqlen_k, head_dim); of sequences that are stacked in one batch (1, heads,
/// rows of all, head_dim). The order of the members is part of the binary
/// interface.
struct AOTRITON_API attn_fwd_params {
  T4 Q, K, V;
  T4 B; ///< without data, or added to the scores: (batch, heads_q,
        ///< seqlen_q, seqlen_k), in the type of Q
  T2 A;               ///< ALiBi's slopes: refused with data
  float Sm_scale = 0; ///< multiplies q.k^T
  T2 L; ///< without data, or receives the log-sum-exp: natural logarithm, fp32,
        ///< (batch * heads_q, seqlen_q); stacked: docs/AOTriton.md
  T4 Out;
#if AOTRITON_VERSION_MINOR >= 14
  T1 seqinfo_q0, seqinfo_k0; ///< lengths, int32 on the device
#else
  /// Ends of the sequences, one behind the other: int32 on the device, one
  /// number more than there are sequences, the first one 0.
  T1 cu_seqlens_q, cu_seqlens_k;
#endif
  /// The longest sequence. Not looked at where the tensors say it.
  int32_t Max_seqlen_q = 0, Max_seqlen_k = 0;
#if AOTRITON_VERSION_MINOR >= 14
  T1 seqinfo_q1, seqinfo_k1; ///< positions, likewise
#elif AOTRITON_VERSION_MINOR >= 12
  T1 seq_strides_q, seq_strides_k; ///< where each begins, in rows; or no data
#endif
  float dropout_p = 0; ///< 0: the next five do not matter
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2 = 0;
  T0 philox_seed_output, philox_offset_output;
  T4 encoded_softmax; ///< without data, or receives which weights are kept
  T0 persistent_atomic_counter; ///< not needed
  int8_t causal_type = 0;       ///< CausalType
#if AOTRITON_VERSION_MINOR < 14
  int8_t varlen_type = 0; ///< VarlenType
#endif
  int32_t window_left = 0, window_right = 0; ///< not looked at without a mask
#if AOTRITON_VERSION_MINOR >= 14
  VarlenBits varlen_bits = {};
  static constexpr int32_t kVersion = 4;
#elif AOTRITON_VERSION_MINOR >= 12
  static constexpr int32_t kVersion = 3;
#else
  static constexpr int32_t kVersion = 1;
#endif
  attn_fwd_params();
};

/// Enqueues a forward pass on the stream and returns before it has run.
/// Philox outputs are written if there is dropout.
/// \return hipErrorInvalidSymbol: `params_version` is another layout's;
///   hipErrorInvalidValue: shapes, types or addresses contradict each other;
///   hipErrorNotSupported: a feature, or a problem without a kernel;
///   hipErrorNoBinaryForGpu: no kernel at all for the stream's device;
///   hipErrorFileNotFound: no package; others: docs/AOTriton.md.
///   fovea_aotriton_last_message() gives the reason.
hipError_t AOTRITON_API attn_fwd(const attn_fwd_params &params,
                                 int32_t params_version, Stream stream,
                                 const attn_options *options = nullptr);

/// DO, DQ have the shape of Q; DK, DV that of K.
struct AOTRITON_API attn_bwd_params {
  T4 Q, K, V;
  T4 B;
  float Sm_scale = 0;
  T4 Out, DO;
  T4 DK, DV, DQ;
  T4 DB; ///< without data or strides, or receives the gradient of B
  T2 L;  ///< what the forward pass gave
  /// The kernels' workspace: D if it is large enough, else DQ_ACC.
#if AOTRITON_VERSION_MINOR >= 11
  mutable LT2 D;
#else
  T2 D;
#endif
#if AOTRITON_VERSION_MINOR >= 14
  T1 seqinfo_q0, seqinfo_k0;
#else
  T1 cu_seqlens_q, cu_seqlens_k;
#endif
  int32_t Max_seqlen_q = 0, Max_seqlen_k = 0;
#if AOTRITON_VERSION_MINOR >= 14
  T1 seqinfo_q1, seqinfo_k1;
#elif AOTRITON_VERSION_MINOR >= 12
  T1 seq_strides_q, seq_strides_k;
#endif
  float dropout_p = 0;
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2 = 0;
  int8_t causal_type = 0;
#if AOTRITON_VERSION_MINOR < 14
  int8_t varlen_type = 0;
#endif
  int32_t window_left = 0, window_right = 0;
#if AOTRITON_VERSION_MINOR >= 11
  mutable LT4 DQ_ACC;
#endif
#if AOTRITON_VERSION_MINOR >= 14
  VarlenBits varlen_bits = {};
  static constexpr int32_t kVersion = 7;
#elif AOTRITON_VERSION_MINOR >= 12
  static constexpr int32_t kVersion = 6;
#elif AOTRITON_VERSION_MINOR >= 11
  static constexpr int32_t kVersion = 3;
#else
  static constexpr int32_t kVersion = 1;
#endif
  attn_bwd_params();
};

/// Enqueues a backward pass on the stream and returns before it has run. Of D
/// and DQ_ACC only what is needed is acquired; both are freed at the end, as
/// AOTriton does.
/// \return as attn_fwd(); hipErrorNotSupported also when neither D nor DQ_ACC
///   is large enough for the kernels and FOVEA_AOTRITON_WORKSPACE is not
///   allocate.
hipError_t AOTRITON_API attn_bwd(const attn_bwd_params &params,
                                 int32_t params_version, Stream stream,
                                 const attn_options *options = nullptr);

#if AOTRITON_VERSION_MINOR == 11
/// As attn_bwd, by the same kernels.
hipError_t AOTRITON_API aiter_bwd(const attn_bwd_params &params,
                                  int32_t params_version, Stream stream,
                                  const attn_options *options = nullptr);
#endif

} // namespace AOTRITON_NS::v3::flash

#endif // FOVEA_AOTRITON_FLASH_H
