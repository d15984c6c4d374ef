//===- BackwardRun.cpp - run a backward pass and judge it -----------------===//
//
// The course of one backward pass.
//
//===----------------------------------------------------------------------===//

#include "BackwardRun.h"

#include "Course.h"
#include "Scores.h"
#include "fovea/Package/Chips.h"
#include "fovea/Reference/Backward.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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

ForwardResult byOracle(const ForwardProblem &problem, unsigned threads) {
  return tool::allocating(kReference, referenceBytes(problem), [&] {
    return attentionForwardF64(problem, threads);
  });
}

/// A kernel's schedule; empty: there is no kernel.
std::string scheduleOf(fovea_context_t *context, uint32_t kernel) {
  fovea_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  return kernel && !fovea_kernel_info(context, kernel, &info) ? info.schedule
                                                              : "";
}

/// Whether a kernel adds dQ up in memory.
bool isAtomic(const std::string &schedule) {
  return schedule.find("atomic") == 0;
}

/// Keys of an addition to sums of dQ that are narrow; 0: they are not.
int64_t narrowSumKeys(const std::string &schedule) {
  constexpr const char *launch = ";fused16:block_m=";
  const size_t at = schedule.find(launch);
  return at == std::string::npos
             ? 0
             : std::atoll(schedule.c_str() + at + std::strlen(launch));
}

/// A stream of its own: dout has nothing to do with q, k and v.
void fillDout(const Tensor &dout, double scale, uint64_t seed) {
  Random random(~seed);
  for (int64_t b = 0; b < dout.batch; ++b)
    for (int64_t h = 0; h < dout.heads; ++h)
      for (int64_t s = 0; s < dout.seq; ++s)
        for (int64_t d = 0; d < dout.dim; ++d)
          dout.row(b, h, s).set(d, scale * random.normal());
}

/// Nobody looks at the gradient of queries that are in no list.
void spoilUnlisted(const ForwardProblem &p, const Tensor &dout) {
  for (int64_t b = 0; b < dout.batch; ++b)
    for (int64_t h = 0; h < dout.heads; ++h)
      for (int64_t i = 0; i < dout.seq; ++i) {
        bool sees = false;
        for (int64_t j = 0; j < p.k.seq && !sees; ++j)
          sees = p.isListed(b, h, i, j);
        for (int64_t d = 0; d < dout.dim && !sees; ++d)
          dout.row(b, h, i).set(d, NAN);
      }
}

/// Which results of the oracle a gradient is held to.
struct OracleGradient {
  spec::Output output;
  std::vector<double> BackwardResult::*result;
  std::vector<RowSlack> GradientSlack::*slack;
};
constexpr OracleGradient kGradients[] = {
    {spec::kDq, &BackwardResult::dq, &GradientSlack::dq},
    {spec::kDk, &BackwardResult::dk, &GradientSlack::dk},
    {spec::kDv, &BackwardResult::dv, &GradientSlack::dv},
};

/// The oracle's gradients, if it was asked.
struct Expectations {
  BackwardResult exact, plain;
  GradientSlack slack;
};
Expectations expectGradients(const BackwardProblem &problem, unsigned threads) {
  Expectations expected;
  tool::allocating(kReference, 2 * referenceBytes(problem.forward), [&] {
    expected.exact = attentionBackwardF64(problem, threads, &expected.slack);
    expected.plain = attentionBackwardPlain(problem, threads);
  });
  return expected;
}

/// Compares a gradient of a part, if something was expected; adds its values.
void reportGradient(GradientReport &result, const OracleGradient &gradient,
                    const Tensor &t, const Expectations *expected,
                    RunReport &report) {
  const std::vector<float> values = valuesOf(t);
  result.values.insert(result.values.end(), values.begin(), values.end());
  if (!expected)
    return;
  const std::vector<double> &exact = expected->exact.*gradient.result;
  result.exact.insert(result.exact.end(), exact.begin(), exact.end());
  const Comparison comparison = compareGradient(
      result.name.c_str(), t, exact, expected->plain.*gradient.result,
      expected->slack.*gradient.slack);
  if (!comparison.pass)
    fail(report, Outcome::Mismatch, comparison.message);
  if (useOf(comparison) >= useOf(result.comparison))
    result.comparison = comparison;
}

