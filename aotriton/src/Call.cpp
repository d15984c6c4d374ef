//===- Call.cpp - one form for all calls of attention ---------------------===//

#include "Call.h"

#include "Describe.h"
#include "Fallback.h"

#include "fovea/Package/Replacement.h"
#include "fovea/Package/Visibility.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

using namespace aotriton;

namespace fovea::shim {
namespace {

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
  // Seeds are put somewhere by the forward pass alone.
  Groups ofBackward = groups;
  ofBackward.dropout.seed_out = ofBackward.dropout.offset_out = nullptr;
  ofBackward.linkAgain();
  fovea_backward_params_t backward = {};
  backward.struct_size = sizeof(backward);
  backward.dtype = params.dtype;
  backward.groups = &ofBackward.window.header;
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
  const fovea_status_t status =
      fovea_backward_select(context, &backward, device, nullptr);
  if (status == FOVEA_STATUS_OK)
    return {};
  if (status != FOVEA_STATUS_NOT_FOUND)
    return failure(status);
  return unsupported("there are rows that see no key and no kernels for the "
                     "backward pass, and another library's take another "
                     "log-sum-exp for such rows");
}

/// A call without its addresses, and what was chosen for it.
template <typename Params, typename Plan>
struct Choice {
  Params params = {};
  Groups groups;
  int32_t device = -1;
  bool asked = false;  ///< for a deterministic one
  uint32_t chosen = 0; ///< what params.deterministic became
  Plan plan = {};

  bool isOfSameCall(const Choice &other) const {
    return device == other.device && asked == other.asked &&
           !std::memcmp(&params, &other.params, sizeof(params)) &&
           !std::memcmp(&groups, &other.groups, sizeof(groups));
  }
};
using ForwardChoice = Choice<fovea_forward_params_t, fovea_forward_plan_t>;
using BackwardChoice = Choice<fovea_backward_params_t, fovea_backward_plan_t>;

/// Layers repeat, of some kinds: what the thread chose spares asking again,
/// which makes up a text. Packages do not change once they are open.
template <typename Choice>
struct Choices {
  std::array<Choice, 4> all;
  Replacement<4> replacement;

