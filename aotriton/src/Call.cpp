//===- Call.cpp - one form for all calls of attention ---------------------===//

#include "Call.h"

#include "Fallback.h"

#include "fovea/Package/Visibility.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>

using namespace aotriton;
using v3::flash::CausalType;
using v3::flash::WindowValue;

namespace fovea::shim {
namespace {

/// Sizes and strides beyond it are negative numbers of the client's.
constexpr uint64_t kLargest = uint64_t(1) << 62;

/// What libfovea's kernels come in.
constexpr uint64_t kMostDim = 576, kMostDimV = 512;

Status invalid(std::string message) {
  return refuse(hipErrorInvalidValue, std::move(message));
}
Status unsupported(std::string message) {
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
Status firstOf(std::initializer_list<Status> results) {
  for (const Status &result : results)
    if (result)
      return result;
  return {};
}

Status typeOf(const char *name, DType type, int32_t &dtype) {
  switch (type) {
  case kFloat16:
    dtype = FOVEA_DTYPE_F16;
    return {};
  case kBFloat16:
    dtype = FOVEA_DTYPE_BF16;
    return {};
  case kFloat32:
    dtype = FOVEA_DTYPE_F32;
    return {};
  default:
    return unsupported(
        std::string(name) + " has type number " + std::to_string(int(type)) +
        "; there are kernels for kFloat32 (1), kFloat16 (2) and kBFloat16 (3)");
  }
}

/// Of a tensor that has the type of Q.
Status checkType(const char *name, DType type, DType ofQ) {
  if (type == ofQ)
    return {};
  return invalid(std::string(name) + " has type number " +
                 std::to_string(int(type)) + ", and Q " +
                 std::to_string(int(ofQ)));
}

/// Checks a tensor against Q's type and a shape, and describes it.
/// \param apart  rows from one sequence to the next; 0: that is up to batches
template <typename Tensor>
Status describe(const char *name, const TensorView<4> &view, DType type,
                const std::array<uint64_t, 4> &shape, uint64_t apart,
                Tensor &tensor) {
  if (view.sizes() != shape)
    return invalid(std::string(name) + " has shape " + str(view.sizes()) +
                   " (batch, heads, sequence, head_dim); the other tensors "
                   "demand " +
                   str(shape));
  if (Status bad = checkType(name, view.dtype(), type))
    return bad;
  const std::array<uint64_t, 4> strides = view.strides();
  if (*std::max_element(shape.begin(), shape.end()) >= kLargest ||
      *std::max_element(strides.begin(), strides.end()) >= kLargest)
    return invalid(std::string(name) + " has sizes " + str(shape) +
                   " and strides " + str(strides) +
                   "; none of them may be negative");
  // As AOTriton's kernels take it to be, unseen.
  if (strides[3] != 1 && shape[3] != 1)
    return invalid(std::string(name) + " has strides " + str(strides) +
                   "; kernels need 1 in the last dimension: make it "
                   "contiguous");
  tensor.data = view.data_ptr();
  tensor.stride_batch = int64_t(apart ? apart * strides[2] : strides[0]);
  tensor.stride_head = int64_t(strides[1]);
  tensor.stride_seq = int64_t(strides[2]);
  return {};
}

/// What a call sees, as libfovea takes it. Numbers are counted from the
/// diagonal at the top left: a query at i sees the keys i - left to i + right,
/// either of which may be negative. Of the two special values, each for a side,
/// one on the left is no bound, and one on the right is the diagonal aligned
/// so. Source: AOTriton, modules/flash/kernel/masked_load_store.py,
/// parse_window.
Status windowOf(const Window &window, fovea_window_t &group) {
  group = {};
  group.header.struct_size = sizeof(group);
  group.header.group = FOVEA_GROUP_WINDOW;
  group.left = group.right = FOVEA_WINDOW_INFINITE;
  if (window.type == CausalType::None)
    return {};
  if (window.type != CausalType::WindowedAttention)
    return invalid("causal_type is " + std::to_string(int(window.type)) +
                   "; it may be 0 (none) or 3 (windowed)");
  const bool top = window.right == WindowValue::TopLeftAligned,
             bottom = window.right == WindowValue::BottomRightAligned;
  if (window.left != WindowValue::TopLeftAligned &&
      window.left != WindowValue::BottomRightAligned)
    group.left = window.left;
  group.right = top || bottom ? 0 : window.right;
  group.right_alignment =
      bottom ? FOVEA_ALIGN_BOTTOM_RIGHT : FOVEA_ALIGN_TOP_LEFT;
  return {};
}

Status checkFeatures(const ForwardCall &call) {
  if (call.present.present)
    return unsupported(std::string(call.present.name) +
                       " has data, and there are no kernels with " +
                       call.present.feature);
  return {};
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
};

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

/// Checks the bias and describes it as what a score program reads.
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

/// Checks where the gradient of the bias goes, and describes it. As in AOTriton
/// one without strides is not wanted, and those that write over one another,
/// where its kernels do, are refused.
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

/// Makes the gradient of the bias zeros where kernels add to it.
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

/// Of four words of the generator, whose is whose.
constexpr int32_t kWordOrder =
    AOTRITON_VERSION_MINOR >= 14 ? FOVEA_PHILOX_0123 : FOVEA_PHILOX_0213;

Status philoxOf(const char *name, const TensorView<0> &number,
                const uint64_t *&address) {
  if (number && number.dtype() != kInt64 && number.dtype() != kUInt64)
    return invalid(std::string(name) + " has type number " +
                   std::to_string(int(number.dtype())) +
                   "; it must be kInt64 (13) or kUInt64 (23)");
  address = static_cast<const uint64_t *>(number.data_ptr());
  return {};
}

/// Checks what says which weights are dropped, and describes it, but for where
/// seeds go.
Status describeDropout(const Dropout &given, fovea_dropout_t &dropout) {
  if (!(given.p >= 0 && given.p <= 1))
    return invalid("dropout_p is " + std::to_string(given.p) +
                   ", not in 0 to 1");
  if (Status bad =
          firstOf({philoxOf("philox_seed", given.seed, dropout.seed),
                   philoxOf("philox_offset1", given.offset, dropout.offset)}))
    return bad;
  dropout.header.struct_size = sizeof(dropout);
  dropout.header.group = FOVEA_GROUP_DROPOUT;
  dropout.p = given.p;
  dropout.word_order = kWordOrder;
  dropout.offset_value = given.offsetValue;
  return {};
}

/// The same of a call of attention.
Status describeDropout(const ForwardCall &call, Groups &groups) {
  const Dropout &given = call.dropout;
  fovea_dropout_t &dropout = groups.dropout;
  if (Status bad = describeDropout(given, dropout))
    return bad;
  // The numbers of weights count all keys, in both passes the same. By 0
  // AOTriton drops the same keys for all queries. Of no keys none are dropped.
  const SequenceSide &keys = call.sequences.k;
  if (keys.length != SequenceSide::Most && keys.most == 0 &&
      call.k.size(2) != 0)
    return invalid("dropout_p is " + std::to_string(given.p) + ", and " +
                   keys.mostName +
                   " is 0, on which it depends which weights are dropped");
  const uint64_t *seedOut = nullptr, *offsetOut = nullptr;
  if (Status bad = firstOf(
          {philoxOf("philox_seed_output", given.seedOut, seedOut),
           philoxOf("philox_offset_output", given.offsetOut, offsetOut)}))
    return bad;
  dropout.seed_out = const_cast<uint64_t *>(seedOut);
  dropout.offset_out = const_cast<uint64_t *>(offsetOut);
  groups.link(dropout.header);
  return {};
}

/// Multiplies, unless the product has no place in 64 bits.
bool multiply(uint64_t &product, uint64_t by) {
  return !__builtin_mul_overflow(product, by, &product);
}

/// Bytes of a tensor without gaps, whose memory is all its own, whatever the
/// order of its dimensions; 0 of another, and of one that no memory has.
template <int Rank>
uint64_t denseBytes(const TensorView<Rank> &view) {
  if (!view || view.dtype() != kFloat32)
    return 0;
  std::array<std::pair<uint64_t, uint64_t>, size_t(Rank)>
      dims; // stride and size
  for (int i = 0; i != Rank; ++i)
    dims[size_t(i)] = {view.stride(i), view.size(i)};
  std::sort(dims.begin(), dims.end());
  uint64_t elements = 1, bytes = sizeof(float);
  for (const auto &[stride, size] : dims) {
    if (size != 1 && stride != elements)
      return 0;
    if (!multiply(bytes, size))
      return 0;
    elements *= size;
  }
  return bytes;
}

/// Whether L, of another shape than the layout's, is one of stacked sequences
/// as if each had a batch, or all had one: PyTorch's mem-efficient path makes
/// it so. AOTriton looks at its address alone, and writes beyond what is short.
bool isLseOfBatches(const ForwardCall &call, Layout &layout, uint64_t heads) {
  const TensorView<2> &lse = call.lse;
  const SequenceSide &q = call.sequences.q;
  const uint64_t elements = lse.size(0) * lse.size(1);
  if (!q.stacked || call.sequences.lseByRow ||
      lse.size(1) != uint64_t(q.most) ||
      (lse.size(0) != heads && lse.size(0) != heads * layout.count) ||
      denseBytes(lse) != elements * sizeof(float))
    return false;
  layout.lseIsShort = elements < layout.lseShape[0] * layout.lseShape[1];
  return true;
}

/// Checks the log-sum-exp and describes it.
template <typename Params>
Status describeLse(const ForwardCall &call, Layout &layout, Params &params,
                   fovea_varlen_t &varlen) {
  const TensorView<2> &lse = call.lse;
  const bool isByRow = call.sequences.lseByRow;
  if (lse.dtype() != kFloat32)
    return invalid("L has type number " + std::to_string(int(lse.dtype())) +
                   "; it must be kFloat32 (1)");
  int64_t stride = int64_t(lse.stride(0));
  if (lse.sizes() == layout.lseShape) {
    if ((lse.stride(1) != 1 && lse.size(1) > 1) || lse.stride(0) >= kLargest)
      return invalid("L has strides " + str(lse.strides()) +
                     "; kernels need 1 along " +
                     (isByRow ? "the heads" : "the sequence"));
  } else if (isLseOfBatches(call, layout, uint64_t(params.heads_q))) {
    stride = int64_t(layout.lseShape[1]);
  } else {
    const char *rows = layout.lseIsStacked ? "rows of Q" : "sequence",
               *heads = layout.lseIsStacked ? "heads" : "batch * heads";
    if (isByRow) {
      rows = layout.lseIsStacked ? "rows of Q" : "batch * sequence";
      heads = "heads";
      std::swap(rows, heads);
    }
    return invalid("L has shape " + str(lse.sizes()) + "; it must be (" +
                   heads + ", " + rows + "), " + str(layout.lseShape));
  }
  if (layout.lseIsShort && !mayAllocate())
    return invalid(
        "L has shape " + str(lse.sizes()) + ", and what " +
        std::to_string(layout.count) + " sequences leave in it " +
        str(layout.lseShape) + ", which AOTriton writes beyond its end; " +
        settingToAllocate() +
        " leaves it alone and computes it anew in the backward pass");
  if (!layout.lseIsShort)
    params.lse = static_cast<decltype(params.lse)>(lse.data_ptr());
  params.lse_stride_head = isByRow ? 1 : stride;
  if (isByRow)
    varlen.lse_stride_seq = stride;
  if (layout.lseIsStacked || isByRow)
    params.lse_stride_batch =
        int64_t(layout.lseApart * (isByRow ? uint64_t(stride) : 1));
  else
    params.lse_stride_batch = stride * params.heads_q;
  return {};
}

/// The fields that both passes have, and their tensors' descriptions.
/// \param groups  keeps what the parameters point to
template <typename Params>
Status fillCommon(const ForwardCall &call, Params &params, Layout &layout,
                  Groups &groups) {
  params = {};
  params.struct_size = sizeof(params);
  params.groups = &groups.window.header;
  params.scale = call.scale;
  const std::array<uint64_t, 4> q = call.q.sizes(), k = call.k.sizes();
  if (Status bad = checkFeatures(call))
    return bad;
  const uint64_t dimV = call.v.size(3);
  for (auto [name, dim, most] :
       {std::tuple("Q", q[3], kMostDim), {"V", dimV, kMostDimV}})
    if (dim < 1 || dim > most)
      return unsupported(std::string(name) + " has head dimension " +
                         std::to_string(dim) + "; there are kernels for 1 to " +
                         std::to_string(most));
  if (Status bad = layOut(call.sequences, q, k, layout, groups.varlen))
    return bad;
  const DType type = call.q.dtype();
  const uint64_t apartQ = layout.q.apart, apartK = layout.k.apart;
  const std::array<uint64_t, 4> queries = {layout.q.batch, q[1], q[2], q[3]},
                                outs = {layout.q.batch, q[1], q[2], dimV},
                                keys = {layout.k.batch, k[1], k[2], q[3]},
                                values = {layout.k.batch, k[1], k[2], dimV};
  if (Status bad =
          firstOf({typeOf("Q", type, params.dtype),
                   describe("Q", call.q, type, queries, apartQ, params.q),
                   describe("K", call.k, type, keys, apartK, params.k),
                   describe("V", call.v, type, values, apartK, params.v),
                   describe("Out", call.out, type, outs, apartQ, params.out)}))
    return bad;
  params.batch = int64_t(layout.count);
  params.heads_q = int64_t(q[1]);
  params.heads_k = int64_t(k[1]);
  // Places of dropped weights are counted by what the client calls the most.
  const bool isCounted = call.dropout.p != 0 || call.mask;
  for (const auto &[side, rows, name] :
       {std::tuple(&call.sequences.q, q[2], "Q"),
        {&call.sequences.k, k[2], "K"}})
    if (isCounted && !side->isDense() && !side->stacked &&
        side->most > int64_t(rows))
      return unsupported(
          std::string(side->mostName) + " is " + std::to_string(side->most) +
          ", and a batch of " + name + " has " + std::to_string(rows) +
          " rows: places of dropped weights are counted by the first, and "
          "kernels take a batch to have that many; give it these rows");
  params.seqlen_q = isCounted ? layout.q.most : layout.q.seqlen;
  params.seqlen_k = isCounted ? layout.k.most : layout.k.seqlen;
  params.head_dim = int64_t(q[3]);
  if (Status bad = windowOf(call.window, groups.window))
    return bad;
  if (dimV != q[3]) {
    groups.dims = {{sizeof(groups.dims), FOVEA_GROUP_HEAD_DIMS, nullptr},
                   int64_t(dimV)};
    groups.link(groups.dims.header);
  }
  if (call.lse)
    if (Status bad = describeLse(call, layout, params, groups.varlen))
      return bad;
  if (groups.varlen.header.struct_size)
    groups.link(groups.varlen.header);
  if (call.dropout.p != 0) // also NaN
    if (Status bad = describeDropout(call, groups))
      return bad;
  return call.bias ? describeBias(call, params, groups) : Status();
}

/// A call that writes which weights are kept.
struct MaskCall {
  fovea_dropout_mask_params_t params = {};
  fovea_dropout_t dropout = {};
};

/// Checks a mask of that type and shape and describes it.
Status describeMask(const char *name, const TensorView<4> &mask, DType type,
                    const std::array<uint64_t, 4> &shape,
                    const Dropout &dropout, MaskCall &call) {
  fovea_dropout_mask_params_t &params = call.params;
  params.struct_size = sizeof(params);
  params.groups = &call.dropout.header;
  params.batch = int64_t(shape[0]);
  params.heads_q = int64_t(shape[1]);
  params.seqlen_q = int64_t(shape[2]);
  params.seqlen_k = int64_t(shape[3]);
  if (Status bad = typeOf(name, type, params.dtype))
    return bad;
  if (Status bad = describe(name, mask, type, shape, 0, params.mask))
    return bad;
  return describeDropout(dropout, call.dropout);
}

/// A failure of libfovea's. Where it found no kernel: for this problem, or for
/// the device at all?
Status failureOf(fovea_context_t *context, int32_t device,
                 fovea_status_t status) {
  Status result = failure(status);
  if (status == FOVEA_STATUS_NOT_FOUND)
    if (Status none = deviceHasKernels(context, device);
        none.code == hipErrorNoBinaryForGpu)
      return none;
  return result;
}
/// The same of a call of attention.
Status failureOf(const ForwardCall &call, fovea_context_t *context,
                 int32_t device, fovea_status_t status) {
  Status result = failureOf(context, device, status);
  if (status == FOVEA_STATUS_NOT_FOUND &&
      result.code != hipErrorNoBinaryForGpu && call.dropout.p != 0)
    result.message = "dropout_p is " + std::to_string(call.dropout.p) + "; " +
                     result.message;
  return result;
}

/// Whether a row sees no key, as far as the host knows. Its log-sum-exp is
/// -infinity here and +infinity in AOTriton, where -infinity makes NaN of its
/// gradients.
bool hasRowWithoutKeys(const fovea_forward_params_t &params,
                       const Groups &groups) {
  // Lengths that the device alone knows may be 0, and biases -infinity.
  if (groups.varlen.q.lengths || groups.varlen.k.lengths || groups.bias.data)
    return true;
  const fovea_window_t &window = groups.window;
  const fovea::Band band = bandOf({window.left, window.right,
                                   fovea::Alignment(window.left_alignment),
                                   fovea::Alignment(window.right_alignment)},
                                  params.seqlen_q, params.seqlen_k);
  // The number of keys falls towards the first row and the last.
  for (int64_t row : {int64_t(0), params.seqlen_q - 1}) {
    const fovea::Band::Keys keys = band.keysOf(row, params.seqlen_k);
    if (keys.begin == keys.end)
      return true;
  }
  return false;
}

/// Refuses what the library that FOVEA_AOTRITON_FALLBACK names could not go on
/// with: a log-sum-exp for a backward pass that would be handed on to it.
Status checkLseForFallback(fovea_context_t *context, int32_t device,
                           const fovea_forward_params_t &params,
                           const Groups &groups) {
  if (!params.lse || fallbackPath().empty() ||
      !hasRowWithoutKeys(params, groups))
    return {};
  fovea_backward_params_t backward = {};
  backward.struct_size = sizeof(backward);
  backward.dtype = params.dtype;
  backward.groups = params.groups;
  backward.scale = params.scale;
  backward.batch = params.batch;
  backward.heads_q = params.heads_q;
  backward.heads_k = params.heads_k;
  backward.seqlen_q = params.seqlen_q;
  backward.seqlen_k = params.seqlen_k;
  backward.head_dim = params.head_dim;
  backward.q = params.q;
  backward.k = params.k;
  backward.v = params.v;
  backward.out =
      backward.dout = {nullptr, params.out.stride_batch, params.out.stride_head,
                       params.out.stride_seq};
  backward.lse_stride_batch = params.lse_stride_batch;
  backward.lse_stride_head = params.lse_stride_head;
  // Dense gradients: what counts is that they are.
  auto dense = [](int64_t heads, int64_t rows, int64_t dim) {
    if (dim < 8)
      dim += dim % 2;
    return fovea_mutable_tensor_t{nullptr, heads * rows * dim, rows * dim, dim};
  };
  const int64_t queries = std::max(params.seqlen_q, groups.varlen.q.total),
                keys = std::max(params.seqlen_k, groups.varlen.k.total),
                dimV = groups.dims.head_dim_v ? groups.dims.head_dim_v
                                              : params.head_dim;
  backward.dq = dense(params.heads_q, queries, params.head_dim);
  backward.dk = dense(params.heads_k, keys, params.head_dim);
  backward.dv = dense(params.heads_k, keys, dimV);
  backward.deterministic = 1;
  if (fovea_backward_select(context, &backward, device, nullptr) !=
      FOVEA_STATUS_NOT_FOUND)
    return {};
  return unsupported("there are rows that see no key and no kernels for the "
                     "backward pass, and another library's take another "
                     "log-sum-exp for such rows");
}

/// Chooses the kernels of a backward pass and sets `params.deterministic` to
/// what they are. The deterministic ones come first even when they are not
/// asked for: their workspace is what clients bring as D, that of the others is
/// larger than what they bring as DQ_ACC.
fovea_status_t choose(fovea_context_t *context, fovea_backward_params_t &params,
                      const Groups &groups, int32_t device, bool deterministic,
                      fovea_backward_plan_t &plan) {
  // Layers repeat: the thread's latest choice spares asking again, which makes
  // up a text. Packages do not change once they are open.
  struct Choice {
    fovea_backward_params_t params = {}; ///< without addresses
    Groups groups;                       ///< likewise
    int32_t device = -1;
    bool asked = false;  ///< for a deterministic one
    uint32_t chosen = 0; ///< what params.deterministic became
    fovea_backward_plan_t plan = {};
  };
  thread_local Choice latest;
  Choice choice;
  std::memcpy(&choice.params, &params, sizeof(params)); // with its padding
  for (const void **address :
       {&choice.params.q.data, &choice.params.k.data, &choice.params.v.data,
        &choice.params.out.data, &choice.params.dout.data})
    *address = nullptr;
  for (fovea_mutable_tensor_t *gradient :
       {&choice.params.dq, &choice.params.dk, &choice.params.dv})
    gradient->data = nullptr;
  choice.params.lse = nullptr;
  choice.params.groups = nullptr;
  std::memcpy(&choice.groups, &groups, sizeof(groups));
  // Which groups there are their sizes tell.
  for (fovea_group_t *header : choice.groups.headers())
    header->next = nullptr;
  choice.groups.score.captures = nullptr;
  choice.groups.bias.data = nullptr;
  static int32_t kSome = 0;
  if (choice.groups.bias.gradient)
    choice.groups.bias.gradient = &kSome;
  fovea_dropout_t &dropout = choice.groups.dropout;
  dropout.seed = dropout.offset = nullptr;
  dropout.offset_value = 0;
  // Which tensors there are is part of the choice, where they are is not.
  for (fovea_sequences_t *side :
       {&choice.groups.varlen.q, &choice.groups.varlen.k})
    for (const int32_t **address : {&side->lengths, &side->starts})
      if (*address)
        *address = &kSome;
  choice.device = device;
  choice.asked = deterministic;
  if (latest.device == device && latest.asked == deterministic &&
      !std::memcmp(&latest.params, &choice.params, sizeof(params)) &&
      !std::memcmp(&latest.groups, &choice.groups, sizeof(choice.groups))) {
    params.deterministic = latest.chosen;
    plan = latest.plan;
    return FOVEA_STATUS_OK;
  }
  choice.plan.struct_size = sizeof(choice.plan);
  params.deterministic = 1;
  fovea_status_t status =
      fovea_backward_select(context, &params, device, &choice.plan);
  if (status == FOVEA_STATUS_NOT_FOUND && !deterministic) {
    params.deterministic = 0;
    status = fovea_backward_select(context, &params, device, &choice.plan);
  }
  if (status != FOVEA_STATUS_OK)
    return status;
  choice.chosen = params.deterministic;
  plan = choice.plan;
  latest = choice;
  return FOVEA_STATUS_OK;
}

/// Finds memory for the workspace: among what the client offers, else of our
/// own, if we may.
Status provide(const BackwardCall &call, uint64_t bytes,
               fovea_context_t *context, Stream stream, StreamMemory &own,
               fovea_backward_params_t &params) {
  if (bytes == 0)
    return {};
  std::array<uint64_t, std::tuple_size_v<decltype(call.workspaces)>> offered =
      {};
  for (size_t i = 0; i != offered.size(); ++i) {
    const Workspace &workspace = call.workspaces[i];
    if (!workspace.name)
      continue;
    const TensorView<4> view = workspace.acquire(workspace.client);
    if (!view && workspace.isAllocated)
      return fail(hipErrorOutOfMemory,
                  std::string(workspace.name) +
                      " was to be allocated for the kernels' workspace of " +
                      std::to_string(bytes) +
                      " bytes, and its acquire() gave no data");
    offered[i] = denseBytes(view);
    if (offered[i] >= bytes) {
      params.workspace = view.data_ptr();
      params.workspace_bytes = offered[i];
      return {};
    }
  }
  Status taken = own.take(context, stream.native(), bytes);
  if (!taken) {
    params.workspace = own.data();
    params.workspace_bytes = bytes;
    return taken;
  }
  // Only now: calls that repeat ask the host for no memory.
  std::string offers;
  for (size_t i = 0; i != offered.size(); ++i)
    if (const char *name = call.workspaces[i].name)
      offers += (offers.empty() ? "" : ", ") + std::string(name) + " " +
                std::to_string(offered[i]);
  taken.message = "the kernels need a workspace of " + std::to_string(bytes) +
                  " bytes; the call offers, in fp32 without gaps: " +
                  (offers.empty() ? "nothing" : offers) + "; " + taken.message;
  return taken;
}

/// How many of AOTriton's backends a client may ask for by number. They are
/// Triton's kernels, and of the backward pass the split and the fused ones, all
/// of which give the same bits in every run. Those behind them are other
/// libraries', of which AOTriton itself refuses calls with this status.
constexpr int kForwardBackends = 1, kBackwardBackends = 2;

Status checkBackend(int backend, int count) {
  if (backend < count)
    return {};
  return refuse(hipErrorPeerAccessUnsupported,
                "force_backend_index is " + std::to_string(backend) +
                    ", a backend that there is none of here; -1 to " +
                    std::to_string(count - 1) + " are served");
}

/// Computes what L has no room for into memory of our own: a forward pass
/// whose output nobody looks at.
Status computeLse(const ForwardCall &base, const Layout &layout,
                  fovea_context_t *context, int32_t device, Stream stream,
                  StreamMemory &memory, const float *&lse) {
  constexpr uint64_t kApart =
      256; // bytes; and elements of rows, which 8 divides
  const std::array<uint64_t, 4> out = base.out.sizes();
  const uint64_t row = (out[3] + 7) / 8 * 8;
  uint64_t lseBytes = sizeof(float),
           outBytes = base.out.dtype() == kFloat32 ? 4 : 2, bytes;
  bool fits = true;
  for (uint64_t size : layout.lseShape)
    fits &= multiply(lseBytes, size);
  for (uint64_t size : {out[0], out[1], out[2], row})
    fits &= multiply(outBytes, size);
  fits &= !__builtin_add_overflow(lseBytes, kApart - 1, &lseBytes);
  lseBytes = lseBytes / kApart * kApart;
  fits &= !__builtin_add_overflow(lseBytes, outBytes, &bytes);
  Status taken =
      fits ? memory.take(context, stream.native(), bytes)
           : fail(hipErrorOutOfMemory,
                  "an L of shape " + str(layout.lseShape) + " and an Out of " +
                      str(out) + " have more bytes than 64 bits count");
  if (taken) {
    taken.message = "L is to be computed anew; " + taken.message;
    return taken;
  }
  const auto address = reinterpret_cast<intptr_t>(memory.data());
  ForwardCall again = base;
  again.dropout = {};
  again.mask = {};
  again.lse = {address, layout.lseShape, {layout.lseShape[1], 1}, kFloat32};
  again.out = {address + intptr_t(lseBytes),
               out,
               {out[1] * out[2] * row, out[2] * row, row, 1},
               base.out.dtype()};
  fovea_forward_params_t params;
  Layout same;
  Groups groups;
  if (Status bad = fillCommon(again, params, same, groups))
    return bad;
  lse = params.lse;
  const fovea_status_t status =
      fovea_forward(context, &params, stream.native());
  return status == FOVEA_STATUS_OK ? Status()
                                   : failureOf(again, context, device, status);
}

} // namespace

/// A forward pass that has been described, on the stream's device.
static Status forwardOn(int32_t device, fovea_context_t *context,
                        const ForwardCall &call, Stream stream,
                        const fovea_forward_params_t &params,
                        const Groups &groups) {
  if (Status bad = checkLseForFallback(context, device, params, groups))
    return bad;
  // Nothing is launched of what cannot be done in whole.
  MaskCall mask;
  if (call.mask) {
    if (Status bad =
            describeMask("encoded_softmax", call.mask, call.q.dtype(),
                         {uint64_t(params.batch), uint64_t(params.heads_q),
                          uint64_t(params.seqlen_q), uint64_t(params.seqlen_k)},
                         call.dropout, mask))
      return bad;
    if (const fovea_status_t status =
            fovea_dropout_mask_prepare(context, &mask.params, device, nullptr);
        status != FOVEA_STATUS_OK)
      return failureOf(context, device, status);
  }
  fovea_status_t status = fovea_forward(context, &params, stream.native());
  if (status != FOVEA_STATUS_OK)
    return failureOf(call, context, device, status);
  if (!call.mask)
    return {};
  status = fovea_dropout_mask(context, &mask.params, stream.native());
  return status == FOVEA_STATUS_OK ? Status() : failure(status);
}

Status forward(const ForwardCall &call, Stream stream) {
  fovea_context_t *context = nullptr;
  fovea_forward_params_t params;
  Layout layout;
  Groups groups;
  if (Status bad = fillCommon(call, params, layout, groups))
    return bad;
  if (Status bad = checkBackend(call.backend, kForwardBackends))
    return bad;
  if (Status bad = session(context))
    return bad;
  return onDeviceOf(context, stream.native(), [&](int32_t device) {
    return forwardOn(device, context, call, stream, params, groups);
  });
}

Status dropoutMask(const TensorView<4> &view, const Dropout &dropout,
                   Stream stream) {
  if (!view)
    return invalid("r has no data");
  MaskCall mask;
  if (Status bad =
          describeMask("r", view, view.dtype(), view.sizes(), dropout, mask))
    return bad;
  fovea_context_t *context = nullptr;
  if (Status bad = session(context))
    return bad;
  return onDeviceOf(context, stream.native(), [&](int32_t device) {
    const fovea_status_t status =
        fovea_dropout_mask(context, &mask.params, stream.native());
    return status == FOVEA_STATUS_OK ? Status()
                                     : failureOf(context, device, status);
  });
}

/// A backward pass that has been described, on the stream's device.
/// \param clears  becomes whether memory of the caller's was cleared
static Status backwardOn(int32_t device, fovea_context_t *context,
                         const BackwardCall &call, Stream stream,
                         fovea_backward_params_t &params, const Layout &layout,
                         const Groups &groups, bool &clears) {
  const ForwardCall &base = call.forward;
  fovea_backward_plan_t plan = {};
  fovea_status_t status = choose(context, params, groups, device,
                                 call.deterministic || base.backend >= 0, plan);
  if (status != FOVEA_STATUS_OK)
    return failureOf(base, context, device, status);
  params.kernel = plan.kernel;
  StreamMemory own;
  if (Status bad =
          provide(call, plan.workspace_bytes, context, stream, own, params))
    return bad;
  StreamMemory lse;
  if (layout.lseIsShort)
    if (Status bad =
            computeLse(base, layout, context, device, stream, lse, params.lse))
      return bad;
  clears = groups.bias.gradient && !groups.score.stored_gradients;
  if (Status bad = clearBiasGradient(context, stream, groups))
    return bad;
  status = fovea_backward(context, &params, stream.native());
  if (status != FOVEA_STATUS_OK)
    return failureOf(base, context, device, status);
  return firstOf({lse.giveBack(), own.giveBack()});
}

/// \param layout  of the call, as far as it is known
/// \param clears  whether memory of the caller's was cleared
static Status backward(const BackwardCall &call, Stream stream, Layout &layout,
                       bool &clears) {
  const ForwardCall &base = call.forward;
  fovea_context_t *context = nullptr;
  fovea_backward_params_t params;
  Groups groups;
  if (Status bad = fillCommon(base, params, layout, groups))
    return bad;
  const DType type = base.q.dtype();
  const std::array<uint64_t, 4> q = base.q.sizes(), k = base.k.sizes(),
                                v = base.v.sizes(),
                                out = {q[0], q[1], q[2], v[3]};
  const uint64_t apartQ = layout.q.apart, apartK = layout.k.apart;
  if (Status bad =
          firstOf({describe("DO", call.dout, type, out, apartQ, params.dout),
                   describe("DQ", call.dq, type, q, apartQ, params.dq),
                   describe("DK", call.dk, type, k, apartK, params.dk),
                   describe("DV", call.dv, type, v, apartK, params.dv)}))
    return bad;
  if (call.dbias)
    if (Status bad = describeBiasGradient(base, call.dbias, groups))
      return bad;
  if (Status bad = checkBackend(base.backend, kBackwardBackends))
    return bad;
  if (Status bad = session(context))
    return bad;
  return onDeviceOf(context, stream.native(), [&](int32_t device) {
    return backwardOn(device, context, call, stream, params, layout, groups,
                      clears);
  });
}

Status backward(const BackwardCall &call, Stream stream) {
  Layout layout;
  bool clears = false;
  Status status = backward(call, stream, layout, clears);
  // Another library could not go on with a log-sum-exp that the forward pass
  // left out, nor with what was cleared if that is something else's, too.
  status.broken |= bool(status) && (layout.lseIsShort || clears);
  return status;
}

} // namespace fovea::shim
