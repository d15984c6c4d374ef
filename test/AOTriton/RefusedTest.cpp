//===- RefusedTest.cpp - calls that are refused ---------------------------===//
//
// Each row of the tables breaks a call that is served in one way; it must be
// refused with that status and a reason that names the thing, and nothing may
// be written.
//
//===----------------------------------------------------------------------===//

#include "Client.h"

#include <algorithm>
#include <cmath>
#include <fovea/aotriton.h>
#include <gtest/gtest.h>

using namespace aotriton;
using client::attnBwd;
using client::attnFwd;
using client::backwardParams;
using client::Buffer;
using client::forwardParams;
using client::Lazy;
using client::Problem;

namespace flash = aotriton::v3::flash;

namespace {

/// One way to break a call of structure P.
template <typename P>
struct Row {
  const char *name;
  hipError_t status;
  const char *reason; ///< is in the message
  void (*breakIt)(P &);
};

/// The view with other sizes, strides or type; data as `to` says.
template <int Rank>
TensorView<Rank> with(const TensorView<Rank> &view, int axis, uint64_t size) {
  std::array<uint64_t, Rank> sizes = view.sizes();
  sizes[size_t(axis)] = size;
  return {reinterpret_cast<intptr_t>(view.data_ptr()), sizes, view.strides(),
          view.dtype()};
}
template <int Rank>
TensorView<Rank> withStride(const TensorView<Rank> &view, int axis,
                            uint64_t stride) {
  std::array<uint64_t, Rank> strides = view.strides();
  strides[size_t(axis)] = stride;
  return {reinterpret_cast<intptr_t>(view.data_ptr()), view.sizes(), strides,
          view.dtype()};
}
template <int Rank>
TensorView<Rank> withType(const TensorView<Rank> &view, DType type) {
  return {reinterpret_cast<intptr_t>(view.data_ptr()), view.sizes(),
          view.strides(), type};
}
template <int Rank>
TensorView<Rank> without(const TensorView<Rank> &view) {
  return {0, view.sizes(), view.strides(), view.dtype()};
}
void setGradientHeads(flash::attn_fwd_params &, uint64_t) {}
void setGradientHeads(flash::attn_bwd_params &p, uint64_t heads) {
  p.DK = with(p.DK, 1, heads);
  p.DV = with(p.DV, 1, heads);
}
/// Some memory, for tensors that must have none.
TensorView<1> lengths(const TensorView<4> &q) {
  return {reinterpret_cast<intptr_t>(q.data_ptr()), {2}, {1}, kInt32};
}
void setGradientDims(flash::attn_fwd_params &, uint64_t) {}
void setGradientDims(flash::attn_bwd_params &p, uint64_t dim) {
  for (TensorView<4> *tensor : {&p.DO, &p.DQ, &p.DK, &p.DV})
    *tensor = with(*tensor, 3, dim);
}
template <typename Params>
void setDims(Params &p, uint64_t dim) {
  for (TensorView<4> *tensor : {&p.Q, &p.K, &p.V, &p.Out})
    *tensor = with(*tensor, 3, dim);
  setGradientDims(p, dim);
}
template <typename Params>
void setTypes(Params &p, DType type) {
  p.Q = withType(p.Q, type);
  p.K = withType(p.K, type);
  p.V = withType(p.V, type);
  p.Out = withType(p.Out, type);
}
template <typename Params>
void setWindow(Params &p, int32_t left, int32_t right) {
  p.causal_type = flash::CausalType::WindowedAttention;
  p.window_left = left;
  p.window_right = right;
}

/// What both structures have.
template <typename P>
const Row<P> kCommonRows[] = {
    {"Dropout", hipErrorNotSupported, "dropout_p is 0.1",
     [](P &p) { p.dropout_p = 0.1f; }},
    {"DropoutIsNaN", hipErrorInvalidValue, "dropout_p is",
     [](P &p) { p.dropout_p = NAN; }},
    {"DropoutOfMore", hipErrorInvalidValue, "dropout_p is 1.5",
     [](P &p) { p.dropout_p = 1.5f; }},
    {"SeedOf32Bits", hipErrorInvalidValue, "philox_seed has type number 12",
     [](P &p) {
       p.dropout_p = 0.1f;
       p.philox_seed_ptr = {reinterpret_cast<intptr_t>(p.Q.data_ptr()), kInt32};
     }},
    {"Bias", hipErrorInvalidValue, "B has shape (1, 2, 70, 64)",
     [](P &p) { p.B = p.Q; }},
    {"Bytes", hipErrorNotSupported, "Q has type number 20",
     [](P &p) { setTypes(p, kUInt8); }},
    {"TypesDiffer", hipErrorInvalidValue, "V has type number 2, and Q 3",
     [](P &p) { p.V = withType(p.V, kFloat16); }},
    {"DimTooLarge", hipErrorNotSupported, "V has head dimension 520",
     [](P &p) { setDims(p, 520); }},
    {"DimWithoutKernel", hipErrorNotSupported, "head_dim=48",
     [](P &p) { setDims(p, 48); }},
    {"ValueDimDiffers", hipErrorInvalidValue, "Out has shape",
     [](P &p) { p.V = with(p.V, 3, 32); }},
    {"HeadsDoNotDivide", hipErrorInvalidValue, "must be a multiple of",
     [](P &p) {
       p.K = with(p.K, 1, 3);
       p.V = with(p.V, 1, 3);
       setGradientHeads(p, 3);
     }},
    {"KeysAndValuesDiffer", hipErrorInvalidValue, "V has shape",
     [](P &p) { p.V = with(p.V, 2, 5); }},
    {"OutDiffers", hipErrorInvalidValue, "Out has shape",
     [](P &p) { p.Out = with(p.Out, 2, 5); }},
    {"LastStride", hipErrorInvalidValue,
     "K has strides (8960, 4480, 64, 2); kernels need 1",
     [](P &p) { p.K = withStride(p.K, 3, 2); }},
    {"NegativeStride", hipErrorInvalidValue, "-64",
     [](P &p) { p.Q = withStride(p.Q, 2, uint64_t(-64)); }},
    {"NoAddress", hipErrorInvalidValue, "q", [](P &p) { p.Q = without(p.Q); }},
    {"LseShape", hipErrorInvalidValue, "L has shape (2, 69)",
     [](P &p) { p.L = with(p.L, 1, 69); }},
    {"LseStride", hipErrorInvalidValue, "L has strides (70, 2)",
     [](P &p) { p.L = withStride(p.L, 1, 2); }},
    {"LseType", hipErrorInvalidValue, "L has type number 2",
     [](P &p) { p.L = withType(p.L, kFloat16); }},
    {"CausalType", hipErrorInvalidValue, "causal_type is 1",
     [](P &p) { p.causal_type = 1; }},
    {"CausalTypeTwo", hipErrorInvalidValue, "causal_type is 2",
     [](P &p) { p.causal_type = 2; }},
    {"CausalTypeBeyond", hipErrorInvalidValue,
     "causal_type is 4; it may be 0 (none) or 3 (windowed)",
     [](P &p) { p.causal_type = 4; }},
    // Where it has no kernel, a window is named.
    {"WindowWithoutKernel", hipErrorNotSupported, "window",
     [](P &p) {
       setDims(p, 48);
       setWindow(p, 5, 0);
     }},
    {"Scale", hipErrorInvalidValue, "scale",
     [](P &p) { p.Sm_scale = INFINITY; }},
#if AOTRITON_VERSION_MINOR >= 14
    {"LengthsOfQueries", hipErrorInvalidValue, "seqinfo_q0 has data",
     [](P &p) { p.seqinfo_q0 = lengths(p.Q); }},
    {"LengthsOfKeys", hipErrorInvalidValue, "seqinfo_k0 has data",
     [](P &p) { p.seqinfo_k0 = lengths(p.Q); }},
    {"VarlenBits", hipErrorInvalidValue, "seqinfo_k0 has no data",
     [](P &p) {
       p.varlen_bits.kmode.length = flash::VarlenLength::CUMULATIVE;
     }},
#else
    {"LengthsOfQueries", hipErrorInvalidValue, "cu_seqlens_k has no data",
     [](P &p) { p.cu_seqlens_q = lengths(p.Q); }},
    {"LengthsOfKeys", hipErrorInvalidValue,
     "cu_seqlens_k has data, and cu_seqlens_q none",
     [](P &p) { p.cu_seqlens_k = lengths(p.Q); }},
    {"VarlenType", hipErrorInvalidValue, "varlen_type is -1",
     [](P &p) { p.varlen_type = -1; }},
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
    {"PlacesOfQueries", hipErrorInvalidValue, "seq_strides_q has data",
     [](P &p) { p.seq_strides_q = lengths(p.Q); }},
    {"PlacesOfKeys", hipErrorInvalidValue, "seq_strides_k has data",
     [](P &p) { p.seq_strides_k = lengths(p.Q); }},
#endif
};

const Row<flash::attn_fwd_params> kForwardRows[] = {
    {"Alibi", hipErrorNotSupported,
     "A has data, and there are no kernels with ALiBi",
     [](flash::attn_fwd_params &p) { p.A = p.L; }},
    {"EncodedSoftmaxShape", hipErrorInvalidValue, "encoded_softmax has shape",
     [](flash::attn_fwd_params &p) { p.encoded_softmax = p.Q; }},
    {"EncodedSoftmax", hipErrorNotSupported, "'dropout_mask;",
     [](flash::attn_fwd_params &p) {
       const uint64_t q = p.Q.size(2), k = p.K.size(2);
       p.encoded_softmax = {reinterpret_cast<intptr_t>(p.Out.data_ptr()),
                            {p.Q.size(0), p.Q.size(1), q, k},
                            {p.Q.size(1) * q * k, q * k, k, 1},
                            p.Q.dtype()};
     }},
    {"OutputOverlaps", hipErrorInvalidValue, "out",
     [](flash::attn_fwd_params &p) { p.Out = withStride(p.Out, 2, 0); }},
};
const Row<flash::attn_bwd_params> kBackwardRows[] = {
    {"BiasGradient", hipErrorInvalidValue, "DB has data, and B",
     [](flash::attn_bwd_params &p) { p.DB = p.Q; }},
    {"NoLse", hipErrorInvalidValue, "lse",
     [](flash::attn_bwd_params &p) { p.L = {}; }},
    {"NoGradientAddress", hipErrorInvalidValue, "dk",
     [](flash::attn_bwd_params &p) { p.DK = without(p.DK); }},
    {"GradientShape", hipErrorInvalidValue, "DQ has shape",
     [](flash::attn_bwd_params &p) { p.DQ = with(p.DQ, 0, 4); }},
    {"GradientStride", hipErrorInvalidValue, "DV has strides",
     [](flash::attn_bwd_params &p) { p.DV = withStride(p.DV, 3, 2); }},
    {"GradientOverlaps", hipErrorInvalidValue, "dq",
     [](flash::attn_bwd_params &p) { p.DQ = withStride(p.DQ, 2, 0); }},
    {"DoutType", hipErrorInvalidValue, "DO has type number 1",
     [](flash::attn_bwd_params &p) { p.DO = withType(p.DO, kFloat32); }},
    {"NoWorkspace", hipErrorNotSupported,
     "need a workspace of 560 bytes; the call offers, in fp32 without gaps: D "
     "0, DQ_ACC 0; FOVEA_AOTRITON_WORKSPACE=allocate lets HIP give it",
     [](flash::attn_bwd_params &p) { p.D = {}; }},
};

void expectRefusal(const char *function, hipError_t found, hipError_t status,
                   const char *reason) {
  EXPECT_EQ(found, status);
  const std::string message = fovea_aotriton_last_message();
  EXPECT_EQ(message.find(std::string(function) + ": "), 0u) << message;
  EXPECT_NE(message.find(reason), message.npos) << message;
}

/// Outputs hold NaN as before.
void expectUnwritten(Buffer &buffer) {
  buffer.download();
  EXPECT_EQ(size_t(std::count(buffer.values.begin(), buffer.values.end(),
                              uint16_t(0xffff))),
            buffer.values.size());
}

TEST(Refused, ForwardCalls) {
  Problem problem({});
  auto expectRefused = [&](const Row<flash::attn_fwd_params> &row) {
    SCOPED_TRACE(row.name);
    flash::attn_fwd_params params = forwardParams(problem);
    row.breakIt(params);
    expectRefusal("attn_fwd", attnFwd(params), row.status, row.reason);
  };
  for (const auto &row : kCommonRows<flash::attn_fwd_params>)
    expectRefused(row);
  for (const auto &row : kForwardRows)
    expectRefused(row);
  expectUnwritten(problem.out);
  EXPECT_EQ(attnFwd(forwardParams(problem)), hipSuccess);
}

TEST(Refused, BackwardCalls) {
  Problem problem({});
  problem.fillForwardResults();
  auto expectRefused = [&](const Row<flash::attn_bwd_params> &row) {
    SCOPED_TRACE(row.name);
    Lazy delta;
    flash::attn_bwd_params params = backwardParams(problem, delta);
    row.breakIt(params);
    expectRefusal("attn_bwd", attnBwd(params), row.status, row.reason);
  };
  for (const auto &row : kCommonRows<flash::attn_bwd_params>)
    expectRefused(row);
  for (const auto &row : kBackwardRows)
    expectRefused(row);
  for (Buffer *gradient : {&problem.dq, &problem.dk, &problem.dv})
    expectUnwritten(*gradient);
  Lazy delta;
  EXPECT_EQ(attnBwd(backwardParams(problem, delta)), hipSuccess);
}

/// A client of other headers: nothing of its structure is looked at.
TEST(Refused, OtherLayouts) {
  using Fwd = flash::attn_fwd_params;
  using Bwd = flash::attn_bwd_params;
  alignas(16) static const unsigned char nothing[sizeof(Bwd)] = {};
  // 0.14 reads the layout of 0.13, too.
  constexpr bool both = AOTRITON_VERSION_MINOR >= 14;
  for (int32_t version : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    if (version != Fwd::kVersion && !(both && version == 3))
      expectRefusal("attn_fwd",
                    flash::attn_fwd(reinterpret_cast<const Fwd &>(nothing),
                                    version, nullptr),
                    hipErrorInvalidSymbol, "takes layout");
    if (version != Bwd::kVersion && !(both && version == 6))
      expectRefusal("attn_bwd",
                    flash::attn_bwd(reinterpret_cast<const Bwd &>(nothing),
                                    version, nullptr),
                    hipErrorInvalidSymbol, "takes layout");
  }
}

TEST(Refused, WorkspacesWithGaps) {
  Problem problem({});
  problem.fillForwardResults();
  Lazy delta;
  flash::attn_bwd_params params = backwardParams(problem, delta);
  delta.columns = 35; // half of what is needed
  expectRefusal("attn_bwd", attnBwd(params), hipErrorNotSupported,
                "D 280, DQ_ACC 0");
  EXPECT_EQ(delta.acquired, 1);
  EXPECT_EQ(delta.disposed, 1);
}

/// AOTriton itself refuses calls of other libraries' kernels with this status.
TEST(Refused, Backends) {
  Problem problem({});
  flash::attn_options options;
  options.force_backend_index = 1;
  expectRefusal("attn_fwd", attnFwd(forwardParams(problem), {}, &options),
                hipErrorPeerAccessUnsupported, "force_backend_index is 1");
  options.force_backend_index = 2;
  Lazy delta;
  expectRefusal("attn_bwd",
                attnBwd(backwardParams(problem, delta), {}, &options),
                hipErrorPeerAccessUnsupported, "force_backend_index is 2");
}

TEST(Refused, OtherFunctions) {
  expectRefusal(
      "debug_simulate_encoded_softmax",
      v2::flash::debug_simulate_encoded_softmax({}, 0.5f, {}, {}, 0, nullptr),
      hipErrorInvalidValue, "r has no data");
#if AOTRITON_VERSION_MINOR < 12
  Problem problem({});
  Lazy delta;
  expectRefusal("aiter_bwd",
                flash::aiter_bwd(backwardParams(problem, delta), 99, nullptr),
                hipErrorInvalidSymbol, "layout 99");
#endif
}

} // namespace
