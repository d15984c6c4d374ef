//===- Timeline.cpp - pictures of a timeline ------------------------------===//
//
// The page gets its data as columns of numbers; the drawing is Timeline.html's.
// The SVG draws the same rows without a program.
//
//===----------------------------------------------------------------------===//

#include "Page.h"
#include "Reports.h"

#include <algorithm>
#include <cstdio>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;
using sim::InstClass;
using sim::Stall;
using sim::TimelineEvent;

namespace {

std::string rounded(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// Share of the window in which a unit is busy.
double busyIn(const Track &track, timing::Window window) {
  uint64_t sum = 0;
  for (const Track::Span &span : track.spans) {
    const uint64_t from = std::max(span.clock, window.begin);
    const uint64_t to = std::min(span.clock + span.clocks, window.end);
    sum += to > from ? to - from : 0;
  }
  return window.end > window.begin
             ? double(sum) / double(window.end - window.begin)
             : 0;
}

std::string titleOf(const LaunchTime &launch) {
  return launch.kernel.name + " on " + launch.report.chip;
}

std::string subtitleOf(const SubjectTime &subject, const LaunchTime &launch,
                       timing::Window window) {
  const sim::TimingReport &r = launch.report;
  const double flops = launch.launch.flops > 0 ? launch.launch.flops : r.flops;
  std::string text =
      variablesText(subject.problem) + "; predicted " + timeText(r.seconds);
  if (flops > 0 && r.seconds > 0)
    text += ", " + rounded(flops / r.seconds / 1e12, 0) + " TFLOPS";
  return text + "; one compute unit with " + std::to_string(r.resident) +
         (r.resident == 1 ? " workgroup" : " workgroups") + ", clocks " +
         std::to_string(window.begin) + " to " + std::to_string(window.end);
}

struct SvgColor {
  InstClass value;
  const char *name, *color;
};
/// As in Timeline.html, in tones that stand on light and dark ground.
constexpr SvgColor kClassColors[] = {
    {InstClass::Mfma, "matrix", "#dd5f6f"},
    {InstClass::Valu, "vector ALU", "#4a82ea"},
    {InstClass::Trans, "exp, rcp...", "#8d62dd"},
    {InstClass::Lds, "LDS", "#22a67c"},
    {InstClass::Vmem, "memory", "#e0921a"},
    {InstClass::Salu, "scalar", "#8391a6"},
    {InstClass::Smem, "scalar load", "#4fa6b6"},
    {InstClass::Branch, "branch", "#7a6f5a"},
    {InstClass::Sync, "wait, barrier", "#9aa2ad"},
    {InstClass::Other, "other", "#9aa2ad"}};

const char *stallColor(Stall stall) {
  static constexpr struct {
    Stall stall;
    const char *color;
  } colors[] = {{Stall::Alu, "#7f9fd8"},        {Stall::Matrix, "#c48abc"},
                {Stall::MatrixPipe, "#c67582"}, {Stall::VectorPort, "#9a9fdd"},
                {Stall::Port, "#aab2bd"},       {Stall::MemoryQueue, "#d9b06b"},
                {Stall::WaitVector, "#dda03c"}, {Stall::WaitLds, "#67b796"},
                {Stall::WaitScalar, "#6fb0bc"}, {Stall::Barrier, "#a5855f"},
                {Stall::Fetch, "#c4b14a"}};
  for (const auto &row : colors)
    if (row.stall == stall)
      return row.color;
  return "#b4bac4";
}

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  return result;
}

json dataOf(const SubjectTime &subject, const LaunchTime &launch,
            timing::Window window) {
  const sim::TimingReport &report = launch.report;
  const Analysis analysis(report);
  const Lanes lanes = lanesOf(report, window);
  json data = {{"title", titleOf(launch)},
               {"subtitle", subtitleOf(subject, launch, window)},
               {"begin", window.begin},
               {"end", window.end},
               {"slot", report.slotClocks}};
  json &classes = data["classes"] = json::array();
  for (unsigned c = 0; c < sim::kInstClasses; ++c)
    classes.push_back(std::string(sim::name(InstClass(c))));
  json &stalls = data["stallNames"] = json::array();
  json &advice = data["advice"] = json::object();
  for (unsigned s = 0; s < sim::kStalls; ++s) {
    const std::string name(sim::name(Stall(s)));
    stalls.push_back(name);
    advice[name] = std::string(adviceFor(Stall(s)).means);
  }
  // Only the instructions that are there, under new numbers.
  std::vector<int> number(report.instructions.size(), -1);
  json &insts = data["inst"] = json::array();
  for (const TimelineEvent &event : lanes.events) {
    if (number[event.inst] >= 0)
      continue;
    number[event.inst] = int(insts.size());
    const sim::InstTiming &inst = report.instructions[event.inst];
    double waited = 0;
    for (uint64_t clocks : inst.stalls)
      waited += double(clocks);
    insts.push_back({offsetText(inst.offset), inst.text, unsigned(inst.cls),
                     rounded(analysis.share[event.inst] * 100, 2),
                     rounded(inst.issues ? waited / double(inst.issues) : 0, 1),
                     inst.source});
  }
  if (analysis.hot >= 0)
    data["head"] = number[analysis.loops[size_t(analysis.hot)].first];
  json clock = json::array(), clocks = json::array(),
       stallClocks = json::array(), stall = json::array(), inst = json::array(),
       wave = json::array(), simd = json::array(), group = json::array();
  for (const TimelineEvent &event : lanes.events) {
    clock.push_back(event.clock);
    clocks.push_back(event.clocks);
    stallClocks.push_back(event.stallClocks);
    stall.push_back(unsigned(event.stall));
    inst.push_back(number[event.inst]);
    wave.push_back(event.wave);
    simd.push_back(event.simd);
    group.push_back(event.workgroup);
  }
  data["events"] = {
      {"clock", clock}, {"clocks", clocks}, {"stallClocks", stallClocks},
      {"stall", stall}, {"inst", inst},     {"wave", wave},
      {"simd", simd},   {"group", group}};
  json &simds = data["simds"] = json::array();
  for (const Lanes::Simd &lane : lanes.simds) {
    json units = json::array();
    for (const Track &track : lane.units) {
      json spans = json::array();
      for (const Track::Span &span : track.spans)
        spans.push_back({span.clock, span.clocks, span.event});
      units.push_back({{"name", track.name},
                       {"busy", busyIn(track, window)},
                       {"spans", spans}});
    }
    simds.push_back({{"units", units}, {"waves", lane.waves}});
  }
  return data;
}

} // namespace