  const Choice *find(const Choice &call) {
    for (size_t i = 0; i != all.size(); ++i)
      if (all[i].isOfSameCall(call)) {
        replacement.use(i);
        return &all[i];
      }
    return nullptr;
  }
  void keep(const Choice &made) { all[replacement.take()] = made; }
};
template <typename Choice>
thread_local Choices<Choice> choices;

void forgetOutputs(fovea_forward_params_t &params) {
  params.out.data = nullptr;
}
void forgetOutputs(fovea_backward_params_t &params) {
  params.out.data = params.dout.data = nullptr;
  for (fovea_mutable_tensor_t *gradient : {&params.dq, &params.dk, &params.dv})
    gradient->data = nullptr;
}

/// \param choice  receives the call
/// \return what was chosen for one like it; null: nothing that is known
template <typename Choice, typename Params>
const Choice *findChoice(const Params &params, const Groups &groups,
                         int32_t device, bool asked, Choice &choice) {
  // Which tensors there are is part of the choice, where they are is not.
  static int32_t kSome = 0;
  static float kSomeSums = 0;
  std::memcpy(&choice.params, &params, sizeof(params)); // with its padding
  for (const void **address :
       {&choice.params.q.data, &choice.params.k.data, &choice.params.v.data})
    *address = nullptr;
  forgetOutputs(choice.params);
  if (choice.params.lse)
    choice.params.lse = &kSomeSums;
  choice.params.groups = nullptr;
  std::memcpy(&choice.groups, &groups, sizeof(groups));
  // Which groups there are their sizes tell.
  for (fovea_group_t *header : choice.groups.headers())
    header->next = nullptr;
  choice.groups.score.captures = nullptr;
  choice.groups.bias.data = nullptr;
  if (choice.groups.bias.gradient)
    choice.groups.bias.gradient = &kSome;
  fovea_dropout_t &dropout = choice.groups.dropout;
  dropout.seed = dropout.offset = nullptr;
  dropout.offset_value = 0;
  for (fovea_sequences_t *side :
       {&choice.groups.varlen.q, &choice.groups.varlen.k})
    for (const int32_t **address : {&side->lengths, &side->starts})
      if (*address)
        *address = &kSome;
  choice.device = device;
  choice.asked = asked;
  choice.plan.struct_size = sizeof(choice.plan);
  return choices<Choice>.find(choice);
}

/// Chooses the kernels of a backward pass and sets `params.deterministic` to
/// what they are. The deterministic ones come first even when they are not
/// asked for: their workspace is what clients bring as D, that of the others is
/// larger than what they bring as DQ_ACC.
/// \param passedOver  receives why those are not taken, where that may be since
///   the stream is being captured: others are the choice for this call alone
Status choose(const BackwardCall &call, fovea_context_t *context,
              fovea_backward_params_t &params, const Groups &groups,
              int32_t device, Stream stream, fovea_backward_plan_t &plan,
              Status &passedOver) {
  const bool deterministic = call.deterministic || call.forward.backend >= 0;
  BackwardChoice choice;
  if (const BackwardChoice *known =
          findChoice(params, groups, device, deterministic, choice)) {
    params.deterministic = known->chosen;
    plan = known->plan;
    return {};
  }
  auto failed = [&](fovea_status_t status) {
    return failureOf(call.forward, context, device, status);
  };
  params.stream = stream.native();
  params.deterministic = 1;
  fovea_status_t status =
      fovea_backward_select(context, &params, device, &choice.plan);
  if (status != FOVEA_STATUS_OK) {
    const int32_t cause = fovea_last_cause();
    // Captures take what is loaded, and nothing is compiled meanwhile.
    const bool isOfCapture = cause == FOVEA_CAUSE_CAPTURED;
    const bool others = status == FOVEA_STATUS_NOT_FOUND || isOfCapture ||
                        cause == FOVEA_CAUSE_DETERMINISTIC;
    Status first = failed(status);
    if (deterministic || !others)
      return first;
    if (isOfCapture)
      passedOver = first;
    params.deterministic = 0;
    status = fovea_backward_select(context, &params, device, &choice.plan);
    if (status != FOVEA_STATUS_OK)
      return failed(status);
  }
  choice.chosen = params.deterministic;
  plan = choice.plan;
  if (!plan.provisional && !passedOver)
    choices<BackwardChoice>.keep(choice);
  return {};
}

/// Gives a forward pass what kernels that split keys work in, where they are
/// the choice and we may take it: no client brings it. Without it others serve.
Status provideShares(fovea_context_t *context, const Groups &groups,
                     int32_t device, Stream stream, StreamMemory &own,
                     fovea_forward_params_t &params) {
  if (!mayAllocate())
    return {};
  ForwardChoice choice;
  const ForwardChoice *known =
      findChoice(params, groups, device, /*asked=*/false, choice);
  if (known)
    choice.plan = known->plan;
  const fovea_forward_plan_t &plan = choice.plan;
  if (known && plan.workspace_bytes == 0)
    return {};
  if (Status none = own.canTake(context, stream.native()))
    return none.broken ? none : Status();
  if (!known) {
    // Graphs have the one that does not split, and it has to be loaded when
    // they are captured: clients run once before. This loads it too, since
    // there is no workspace yet.
    const fovea_status_t status =
        fovea_forward_prepare(context, &params, device, &choice.plan);
    if (status == FOVEA_STATUS_NOT_FOUND)
      return {}; // as the launch will tell
    if (status != FOVEA_STATUS_OK)
      return failureOf(context, device, status);
    choices<ForwardChoice>.keep(choice);
  }
  if (plan.workspace_bytes == 0)
    return {};
  if (Status bad = own.takeIfAny(stream.native(), plan.workspace_bytes))
    return bad;
  if (!own.data())
    return {};
  params.kernel = plan.kernel;
  params.workspace = own.data();
  params.workspace_bytes = plan.workspace_bytes;
  return {};
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
                        fovea_forward_params_t &params, const Groups &groups) {
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
  StreamMemory own;
  if (Status bad = provideShares(context, groups, device, stream, own, params))
    return bad;
  fovea_status_t status = fovea_forward(context, &params, stream.native());
  if (status != FOVEA_STATUS_OK)
    return failureOf(call, context, device, status);
  if (Status bad = own.giveBack())
    return bad;
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
  Status passedOver;
  if (Status bad = choose(call, context, params, groups, device, stream, plan,
                          passedOver))
    return bad;
  params.kernel = plan.kernel;
  StreamMemory own;
  // Clients bring memory for those that were passed over.
  if (Status bad =
          provide(call, plan.workspace_bytes, context, stream, own, params))
    return passedOver && bad.isRefusal() ? passedOver : bad;
  StreamMemory lse;
  if (layout.lseIsShort)
    if (Status bad =
            computeLse(base, layout, context, device, stream, lse, params.lse))
      return bad;
  clears = groups.bias.gradient && !groups.score.stored_gradients;
  if (Status bad = clearBiasGradient(context, stream, groups))
    return bad;
  const fovea_status_t status =
      fovea_backward(context, &params, stream.native());
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
