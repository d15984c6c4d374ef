//===- Lanes.cpp - the timeline as lanes of units and waves ---------------===//
//
// Events name the instruction and the clock of its issue. Which unit it kept
// busy follows from its class; how long is known exactly for the ALUs and the
// matrix core, and as the instruction's mean for LDS and memory.
//
//===----------------------------------------------------------------------===//

#include "Reports.h"

#include <algorithm>
#include <map>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;
using sim::InstClass;
using sim::TimelineEvent;

namespace {

enum UnitLane { kMatrix, kVector, kScalar, kLds, kMemory, kUnits };
constexpr const char *kUnitNames[kUnits] = {"matrix core", "vector ALU",
                                            "scalar", "LDS", "memory"};

int laneOf(InstClass cls) {
  switch (cls) {
  case InstClass::Mfma:
    return kMatrix;
  case InstClass::Valu:
  case InstClass::Trans:
    return kVector;
  case InstClass::Salu:
  case InstClass::Smem:
  case InstClass::Branch:
    return kScalar;
  case InstClass::Lds:
    return kLds;
  case InstClass::Vmem:
    return kMemory;
  default:
    return -1;
  }
}

} // namespace

Lanes timing::lanesOf(const sim::TimingReport &report, Window window) {
  Lanes lanes;
  // An instruction counts when it, or its wait, reaches into the window.
  for (const TimelineEvent &event : report.timeline)
    if (event.clock + std::max(event.clocks, report.slotClocks) >
            window.begin &&
        event.clock - std::min<uint64_t>(event.clock, event.stallClocks) <
            window.end)
      lanes.events.push_back(event);
  // A wave issues at most one instruction a clock.
  std::sort(lanes.events.begin(), lanes.events.end(),
            [](const TimelineEvent &a, const TimelineEvent &b) {
              return a.clock != b.clock ? a.clock < b.clock : a.wave < b.wave;
            });
  // The wait at a barrier is counted from its issue on; it is drawn behind it.
  std::map<unsigned, uint64_t> issued;
  for (TimelineEvent &event : lanes.events) {
    auto before = issued.find(event.wave);
    if (before != issued.end() && before->second <= event.clock)
      event.stallClocks = static_cast<uint32_t>(
          std::min<uint64_t>(event.stallClocks, event.clock - before->second));
    issued[event.wave] = event.clock + report.slotClocks;
  }
  lanes.simds.resize(std::max(1u, report.simds));
  for (Lanes::Simd &simd : lanes.simds)
    for (const char *name : kUnitNames)
      simd.units.push_back({name, {}});
  for (uint32_t i = 0; i < lanes.events.size(); ++i) {
    const TimelineEvent &event = lanes.events[i];
    if (event.simd >= lanes.simds.size())
      lanes.simds.resize(event.simd + 1u);
    Lanes::Simd &simd = lanes.simds[event.simd];
    if (std::find(simd.waves.begin(), simd.waves.end(), event.wave) ==
        simd.waves.end())
      simd.waves.push_back(event.wave);
    const int lane = laneOf(event.cls);
    if (lane < 0 || event.clock >= window.end)
      continue;
    uint32_t clocks = event.clocks;
    if (lane == kLds || lane == kMemory) {
      const sim::InstTiming &inst = report.instructions[event.inst];
      if (inst.issues)
        clocks = static_cast<uint32_t>(inst.busyClocks / inst.issues);
    }
    std::vector<Track::Span> &spans = simd.units[size_t(lane)].spans;
    uint64_t start = event.clock;
    if (!spans.empty())
      start = std::max(start, spans.back().clock + spans.back().clocks);
    spans.push_back({start, std::max(1u, clocks), i});
  }
  for (Lanes::Simd &simd : lanes.simds)
    std::sort(simd.waves.begin(), simd.waves.end());
  return lanes;
}

json timing::perfettoTrace(const SubjectTime &subject, const LaunchTime &launch,
                           Window window) {
  const sim::TimingReport &report = launch.report;
  const Lanes lanes = lanesOf(report, window);
  json events = json::array();
  // Processes are SIMDs, threads their units and waves. Times are microseconds:
  // a clock becomes a nanosecond.
  auto time = [&](uint64_t clock) {
    return (double(clock) - double(window.begin)) / 1000;
  };
  auto name = [&](const char *what, size_t pid, int64_t tid,
                  const std::string &text) {
    json event = {
        {"ph", "M"}, {"name", what}, {"pid", pid}, {"args", {{"name", text}}}};
    if (tid >= 0) {
      event["tid"] = tid;
      events.push_back({{"ph", "M"},
                        {"name", "thread_sort_index"},
                        {"pid", pid},
                        {"tid", tid},
                        {"args", {{"sort_index", tid}}}});
    }
    events.push_back(std::move(event));
  };
  constexpr int64_t kFirstWave = 100;
  for (size_t s = 0; s < lanes.simds.size(); ++s) {
    const Lanes::Simd &simd = lanes.simds[s];
    name("process_name", s, -1, "SIMD " + std::to_string(s));
    for (size_t u = 0; u < simd.units.size(); ++u) {
      name("thread_name", s, int64_t(u), simd.units[u].name);
      for (const Track::Span &span : simd.units[u].spans) {
        const TimelineEvent &event = lanes.events[span.event];
        events.push_back({{"ph", "X"},
                          {"pid", s},
                          {"tid", u},
                          {"ts", time(span.clock)},
                          {"dur", span.clocks / 1000.0},
                          {"name", report.instructions[event.inst].text},
                          {"cat", std::string(sim::name(event.cls))},
                          {"args", {{"wave", event.wave}}}});
      }
    }
    for (unsigned wave : simd.waves)
      name("thread_name", s, kFirstWave + wave, "wave " + std::to_string(wave));
  }
  for (const TimelineEvent &event : lanes.events) {
    const sim::InstTiming &inst = report.instructions[event.inst];
    json base = {
        {"ph", "X"}, {"pid", event.simd}, {"tid", kFirstWave + event.wave}};
    if (event.stallClocks) {
      json wait = base;
      wait["ts"] = time(event.clock) - event.stallClocks / 1000.0;
      wait["dur"] = event.stallClocks / 1000.0;
      wait["name"] = "wait: " + std::string(sim::name(event.stall));
      wait["cat"] = "stall";
      wait["args"] = {{"for", inst.text}};
      events.push_back(std::move(wait));
    }
    base["ts"] = time(event.clock);
    base["dur"] = report.slotClocks / 1000.0;
    base["name"] = inst.text;
    base["cat"] = std::string(sim::name(event.cls));
    base["args"] = {{"offset", offsetText(inst.offset)},
                    {"clock", event.clock},
                    {"unit_clocks", event.clocks},
                    {"workgroup", event.workgroup}};
    events.push_back(std::move(base));
  }
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ns"},
          {"otherData",
           {{"kernel", report.kernel},
            {"chip", report.chip},
            {"problem", variablesText(subject.problem)},
            {"note", "one clock of the chip is shown as one nanosecond"},
            {"first_clock", window.begin},
            {"clocks", window.end - window.begin},
            {"clock_hz", report.clockHz}}}};
}
