//===- Client.cpp - what the clients of the tests have in common ----------===//

#include "Client.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

using namespace aotriton;

namespace client {
namespace {

constexpr int kToDevice = 1, kToHost = 2; // hipMemcpyKind

/// A client without HIP is no test.
void demand(hipError_t error, const char *call) {
  if (error == hipSuccess)
    return;
  std::fprintf(stderr, "%s failed with status %d\n", call, int(error));
  std::exit(1);
}

DType typeOf(ref::ElemType type) {
  return type == ref::ElemType::F16    ? kFloat16
         : type == ref::ElemType::BF16 ? kBFloat16
                                       : kFloat32;
}

} // namespace

Memory::Memory(size_t bytes) : bytes(bytes) {
  if (!bytes)
    return;
  demand(hipMalloc(&address, bytes), "hipMalloc");
  demand(hipMemset(address, 0xff, bytes), "hipMemset");
}
Memory::~Memory() { (void)hipFree(address); }
void Memory::write(const void *from) {
  if (bytes)
    demand(hipMemcpy(address, from, bytes, kToDevice), "hipMemcpy");
}
void Memory::read(void *to) const {
  if (bytes)
    demand(hipMemcpy(to, address, bytes, kToHost), "hipMemcpy");
}

Buffer::Buffer(ref::ElemType type, ref::Layout layout, int64_t batch,
               int64_t heads, int64_t seq, int64_t dim, int64_t rowPadding)
    : host(ref::describe(type, layout, batch, heads, seq, dim, rowPadding)),
      values(size_t((host.span() + rowPadding) * fovea::elementSize(type) / 2),
             0xffff),
      memory(values.size() * 2) {
  host.data = values.data();
}

TensorView<4> Buffer::view() const {
  return TensorView<4>(reinterpret_cast<intptr_t>(memory.data()),
                       {uint64_t(host.batch), uint64_t(host.heads),
                        uint64_t(host.seq), uint64_t(host.dim)},
                       {uint64_t(host.strideBatch), uint64_t(host.strideHead),
                        uint64_t(host.strideSeq), 1},
                       typeOf(host.type));
}

Floats::Floats(int64_t rows, int64_t columns)
    : rows(rows), columns(columns), memory(size_t(rows * columns) * 4) {}

TensorView<2> Floats::view() const {
  return TensorView<2>(reinterpret_cast<intptr_t>(memory.data()),
                       {uint64_t(rows), uint64_t(columns)},
                       {uint64_t(columns), 1}, kFloat32);
}
std::vector<float> Floats::download() const {
  std::vector<float> values(size_t(rows * columns));
  memory.read(values.data());
  return values;
}
void Floats::upload(const std::vector<double> &values) {
  const std::vector<float> floats(values.begin(), values.end());
  memory.write(floats.data());
}

/// As AOTriton wants it: 8 divides the distance of rows, and the last one has
/// all of its.
static int64_t paddingOf(int64_t dim) { return (8 - dim % 8) % 8; }

Problem::Problem(const Shape &s, uint64_t seed)
    : shape(s), q(s.type, s.layout, s.batch, s.headsQ, s.seqlenQ, s.dim,
                  paddingOf(s.dim)),
      k(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dim,
        paddingOf(s.dim)),
      v(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dimOfV(),
        paddingOf(s.dimOfV())),
      out(s.type, s.layout, s.batch, s.headsQ, s.seqlenQ, s.dimOfV(),
          paddingOf(s.dimOfV())),
      dout(s.type, s.layout, s.batch, s.headsQ, s.seqlenQ, s.dimOfV(),
           paddingOf(s.dimOfV())),
      dq(s.type, s.layout, s.batch, s.headsQ, s.seqlenQ, s.dim,
         paddingOf(s.dim)),
      dk(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dim,
         paddingOf(s.dim)),
      dv(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dimOfV(),
         paddingOf(s.dimOfV())),
      lse(s.batch * s.headsQ, s.seqlenQ),
      scale(float(1 / std::sqrt(double(s.dim)))) {
  ref::ForwardProblem inputs = problem();
  ref::fillInputs(inputs, ref::InputKind::Normal, seed);
  ref::ForwardProblem gradient = inputs; // its q stands for dout
  gradient.q = dout.host;
  Buffer scratchK(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dimOfV());
  Buffer scratchV(s.type, s.layout, s.batch, s.headsK, s.seqlenK, s.dimOfV());
  gradient.k = scratchK.host;
  gradient.v = scratchV.host;
  ref::fillInputs(gradient, ref::InputKind::Normal, ~seed);
  for (Buffer *input : {&q, &k, &v, &dout})
    input->upload();
}

ref::ForwardProblem Problem::problem() const {
  ref::ForwardProblem problem;
  problem.q = q.host;
  problem.k = k.host;
  problem.v = v.host;
  problem.mask = shape.mask;
  problem.scale = scale;
  problem.score = score;
  problem.dropout = dropout;
  return problem;
}

void Problem::fillForwardResults() {
  const ref::ForwardResult exact = ref::attentionForwardF64(problem(), 1);
  size_t at = 0;
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.headsQ; ++h)
      for (int64_t s = 0; s < shape.seqlenQ; ++s)
        for (int64_t d = 0; d < shape.dimOfV(); ++d)
          out.host.row(b, h, s).set(d, exact.out[at++]);
  out.upload();
  lse.upload(exact.lse);
}

