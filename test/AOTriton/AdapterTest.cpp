//===- AdapterTest.cpp - a framework's way to the interface ---------------===//
//
// How PyTorch comes to its calls: tensors (batch, sequence, heads, head_dim)
// that are permuted without a copy, a log-sum-exp of three dimensions that is
// viewed as two, empty tensors for what is not there, and LazyTensors over a
// context that creates tensors like others.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <fovea/aotriton.h>
#include <gtest/gtest.h>
#include <optional>

using namespace client;
using aotriton::DType;

namespace {

using Sizes = std::vector<int64_t>;

/// A framework's tensor: shared storage, sizes and strides.
class FrameworkTensor {
public:
  static FrameworkTensor empty(Sizes sizes, DType type) {
    FrameworkTensor tensor;
    tensor.sizes = std::move(sizes);
    tensor.type = type;
    int64_t elements = 1;
    tensor.strides.resize(tensor.sizes.size());
    for (size_t i = tensor.sizes.size(); i-- > 0;) {
      tensor.strides[i] = elements;
      elements *= tensor.sizes[i];
    }
    if (elements)
      tensor.storage = std::make_shared<Memory>(
          size_t(elements) *
          (type == aotriton::kFloat32 || type == aotriton::kInt32 ? 4 : 2));
    return tensor;
  }
  static FrameworkTensor zeros(Sizes sizes, DType type) {
    FrameworkTensor tensor = empty(std::move(sizes), type);
    if (tensor.storage)
      (void)hipMemset(tensor.storage->data(), 0, tensor.storage->size());
    return tensor;
  }
  FrameworkTensor permute(const Sizes &order) const {
    FrameworkTensor tensor = *this;
    for (size_t i = 0; i < order.size(); ++i) {
      tensor.sizes[i] = sizes[size_t(order[i])];
      tensor.strides[i] = strides[size_t(order[i])];
    }
    return tensor;
  }
  /// Of a tensor without gaps.
  FrameworkTensor view(Sizes shape) const {
    FrameworkTensor tensor = empty({0}, type);
    tensor.storage = storage;
    tensor.sizes = shape;
    tensor.strides.assign(shape.size(), 1);
    for (size_t i = shape.size() - 1; i-- > 0;)
      tensor.strides[i] = tensor.strides[i + 1] * shape[i + 1];
    return tensor;
  }
  /// Copies (batch, heads, sequence, dim) of a buffer to (batch, sequence,
  /// heads, dim), or back.
  static FrameworkTensor of(const Buffer &buffer) {
    const ref::Tensor &t = buffer.host;
    FrameworkTensor tensor =
        empty({t.batch, t.seq, t.heads, t.dim}, buffer.view().dtype());
    tensor.storage->write(buffer.values.data());
    return tensor;
  }
  void copyTo(Buffer &buffer) const {
    storage->read(buffer.values.data());
    buffer.upload();
  }
  void *data() const { return storage ? storage->data() : nullptr; }

