//===- Describe.h - calls as libfovea's parameters --------------*- C++ -*-===//
//
// Checks the tensors and numbers of a call and fills libfovea's structures with
// them. Nothing here asks a device, but for memory that is cleared.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_DESCRIBE_H
#define FOVEA_AOTRITON_DESCRIBE_H

#include "Call.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace fovea::shim {

/// Sizes and strides beyond it are negative numbers of the client's.
constexpr uint64_t kLargest = uint64_t(1) << 62;

inline Status invalid(std::string message) {
  return refuse(hipErrorInvalidValue, std::move(message));
}
inline Status unsupported(std::string message) {
  return refuse(hipErrorNotSupported, std::move(message));
}

template <size_t Rank>
std::string str(const std::array<uint64_t, Rank> &numbers) {
  std::string text;
  for (uint64_t number : numbers)
    text += (text.empty() ? "(" : ", ") + std::to_string(int64_t(number));
  return text + ")";
}

/// One after the other; the first failure is the result.
inline Status firstOf(std::initializer_list<Status> results) {
  for (const Status &result : results)
    if (result)
      return result;
  return {};
}

/// Multiplies, unless the product has no place in 64 bits.
inline bool multiply(uint64_t &product, uint64_t by) {
  return !__builtin_mul_overflow(product, by, &product);
}

/// What the parameters of a call point to.
struct Groups {
  fovea_window_t window = {};
  // All zero where there is none.
  fovea_varlen_t varlen = {};
  fovea_score_t score = {};
  fovea_capture_t bias = {};
  uint64_t keys = 0; ///< of the bias, without what pads its rows
  fovea_dropout_t dropout = {};
  fovea_head_dims_t dims = {};

  /// All of them.
  std::array<fovea_group_t *, 5> headers() {
    return {&window.header, &varlen.header, &score.header, &dropout.header,
            &dims.header};
  }
  /// Puts one of them into the list.
  void link(fovea_group_t &header) {
    header.next = window.header.next;
    window.header.next = &header;
  }
  /// Makes the list anew, of a copy whose list is the original's.
  void linkAgain() {
    window.header.next = nullptr;
    for (fovea_group_t *header : headers())
      if (header != &window.header && header->struct_size)
        link(*header);
  }
};

/// Of a tensor that has the type of Q.
Status checkType(const char *name, DType type, DType ofQ);

/// Checks a tensor against Q's type and a shape, and describes it.
/// \param apart  rows from one sequence to the next; 0: that is up to batches
template <typename Tensor>
Status describe(const char *name, const TensorView<4> &view, DType type,
                const std::array<uint64_t, 4> &shape, uint64_t apart,
                Tensor &tensor);

/// The fields that both passes have, and their tensors' descriptions.
/// \param groups  keeps what the parameters point to
template <typename Params>
Status fillCommon(const ForwardCall &call, Params &params, Layout &layout,
                  Groups &groups);

/// Bytes of a tensor without gaps, whose memory is all its own, whatever the
/// order of its dimensions; 0 of another, and of one that no memory has.
template <int Rank>
uint64_t denseBytes(const TensorView<Rank> &view);

/// A call that writes which weights are kept.
struct MaskCall {
  fovea_dropout_mask_params_t params = {};
  fovea_dropout_t dropout = {};
};

/// Checks a mask of that type and shape and describes it.
Status describeMask(const char *name, const TensorView<4> &mask, DType type,
                    const std::array<uint64_t, 4> &shape,
                    const Dropout &dropout, MaskCall &call);

/// Checks the bias and describes it as what a score program reads.
template <typename Params>
Status describeBias(const ForwardCall &call, const Params &params,
                    Groups &groups);

/// Checks where the gradient of the bias goes, and describes it. As in AOTriton
/// one without strides is not wanted, and those that write over one another,
/// where its kernels do, are refused.
Status describeBiasGradient(const ForwardCall &call, const TensorView<4> &view,
                            Groups &groups);

/// Makes the gradient of the bias zeros where kernels add to it.
Status clearBiasGradient(fovea_context_t *context, Stream stream,
                         const Groups &groups);

} // namespace fovea::shim

#endif // FOVEA_AOTRITON_DESCRIBE_H