std::string timing::timelineHtml(const SubjectTime &subject,
                                 const LaunchTime &launch,
                                 timing::Window window) {
  return pageWith(kTimelinePage, dataOf(subject, launch, window));
}

std::string timing::timelineSvg(const SubjectTime &subject,
                                const LaunchTime &launch,
                                timing::Window window) {
  const sim::TimingReport &report = launch.report;
  const Lanes lanes = lanesOf(report, window);
  constexpr int kLeft = 130, kWidth = 1600, kHead = 20, kUnit = 14, kWave = 20;
  int height = 100;
  for (const Lanes::Simd &simd : lanes.simds)
    height += kHead + kUnit * int(simd.units.size()) +
              kWave * int(simd.waves.size()) + 10;
  const double scale =
      double(kWidth) / double(std::max<uint64_t>(1, window.end - window.begin));
  auto x = [&](uint64_t clock) {
    return kLeft + (double(clock) - double(window.begin)) * scale;
  };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
      std::to_string(kLeft + kWidth + 20) + " " + std::to_string(height) +
      "\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"11\">\n<style>\n"
      "svg { background: #fff } text { fill: #1c2430 } .d { fill: #667085 } "
      ".l { fill: #eceef2 } .a { stroke: #d9dce2 }\n"
      "@media (prefers-color-scheme: dark) { svg { "
      "background: #14171c } text { fill: #e4e8ee } .d { fill: #98a2b3 } .l { "
      "fill: #22272f } .a { stroke: #343a44 } }\n";
  for (const SvgColor &color : kClassColors)
    svg += ".c" + std::to_string(unsigned(color.value)) +
           " { fill: " + color.color + " }\n";
  for (unsigned s = 0; s < sim::kStalls; ++s)
    svg +=
        ".s" + std::to_string(s) + " { fill: " + stallColor(Stall(s)) + " }\n";
  svg += "</style>\n<clipPath id=\"w\"><rect x=\"" + std::to_string(kLeft) +
         "\" y=\"0\" width=\"" + std::to_string(kWidth) + "\" height=\"" +
         std::to_string(height) + "\"/></clipPath>\n";
  auto write = [&](double at, double y, const std::string &text,
                   const char *more) {
    svg += "<text x=\"" + rounded(at, 1) + "\" y=\"" + rounded(y, 1) + "\" " +
           more + ">" + escaped(text) + "</text>\n";
  };
  auto box = [&](const std::string &cls, double from, double y, double width,
                 double high) {
    svg += "<rect class=\"" + cls + "\" x=\"" + rounded(from, 2) + "\" y=\"" +
           rounded(y, 1) + "\" width=\"" + rounded(std::max(width, .1), 2) +
           "\" height=\"" + rounded(high, 1) + "\"/>\n";
  };
  write(10, 18, titleOf(launch), "font-weight=\"bold\" font-size=\"13\"");
  write(10, 34, subtitleOf(subject, launch, window), "class=\"d\"");
  // The legend: what issues, then what is waited for.
  double at = 10;
  for (const SvgColor &color : kClassColors) {
    box("c" + std::to_string(unsigned(color.value)), at, 43, 10, 10);
    write(at + 14, 52, color.name, "");
    at += 28 + 6.2 * double(std::string(color.name).size());
  }
  at = 10;
  for (unsigned s = 0; s < sim::kStalls; ++s) {
    const std::string name(sim::name(Stall(s)));
    box("s" + std::to_string(s), at, 62, 10, 5);
    write(at + 14, 68, name, "");
    at += 28 + 6.2 * double(name.size());
  }
  // Round numbers of clocks, about ten of them.
  const uint64_t length = window.end - window.begin;
  uint64_t step = 1;
  for (const uint64_t factor : {2, 5, 10})
    for (uint64_t power = 1; power < length; power *= 10)
      if (length / (factor * power) >= 8)
        step = std::max(step, factor * power);
  for (uint64_t clock = 0; clock <= length; clock += step) {
    const double here = x(window.begin + clock);
    svg += "<line class=\"a\" x1=\"" + rounded(here, 1) + "\" x2=\"" +
           rounded(here, 1) + "\" y1=\"92\" y2=\"" + std::to_string(height) +
           "\"/>\n";
    write(here + 3, 88, std::to_string(clock), "class=\"d\"");
  }
  write(10, 88, "clock", "class=\"d\"");
  double y = 94;
  for (size_t s = 0; s < lanes.simds.size(); ++s) {
    const Lanes::Simd &simd = lanes.simds[s];
    write(10, y + 13, "SIMD " + std::to_string(s), "font-weight=\"bold\"");
    y += kHead;
    for (const Track &track : simd.units) {
      write(18, y + 11, track.name, "class=\"d\"");
      write(kLeft - 6, y + 11, rounded(busyIn(track, window) * 100, 0) + "%",
            "class=\"d\" text-anchor=\"end\"");
      box("l", kLeft, y + 1, kWidth, kUnit - 2);
      svg += "<g clip-path=\"url(#w)\">\n";
      for (const Track::Span &span : track.spans)
        box("c" + std::to_string(unsigned(lanes.events[span.event].cls)),
            x(span.clock), y + 1, span.clocks * scale, kUnit - 2);
      svg += "</g>\n";
      y += kUnit;
    }
    y += 2;
    for (unsigned wave : simd.waves) {
      write(18, y + 14, "wave " + std::to_string(wave), "");
      svg += "<g clip-path=\"url(#w)\">\n";
      for (const TimelineEvent &event : lanes.events) {
        if (event.wave != wave || event.simd != s)
          continue;
        if (event.stallClocks)
          box("s" + std::to_string(unsigned(event.stall)),
              x(event.clock -
                std::min<uint64_t>(event.clock, event.stallClocks)),
              y + 7, event.stallClocks * scale, 6);
        box("c" + std::to_string(unsigned(event.cls)), x(event.clock), y + 2,
            report.slotClocks * scale, kWave - 4);
      }
      svg += "</g>\n";
      y += kWave;
    }
    y += 8;
  }
  return svg + "</svg>\n";
}
