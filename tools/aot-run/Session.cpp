//===- Session.cpp - a device with packages, and runs on it ---------------===//
//
// Opening, and the parts of a run that are the same for every operation.
//
//===----------------------------------------------------------------------===//

#include "BackwardRun.h"
#include "SessionImpl.h"

#include "fovea/HipSim.h"
#include "fovea/Package/Chips.h"

#include <algorithm>
#include <cstdlib>

using namespace fovea;
using namespace fovea::run;
using namespace fovea::reference;

Session::Session(std::unique_ptr<Impl> impl, Options options)
    : impl(std::move(impl)), options(std::move(options)) {}
Session::~Session() = default;
bool Session::simulated() const { return impl->simulated; }
const std::string &Session::arch() const { return impl->arch; }
const std::string &Session::library() const { return impl->library; }
fovea_context_t *Session::context() const { return impl->context; }

/// The chip that is simulated for the kernels of the open packages: the first
/// that some of them run on. Empty: the usual one, because it is one of several
/// or there are no kernels.
static std::string chipOf(fovea_context_t *context) {
  std::string first;
  const size_t count = fovea_kernel_count(context);
  for (uint32_t id = 1; id <= count; ++id) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(context, id, &info))
      continue;
    const std::string chip = simulatedChipFor(info.target);
    if (chip == FOVEA_SIM_DEFAULT_TARGET)
      return "";
    if (first.empty())
      first = chip;
  }
  return first;
}

static std::string withoutFeatures(const std::string &target) {
  return target.substr(0, target.find(':'));
}

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
  if (!options.hip.empty())
    contextOptions.hip_library = options.hip.c_str();
  if (fovea_context_create(&contextOptions, &impl->context))
    return failed(false);
  if (fovea_package_open(impl->context, options.package.c_str()))
    return failed(false);
  // Read by the simulated library when it is opened, and by nobody else.
  if (!options.target.empty())
    ::setenv("FOVEA_SIM_TARGET", options.target.c_str(), /*overwrite=*/1);
  else if (const std::string chip = chipOf(impl->context); !chip.empty())
    ::setenv("FOVEA_SIM_TARGET", chip.c_str(), /*overwrite=*/0);
  fovea_hip_library_info_t library = {};
  library.struct_size = sizeof(library);
  if (fovea_hip_library_info(impl->context, &library))
    return failed(true);
  // Why it is that one is a line of the log: it names all that was tried.
  impl->library = std::string(library.path) +
                  (library.kind == FOVEA_HIP_SIM    ? " (simulated)"
                   : library.kind == FOVEA_HIP_ROCM ? " (ROCm)"
                                                    : " (named by its path)");
  fovea_device_info_t device = {};
  device.struct_size = sizeof(device);
  if (fovea_device_info(impl->context, options.device, &device))
    return failed(true);
  impl->arch = device.arch;
  if (!options.target.empty() &&
      withoutFeatures(impl->arch) != withoutFeatures(options.target)) {
    error = "device " + std::to_string(options.device) + " of " +
            impl->library + " is " + impl->arch + ", not the target " +
            options.target +
            "; choose another device, or the simulated one (sim)";
    return failed(false);
  }
  if (!impl->hip.load(impl->context, error))
    return failed(true);
  impl->simulated = impl->hip.counters != nullptr;
  if (HipStatus status = impl->hip.setDevice(options.device)) {
    error = "hipSetDevice: " + impl->hip.explain(status);
    return failed(true);
  }
  return std::unique_ptr<Session>(new Session(std::move(impl), options));
}

/// The implementation to run with. The reset after a fault takes libfovea's
/// modules with it, so its context goes too and all is opened again; null, and
/// `failure` has why, when that fails.
Session::Impl *Session::ready(RunReport &failure) {
  if (!impl->faulted)
    return impl.get();
  impl.reset();
  std::string error;
  bool deviceError = false;
  std::unique_ptr<Session> fresh = open(options, error, deviceError);
  if (!fresh) {
    impl = std::make_unique<Impl>();
    fail(failure, Outcome::DeviceError, "opening the device again: " + error);
    return nullptr;
  }
  impl = std::move(fresh->impl);
  return impl.get();
}

RunReport Session::run(const ForwardCase &problem, const RunOptions &how) {
  RunReport failure;
  Impl *ready = this->ready(failure);
  return ready ? ready->run(problem, how) : failure;
}