std::string Problem::judgeForward(bool withLse) {
  out.download();
  const std::vector<float> sums = lse.download();
  return ref::compareForward(ref::expectForward(problem(), 1), out.host,
                             withLse ? sums.data() : nullptr)
      .message;
}

std::string Problem::judgeBackward() {
  ref::BackwardProblem backward;
  backward.forward = problem();
  backward.dout = dout.host;
  ref::GradientSlack slack;
  const ref::BackwardResult exact =
      ref::attentionBackwardF64(backward, 1, &slack);
  const ref::BackwardResult plain = ref::attentionBackwardPlain(backward, 1);
  std::string message;
  for (Buffer *gradient : {&dq, &dk, &dv})
    gradient->download();
  message +=
      ref::compareGradient("dq", dq.host, exact.dq, plain.dq, slack.dq).message;
  message +=
      ref::compareGradient("dk", dk.host, exact.dk, plain.dk, slack.dk).message;
  message +=
      ref::compareGradient("dv", dv.host, exact.dv, plain.dv, slack.dv).message;
  return message;
}

std::string Problem::judgeBias(const Buffer &dbias) {
  ref::BackwardProblem backward;
  backward.forward = problem();
  backward.dout = dout.host;
  const ref::Tensor &o = out.host;
  std::vector<double> stored;
  for (int64_t b = 0; b != o.batch; ++b)
    for (int64_t h = 0; h != o.heads; ++h)
      for (int64_t i = 0; i != o.seq; ++i)
        for (int64_t d = 0; d != o.dim; ++d)
          stored.push_back(o.row(b, h, i)[d]);
  const ref::Tensor &found = dbias.host;
  const ref::CaptureGradient exact = ref::captureGradientF64(
      backward, stored, lse.download(), /*capture=*/0,
      found.batch * found.heads * found.seq * found.dim);
  std::vector<float> values;
  std::vector<double> expected, budget;
  for (int64_t b = 0; b != found.batch; ++b)
    for (int64_t h = 0; h != found.heads; ++h)
      for (int64_t i = 0; i != found.seq; ++i)
        for (int64_t j = 0; j != found.dim; ++j) {
          const auto &element = exact.elements[values.size()];
          values.push_back(float(found.row(b, h, i)[j]));
          expected.push_back(element.exact);
          // It is rounded once more than a sum in fp32.
          const double slack = element.budget();
          budget.push_back(slack + ref::unitRoundoff(found.type) *
                                       (std::fabs(element.exact) + slack +
                                        ref::leastNormal(found.type)));
        }
  return ref::compareElements("DB", values, expected, budget).message;
}

Words::Words(const std::vector<uint64_t> &values)
    : count(values.size()), memory(values.size() * sizeof(uint64_t)) {
  memory.write(values.data());
}
TensorView<0> Words::at(size_t i, DType type) const {
  return {
      reinterpret_cast<intptr_t>(static_cast<uint64_t *>(memory.data()) + i),
      type};
}
std::vector<uint64_t> Words::download() const {
  std::vector<uint64_t> values(count);
  memory.read(values.data());
  return values;
}
void Words::upload(const std::vector<uint64_t> &values) {
  memory.write(values.data());
}