/// Reports what was computed, compared with what was expected of each part, if
/// it was.
void reportGradients(const Tensors &tensors, size_t parts,
                     const std::vector<Expectations> &expected,
                     bool hasSinkGradient, RunReport &report) {
  double worst = -1;
  const spec::GroupSpec &base = spec::specOf(OpKind::Backward).base;
  for (const OracleGradient &gradient : kGradients) {
    const auto spec = std::find_if(
        base.tensors.begin(), base.tensors.end(),
        [&](const spec::TensorSpec &t) { return t.output == gradient.output; });
    const Tensor &all = tensors[spec->name];
    GradientReport result{
        spec->name, {}, {all.batch, all.heads, all.seq, all.dim}, {}, {}};
    for (size_t i = 0; i != parts; ++i)
      reportGradient(result, gradient, tensors.part(spec->name, i),
                     expected.empty() ? nullptr : &expected[i], report);
    if (!expected.empty() && useOf(result.comparison) > worst) {
      worst = useOf(result.comparison);
      report.comparison = result.comparison;
    }
    report.gradients.push_back(std::move(result));
  }
  if (!hasSinkGradient)
    return;
  GradientReport result{"dsinks", {}, {}, tensors.vector("dsinks"), {}};
  result.shape = {int64_t(result.values.size())};
  if (!expected.empty()) {
    std::vector<double> budget(result.values.size());
    result.exact.assign(result.values.size(), 0);
    for (const Expectations &part : expected)
      for (size_t i = 0; i != budget.size(); ++i) {
        result.exact[i] += part.exact.dsinks[i];
        budget[i] += part.slack.dsinks[i];
      }
    result.comparison =
        compareElements("dsinks", result.values, result.exact, budget);
    if (!result.comparison.pass)
      fail(report, Outcome::Mismatch, result.comparison.message);
  }
  report.gradients.push_back(std::move(result));
}

/// Whether an element of a gradient that is stored belongs to a query and key
/// that there are, of a problem in one part or with one a batch.
bool isPlace(const CaseScore::Gradient &gradient, size_t element,
             const std::vector<BackwardProblem> &parts) {
  size_t batch = 0;
  int64_t query = 0, key = 0;
  for (size_t dim = gradient.extents.size(); dim-- != 0;) {
    const size_t extent = size_t(gradient.extents[dim]),
                 index = element % extent;
    element /= extent;
    const uint8_t indices = gradient.dims[dim].indices;
    if (indices == spec::kByBatch)
      batch = index;
    else if (indices == spec::kByQuery)
      query = int64_t(index);
    else if (indices == spec::kByKey)
      key = int64_t(index);
  }
  const ForwardProblem &part = parts[parts.size() == 1 ? 0 : batch].forward;
  return query < part.q.seq && key < part.k.seq;
}

/// The same of what the score program captures.
std::string reportCaptures(CaseScore &score,
                           const std::vector<BackwardProblem> &parts,
                           const Tensors &tensors,
                           const std::vector<ForwardOutputs> &outputs,
                           bool isChecked, RunReport &report) {
  std::vector<CaseScore::Gradient> gradients;
  if (std::string error = score.readGradients(gradients); !error.empty())
    return error;
  std::vector<std::vector<double>> outs;
  for (size_t part = 0; part != parts.size(); ++part) {
    const std::vector<float> stored = valuesOf(tensors.part("out", part));
    outs.emplace_back(stored.begin(), stored.end());
  }
  for (CaseScore::Gradient &gradient : gradients) {
    GradientReport result{"dcapture" + std::to_string(gradient.capture),
                          {},
                          gradient.extents,
                          gradient.after,
                          {}};
    if (isChecked) {
      const size_t count = gradient.before.size();
      std::vector<CaptureGradient::Element> sums(count);
      for (size_t part = 0; part != parts.size(); ++part) {
        const CaptureGradient exact =
            captureGradientF64(parts[part], outs[part], outputs[part].lse,
                               gradient.capture, int64_t(count));
        for (size_t i = 0; i != count; ++i)
          sums[i].add(exact.elements[i]);
      }
      std::vector<double> budget;
      for (size_t i = 0; i != count; ++i) {
        if (gradient.type && isPlace(gradient, i, parts)) {
          // It is rounded once more, subnormals to as many digits as are left.
          const double slack = sums[i].budget();
          result.exact.push_back(sums[i].exact);
          budget.push_back(slack + unitRoundoff(*gradient.type) *
                                       (std::fabs(sums[i].exact) + slack +
                                        leastNormal(*gradient.type)));
          continue;
        }
        result.exact.push_back(sums[i].exact + double(gradient.before[i]));
        budget.push_back(
            gradient.type ? 0 : sums[i].budget(double(gradient.before[i])));
      }
      result.comparison = compareElements(result.name.c_str(), gradient.after,
                                          result.exact, budget);
      if (!result.comparison.pass)
        fail(report, Outcome::Mismatch, result.comparison.message);
    }
    report.gradients.push_back(std::move(result));
  }
  return "";
}

