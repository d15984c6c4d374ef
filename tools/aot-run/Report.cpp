//===- Report.cpp - what a run looks like to its reader -------------------===//
//
// Text, table and JSON of a run. Time on the simulated device is always
// labelled as the simulator's: it says nothing about a GPU.
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Sequences.h"

#include <cstdarg>
#include <cstdio>

using namespace fovea::run;
namespace ref = fovea::reference;

namespace {

__attribute__((format(printf, 1, 2))) std::string text(const char *format,
                                                       ...) {
  char buffer[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(buffer, sizeof(buffer), format, args);
  va_end(args);
  return buffer;
}

/// 12345678 as "12,345,678".
std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string arch(const Session &session) {
  return session.arch().substr(0, session.arch().find(':'));
}

std::string shape(const ForwardCase &c) {
  return text("b%lld h%lld/%lld q%lld k%lld d%lld", (long long)c.batch,
              (long long)c.heads, (long long)c.headsK, (long long)c.seqQ,
              (long long)c.seqK, (long long)c.headDim) +
         (c.headDimV ? text("/%lld", (long long)c.headDimV) : "");
}

std::string figure(const std::string &name, const ref::Figure &f) {
  return text("%-9s %.3e of %.3e allowed (plain fp32 algorithm: %.3e)\n", name.c_str(),
              f.error, f.budget, f.plain);
}

nlohmann::json figureJson(const ref::Figure &f) {
  return {{"error", f.error}, {"budget", f.budget}, {"plain", f.plain}};
}

/// The table's last column: a run that nobody compared has not passed. A
/// problem without a launch has nothing to compare.
const char *verdict(const RunReport &r) {
  const bool unchecked =
      r.outcome == Outcome::Pass && r.launched && !r.checked;
  return unchecked ? "not checked" : outcomeName(r.outcome);
}

const char *timeLabel(const Session &session) {
  return session.simulated() ? "host time of the simulator, not GPU time"
                             : "GPU time";
}

} // namespace

static std::string describeLines(const Session &session,
                                 const std::string &name, const ForwardCase &c,
                                 const RunReport &r) {
  std::string lines = "problem   " + name +
                      text(" scale %.6g seed %llu\n", c.scaleOrDefault(),
                           (unsigned long long)c.seed) +
                      "device    " + session.arch() + ", " + session.library() +
                      "\n";
  if (!r.kernel.empty())
    lines += "kernel    " + r.kernel + "\n";
  for (const GradientReport &gradient : r.gradients)
    if (r.checked) {
      lines += figure(gradient.name, gradient.comparison.max);
      if (gradient.comparison.rms.budget > 0)
        lines += figure(gradient.name + std::string(" rms"),
                        gradient.comparison.rms);
    }
  if (r.checked && r.gradients.empty()) {
    lines += figure("error", r.comparison.max);
    lines += figure("rms", r.comparison.rms);
    if (c.lse)
      lines += figure("lse", r.comparison.lse);
  }
  if (r.executed && r.launched) {
    const Executed &e = *r.executed;
    lines += "executed  " + grouped(e.instructions) + " wave instructions: " +
             text("%.1f %% matrix, %.1f %% vector, %.1f %% transcendental, "
                  "%.1f %% scalar, %.1f %% memory, %.1f %% LDS; ",
                  100.0 * double(e.mfma) / double(e.instructions),
                  100.0 * double(e.valu) / double(e.instructions),
                  100.0 * double(e.trans) / double(e.instructions),
                  100.0 * double(e.salu) / double(e.instructions),
                  100.0 * double(e.smem + e.vmem) / double(e.instructions),
                  100.0 * double(e.lds) / double(e.instructions)) +
             grouped(e.workgroups) + " workgroups, " + grouped(e.waves) +
             " waves\n";
  }
  if (r.launched)
    lines += text("time      %.3f s (%s)\n", r.seconds, timeLabel(session));
  else if (r.outcome == Outcome::Pass)
    lines += "launch    none: there is nothing to compute\n";
  if (!r.message.empty())
    lines += r.message + "\n";
  lines += std::string("result    ") + outcomeName(r.outcome) +
           (r.outcome == Outcome::Pass && !r.checked ? " (not checked)" : "") +
           "\n";
  return lines;
}

std::string fovea::run::describeRun(const Session &session,
                                    const ForwardCase &c, const RunReport &r) {
  return describeLines(session, c.str(), c, r);
}
std::string fovea::run::describeRun(const Session &session,
                                    const BackwardCase &c, const RunReport &r) {
  return describeLines(session, c.str(), c.forward, r);
}

std::string fovea::run::tableHead(bool simulated) {
  return text("%-8s %-31s %-5s %-20s %10s %10s %10s %15s %9s  %s", "target",
              "shape", "type", "mask", "error", "budget", "lse error",
              "instructions", simulated ? "sim time" : "GPU time", "result");
}

std::string fovea::run::tableRow(const Session &session, const ForwardCase &c,
                                 const RunReport &r) {
  const bool figures = r.checked;
  auto cell = [&](double value) {
    return figures ? text("%.2e", value) : std::string("-");
  };
  return text(
      "%-8s %-31s %-5s %-20s %10s %10s %10s %15s %8.2fs  %s",
      arch(session).c_str(), shape(c).c_str(), ref::elemTypeName(c.type),
      c.seen().c_str(), cell(r.comparison.max.error).c_str(),
      cell(r.comparison.max.budget).c_str(),
      c.lse && r.gradients.empty() ? cell(r.comparison.lse.error).c_str() : "-",
      r.executed ? grouped(r.executed->instructions).c_str() : "-", r.seconds,
      verdict(r));
}

std::string fovea::run::tableRow(const Session &session, const BackwardCase &c,
                                 const RunReport &r) {
  return tableRow(session, c.forward, r);
}

nlohmann::json fovea::run::toJson(const Session &session, const BackwardCase &c,
                                  const RunReport &r) {
  nlohmann::json json = toJson(session, c.forward, r);
  json["problem"]["op"] = "backward";
  json["problem"]["dout_scale"] = c.doutScale;
  return json;
}

nlohmann::json fovea::run::toJson(const Session &session, const ForwardCase &c,
                                  const RunReport &r) {
  nlohmann::json json = {{"result", outcomeName(r.outcome)},
                         {"target", session.arch()},
                         {"hip_library", session.library()},
                         {"simulated", session.simulated()},
                         {"problem",
                          {{"op", "forward"},
                           {"dtype", ref::elemTypeName(c.type)},
                           {"head_dim", c.headDim},
                           {"head_dim_v", c.dimOfV()},
                           {"mask", c.seen()},
                           {"batch", c.batch},
                           {"heads", c.heads},
                           {"heads_k", c.headsK},
                           {"seqlen_q", c.seqQ},
                           {"seqlen_k", c.seqK},
                           {"layout", ref::layoutName(c.layout)},
                           {"scale", c.scaleOrDefault()},
                           {"input", ref::inputKindName(c.input)},
                           {"seed", c.seed}}},
                         {"kernel", r.kernel},
                         {"launched", r.launched},
                         {"message", r.message}};
  if (c.sequences) // of which batch is the number, and lengths the most
    json["problem"]["varlen"] = c.sequences->text;
  if (r.launched) {
    json["seconds"] = r.seconds;
    json["seconds_are"] = timeLabel(session);
  }
  if (r.checked) {
    json["error"] = figureJson(r.comparison.max);
    json["rms"] = figureJson(r.comparison.rms);
    if (c.lse && r.gradients.empty())
      json["lse"] = figureJson(r.comparison.lse);
    for (const GradientReport &gradient : r.gradients)
      json["gradients"][gradient.name] = {
          {"error", figureJson(gradient.comparison.max)},
          {"rms", figureJson(gradient.comparison.rms)}};
  }
  if (r.executed) {
    const Executed &e = *r.executed;
    json["executed"] = {{"instructions", e.instructions},
                        {"mfma", e.mfma},
                        {"valu", e.valu},
                        {"trans", e.trans},
                        {"salu", e.salu},
                        {"smem", e.smem},
                        {"vmem", e.vmem},
                        {"lds", e.lds},
                        {"workgroups", e.workgroups},
                        {"waves", e.waves}};
  }
  return json;
}
