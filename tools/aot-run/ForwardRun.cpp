//===- ForwardRun.cpp - run an attention problem and judge it -------------===//
//
// The session and the course of one run.
//
//===----------------------------------------------------------------------===//

#include "ForwardRun.h"

#include "GuardedTensor.h"
#include "fovea/HipSim.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fovea;
using namespace fovea::run;
using namespace fovea::reference;

float ForwardCase::scaleOrDefault() const {
  return scale ? *scale : float(1 / std::sqrt(double(headDim)));
}

std::string ForwardCase::str() const {
  auto number = [](int64_t n) { return std::to_string(n); };
  std::string text = std::string("forward ") + elemTypeName(type) + " d" +
                     number(headDim) + " " + maskName(mask) + " b" +
                     number(batch) + " h" + number(heads) + "/" +
                     number(headsK) + " q" + number(seqQ) + " k" +
                     number(seqK) + " " + layoutName(layout);
  if (rowPadding)
    text += "+" + number(rowPadding);
  if (offset)
    text += "@" + number(offset);
  return text + " " + inputKindName(input) + (lse ? "" : " no-lse");
}

struct Session::Impl {
  fovea_context_t *context = nullptr;
  HipCalls hip;
  int device = 0;
  bool simulated = false;
  /// A fault leaves the device unusable until it is reset.
  bool faulted = false;
  std::string arch, library;
  ~Impl() {
    fovea_context_destroy(context);
    if (faulted)
      (void)hip.reset();
  }

  RunReport run(const ForwardCase &problem, const RunOptions &options);
};

Session::Session(std::unique_ptr<Impl> impl, Options options)
    : impl(std::move(impl)), options(std::move(options)) {}
Session::~Session() = default;
bool Session::simulated() const { return impl->simulated; }
const std::string &Session::arch() const { return impl->arch; }
const std::string &Session::library() const { return impl->library; }
fovea_context_t *Session::context() const { return impl->context; }

std::unique_ptr<Session> Session::open(const Options &options,
                                       std::string &error, bool &deviceError) {
  auto impl = std::make_unique<Impl>();
  impl->device = options.device;
  auto failed = [&](bool device) -> std::unique_ptr<Session> {
    if (error.empty())
      error = fovea_last_message();
    deviceError = device;
    return nullptr;
  };
  fovea_context_options_t contextOptions = {};
  contextOptions.struct_size = sizeof(contextOptions);
  contextOptions.hip_library = options.hip.c_str();
  if (fovea_context_create(&contextOptions, &impl->context))
    return failed(false);
  if (fovea_package_open(impl->context, options.package.c_str()))
    return failed(false);
  fovea_hip_library_info_t library = {};
  library.struct_size = sizeof(library);
  if (fovea_hip_library_info(impl->context, &library))
    return failed(true);
  impl->library = std::string(library.path) + " (" + library.reason + ")";
  fovea_device_info_t device = {};
  device.struct_size = sizeof(device);
  if (fovea_device_info(impl->context, options.device, &device))
    return failed(true);
  impl->arch = device.arch;
  if (!impl->hip.load(impl->context, error))
    return failed(true);
  impl->simulated = impl->hip.counters != nullptr;
  if (HipStatus status = impl->hip.setDevice(options.device)) {
    error = "hipSetDevice: " + impl->hip.explain(status);
    return failed(true);
  }
  return std::unique_ptr<Session>(new Session(std::move(impl), options));
}

RunReport Session::run(const ForwardCase &problem, const RunOptions &how) {
  if (impl->faulted) {
    // The reset takes libfovea's modules with it, so its context goes too.
    impl.reset();
    std::string error;
    bool deviceError = false;
    std::unique_ptr<Session> fresh = open(options, error, deviceError);
    if (!fresh) {
      impl = std::make_unique<Impl>();
      RunReport report;
      report.outcome = Outcome::DeviceError;
      report.message = "opening the device again: " + error;
      return report;
    }
    impl = std::move(fresh->impl);
  }
  return impl->run(problem, how);
}

namespace {

Rows rowsOf(const Tensor &t) {
  return {t.batch,       t.heads,      t.seq,      t.dim,
          t.strideBatch, t.strideHead, t.strideSeq};
}

void fillGiven(const Tensor &t, const std::vector<double> &values) {
  size_t i = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s)
        for (int64_t d = 0; d < t.dim; ++d)
          t.row(b, h, s)[d] = encode(t.type, values[i++]);
}

