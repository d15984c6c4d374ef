//===- BackwardRun.cpp - run a backward pass and judge it -----------------===//
//
// The course of one backward pass.
//
//===----------------------------------------------------------------------===//

#include "BackwardRun.h"

#include "SessionImpl.h"
#include "fovea/Reference/Backward.h"

#include <cstdio>
#include <cstring>

using namespace fovea;
using namespace fovea::run;
using namespace fovea::reference;

std::string BackwardCase::str() const {
  std::string text = forward.str();
  text.replace(0, std::strlen("forward"), "backward");
  if (const size_t at = text.rfind(" no-lse"); at != std::string::npos)
    text.erase(at);
  if (doutScale != 1) {
    char factor[32];
    std::snprintf(factor, sizeof(factor), " dout*%g", doutScale);
    text += factor;
  }
  return text;
}

namespace {

/// What the backward pass takes from the forward one: the output, as it is
/// stored, and the log-sum-exp.
struct ForwardOutputs {
  std::vector<double> out;
  std::vector<float> lse;
};

constexpr const char *kReference = "the fp64 reference";
/// Of one set of gradients, with those of each query head's keys.
uint64_t referenceBytes(const ForwardProblem &problem) {
  auto elements = [](const Tensor &t) {
    return uint64_t(t.batch * t.heads * t.seq * t.dim);
  };
  return sizeof(double) * (elements(problem.q) + 2 * elements(problem.k));
}

ForwardOutputs byOracle(const ForwardProblem &problem, unsigned threads) {
  ForwardResult exact = attentionForwardF64(problem, threads);
  return {std::move(exact.out), {exact.lse.begin(), exact.lse.end()}};
}

/// Whether the chip's matrix instructions take subnormal operands for zeros.
/// Sources: AMD, "PyTorch numerical accuracy", "Reduced precision (fp16 and
/// bf16) GEMMs and convolutions on AMD Instinct MI200"; docs/Simulator.md.
bool flushesSubnormals(const std::string &arch) {
  return arch.substr(0, arch.find(':')) == "gfx90a";
}

/// Whether a kernel adds dQ up in memory.
bool isAtomic(fovea_context_t *context, uint32_t kernel) {
  fovea_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  return kernel && !fovea_kernel_info(context, kernel, &info) &&
         std::string(info.schedule).find("atomic") != std::string::npos;
}

/// A stream of its own: dout has nothing to do with q, k and v.
void fillDout(const Tensor &dout, double scale, uint64_t seed) {
  Random random(~seed);
  for (int64_t b = 0; b < dout.batch; ++b)
    for (int64_t h = 0; h < dout.heads; ++h)
      for (int64_t s = 0; s < dout.seq; ++s)
        for (int64_t d = 0; d < dout.dim; ++d)
          dout.row(b, h, s)[d] = encode(dout.type, scale * random.normal());
}

/// One gradient with the device's memory of it.
struct Gradient {
  const char *name;
  Tensor tensor;
  Halves memory;
  fovea_mutable_tensor_t fovea_backward_params_t::*param;
  std::vector<double> BackwardResult::*result;
  std::vector<RowSlack> GradientSlack::*slack;
};

double useOf(const Comparison &comparison) {
  double use = 0;
  for (const Figure &figure : {comparison.max, comparison.rms})
    if (figure.error > 0)
      use = std::max(use, figure.error / figure.budget);
  return use;
}

} // namespace

