//===- Parameters.h - the C interface by the tables -------------*- C++ -*-===//
//
// Where the structures of fovea.h have what the tables of the operations name
// (OperationSpec.h). The runtime reads calls by it; tools and the conformance
// suite make them by it. No part of what is installed.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PARAMETERS_H
#define FOVEA_PARAMETERS_H

#include "fovea/Package/OperationSpec.h"
#include "fovea/fovea.h"

#include <cstddef>
#include <cstring>

namespace fovea::params {

/// How many strides a tensor has: of batch, head and sequence in this order,
/// but for what has heads alone.
constexpr size_t strideCount(spec::Shape shape) {
  switch (shape) {
  case spec::Shape::Rows:
  case spec::Shape::Places:
  case spec::Shape::BlockLists:
    return 3;
  case spec::Shape::Vector:
  case spec::Shape::BlockCounts:
    return 2;
  case spec::Shape::Heads:
    return 1; // of head alone
  case spec::Shape::Bytes:
  case spec::Shape::Sequences:
  case spec::Shape::Number:
    return 0;
  }
  return 0;
}

/// Where a structure has a tensor: its address, and its strides, int64_t one
/// behind the other.
struct TensorField {
  const char *name;
  size_t data, strides; ///< offsets in bytes

  const void *address(const void *params) const {
    return get<const void *>(params, data);
  }
  void setAddress(void *params, const void *address) const {
    std::memcpy(static_cast<char *>(params) + data, &address, sizeof(address));
  }
  int64_t stride(const void *params, size_t dim) const {
    return get<int64_t>(params, strides + dim * sizeof(int64_t));
  }
  void setStride(void *params, size_t dim, int64_t stride) const {
    std::memcpy(static_cast<char *>(params) + strides + dim * sizeof(stride),
                &stride, sizeof(stride));
  }

private:
  template <typename T>
  static T get(const void *params, size_t offset) {
    T value;
    std::memcpy(&value, static_cast<const char *>(params) + offset, sizeof(T));
    return value;
  }
};

/// A field of fovea_tensor_t, or of a pointer with strides of its name.
#define FOVEA_TENSOR(Params, name)                                             \
  {#name, offsetof(Params, name) + offsetof(fovea_tensor_t, data),             \
   offsetof(Params, name) + offsetof(fovea_tensor_t, stride_batch)}
#define FOVEA_VECTOR(Params, name)                                             \
  {#name, offsetof(Params, name), offsetof(Params, name##_stride_batch)}
// What is written has the same fields at the same places.
static_assert(offsetof(fovea_tensor_t, data) ==
                  offsetof(fovea_mutable_tensor_t, data) &&
              offsetof(fovea_tensor_t, stride_batch) ==
                  offsetof(fovea_mutable_tensor_t, stride_batch));

inline constexpr TensorField kForwardTensors[] = {
    FOVEA_TENSOR(fovea_forward_params_t, q),
    FOVEA_TENSOR(fovea_forward_params_t, k),
    FOVEA_TENSOR(fovea_forward_params_t, v),
    FOVEA_TENSOR(fovea_forward_params_t, out),
    FOVEA_VECTOR(fovea_forward_params_t, lse),
    {"workspace", offsetof(fovea_forward_params_t, workspace), 0},
};
inline constexpr TensorField kBackwardTensors[] = {
    FOVEA_TENSOR(fovea_backward_params_t, q),
    FOVEA_TENSOR(fovea_backward_params_t, k),
    FOVEA_TENSOR(fovea_backward_params_t, v),
    FOVEA_TENSOR(fovea_backward_params_t, out),
    FOVEA_TENSOR(fovea_backward_params_t, dout),
    FOVEA_VECTOR(fovea_backward_params_t, lse),
    FOVEA_TENSOR(fovea_backward_params_t, dq),
    FOVEA_TENSOR(fovea_backward_params_t, dk),
    FOVEA_TENSOR(fovea_backward_params_t, dv),
    {"workspace", offsetof(fovea_backward_params_t, workspace), 0},
};

inline constexpr TensorField kMaskTensors[] = {
    FOVEA_TENSOR(fovea_dropout_mask_params_t, mask)};

/// Of feature groups, in the order of their rows, within their structures.
inline constexpr TensorField kDlseTensors[] = {
    {"dlse.dlse", offsetof(fovea_dlse_t, dlse),
     offsetof(fovea_dlse_t, dlse_stride_batch)}};
inline constexpr TensorField kSinksTensors[] = {
    {"sinks.sinks", offsetof(fovea_sinks_t, sinks),
     offsetof(fovea_sinks_t, sinks_stride_head)}};
inline constexpr TensorField kDsinksTensors[] = {
    {"dsinks.sinks", offsetof(fovea_dsinks_t, sinks),
     offsetof(fovea_dsinks_t, sinks_stride_head)},
    {"dsinks.dsinks", offsetof(fovea_dsinks_t, dsinks),
     offsetof(fovea_dsinks_t, dsinks_stride_head)}};
#define FOVEA_LIST(lists, name)                                                \
  {"blocks." #lists "." #name,                                                 \
   offsetof(fovea_blocks_t, lists) + offsetof(fovea_block_lists_t, name),      \
   offsetof(fovea_blocks_t, lists) +                                           \
       offsetof(fovea_block_lists_t, name##_stride_batch)}
inline constexpr TensorField kBlocksTensors[] = {
    FOVEA_LIST(kv, num_blocks),      FOVEA_LIST(kv, indices),
    FOVEA_LIST(full_kv, num_blocks), FOVEA_LIST(full_kv, indices),
    FOVEA_LIST(q, num_blocks),       FOVEA_LIST(q, indices),
    FOVEA_LIST(full_q, num_blocks),  FOVEA_LIST(full_q, indices),
};
#undef FOVEA_LIST

inline constexpr TensorField kVarlenTensors[] = {
    {"varlen.q.lengths",
     offsetof(fovea_varlen_t, q) + offsetof(fovea_sequences_t, lengths), 0},
    {"varlen.k.lengths",
     offsetof(fovea_varlen_t, k) + offsetof(fovea_sequences_t, lengths), 0},
    {"varlen.q.starts",
     offsetof(fovea_varlen_t, q) + offsetof(fovea_sequences_t, starts), 0},
    {"varlen.k.starts",
     offsetof(fovea_varlen_t, k) + offsetof(fovea_sequences_t, starts), 0},
};

#define FOVEA_NUMBER(name)                                                     \
  {"dropout." #name, offsetof(fovea_dropout_t, name), 0}
inline constexpr TensorField kDropoutTensors[] = {
    FOVEA_NUMBER(seed), FOVEA_NUMBER(offset), FOVEA_NUMBER(seed_out),
    FOVEA_NUMBER(offset_out)};
#undef FOVEA_NUMBER

/// One a tensor of the operation's base group, in the order of its table, then
/// of its algorithms, whose workspace is one and the same.
constexpr spec::Rows<TensorField> tensorFieldsOf(OpKind op) {
  switch (op) {
  case OpKind::Forward:
    return kForwardTensors;
  case OpKind::Backward:
    return kBackwardTensors;
  case OpKind::DropoutMask:
    return kMaskTensors;
  }
  return {};
}

/// Where the structures of the operations of attention have a size.
template <typename Params>
constexpr int64_t Params::*sizeField(spec::Extent extent) {
  switch (extent) {
  case spec::Extent::Batch:
    return &Params::batch;
  case spec::Extent::HeadsQ:
    return &Params::heads_q;
  case spec::Extent::HeadsK:
    return &Params::heads_k;
  case spec::Extent::SeqlenQ:
    return &Params::seqlen_q;
  case spec::Extent::SeqlenK:
    return &Params::seqlen_k;
  case spec::Extent::HeadDim:
  case spec::Extent::HeadDimV: // unless a group says otherwise
    return &Params::head_dim;
  }
  return nullptr;
}

/// The C interface of an operation of attention, by its parameters.
template <typename Params>
struct Interface;
template <>
struct Interface<fovea_forward_params_t> {
  using Plan = fovea_forward_plan_t;
  static constexpr OpKind op = OpKind::Forward;
  static constexpr auto select = fovea_forward_select;
  static constexpr auto enqueue = fovea_forward;
};
template <>
struct Interface<fovea_backward_params_t> {
  using Plan = fovea_backward_plan_t;
  static constexpr OpKind op = OpKind::Backward;
  static constexpr auto select = fovea_backward_select;
  static constexpr auto enqueue = fovea_backward;
};

} // namespace fovea::params

#endif // FOVEA_PARAMETERS_H
