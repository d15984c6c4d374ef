//===- Device.cpp - the simulated device under a test ---------------------===//

#include "Device.h"

#include "fovea/Reference/Backward.h"
#include "fovea/Reference/Inputs.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tuple>

using namespace fovea::reference;

namespace fovea::test {
namespace {

constexpr int64_t kBatch = 1, kHeadsQ = 2, kHeadsK = 1, kSeqQ = 3, kSeqK = 4;
constexpr uint8_t kPoison = 0xff; ///< NaN in every type

template <typename Function>
void resolve(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function)
    ADD_FAILURE() << dlerror();
}

} // namespace

const SimHip &simHip() {
  static const SimHip hip = [] {
    SimHip h;
    h.library = dlopen(FOVEA_HIPSIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!h.library) {
      ADD_FAILURE() << dlerror();
      return h;
    }
    resolve(h.library, "hipMalloc", h.hipMalloc);
    resolve(h.library, "hipFree", h.hipFree);
    resolve(h.library, "hipSetDevice", h.hipSetDevice);
    resolve(h.library, "hipGetDevice", h.hipGetDevice);
    resolve(h.library, "hipStreamCreate", h.hipStreamCreate);
    resolve(h.library, "hipStreamDestroy", h.hipStreamDestroy);
    resolve(h.library, "hipDeviceSynchronize", h.hipDeviceSynchronize);
    resolve(h.library, "hipDeviceReset", h.hipDeviceReset);
    resolve(h.library, "hipModuleUnload", h.hipModuleUnload);
    return h;
  }();
  return hip;
}

FaultHipState &faultHip() {
  static FaultHipState &state = [&]() -> FaultHipState & {
    void *library = dlopen(FOVEA_FAULTHIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library) << dlerror();
    FaultHipStateFn get = nullptr;
    resolve(library, "fovea_fault_hip_state", get);
    get()->library = simHip().library;
    return *get();
  }();
  return state;
}

/// The inputs on the host, and what comes out.
struct Attention::Truth {
  // Tensors of the host; the device's lie at the same offsets from `base`.
  ForwardProblem problem;
  Tensor out, outIn, dout, dq, dk, dv; ///< outIn: the exact one, for gradients
  size_t lse = 0, lseIn = 0, workspace = 0; ///< offsets
  size_t results = 0;         ///< offset of out, behind which all results lie
  std::vector<uint8_t> image; ///< inputs in place, results poisoned
  Expectation forward;
  BackwardResult exact, plain;
  GradientSlack slack;
  std::vector<uint8_t> known[2]; ///< results of a fault-free pass
  size_t offsetOf(const Tensor &t) const {
    return size_t(reinterpret_cast<const uint8_t *>(t.data) - image.data());
  }
};

Attention::Truth &Attention::truthOf(const Shape &shape) {
  using Key = std::tuple<int32_t, int64_t, int32_t>;
  static auto *truths = new std::map<Key, Truth>;
  auto [place, isNew] =
      truths->try_emplace(Key{shape.dtype, shape.headDim, shape.mask});
  Truth &t = place->second;
  if (!isNew)
    return t;
  const ElemType type =
      shape.dtype == FOVEA_DTYPE_BF16 ? ElemType::BF16 : ElemType::F16;
  const Tensor asQ = describe(type, Layout::BHSD, kBatch, kHeadsQ, kSeqQ,
                              shape.headDim),
               asK = describe(type, Layout::BHSD, kBatch, kHeadsK, kSeqK,
                              shape.headDim);
  t.problem = {asQ, asK, asK, Mask(shape.mask),
               1.0f / std::sqrt(float(shape.headDim))};
  t.out = t.outIn = t.dout = t.dq = asQ;
  t.dk = t.dv = asK;
  // Inputs, then results, each at a multiple of 16 bytes.
  size_t size = 0;
  auto take = [&](size_t bytes) {
    const size_t at = size;
    size = (size + bytes + 15) & ~size_t(15);
    return at;
  };
  Tensor *const inputs[] = {&t.problem.q, &t.problem.k, &t.problem.v, &t.dout,
                            &t.outIn},
                *const results[] = {&t.out, &t.dq, &t.dk, &t.dv};
  std::vector<std::pair<Tensor *, size_t>> places;
  for (Tensor *tensor : inputs)
    places.emplace_back(tensor, take(size_t(tensor->span()) * 2));
  t.lseIn = take(kBatch * kHeadsQ * kSeqQ * sizeof(float));
  t.workspace = take(kBatch * kHeadsQ * kSeqQ * sizeof(float) *
                     size_t(shape.headDim + 1));
  t.results = size;
  for (Tensor *tensor : results)
    places.emplace_back(tensor, take(size_t(tensor->span()) * 2));
  t.lse = take(kBatch * kHeadsQ * kSeqQ * sizeof(float));
  t.image.assign(size, kPoison);
  for (auto &[tensor, at] : places)
    tensor->data = t.image.data() + at;

  fillInputs(t.problem, InputKind::Normal, 7);
  Random random(11);
  for (int64_t i = 0; i != t.dout.span(); ++i)
    t.dout.row(0, 0, 0).set(i, random.normal());
  t.forward = expectForward(t.problem, 1);
  for (size_t i = 0; i != t.forward.exact.out.size(); ++i)
    t.outIn.row(0, 0, 0).set(int64_t(i), t.forward.exact.out[i]);
  for (size_t i = 0; i != t.forward.exact.lse.size(); ++i) {
    const float lse = float(t.forward.exact.lse[i]);
    std::memcpy(t.image.data() + t.lseIn + i * sizeof(lse), &lse, sizeof(lse));
  }
  const BackwardProblem backward{t.problem, t.dout};
  t.exact = attentionBackwardF64(backward, 1, &t.slack);
  t.plain = attentionBackwardPlain(backward, 1);
  return t;
}