RunReport Session::run(const BackwardCase &problem, const RunOptions &how) {
  RunReport failure;
  Impl *ready = this->ready(failure);
  return ready ? ready->run(problem, how) : failure;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {

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

bool Session::Impl::fitsMemory(uint64_t bytes, RunReport &report) const {
  // On the host as filled and as they were before; the simulated device takes
  // the host's memory too.
  std::string error;
  if (!tool::fitsMemory("the problem's tensors", bytes * (simulated ? 3 : 2),
                        error))
    fail(report, Outcome::Refused, error);
  return error.empty();
}

int64_t Session::Impl::guardBytes(Guards guards) const {
  if (guards == Guards::Auto)
    guards = simulated ? Guards::Exact : Guards::Canary;
  return guards == Guards::Canary ? 4096 : 0;
}

bool Session::Impl::check(const char *what, HipStatus status,
                          RunReport &report) {
  if (!status)
    return true;
  fail(report, Outcome::DeviceError,
       std::string(what) + ": " + hip.explain(status));
  faulted = true;
  return false;
}

bool Session::Impl::launch(const RunOptions &options,
                           const std::function<fovea_status_t()> &enqueue,
                           RunReport &report) {
  for (int i = 0; i < std::max(1, options.repeat); ++i) {
    if (hip.resetCounters)
      (void)hip.resetCounters(device);
    Stopwatch watch(hip);
    watch.begin();
    if (fovea_status_t status = enqueue()) {
      faulted = status == FOVEA_STATUS_HIP_ERROR;
      fail(report, faulted ? Outcome::DeviceError : Outcome::Refused,
           fovea_last_message());
      return false;
    }
    watch.end();
    if (!check("the launch", hip.synchronize(), report))
      return false;
    double seconds = watch.seconds();
    report.executed = executedOn(hip, device, seconds);
    report.seconds = i == 0 ? seconds : std::min(report.seconds, seconds);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reports and tensors
//===----------------------------------------------------------------------===//

RunReport &fovea::run::fail(RunReport &report, Outcome outcome,
                            const std::string &why) {
  report.outcome = outcome;
  if (!report.message.empty())
    report.message += '\n';
  report.message += why;
  return report;
}

double fovea::run::useOf(const Comparison &comparison) {
  double use = 0;
  for (const Figure &figure : {comparison.max, comparison.rms})
    if (figure.error > 0)
      use = std::max(use, figure.error / figure.budget);
  return use;
}

bool fovea::run::isCountable(const ForwardCase &c, RunReport &report) {
  // Each extent counts for 1 at least: strides are products of the others.
  int64_t elements = std::max(c.headDim, c.dimOfV()) + c.rowPadding;
  bool overflow = false;
  for (int64_t extent :
       {c.batch, std::max(c.heads, c.headsK), std::max(c.seqQ, c.seqK)})
    overflow |= __builtin_mul_overflow(elements, std::max<int64_t>(extent, 1),
                                       &elements);
  constexpr int64_t kMost = int64_t(1) << 53;
  if (!overflow && elements <= kMost)
    return true;
  fail(report, Outcome::Refused,
       "a tensor of this problem would have more than 2^53 elements; take "
       "fewer batches or heads, or shorter sequences");
  return false;
}

std::vector<double> fovea::run::elementsOf(const ForwardCase &c,
                                           const CaseGroup &group) {
  const spec::TensorSpec &tensor = specOf(*group.option).tensors[0];
  int64_t count = extentOf(c, tensor.heads);
  if (tensor.shape != spec::Shape::Heads)
    count *= c.batch * extentOf(c, tensor.rows);
  return group.option->elements(group.values, count, c.seed);
}

ForwardProblem fovea::run::problemOf(const ForwardCase &c,
                                     const Tensors &tensors, size_t number) {
  ForwardProblem problem;
  problem.mask = c.mask;
  for (const CaseGroup &group : c.groups) {
    if (group.option->sees)
      problem.parts.push_back([group](int64_t i, int64_t seqQ, int64_t seqK) {
        return group.option->sees(group.values, i, seqQ, seqK);
      });
    if (group.option->forward)
      problem.*group.option->forward = elementsOf(c, group);
  }
  problem.listed = c.listed;
  problem.score = c.score;
  problem.dropout = c.dropout;
  problem.scale = c.scaleOrDefault();
  problem.q = tensors.part("q", number);
  problem.k = tensors.part("k", number);
  problem.v = tensors.part("v", number);
  return problem;
}

void fovea::run::fill(const ForwardCase &c, const GivenInputs &given,
                      ForwardProblem &problem) {
  fillInputs(problem, c.input, c.seed);
  fillGiven(problem.q, given.q);
  fillGiven(problem.k, given.k);
  fillGiven(problem.v, given.v);
}

void fovea::run::fillGiven(const Tensor &t, const std::vector<double> &values) {
  if (values.empty())
    return;
  size_t i = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s)
        for (int64_t d = 0; d < t.dim; ++d)
          t.row(b, h, s).set(d, values[i++]);
}

std::vector<float> fovea::run::valuesOf(const Tensor &t) {
  std::vector<float> values;
  values.reserve(size_t(t.batch * t.heads * t.seq * t.dim));
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t h = 0; h < t.heads; ++h)
      for (int64_t s = 0; s < t.seq; ++s)
        for (int64_t d = 0; d < t.dim; ++d)
          values.push_back(float(t.row(b, h, s)[d]));
  return values;
}