fovea_tensor_t view(const Tensor &t, const void *data) {
  return {data, t.strideBatch, t.strideHead, t.strideSeq};
}

RunReport &fail(RunReport &report, Outcome outcome, const std::string &why) {
  report.outcome = outcome;
  if (!report.message.empty())
    report.message += '\n';
  report.message += why;
  return report;
}

/// With V all ones every row that sees a key must be exactly 1.
void checkOnes(const Tensor &out, const Expectation &expected,
               RunReport &report) {
  int64_t row = 0;
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t s = 0; s < out.seq; ++s, ++row) {
        if (!std::isfinite(expected.exact.lse[size_t(row)]))
          continue;
        for (int64_t d = 0; d < out.dim; ++d) {
          const double found = decode(out.type, out.row(b, h, s)[d]);
          if (found == 1)
            continue;
          fail(report, Outcome::Mismatch,
               "out[" + std::to_string(b) + ", " + std::to_string(h) + ", " +
                   std::to_string(s) + ", " + std::to_string(d) + "] is " +
                   std::to_string(found) +
                   ": v is all ones, so it must be exactly 1");
          return;
        }
      }
}

std::optional<Executed> executedOn(const HipCalls &hip, int device,
                                   double &seconds) {
  if (!hip.counters)
    return std::nullopt;
  fovea_sim_counters_t counters = {};
  counters.struct_size = sizeof(counters);
  if (hip.counters(device, &counters))
    return std::nullopt;
  seconds = counters.seconds;
  return Executed{counters.instructions, counters.mfma, counters.valu,
                  counters.trans,        counters.salu, counters.smem,
                  counters.vmem,         counters.lds,  counters.workgroups,
                  counters.waves};
}

/// A pair of events around a launch, for time on a real device.
class Stopwatch {
public:
  explicit Stopwatch(const HipCalls &hip) : hip(hip) {
    (void)hip.eventCreate(&start);
    (void)hip.eventCreate(&stop);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;
  ~Stopwatch() {
    for (void *event : {start, stop})
      if (event)
        (void)hip.eventDestroy(event);
  }
  void begin() { (void)hip.eventRecord(start, nullptr); }
  void end() { (void)hip.eventRecord(stop, nullptr); }
  double seconds() const {
    float milliseconds = 0;
    (void)hip.eventSynchronize(stop);
    (void)hip.eventElapsed(&milliseconds, start, stop);
    return milliseconds * 1e-3;
  }

private:
  const HipCalls &hip;
  void *start = nullptr, *stop = nullptr;
};

} // namespace

