//===- ForwardRun.cpp - run an attention problem and judge it -------------===//
//
// The course of one forward pass.
//
//===----------------------------------------------------------------------===//

#include "ForwardRun.h"

#include "SessionImpl.h"

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

namespace {

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

} // namespace

RunReport Session::Impl::run(const ForwardCase &c, const RunOptions &options) {
  RunReport report;
  const int64_t guardBytes = this->guardBytes(options.guards);

  if (!isCountable(c, report))
    return report;
  ForwardProblem problem;
  run::describe(c, problem);
  Tensor out = problem.q;
  if (std::string bad = problem.check(); !bad.empty())
    return fail(report, Outcome::Refused, bad);

  // The library's limits come before any memory is taken.
  const Rows lseRows = lseRowsOf(c);
  fovea_forward_params_t params = {};
  fillSizes(c, params);
  run::describe(problem.q, params.q);
  run::describe(problem.k, params.k);
  run::describe(problem.v, params.v);
  run::describe(out, params.out);
  params.lse_stride_batch = c.lse ? lseRows.strideBatch : 0;
  params.lse_stride_head = c.lse ? lseRows.strideHead : 0;
  params.kernel = options.kernel;
  fovea_forward_plan_t plan = {};
  plan.struct_size = sizeof(plan);
  if (fovea_forward_select(context, &params, device, &plan))
    return fail(report, Outcome::Refused, fovea_last_message());
  report.kernel = fovea_last_message();
  if (!fitsMemory(c, /*tensors=*/2, report))
    return report;
  report.launched = plan.kernel != 0;

  const int64_t guard = guardBytes / 2;
  Halves q("q", Role::Input, rowsOf(problem.q), guard, c.offset);
  Halves k("k", Role::Input, rowsOf(problem.k), guard, c.offset);
  Halves v("v", Role::Input, rowsOf(problem.v), guard, c.offset);
  Halves o("out", Role::Output, rowsOf(out), guard, c.offset);
  Words lse("lse", c.lse ? Role::Output : Role::Input, lseRows, guardBytes / 4,
            0);

  problem.q.data = q.host();
  problem.k.data = k.host();
  problem.v.data = v.host();
  fillInputs(problem, c.input, c.seed);
  const GivenInputs &given = options.given;
  fillGiven(problem.q, given.q);
  fillGiven(problem.k, given.k);
  fillGiven(problem.v, given.v);

  if (!check("allocating and copying the tensors",
             {q.upload(hip), k.upload(hip), v.upload(hip), o.upload(hip),
              lse.upload(hip)},
             report))
    return report;

  params.q.data = q.device();
  params.k.data = k.device();
  params.v.data = v.device();
  params.out.data = o.device();
  if (c.lse)
    params.lse = static_cast<float *>(lse.device());
  if (!launch(
          options, [&] { return fovea_forward(context, &params, nullptr); },
          report) ||
      !check("copying the results",
             {q.download(), k.download(), v.download(), o.download(),
              lse.download()},
             report))
    return report;

  for (const std::string &change :
       {q.changes(), k.changes(), v.changes(), o.changes(), lse.changes()})
    if (!change.empty())
      fail(report, Outcome::Mismatch, change);

  out.data = o.host();
  report.out = valuesOf(out);
  report.lse.resize(size_t(c.batch * c.heads * c.seqQ));
  for (int64_t head = 0; head < c.batch * c.heads; ++head)
    std::memcpy(report.lse.data() + head * c.seqQ,
                lse.host() + head * lseRows.strideHead,
                size_t(c.seqQ) * sizeof(float));
  if (!options.check)
    return report;
  // Its results, and a head's keys and values.
  const Expectation expected = tool::allocating(
      "the fp64 reference",
      2 * sizeof(double) *
          (report.out.size() + uint64_t(c.seqK) * uint64_t(c.headDim)),
      [&] { return expectForward(problem, options.threads); });
  report.checked = true;
  report.comparison =
      compareForward(expected, out, c.lse ? report.lse.data() : nullptr);
  if (!report.comparison.pass)
    fail(report, Outcome::Mismatch, report.comparison.message);
  if (c.input == InputKind::OnesV && given.v.empty())
    checkOnes(out, expected, report);
  return report;
}
