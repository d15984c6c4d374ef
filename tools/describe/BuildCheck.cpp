//===- BuildCheck.cpp - the check of a description ------------------------===//
//
// What is to be compared, and which buffers are what.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include <algorithm>
#include <cmath>

using namespace fovea::describe;

void Builder::readCheckBuffer(const Node &node, const char *role, bool needed) {
  const Node field = needed ? node.required(role) : node.field(role);
  if (!field)
    return;
  const size_t index = findBuffer(field);
  if (!ok())
    return;
  Check &check = *problem.check;
  const Buffer &buffer = problem.buffers[index];
  const bool rows = std::string(role) == "lse";
  const size_t rank = check.axes.size() - (rows ? 1 : 0);
  if (rows ? buffer.type != Type::F32
           : buffer.type != Type::F16 && buffer.type != Type::BF16 &&
                 buffer.type != Type::F32)
    return field.fail(std::string("has type ") + typeName(buffer.type) +
                      "; the check compares " +
                      (rows ? "f32" : "f16, bf16 or f32"));
  if (buffer.shape.size() != rank)
    return field.fail("has " + std::to_string(buffer.shape.size()) +
                      " axes; 'axes' says " + std::to_string(rank));
  if (!rows && buffer.strides.back() != 1)
    return field.fail("its last axis must be contiguous");
  check.buffers[role] = index;
}

void Builder::readCheck(const Node &node) {
  Check &check = problem.check.emplace();
  const std::string kind = node.required("kind").text();
  if (!ok())
    return;
  const bool backward = kind == "attention-backward";
  if (!backward && kind != "attention-forward")
    return node.field("kind").fail(
        "no check '" + kind +
        "'; there are: attention-forward, attention-backward");
  check.kind = backward ? Check::AttentionBackward : Check::AttentionForward;
  if (backward)
    node.expectFields({"kind",
                       "q",
                       "k",
                       "v",
                       "out",
                       "lse",
                       "dout",
                       "dq",
                       "dk",
                       "dv",
                       "scale",
                       "mask",
                       "window_left",
                       "window_right",
                       "window_alignment",
                       "axes",
                       "starts_q",
                       "starts_k",
                       "score",
                       "captures",
                       "narrow_sum_keys",
                       "flush_subnormals",
                       "flush_score_gradients",
                       "tolerance"});
  else
    node.expectFields({"kind", "q", "k", "v", "out", "lse", "scale", "mask",
                       "window_left", "window_right", "window_alignment",
                       "axes", "starts_q", "starts_k", "score", "captures",
                       "shares", "tolerance"});
  const bool packed = node.field("starts_q") || node.field("starts_k");
  check.axes = node.field("axes") ? node.field("axes").text()
               : packed           ? "hsd"
                                  : "bhsd";
  std::string sorted = check.axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != (packed ? "dhs" : "bdhs") || check.axes.back() != 'd')
    return node.field("axes").fail(
        "'" + check.axes + "' is no order of " +
        (packed ? "h, s (packed sequences have no batch axis) and, last, d"
                : "b, h, s and, last, d"));
  if (packed) {
    check.startsQ = node.required("starts_q").integers(0, kMaxBytes);
    check.startsK = node.required("starts_k").integers(0, kMaxBytes);
    if (ok() && (check.startsQ.size() != check.startsK.size() ||
                 check.startsQ.size() < 2))
      return node.field("starts_k")
          .fail(
              "'starts_q' and 'starts_k' must have one number, 2 at least, of "
              "entries");
    for (const std::vector<int64_t> *starts : {&check.startsQ, &check.startsK})
      if (!std::is_sorted(starts->begin(), starts->end()))
        return node.field("starts_q").fail("the starts must not decrease");
  }
  for (const char *role : {"q", "k", "v", "out"})
    readCheckBuffer(node, role, true);
  readCheckBuffer(node, "lse", backward);
  if (backward) {
    readCheckBuffer(node, "dout", true);
    for (const char *role : {"dq", "dk", "dv"})
      readCheckBuffer(node, role, false);
  }
  if (!ok())
    return;
  const double dim = double(problem.buffers[check.buffers["q"]].shape.back());
  check.scale =
      node.field("scale") ? node.field("scale").real() : 1 / std::sqrt(dim);
  if (const Node shares = node.field("shares"))
    check.shares = shares.integer(1, UINT32_MAX);
  if (const Node keys = node.field("narrow_sum_keys"))
    check.narrowSumKeys = keys.integer(0);
  if (const Node flag = node.field("flush_subnormals"))
    check.flushSubnormals = flag.integer(0, 1) != 0;
  if (const Node flag = node.field("flush_score_gradients"))
    check.flushScoreGradients = flag.integer(0, 1) != 0;
  if (node.field("tolerance"))
    check.tolerance = node.field("tolerance").real();
  if (const Node mask = node.field("mask")) {
    const std::string name = mask.text();
    if (const MaskInfo *info = findMask(name); info && name == info->option)
      check.mask = info->window;
    else
      mask.fail("no mask '" + name +
                "'; there are: none, causal-top-left, causal-bottom-right");
    if (node.field("window_left") || node.field("window_right"))
      mask.fail("a check has a mask or a window, not both");
  }
  readWindow(node);
  readScore(node);
}

void Builder::readScore(const Node &node) {
  Check &check = *problem.check;
  const Node score = node.field("score"), captures = node.field("captures");
  if (!score) {
    if (captures)
      captures.fail("there is no 'score' that captures anything");
    return;
  }
  check.score = score.text();
  if (!check.startsQ.empty())
    score.fail("packed sequences with a score program are not checked; leave "
               "out one of the two");
  if (!captures)
    return;
  for (const Node &item : captures.items()) {
    item.expectFields({"buffer", "value"});
    if (!ok())
      return;
    Check::Capture &capture = check.captures.emplace_back();
    const Node buffer = item.field("buffer");
    if (bool(buffer) == bool(item.field("value")))
      return item.fail("must have either 'buffer' or 'value'");
    if (buffer)
      capture.buffer = findBuffer(buffer);
    else
      capture.value = item.field("value").real();
  }
}

/// What a kernel is passed for a window, which is what is left of it: the
/// largest number of 32 bits is no bound.
void Builder::readWindow(const Node &node) {
  Check &check = *problem.check;
  auto side = [&](const char *name, int64_t &bound) {
    if (const Node field = node.field(name)) {
      const int64_t value = field.integer(-INT32_MAX, INT32_MAX);
      bound = value == windowArgument(Window::kInfinite) ? Window::kInfinite
                                                         : value;
    }
  };
  side("window_left", check.mask.left);
  side("window_right", check.mask.right);
  if (const Node field = node.field("window_alignment")) {
    const int64_t bits = field.integer(0, kLeftBottomRight | kRightBottomRight);
    auto alignment = [&](int64_t bit) {
      return bits & bit ? Alignment::BottomRight : Alignment::TopLeft;
    };
    check.mask.leftAlignment = alignment(kLeftBottomRight);
    check.mask.rightAlignment = alignment(kRightBottomRight);
  }
}
