//===- Bias.cpp - a bias and its gradient ---------------------------------===//

#include "Describe.h"

#include <algorithm>

namespace fovea::shim {
namespace {

/// Score programs of the compiler's library (kernels/scores.mlir): of rows that
/// are read several elements at once, and of any strides.
constexpr const char *kBiasProgram = "bias",
                     *kStridedBiasProgram = "bias_strided";
/// What the first of them wants addresses, strides and rows to be multiples of.
constexpr int64_t kBiasBytes = 4;

int32_t captureTypeOf(int32_t dtype) {
  switch (dtype) {
  case FOVEA_DTYPE_F16:
    return FOVEA_CAPTURE_F16;
  case FOVEA_DTYPE_BF16:
    return FOVEA_CAPTURE_BF16;
  default:
    return FOVEA_CAPTURE_F32;
  }
}

/// Whether rows, whose elements lie side by side, do not overlap.
bool liesApart(const int64_t (&strides)[4],
               const std::array<uint64_t, 4> &sizes) {
  std::array<size_t, 3> order = {0, 1, 2};
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  uint64_t reach = sizes[3];
  for (size_t dim : order) {
    if (sizes[dim] <= 1)
      continue;
    if (uint64_t(strides[dim]) < reach)
      return false;
    reach += (sizes[dim] - 1) * uint64_t(strides[dim]);
  }
  return true;
}

} // namespace

template <typename Params>
Status describeBias(const ForwardCall &call, const Params &params,
                    Groups &groups) {
  const TensorView<4> &view = call.bias;
  if (Status bad = checkType("B", view.dtype(), call.q.dtype()))
    return bad;
  // One batch serves all sequences that are stacked in one.
  const bool isShared = call.sequences.q.stacked;
  const std::array<uint64_t, 4> least = {
      isShared ? 1 : uint64_t(params.batch), uint64_t(params.heads_q),
      uint64_t(params.seqlen_q), uint64_t(params.seqlen_k)};
  fovea_capture_t &bias = groups.bias;
  bias.type = captureTypeOf(params.dtype);
  const int64_t word =
      params.dtype == FOVEA_DTYPE_F32 ? 1 : kBiasBytes / sizeof(uint16_t);
  bias.rank = 4;
  bias.data = view.data_ptr();
  bias.extents[0] = params.batch;
  for (size_t i = 0; i != 4; ++i) {
    const uint64_t size = view.size(int(i)), stride = view.stride(int(i));
    if ((size < least[i] && size != 1) || size >= kLargest)
      return invalid("B has shape " + str(view.sizes()) +
                     "; the other tensors demand " + str(least) +
                     ", or 1 in the place of any");
    if (stride >= kLargest)
      return invalid("B has strides " + str(view.strides()) +
                     "; none of them may be negative");
    const bool isOne = size == 1 || (i == 0 && isShared);
    bias.strides[i] = isOne ? 0 : int64_t(stride);
    if (i != 0)
      bias.extents[i] = int64_t(least[i]);
  }
  groups.keys = least[3];
  // Of one key, and PyTorch's masks have such, any stride is the next
  // element's.
  if (least[3] == 1)
    bias.strides[3] = 1;
  // Kernels read words. Of an odd number of elements the last word has one
  // behind the row: in the padding, in the next row, or behind the last one, in
  // a word that the row ends in and so no further than memory does. Nobody
  // looks at it.
  bool isByWords = bias.strides[3] == 1 &&
                   reinterpret_cast<uintptr_t>(bias.data) % kBiasBytes == 0;
  for (size_t i = 0; i != 3; ++i)
    isByWords &= bias.strides[i] % word == 0;
  if (isByWords)
    bias.extents[3] += bias.extents[3] % word;
  fovea_score_t &score = groups.score;
  score.header.struct_size = sizeof(score);
  score.header.group = FOVEA_GROUP_SCORE;
  score.program = isByWords ? kBiasProgram : kStridedBiasProgram;
  score.captures = &bias;
  score.capture_count = 1;
  score.capture_size = sizeof(bias);
  groups.link(score.header);
  return {};
}

template Status describeBias(const ForwardCall &,
                             const fovea_forward_params_t &, Groups &);
template Status describeBias(const ForwardCall &,
                             const fovea_backward_params_t &, Groups &);

Status describeBiasGradient(const ForwardCall &call, const TensorView<4> &view,
                            Groups &groups) {
  if (view.stride(0) == 0 && view.stride(1) == 0 && view.stride(2) == 0)
    return {};
  if (!call.bias)
    return invalid("DB has data, and B, whose gradient it is, none");
  fovea_capture_t &bias = groups.bias;
  if (call.sequences.q.stacked && bias.extents[0] > 1)
    return invalid("DB has data, and Q " + std::to_string(bias.extents[0]) +
                   " stacked sequences, which would write over one another's "
                   "gradients of the one batch of B: leave DB without data, or "
                   "give each sequence a batch (padded)");
  if (Status bad = checkType("DB", view.dtype(), call.q.dtype()))
    return bad;
  const std::array<uint64_t, 4> least = {
      uint64_t(bias.extents[0]), uint64_t(bias.extents[1]),
      uint64_t(bias.extents[2]), groups.keys};
  for (size_t i = 0; i != 4; ++i) {
    const uint64_t size = view.size(int(i)), stride = view.stride(int(i));
    if (size < least[i] || size >= kLargest)
      return invalid("DB has shape " + str(view.sizes()) +
                     "; the other tensors demand " + str(least));
    if (stride >= kLargest)
      return invalid("DB has strides " + str(view.strides()) +
                     "; none of them may be negative");
    if (stride == 0 && least[i] > 1)
      return invalid(
          "DB has strides " + str(view.strides()) +
          ", by which gradients would be written over one another: nothing is "
          "summed over what is broadcast; give it memory for all of " +
          str(least) + " and sum that, or none");
    bias.gradient_strides[i] = int64_t(stride);
  }
  bias.gradient = view.data_ptr();
  // Of fp32 it is added to what is there.
  groups.score.stored_gradients = bias.type != FOVEA_CAPTURE_F32;
  if (groups.score.stored_gradients)
    return {};
  if (view.stride(3) != 1 && least[3] > 1)
    return invalid("DB has strides " + str(view.strides()) +
                   "; of kFloat32 the last one must be 1");
  if (!liesApart(bias.gradient_strides, least))
    return invalid("DB has strides " + str(view.strides()) +
                   ", by which its rows overlap; give it memory for all of " +
                   str(least));
  return {};
}

Status clearBiasGradient(fovea_context_t *context, Stream stream,
                         const Groups &groups) {
  const fovea_capture_t &bias = groups.bias;
  if (!bias.gradient || groups.score.stored_gradients)
    return {};
  // Dimensions that lie without gaps in others are cleared with them.
  std::array<uint64_t, 3> counts, apart;
  for (size_t i = 0; i != 3; ++i) {
    counts[i] = uint64_t(bias.extents[i]);
    apart[i] = uint64_t(bias.gradient_strides[i]) * sizeof(float);
  }
  const uint64_t bytes = groups.keys * sizeof(float);
  for (size_t i = 2; i != 0; --i)
    if (counts[2] <= 1 || apart[i - 1] == counts[2] * apart[2]) {
      apart[2] = counts[2] <= 1 ? apart[i - 1] : apart[2];
      counts[2] *= counts[i - 1];
      counts[i - 1] = 1;
    }
  auto *first = static_cast<char *>(bias.gradient);
  for (uint64_t b = 0; b != counts[0]; ++b)
    for (uint64_t h = 0; h != counts[1]; ++h)
      if (counts[2] != 0 && bytes != 0)
        if (Status bad = clearRows(
                context, stream.native(), first + b * apart[0] + h * apart[1],
                counts[2] > 1 ? apart[2] : bytes, bytes, counts[2]))
          return bad;
  return {};
}

} // namespace fovea::shim