RunReport Session::Impl::run(const BackwardCase &c, const RunOptions &options) {
  RunReport report;
  const ForwardCase &f = c.forward;
  const int64_t guardBytes = this->guardBytes(options.guards);

  if (!isCountable(f, report))
    return report;
  BackwardProblem problem;
  ForwardProblem &forward = problem.forward;
  run::describe(f, forward);
  Tensor out = forward.q;
  problem.dout = out;
  problem.flushSubnormals = flushesSubnormals(arch);
  if (std::string bad = problem.check(); !bad.empty())
    return fail(report, Outcome::Refused, bad);

  // The library's limits come before any memory is taken.
  const Rows lseRows = lseRowsOf(f);
  fovea_backward_params_t params = {};
  fillSizes(f, params);
  params.lse_stride_batch = lseRows.strideBatch;
  params.lse_stride_head = lseRows.strideHead;
  params.deterministic = options.deterministic;
  params.kernel = options.kernel;
  for (auto *view : {&params.q, &params.out, &params.dout})
    run::describe(forward.q, *view);
  for (auto *view : {&params.k, &params.v})
    run::describe(forward.k, *view);
  run::describe(forward.q, params.dq);
  for (auto *view : {&params.dk, &params.dv})
    run::describe(forward.k, *view);
  fovea_backward_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  if (fovea_backward_select(context, &params, device, &plan))
    return fail(report, Outcome::Refused, fovea_last_message());
  report.kernel = fovea_last_message();
  if (!fitsMemory(f, /*tensors=*/4, report))
    return report;
  report.launched = plan.kernel != 0;

  const int64_t guard = guardBytes / 2;
  Halves q("q", Role::Input, rowsOf(forward.q), guard, f.offset);
  Halves k("k", Role::Input, rowsOf(forward.k), guard, f.offset);
  Halves v("v", Role::Input, rowsOf(forward.v), guard, f.offset);
  Halves o("out", Role::Input, rowsOf(out), guard, f.offset);
  Halves dout("dout", Role::Input, rowsOf(problem.dout), guard, f.offset);
  Words lse("lse", Role::Input, lseRows, guardBytes / 4, 0);
  auto halves = [&](const char *name, const Tensor &tensor) {
    return Halves(name, Role::Output, rowsOf(tensor), guard, f.offset);
  };
  Gradient gradients[] = {
      {"dq", forward.q, halves("dq", forward.q), &fovea_backward_params_t::dq,
       &BackwardResult::dq, &GradientSlack::dq},
      {"dk", forward.k, halves("dk", forward.k), &fovea_backward_params_t::dk,
       &BackwardResult::dk, &GradientSlack::dk},
      {"dv", forward.v, halves("dv", forward.v), &fovea_backward_params_t::dv,
       &BackwardResult::dv, &GradientSlack::dv}};

  forward.q.data = q.host();
  forward.k.data = k.host();
  forward.v.data = v.host();
  out.data = o.host();
  problem.dout.data = dout.host();
  fillInputs(forward, f.input, f.seed);
  fillDout(problem.dout, c.doutScale, f.seed);
  const GivenInputs &given = options.given;
  fillGiven(forward.q, given.q);
  fillGiven(forward.k, given.k);
  fillGiven(forward.v, given.v);
  fillGiven(problem.dout, given.dout);

  ForwardOutputs outputs;
  if (options.forwardOnDevice) {
    ForwardCase first = f;
    first.lse = true;
    RunOptions how = options;
    how.kernel = 0;
    how.check = false;
    how.repeat = 1;
    RunReport forwardReport = run(first, how);
    if (forwardReport.outcome != Outcome::Pass) {
      forwardReport.message = "the forward pass: " + forwardReport.message;
      return forwardReport;
    }
    outputs.out.assign(forwardReport.out.begin(), forwardReport.out.end());
    outputs.lse = std::move(forwardReport.lse);
  } else {
    outputs = tool::allocating(kReference, referenceBytes(forward), [&] {
      return byOracle(forward, options.threads);
    });
  }
  fillGiven(out, outputs.out);
  for (int64_t head = 0; head < f.batch * f.heads; ++head)
    std::memcpy(lse.host() + head * lseRows.strideHead,
                outputs.lse.data() + head * f.seqQ,
                size_t(f.seqQ) * sizeof(float));

  // Sums of dQ in memory leave dS as it is.
  problem.flushScoreGradients =
      problem.flushSubnormals && isAtomic(context, plan.kernel);
  const int64_t words = int64_t(plan.workspace_bytes / 4);
  Words workspace("workspace", Role::Output, {1, 1, 1, words, 0, 0, 0},
                  guardBytes / 4, 0);

  if (!check("allocating and copying the tensors",
             {q.upload(hip), k.upload(hip), v.upload(hip), o.upload(hip),
              dout.upload(hip), lse.upload(hip), workspace.upload(hip),
              gradients[0].memory.upload(hip), gradients[1].memory.upload(hip),
              gradients[2].memory.upload(hip)},
             report))
    return report;
  params.q.data = q.device();
  params.k.data = k.device();
  params.v.data = v.device();
  params.out.data = o.device();
  params.dout.data = dout.device();
  for (Gradient &gradient : gradients)
    (params.*gradient.param).data = gradient.memory.device();
  params.lse = static_cast<const float *>(lse.device());
  params.workspace = workspace.device();
  params.workspace_bytes = plan.workspace_bytes;
  if (!launch(
          options, [&] { return fovea_backward(context, &params, nullptr); },
          report) ||
      !check("copying the results",
             {q.download(), k.download(), v.download(), o.download(),
              dout.download(), lse.download(), workspace.download(),
              gradients[0].memory.download(), gradients[1].memory.download(),
              gradients[2].memory.download()},
             report))
    return report;

  for (const std::string &change :
       {q.changes(), k.changes(), v.changes(), o.changes(), dout.changes(),
        lse.changes(), workspace.changes(), gradients[0].memory.changes(),
        gradients[1].memory.changes(), gradients[2].memory.changes()})
    if (!change.empty())
      fail(report, Outcome::Mismatch, change);

  BackwardResult exact, plain;
  GradientSlack slack;
  if (options.check) {
    tool::allocating(kReference, 2 * referenceBytes(forward), [&] {
      exact = attentionBackwardF64(problem, options.threads, &slack);
      plain = attentionBackwardPlain(problem, options.threads);
    });
    report.checked = true;
  }
  double worst = -1;
  for (Gradient &gradient : gradients) {
    Tensor &t = gradient.tensor;
    t.data = gradient.memory.host();
    GradientReport result{
        gradient.name, {}, {t.batch, t.heads, t.seq, t.dim}, valuesOf(t), {}};
    if (options.check) {
      result.comparison =
          compareGradient(gradient.name, t, exact.*gradient.result,
                          plain.*gradient.result, slack.*gradient.slack);
      result.exact = exact.*gradient.result;
      if (!result.comparison.pass)
        fail(report, Outcome::Mismatch, result.comparison.message);
      if (const double use = useOf(result.comparison); use > worst) {
        worst = use;
        report.comparison = result.comparison;
      }
    }
    report.gradients.push_back(std::move(result));
  }
  return report;
}
