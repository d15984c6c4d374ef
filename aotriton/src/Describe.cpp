//===- Describe.cpp - calls as libfovea's parameters ----------------------===//

#include "Describe.h"

#include <algorithm>
#include <tuple>

using namespace aotriton;
using v3::flash::CausalType;
using v3::flash::WindowValue;

namespace fovea::shim {
namespace {

/// What libfovea's kernels come in.
constexpr uint64_t kMostDim = 576, kMostDimV = 512;

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

} // namespace

Status checkType(const char *name, DType type, DType ofQ) {
  if (type == ofQ)
    return {};
  return invalid(std::string(name) + " has type number " +
                 std::to_string(int(type)) + ", and Q " +
                 std::to_string(int(ofQ)));
}

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

template Status describe(const char *, const TensorView<4> &, DType,
                         const std::array<uint64_t, 4> &, uint64_t,
                         fovea_tensor_t &);
template Status describe(const char *, const TensorView<4> &, DType,
                         const std::array<uint64_t, 4> &, uint64_t,
                         fovea_mutable_tensor_t &);

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

template uint64_t denseBytes(const TensorView<2> &);
template uint64_t denseBytes(const TensorView<4> &);

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
       {std::tuple("Q", q[3], kMostDim), {"V", dimV, kMostDimV}}) {
    if (dim < 1)
      return invalid(std::string(name) + " has head dimension 0");
    if (dim > most)
      return unsupported(std::string(name) + " has head dimension " +
                         std::to_string(dim) + "; there are kernels for 1 to " +
                         std::to_string(most));
  }
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
  for (const auto &[side, ofLayout, rows, name, given] :
       {std::tuple(&call.sequences.q, &layout.q, q[2], "Q", &groups.varlen.q),
        {&call.sequences.k, &layout.k, k[2], "K", &groups.varlen.k}}) {
    if (!isCounted || side->isDense() || side->stacked ||
        ofLayout->most <= int64_t(rows))
      continue;
    if (side->length == SequenceSide::Most)
      return invalid(std::string(side->mostName) + " is " +
                     std::to_string(side->most) + ", and a batch of " + name +
                     " has " + std::to_string(rows) +
                     " rows: without lengths each sequence has the first");
    given->total = int64_t(rows);
    if (rows == 0) // nothing is counted
      ofLayout->most = 0;
  }
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

template Status fillCommon(const ForwardCall &, fovea_forward_params_t &,
                           Layout &, Groups &);
template Status fillCommon(const ForwardCall &, fovea_backward_params_t &,
                           Layout &, Groups &);

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

} // namespace fovea::shim