  Sizes sizes, strides;
  DType type = aotriton::kUnknown;
  std::shared_ptr<Memory> storage;
};

template <int Rank>
aotriton::TensorView<Rank> viewOf(const FrameworkTensor &tensor) {
  std::array<uint64_t, Rank> sizes, strides;
  for (size_t i = 0; i < Rank; ++i) {
    sizes[i] = uint64_t(tensor.sizes.at(i));
    strides[i] = uint64_t(tensor.strides.at(i));
  }
  return aotriton::TensorView<Rank>(reinterpret_cast<intptr_t>(tensor.data()),
                                    sizes, strides, tensor.type);
}

#if AOTRITON_VERSION_MINOR >= 11
/// Creates a tensor like another when it is asked for.
struct Context {
  FrameworkTensor like;
  std::optional<FrameworkTensor> tensor;
};

template <int Rank, bool Zeros>
struct LazyOf {
#if AOTRITON_VERSION_MINOR >= 12
  using Handle = aotriton::LazyTensor<Rank>;
  static Context *contextOf(Handle *handle) {
    return static_cast<Context *>(handle->cookie);
  }
#else
  using Handle = void;
  static Context *contextOf(void *handle) {
    return static_cast<Context *>(handle);
  }
#endif
  static aotriton::TensorView<Rank> acquire(Handle *handle) {
    Context *context = contextOf(handle);
    if (!context->tensor)
      context->tensor =
          Zeros
              ? FrameworkTensor::zeros(context->like.sizes, aotriton::kFloat32)
              : FrameworkTensor::empty(context->like.sizes, context->like.type);
    return viewOf<Rank>(*context->tensor);
  }
  static void dispose(Handle *) {}
  static aotriton::LazyTensor<Rank> make(Context *context) {
    // An aggregate, as frameworks initialise it.
    return aotriton::LazyTensor<Rank>{context, &acquire, &dispose};
  }
};
#endif

constexpr int32_t kTopLeft = v3::WindowValue::TopLeftAligned;
constexpr int32_t kBottomRight = v3::WindowValue::BottomRightAligned;

/// Of the mem-efficient path (causal top left, log-sum-exp on request) and the
/// flash path (causal bottom right, grouped heads, and a number in the place of
/// either side).
struct Path {
  const char *name;
  Shape shape;
  int32_t left, right;
  bool lse;
};

/// On 0.10 PyTorch takes the older calls, but for windows.
[[maybe_unused]] bool isOld(const Path &path) {
  return AOTRITON_VERSION_MINOR < 11 &&
         (path.shape.mask == ref::Mask::None ||
          path.left == kTopLeft ||
          (path.left == kBottomRight &&
           path.shape.seqlenQ == path.shape.seqlenK));
}

void forward(const Path &path, Problem &problem, FrameworkTensor &out,
             FrameworkTensor &logsumexp) {
  const Shape &s = path.shape;
  const FrameworkTensor q = FrameworkTensor::of(problem.q),
                        k = FrameworkTensor::of(problem.k),
                        v = FrameworkTensor::of(problem.v);
  const bool causal = s.mask != ref::Mask::None;
  out = FrameworkTensor::empty(q.sizes, q.type);
  logsumexp = FrameworkTensor::empty(
      {s.batch, s.headsQ, path.lse ? s.seqlenQ : 0}, aotriton::kFloat32);
  const FrameworkTensor noSoftmax =
      FrameworkTensor::empty({0, 0, 0, 0}, q.type);
  const FrameworkTensor seed = FrameworkTensor::empty({1}, aotriton::kInt32);
  const FrameworkTensor counter = FrameworkTensor::zeros({1}, aotriton::kInt32);
  auto scalar = [](const FrameworkTensor &t) {
    return aotriton::TensorView<0>(reinterpret_cast<intptr_t>(t.data()),
                                   t.type);
  };
  ASSERT_EQ(aotriton::v2::flash::check_gpu(hipStream_t{}), hipSuccess);

  v3::attn_fwd_params params;
  params.Q = viewOf<4>(q.permute({0, 2, 1, 3}));
  params.K = viewOf<4>(k.permute({0, 2, 1, 3}));
  params.V = viewOf<4>(v.permute({0, 2, 1, 3}));
  params.Sm_scale = problem.scale;
  params.L =
      path.lse ? viewOf<2>(logsumexp.view({s.batch * s.headsQ, s.seqlenQ}))
               : aotriton::TensorView<2>(0, {0, 0}, {0, 0}, aotriton::kFloat32);
  params.Out = viewOf<4>(out.permute({0, 2, 1, 3}));
  params.Max_seqlen_q = int32_t(s.seqlenQ);
  params.Max_seqlen_k = int32_t(s.seqlenK);
  params.dropout_p = 0;
  params.philox_seed_ptr = params.philox_offset1 = scalar(seed);
  params.philox_offset2 = 0;
  params.philox_seed_output = params.philox_offset_output =
      aotriton::TensorView<0>(0, aotriton::kUInt64);
  params.encoded_softmax = viewOf<4>(noSoftmax);
  params.persistent_atomic_counter =
      causal ? scalar(counter) : aotriton::TensorView<0>(0, aotriton::kInt32);
  params.causal_type =
      causal ? v3::CausalType::WindowedAttention : v3::CausalType::None;
  if (causal) {
    params.window_left = path.left;
    params.window_right = path.right;
  }
#if AOTRITON_VERSION_MINOR < 14
  params.varlen_type = v3::VarlenType::None;
#endif
#if AOTRITON_VERSION_MINOR < 11
  if (isOld(path))
    ASSERT_EQ(aotriton::v2::flash::attn_fwd(
                  params.Q, params.K, params.V, params.B, params.Sm_scale,
                  params.L, params.Out, params.dropout_p,
                  params.philox_seed_ptr, params.philox_offset1, 0,
                  params.philox_seed_output, params.philox_offset_output,
                  params.encoded_softmax, causal,
                  params.persistent_atomic_counter, hipStream_t{}),
              hipSuccess)
        << fovea_aotriton_last_message();
  else
#endif
  ASSERT_EQ(v3::attn_fwd(params, v3::attn_fwd_params::kVersion, hipStream_t{}),
            hipSuccess)
      << fovea_aotriton_last_message();
  out.copyTo(problem.out);
  if (path.lse) {
    std::vector<float> values(size_t(s.batch * s.headsQ * s.seqlenQ));
    logsumexp.storage->read(values.data());
    problem.lse.memory.write(values.data());
  }
}

void backward(const Path &path, Problem &problem, const FrameworkTensor &out,
              const FrameworkTensor &logsumexp) {
  const Shape &s = path.shape;
  const FrameworkTensor q = FrameworkTensor::of(problem.q),
                        k = FrameworkTensor::of(problem.k),
                        v = FrameworkTensor::of(problem.v),
                        dout = FrameworkTensor::of(problem.dout);
  FrameworkTensor dq = FrameworkTensor::empty(q.sizes, q.type),
                  dk = FrameworkTensor::empty(k.sizes, k.type),
                  dv = FrameworkTensor::empty(v.sizes, v.type);
  const aotriton::TensorView<4> none(0, {0, 0, 0, 0}, {0, 0, 0, 0}, q.type);
  const FrameworkTensor lse = logsumexp.view({s.batch * s.headsQ, s.seqlenQ});

  v3::attn_bwd_params params;
  params.Q = viewOf<4>(q.permute({0, 2, 1, 3}));
  params.K = viewOf<4>(k.permute({0, 2, 1, 3}));
  params.V = viewOf<4>(v.permute({0, 2, 1, 3}));
  params.B = none;
  params.Sm_scale = problem.scale;
  params.Out = viewOf<4>(out.permute({0, 2, 1, 3}));
  params.DO = viewOf<4>(dout.permute({0, 2, 1, 3}));
  params.DK = viewOf<4>(dk.permute({0, 2, 1, 3}));
  params.DV = viewOf<4>(dv.permute({0, 2, 1, 3}));
  params.DQ = viewOf<4>(dq.permute({0, 2, 1, 3}));
  params.DB = none;
  params.L = viewOf<2>(lse);
  params.Max_seqlen_q = int32_t(s.seqlenQ);
  params.Max_seqlen_k = int32_t(s.seqlenK);
  params.dropout_p = 0;
  params.causal_type = s.mask != ref::Mask::None
                           ? v3::CausalType::WindowedAttention
                           : v3::CausalType::None;
  params.window_left = path.left;
  params.window_right = path.right;
#if AOTRITON_VERSION_MINOR < 11
  const FrameworkTensor delta = FrameworkTensor::empty(lse.sizes, lse.type);
  params.D = viewOf<2>(delta);
  const bool callsOld = isOld(path);
  if (callsOld)
    ASSERT_EQ(aotriton::v2::flash::attn_bwd(
                  params.Q, params.K, params.V, params.B, params.Sm_scale,
                  params.Out, params.DO, params.DQ, params.DK, params.DV,
                  params.DB, params.L, params.D, params.dropout_p,
                  params.philox_seed_ptr, params.philox_offset1, 0,
                  params.causal_type != v3::CausalType::None, hipStream_t{}),
              hipSuccess)
        << fovea_aotriton_last_message();
#else
  const bool callsOld = false;
  Context delta{lse, {}}, dqAcc{dq.permute({0, 2, 1, 3}), {}};
  params.D = LazyOf<2, false>::make(&delta);
  params.DQ_ACC = LazyOf<4, true>::make(&dqAcc);
#endif
  if (!callsOld)
    ASSERT_EQ(
        v3::attn_bwd(params, v3::attn_bwd_params::kVersion, hipStream_t{}),
        hipSuccess)
        << fovea_aotriton_last_message();
#if AOTRITON_VERSION_MINOR >= 11
  EXPECT_FALSE(dqAcc.tensor.has_value());
#endif
  dq.copyTo(problem.dq);
  dk.copyTo(problem.dk);
  dv.copyTo(problem.dv);
}

Shape withMask(Shape shape, const fovea::Window &mask) {
  shape.layout = ref::Layout::BSHD;
  shape.mask = mask;
  return shape;
}

const Path kPaths[] = {
    {"MemEfficient",
     withMask({ref::ElemType::F16, {}, 2, 3, 3, 40, 60}, ref::Mask::None), 0, 0,
     true},
    {"MemEfficientInference",
     withMask({ref::ElemType::BF16, {}, 1, 3, 3, 40, 60}, ref::Mask::None), 0,
     0, false},
    {"MemEfficientCausal",
     withMask({ref::ElemType::BF16, {}, 1, 3, 3, 60, 40},
              ref::Mask::CausalTopLeft),
     kTopLeft, kTopLeft, true},
    {"MemEfficientFp32",
     withMask({ref::ElemType::F32, {}, 1, 3, 3, 60, 40},
              ref::Mask::CausalTopLeft),
     kTopLeft, kTopLeft, true},
    {"FlashCausalGrouped",
     withMask({ref::ElemType::BF16, {}, 1, 4, 2, 50, 50},
              ref::Mask::CausalBottomRight),
     kBottomRight, kBottomRight, true},
    // window_size_left of PyTorch's flash path, with is_causal and without:
    // what is not given is as long as the sequence.
    {"FlashSlidingCausal",
     withMask({ref::ElemType::BF16, {}, 1, 4, 2, 50, 50},
              {16, 0, fovea::Alignment::TopLeft, fovea::Alignment::TopLeft}),
     16, kBottomRight, true},
    {"FlashSliding",
     withMask({ref::ElemType::F16, {}, 1, 4, 2, 40, 60},
              {16, 60, fovea::Alignment::TopLeft, fovea::Alignment::TopLeft}),
     16, 60, true},
};

TEST(Adapter, PathsOfPyTorch) {
  for (const Path &path : kPaths) {
    SCOPED_TRACE(path.name);
    Problem problem(path.shape);
    FrameworkTensor out, logsumexp;
    ASSERT_NO_FATAL_FAILURE(forward(path, problem, out, logsumexp));
    EXPECT_EQ(problem.judgeForward(path.lse), "");
    if (!path.lse)
      continue;
    ASSERT_NO_FATAL_FAILURE(backward(path, problem, out, logsumexp));
    EXPECT_EQ(problem.judgeBackward(), "");
  }
}

} // namespace