RunReport Session::Impl::run(const ForwardCase &c, const RunOptions &options) {
  RunReport report;
  const Guards guards = options.guards != Guards::Auto ? options.guards
                        : simulated                    ? Guards::Exact
                                                       : Guards::Canary;
  const int64_t guardBytes = guards == Guards::Canary ? 4096 : 0;

  ForwardProblem problem;
  problem.mask = c.mask;
  problem.scale = c.scaleOrDefault();
  problem.q = describe(c.type, c.layout, c.batch, c.heads, c.seqQ, c.headDim,
                       c.rowPadding);
  problem.k = describe(c.type, c.layout, c.batch, c.headsK, c.seqK, c.headDim,
                       c.rowPadding);
  problem.v = problem.k;
  Tensor out = problem.q;
  if (std::string bad = problem.check(); !bad.empty())
    return fail(report, Outcome::Refused, bad);

  using Halves = GuardedTensor<uint16_t>;
  const int64_t guard = guardBytes / 2;
  Halves q("q", Role::Input, rowsOf(problem.q), guard, c.offset);
  Halves k("k", Role::Input, rowsOf(problem.k), guard, c.offset);
  Halves v("v", Role::Input, rowsOf(problem.v), guard, c.offset);
  Halves o("out", Role::Output, rowsOf(out), guard, c.offset);
  // One row of log-sum-exps a head; heads as far apart as a multiple of 4 rows.
  const int64_t lseHead = std::max<int64_t>(4, (c.seqQ + 3) / 4 * 4);
  const Rows lseRows{c.batch,           c.heads, 1, c.seqQ,
                     c.heads * lseHead, lseHead, 0};
  GuardedTensor<uint32_t> lse("lse", c.lse ? Role::Output : Role::Input,
                              lseRows, guardBytes / 4, 0);

  problem.q.data = q.host();
  problem.k.data = k.host();
  problem.v.data = v.host();
  fillInputs(problem, c.input, c.seed);
  const GivenInputs &given = options.given;
  if (!given.q.empty())
    fillGiven(problem.q, given.q);
  if (!given.k.empty())
    fillGiven(problem.k, given.k);
  if (!given.v.empty())
    fillGiven(problem.v, given.v);

  auto deviceError = [&](const char *what, HipStatus status) -> RunReport & {
    fail(report, Outcome::DeviceError,
         std::string(what) + ": " + hip.explain(status));
    faulted = true;
    return report;
  };
  for (HipStatus status : {q.upload(hip), k.upload(hip), v.upload(hip),
                           o.upload(hip), lse.upload(hip)})
    if (status)
      return deviceError("allocating and copying the tensors", status);

  fovea_forward_params_t params = {};
  params.struct_size = sizeof(params);
  params.dtype = c.type == ElemType::F16 ? FOVEA_DTYPE_F16 : FOVEA_DTYPE_BF16;
  params.mask = c.mask == Mask::None ? FOVEA_MASK_NONE
                : c.mask == Mask::CausalTopLeft
                    ? FOVEA_MASK_CAUSAL_TOP_LEFT
                    : FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
  params.scale = problem.scale;
  params.batch = c.batch;
  params.heads_q = c.heads;
  params.heads_k = c.headsK;
  params.seqlen_q = c.seqQ;
  params.seqlen_k = c.seqK;
  params.head_dim = c.headDim;
  params.q = view(problem.q, q.device());
  params.k = view(problem.k, k.device());
  params.v = view(problem.v, v.device());
  params.out = {o.device(), out.strideBatch, out.strideHead, out.strideSeq};
  if (c.lse) {
    params.lse = static_cast<float *>(lse.device());
    params.lse_stride_batch = lseRows.strideBatch;
    params.lse_stride_head = lseRows.strideHead;
  }
  params.kernel = options.kernel;
  fovea_forward_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  if (fovea_forward_select(context, &params, device, &plan))
    return fail(report, Outcome::Refused, fovea_last_message());
  report.kernel = fovea_last_message();
  report.launched = plan.kernel != 0;

  for (int i = 0; i < std::max(1, options.repeat); ++i) {
    if (hip.resetCounters)
      (void)hip.resetCounters(device);
    Stopwatch watch(hip);
    watch.begin();
    if (fovea_status_t status = fovea_forward(context, &params, nullptr)) {
      faulted = status == FOVEA_STATUS_HIP_ERROR;
      return fail(report, faulted ? Outcome::DeviceError : Outcome::Refused,
                  fovea_last_message());
    }
    watch.end();
    if (HipStatus status = hip.synchronize())
      return deviceError("the launch", status);
    double seconds = watch.seconds();
    report.executed = executedOn(hip, device, seconds);
    report.seconds = i == 0 ? seconds : std::min(report.seconds, seconds);
  }
  for (HipStatus status :
       {q.download(), k.download(), v.download(), o.download(), lse.download()})
    if (status)
      return deviceError("copying the results", status);

  for (const std::string &change :
       {q.changes(), k.changes(), v.changes(), o.changes(), lse.changes()})
    if (!change.empty())
      fail(report, Outcome::Mismatch, change);

  out.data = o.host();
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t s = 0; s < out.seq; ++s)
        for (int64_t d = 0; d < out.dim; ++d)
          report.out.push_back(float(decode(out.type, out.row(b, h, s)[d])));
  if (!options.check)
    return report;
  std::vector<float> lseDense(size_t(c.batch * c.heads * c.seqQ));
  for (int64_t head = 0; head < c.batch * c.heads; ++head)
    std::memcpy(lseDense.data() + head * c.seqQ, lse.host() + head * lseHead,
                size_t(c.seqQ) * sizeof(float));
  const Expectation expected = expectForward(problem, options.threads);
  report.checked = true;
  report.comparison =
      compareForward(expected, out, c.lse ? lseDense.data() : nullptr);
  if (!report.comparison.pass)
    fail(report, Outcome::Mismatch, report.comparison.message);
  if (c.input == InputKind::OnesV && given.v.empty())
    checkOnes(out, expected, report);
  return report;
}