Attention::Attention(const Shape &shape) : truth(truthOf(shape)) {
  void *memory = nullptr;
  EXPECT_EQ(simHip().hipMalloc(&memory, truth.image.size()), 0);
  base = static_cast<uint8_t *>(memory);
  std::memcpy(base, truth.image.data(), truth.image.size());
}

Attention::~Attention() { EXPECT_EQ(simHip().hipFree(base), 0); }

namespace {
template <typename Params>
void fillProblem(Params &p, const ForwardProblem &problem) {
  p.struct_size = sizeof(p);
  p.dtype =
      problem.q.type == ElemType::BF16 ? FOVEA_DTYPE_BF16 : FOVEA_DTYPE_F16;
  if (const fovea::MaskInfo *mask = fovea::findMask(problem.mask))
    p.mask = int32_t(mask->kind);
  p.scale = problem.scale;
  p.batch = kBatch;
  p.heads_q = kHeadsQ;
  p.heads_k = kHeadsK;
  p.seqlen_q = kSeqQ;
  p.seqlen_k = kSeqK;
  p.head_dim = problem.q.dim;
}
template <typename Out>
void fillTensor(Out &out, const Tensor &tensor, const void *image,
                uint8_t *base) {
  out.data = base + (reinterpret_cast<const uint8_t *>(tensor.data) -
                     static_cast<const uint8_t *>(image));
  out.stride_batch = tensor.strideBatch;
  out.stride_head = tensor.strideHead;
  out.stride_seq = tensor.strideSeq;
}
} // namespace

fovea_forward_params_t Attention::forward() const {
  fovea_forward_params_t p{};
  const uint8_t *image = truth.image.data();
  fillProblem(p, truth.problem);
  fillTensor(p.q, truth.problem.q, image, base);
  fillTensor(p.k, truth.problem.k, image, base);
  fillTensor(p.v, truth.problem.v, image, base);
  fillTensor(p.out, truth.out, image, base);
  p.lse = reinterpret_cast<float *>(base + truth.lse);
  p.lse_stride_batch = kHeadsQ * kSeqQ;
  p.lse_stride_head = kSeqQ;
  return p;
}

fovea_backward_params_t Attention::backward() const {
  fovea_backward_params_t p{};
  const uint8_t *image = truth.image.data();
  fillProblem(p, truth.problem);
  fillTensor(p.q, truth.problem.q, image, base);
  fillTensor(p.k, truth.problem.k, image, base);
  fillTensor(p.v, truth.problem.v, image, base);
  fillTensor(p.dout, truth.dout, image, base);
  fillTensor(p.out, truth.outIn, image, base);
  p.lse = reinterpret_cast<const float *>(base + truth.lseIn);
  p.lse_stride_batch = kHeadsQ * kSeqQ;
  p.lse_stride_head = kSeqQ;
  fillTensor(p.dq, truth.dq, image, base);
  fillTensor(p.dk, truth.dk, image, base);
  fillTensor(p.dv, truth.dv, image, base);
  p.workspace = base + truth.workspace;
  p.workspace_bytes = truth.results - truth.workspace;
  return p;
}

void Attention::poison() {
  std::memset(base + truth.results, kPoison,
              truth.image.size() - truth.results);
}

bool Attention::isRight(bool backward) const {
  if (simHip().hipDeviceSynchronize() != 0) {
    ADD_FAILURE() << "the device failed";
    return false;
  }
  std::vector<uint8_t> got(base + truth.results, base + truth.image.size());
  std::vector<uint8_t> &known = truth.known[backward];
  if (!known.empty())
    return got == known;
  auto found = [&](Tensor tensor) {
    tensor.data = base + truth.offsetOf(tensor);
    return tensor;
  };
  bool right = true;
  auto hold = [&](const Comparison &comparison) {
    EXPECT_TRUE(comparison.pass) << comparison.message;
    right = right && comparison.pass;
  };
  if (backward) {
    hold(compareGradient("dq", found(truth.dq), truth.exact.dq, truth.plain.dq,
                         truth.slack.dq));
    hold(compareGradient("dk", found(truth.dk), truth.exact.dk, truth.plain.dk,
                         truth.slack.dk));
    hold(compareGradient("dv", found(truth.dv), truth.exact.dv, truth.plain.dv,
                         truth.slack.dv));
  } else {
    hold(compareForward(truth.forward, found(truth.out),
                        reinterpret_cast<const float *>(base + truth.lse)));
  }
  if (right)
    known = std::move(got);
  return right;
}

bool Attention::forwardIsRight() const { return isRight(false); }
bool Attention::backwardIsRight() const { return isRight(true); }

} // namespace fovea::test