Recording::Recording(const std::function<hipError_t(hipStream_t)> &call,
                     const Buffer &result) {
  check(hipStreamCreate(&stream));
  check(call(stream));
  check(hipStreamSynchronize(stream));
  check(hipMemset(result.memory.data(), 0xff, result.memory.size()));
  check(hipStreamBeginCapture(stream, 0));
  check(call(stream));
  check(hipStreamEndCapture(stream, &graph));
  check(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
}
Recording::~Recording() {
  hipGraphExecDestroy(exec);
  hipGraphDestroy(graph);
  hipStreamDestroy(stream);
}
hipError_t Recording::replay() {
  check(hipGraphLaunch(exec, stream));
  check(hipStreamSynchronize(stream));
  return first;
}

Bias::Bias(ref::ElemType type, Four sizes, Four strides, bool hides)
    : type(type), sizes(sizes), strides(strides),
      values(valuesFor(type, sizes, strides, hides)), memory(values.size()) {
  memory.write(values.data());
}

TensorView<4> Bias::view() const {
  return {reinterpret_cast<intptr_t>(memory.data()), sizes, strides,
          typeOf(type)};
}

std::vector<char> Bias::valuesFor(ref::ElemType type, Four sizes, Four strides,
                                  bool hides) {
  uint64_t last = 0;
  for (size_t i = 0; i != 4; ++i)
    last += (sizes[i] - 1) * strides[i];
  // Memory ends with a word, whatever a last row does.
  constexpr uint64_t kWord = 4;
  const uint64_t bytes = (last + 1) * uint64_t(fovea::elementSize(type));
  std::vector<char> values((bytes + kWord - 1) / kWord * kWord, char(0xff));
  const ref::Row elements = {type, values.data()};
  for (uint64_t b = 0; b != sizes[0]; ++b)
    for (uint64_t h = 0; h != sizes[1]; ++h)
      for (uint64_t i = 0; i != sizes[2]; ++i)
        for (uint64_t j = 0; j != sizes[3]; ++j) {
          const uint64_t place =
              b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
          const bool hidden = hides && place % 7 < 3;
          elements.set(int64_t(place),
                       hidden ? -std::numeric_limits<double>::infinity()
                              : double(place * 37 % 101) / 25 - 2);
        }
  return values;
}

double Bias::at(const Place &place) const {
  const int64_t offset =
      place.batch * int64_t(strides[0]) + place.head * int64_t(strides[1]) +
      place.query * int64_t(strides[2]) + place.key * int64_t(strides[3]);
  return ref::Row{type, const_cast<char *>(values.data())}[offset];
}

namespace {

template <int Rank>
TensorView<Rank> acquireFrom(Lazy &lazy) {
  ++lazy.acquired;
  if (lazy.fails == Lazy::Fails::Throws)
    throw Lazy::Thrown();
  if (lazy.fails == Lazy::Fails::GivesNull)
    return {};
  lazy.floats = std::make_unique<Floats>(lazy.rows, lazy.columns);
  std::array<uint64_t, Rank> sizes, strides;
  sizes.fill(1);
  strides.fill(uint64_t(lazy.rows * lazy.columns));
  sizes[Rank - 2] = uint64_t(lazy.rows);
  sizes[Rank - 1] = uint64_t(lazy.columns);
  strides[Rank - 2] = uint64_t(lazy.columns);
  strides[Rank - 1] = 1;
  return TensorView<Rank>(
      reinterpret_cast<intptr_t>(lazy.floats->memory.data()), sizes, strides,
      kFloat32);
}

} // namespace

template <int Rank>
Lazy::Tensor<Rank> Lazy::tensor() {
#if AOTRITON_VERSION_MINOR < 11
  return acquireFrom<Rank>(*this);
#else
  LazyTensor<Rank> result;
  result.cookie = this;
#if AOTRITON_VERSION_MINOR >= 12
  result.acquire = [](LazyTensor<Rank> *self) {
    return acquireFrom<Rank>(*static_cast<Lazy *>(self->cookie));
  };
  result.dispose = [](LazyTensor<Rank> *self) {
    ++static_cast<Lazy *>(self->cookie)->disposed;
  };
#else
  result.acquire = [](void *cookie) {
    return acquireFrom<Rank>(*static_cast<Lazy *>(cookie));
  };
  result.dispose = [](void *cookie) {
    ++static_cast<Lazy *>(cookie)->disposed;
  };
#endif
  return result;
#endif
}
template Lazy::Tensor<2> Lazy::tensor<2>();
template Lazy::Tensor<4> Lazy::tensor<4>();

namespace {

template <typename Params>
void describe(const Problem &problem, Params &params) {
  params.Q = problem.q.view();
  params.K = problem.k.view();
  params.V = problem.v.view();
  params.Out = problem.out.view();
  params.L = problem.lse.view();
  params.Sm_scale = problem.scale;
  params.dropout_p = 0;
  params.causal_type = v3::CausalType::None;
  // Without a mask the windows must not matter. What is none of the masks the
  // test says itself.
  params.window_left = params.window_right = -7;
  if (problem.shape.mask == ref::Mask::None)
    return;
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = params.window_right =
      problem.shape.mask == ref::Mask::CausalTopLeft
          ? v3::WindowValue::TopLeftAligned
          : v3::WindowValue::BottomRightAligned;
}

} // namespace

v3::attn_fwd_params forwardParams(const Problem &problem) {
  v3::attn_fwd_params params;
  describe(problem, params);
  return params;
}

v3::attn_bwd_params backwardParams(const Problem &problem, Lazy &delta) {
  v3::attn_bwd_params params;
  describe(problem, params);
  params.DO = problem.dout.view();
  params.DQ = problem.dq.view();
  params.DK = problem.dk.view();
  params.DV = problem.dv.view();
  delta.rows = problem.shape.batch * problem.shape.headsQ;
  delta.columns = problem.shape.seqlenQ;
  params.D = delta.tensor<2>();
  return params;
}

hipError_t attnFwd(const v3::attn_fwd_params &params, hipStream_t stream,
                   const v3::attn_options *options) {
  return v3::attn_fwd(params, v3::attn_fwd_params::kVersion, stream, options);
}
hipError_t attnBwd(const v3::attn_bwd_params &params, hipStream_t stream,
                   const v3::attn_options *options) {
  return v3::attn_bwd(params, v3::attn_bwd_params::kVersion, stream, options);
}

} // namespace client