/// Of a part of a case.
BackwardProblem backwardOf(const ForwardCase &part, const Tensors &tensors,
                           size_t number, const std::string &arch) {
  BackwardProblem problem;
  problem.forward = run::problemOf(part, tensors, number);
  problem.dout = tensors.part("dout", number);
  for (const CaseGroup &group : part.groups)
    if (group.option->backward)
      problem.*group.option->backward = elementsOf(part, group);
  problem.flushSubnormals = flushesSubnormals(arch, problem.forward.q.type);
  return problem;
}

/// A gradient of the log-sum-exp as it is stored: of rows that saw no key
/// nothing is looked at.
std::vector<float> spoiled(const std::vector<double> &dlse,
                           const std::vector<float> &lse) {
  std::vector<float> values(dlse.begin(), dlse.end());
  for (size_t row = 0; row != values.size(); ++row)
    if (lse[row] == -INFINITY)
      values[row] = NAN;
  return values;
}

} // namespace

/// What the forward pass computes on the device, of each part; false: it
/// failed, and `report` is its.
static bool onDevice(Session::Impl &session, const ForwardCase &c,
                     const RunOptions &options,
                     std::vector<ForwardOutputs> &outputs, RunReport &report) {
  ForwardCase first = c;
  first.lse = true;
  first.groups.clear();
  for (const CaseGroup &group : c.groups)
    if (specOf(*group.option).isOf(OpKind::Forward))
      first.groups.push_back(group);
  RunOptions how = options;
  how.kernel = 0;
  how.check = false;
  how.repeat = 1;
  // Which has no gradients to give.
  const bool asks = c.scored && c.scored->asks();
  if (asks)
    c.scored->askForGradients(false);
  RunReport forward = session.run(first, how);
  if (asks)
    c.scored->askForGradients(true);
  if (forward.outcome != Outcome::Pass) {
    forward.message = "the forward pass: " + forward.message;
    report = std::move(forward);
    return false;
  }
  auto out = forward.out.begin();
  auto lse = forward.lse.begin();
  for (size_t i = 0; i != countParts(c); ++i) {
    const ForwardCase part = partOf(c, i);
    const int64_t rows = part.batch * part.heads * part.seqQ;
    const auto outEnd = out + rows * part.dimOfV(), lseEnd = lse + rows;
    outputs.push_back({{out, outEnd}, {lse, lseEnd}});
    out = outEnd;
    lse = lseEnd;
  }
  return true;
}

/// Whether libfovea has a kernel for a case.
static bool isServed(const Session::Impl &session, const BackwardCase &c,
                     const RunOptions &options) {
  fovea_backward_params_t params = {};
  CallGroups groups;
  fillSizes(c.forward, params, groups);
  params.kernel = options.kernel;
  params.deterministic = options.deterministic;
  params.narrow_sums = options.narrowSums;
  Tensors(OpKind::Backward, c.forward).describe(&params, groups);
  return fovea_backward_select(session.context, &params, session.device,
                               nullptr) == FOVEA_STATUS_OK;
}

/// A case with sinks asks for their gradient too, where there is a kernel that
/// has it: they are in the log-sum-exp whether there is one or not.
static BackwardCase withSinkGradient(const Session::Impl &session,
                                     const BackwardCase &c,
                                     const RunOptions &options) {
  const GroupOption *gradient = findOption("dsinks");
  BackwardCase with = c;
  for (const CaseGroup &group : c.forward.groups)
    if (gradient && group.option->name == std::string_view("sinks"))
      with.forward.groups.push_back({gradient, group.values});
  return with.forward.groups.size() > c.forward.groups.size() &&
                 isServed(session, with, options)
             ? with
             : c;
}

