//===- ForwardRun.cpp - run an attention problem and judge it -------------===//
//
// The course of one forward pass.
//
//===----------------------------------------------------------------------===//

#include "ForwardRun.h"

#include "Course.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

using namespace fovea;
using namespace fovea::run;
using namespace fovea::reference;

float ForwardCase::scaleOrDefault() const {
  return scale ? *scale : float(1 / std::sqrt(double(headDim)));
}

std::string ForwardCase::seen() const {
  std::string text = optionOf(mask);
  for (const CaseGroup &group : groups) {
    const char *separator = "=";
    text += std::string(" ") + group.option->name;
    for (double value : group.values) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%g", separator, value);
      text += number;
      separator = ",";
    }
  }
  return text;
}

std::string ForwardCase::str() const {
  auto number = [](int64_t n) { return std::to_string(n); };
  std::string text =
      std::string("forward ") + elemTypeName(type) + " d" + number(headDim) +
      (headDimV ? "/" + number(headDimV) : "") + " " + seen() + " b" +
      number(batch) + " h" + number(heads) + "/" + number(headsK) + " q" +
      number(seqQ) + " k" + number(seqK) + " " + layoutName(layout);
  if (rowPadding)
    text += "+" + number(rowPadding);
  if (offset)
    text += "@" + number(offset);
  if (!equalRows.empty())
    text += " one-row=" + equalRows;
  if (!scoreName.empty())
    text += " score=" + scoreName;
  if (!listsName.empty())
    text += " blocks=" + listsName;
  if (dropout) {
    char number[32];
    std::snprintf(number, sizeof(number), " dropout=%g", double(dropout->p));
    text += number;
  }
  if (sequences)
    text += " varlen=" + sequences->text;
  return text + " " + inputKindName(input) + (lse ? "" : " no-lse");
}

std::string fovea::run::beyondFloat(const std::vector<double> &lses) {
  double most = 0;
  for (double lse : lses)
    if (std::isfinite(lse))
      most = std::max(most, std::fabs(lse));
  if (most <= std::numeric_limits<float>::max())
    return "";
  std::ostringstream text;
  text << "the log-sum-exp reaches " << most << ", and fp32 ends at "
       << std::numeric_limits<float>::max()
       << ": there is nothing to compare; take a smaller --scale or --input";
  return text.str();
}

namespace {

/// With V all ones every row that sees a key must be exactly 1, where no weight
/// is dropped and no sink has any, but in fp32,
/// where the sums of weights and of products round each in their own order.
void checkOnes(const Tensor &out, const Expectation &expected,
               RunReport &report) {
  if (out.type == ElemType::F32)
    return;
  int64_t row = 0;
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t s = 0; s < out.seq; ++s, ++row) {
        if (!std::isfinite(expected.exact.lse[size_t(row)]))
          continue;
        for (int64_t d = 0; d < out.dim; ++d) {
          const double found = out.row(b, h, s)[d];
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

/// Holds the results of a part to the oracle's.
/// \param shares  of the keys
void judge(const ForwardCase &c, const RunOptions &options,
           const ForwardProblem &problem, const Tensor &out,
           const std::vector<float> &lse, uint32_t shares, RunReport &report) {
  // Its results, and a head's keys and values.
  const Expectation expected = tool::allocating(
      "the fp64 reference",
      2 * sizeof(double) *
          (uint64_t(out.batch * out.heads * out.seq * out.dim) +
           uint64_t(c.seqK) * uint64_t(c.headDim + c.dimOfV())),
      [&] { return expectForward(problem, options.threads); });
  if (const std::string why = beyondFloat(expected.exact.lse); !why.empty()) {
    fail(report, Outcome::Refused, why);
    return;
  }
  const Comparison comparison =
      compareForward(expected, out, c.lse ? lse.data() : nullptr, shares);
  if (!comparison.pass)
    fail(report, Outcome::Mismatch, comparison.message);
  if (!report.checked || useOf(comparison) > useOf(report.comparison))
    report.comparison = comparison;
  report.checked = true;
  if (c.input == InputKind::OnesV && options.given.v.empty() &&
      problem.sinks.empty() && !c.dropout)
    checkOnes(out, expected, report);
}

} // namespace

RunReport Session::Impl::run(const ForwardCase &c, const RunOptions &options) {
  RunReport report;
  if (!isCountable(c, report))
    return report;
  if (c.sequences && !options.given.isEmpty())
    return fail(report, Outcome::Refused,
                "given inputs are of sequences of one length; leave them out "
                "where lengths differ");
  for (const CaseGroup &group : c.groups)
    if (!specOf(*group.option).isOf(OpKind::Forward))
      return fail(report, Outcome::Refused,
                  std::string(group.option->name) + " is of a " +
                      spec::operationsOf(specOf(*group.option)) +
                      " pass; leave it out of a forward one");
  Course<fovea_forward_params_t> course(*this, c, options, report);
  course.params.splits = options.splits;
  const Tensors &tensors = course.tensors;
  const size_t count = countParts(c);
  std::vector<ForwardCase> parts;
  for (size_t i = 0; i != count; ++i) {
    parts.push_back(partOf(c, i));
    if (std::string bad = problemOf(parts[i], tensors, i).check(); !bad.empty())
      return fail(report, Outcome::Refused, bad);
  }
  if (!course.choose())
    return report;

  std::vector<ForwardProblem> problems;
  for (size_t i = 0; i != count; ++i) {
    problems.push_back(problemOf(parts[i], tensors, i));
    fill(parts[i], options.given, problems[i]);
  }
  if (!course.run())
    return report;
  for (size_t i = 0; i != count; ++i) {
    const Tensor out = tensors.part("out", i);
    const std::vector<float> values = valuesOf(out),
                             lse = tensors.vector("lse", i);
    report.out.insert(report.out.end(), values.begin(), values.end());
    report.lse.insert(report.lse.end(), lse.begin(), lse.end());
    if (options.check)
      judge(parts[i], options, problems[i], out, lse, course.chosen().splits,
            report);
  }
  return report;
}