RunReport Session::Impl::run(const BackwardCase &given,
                             const RunOptions &options) {
  RunReport report;
  if (!isCountable(given.forward, report))
    return report;
  const BackwardCase c = withSinkGradient(*this, given, options);
  const ForwardCase &f = c.forward;
  // They are added to, so that one launch alone shows them.
  if (f.scored && options.repeat <= 1) {
    f.scored->askForGradients(true);
    f.scored->askForGradients(isServed(*this, c, options));
  }
  if (f.sequences && !options.given.isEmpty())
    return fail(report, Outcome::Refused,
                "given inputs are of sequences of one length; leave them out "
                "where lengths differ");
  Course<fovea_backward_params_t> course(*this, f, options, report);
  Tensors &tensors = course.tensors;
  const size_t count = countParts(f);
  std::vector<ForwardCase> parts;
  for (size_t i = 0; i != count; ++i) {
    parts.push_back(partOf(f, i));
    if (std::string bad = backwardOf(parts[i], tensors, i, arch).check();
        !bad.empty())
      return fail(report, Outcome::Refused, bad);
  }
  course.params.deterministic = options.deterministic;
  course.params.narrow_sums = options.narrowSums;
  if (!course.choose())
    return report;

  const std::string schedule = scheduleOf(context, course.kernel());
  std::vector<BackwardProblem> problems;
  for (size_t i = 0; i != count; ++i) {
    BackwardProblem problem = backwardOf(parts[i], tensors, i, arch);
    // Sums of dQ in memory leave dS as it is.
    problem.flushScoreGradients = problem.flushSubnormals && isAtomic(schedule);
    problem.narrowSumKeys = narrowSumKeys(schedule);
    fill(parts[i], options.given, problem.forward);
    fillDout(problem.dout, c.doutScale, parts[i].seed);
    // Sinks take part in rows that see nothing else, and 0 * NaN is NaN.
    const bool hasSinkGradient = f.groups.size() > given.forward.groups.size();
    if (f.input == InputKind::Masked && !hasSinkGradient)
      spoilUnlisted(problem.forward, problem.dout);
    fillGiven(problem.dout, options.given.dout);
    problems.push_back(std::move(problem));
  }
  std::vector<ForwardOutputs> outputs;
  if (options.forwardOnDevice && !onDevice(*this, f, options, outputs, report))
    return report;
  for (size_t i = 0; i != count; ++i) {
    // The oracle is slow, and a device's numbers are within fp32.
    if (options.forwardOnDevice &&
        (!options.check || std::none_of(outputs[i].lse.begin(),
                                        outputs[i].lse.end(), [](float lse) {
                                          return std::isnan(lse) ||
                                                 lse == INFINITY;
                                        })))
      continue;
    ForwardResult exact = byOracle(problems[i].forward, options.threads);
    if (const std::string why = beyondFloat(exact.lse);
        options.check && !why.empty())
      return fail(report, Outcome::Refused, why);
    if (!options.forwardOnDevice)
      outputs.push_back(
          {std::move(exact.out), {exact.lse.begin(), exact.lse.end()}});
  }
  for (size_t i = 0; i != count; ++i) {
    fillGiven(tensors.part("out", i), outputs[i].out);
    tensors.setVector("lse", outputs[i].lse, i);
    if (!problems[i].dlse.empty())
      tensors.setVector("dlse", spoiled(problems[i].dlse, outputs[i].lse), i);
  }

  if (!course.run())
    return report;
  std::vector<Expectations> expected;
  for (const BackwardProblem &problem : problems)
    if (options.check)
      expected.push_back(expectGradients(problem, options.threads));
  report.checked = options.check;
  reportGradients(tensors, count, expected,
                  f.groups.size() > given.forward.groups.size(), report);
  if (f.scored)
    if (std::string error = reportCaptures(*f.scored, problems, tensors,
                                           outputs, options.check, report);
        !error.empty())
      return fail(report, Outcome::DeviceError, error);
  return report;
}
