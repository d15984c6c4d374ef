//===- Summary.cpp - what a program did on the simulated device -----------===//

#include "Summary.h"

#include "Program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

using namespace fovea::foveasim;
using nlohmann::json;

namespace {

/// "1 launch", "2 launches".
std::string counted(uint64_t count, const std::string &one,
                    const std::string &many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

/// Three digits and a unit: "12.1 us".
std::string duration(double seconds) {
  struct Unit {
    double size;
    const char *name;
  };
  constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  const Unit *unit = kUnits;
  while (unit->size > seconds && unit != std::end(kUnits) - 1)
    ++unit;
  const double value = seconds / unit->size;
  char text[40];
  std::snprintf(text, sizeof text, "%.*f %s",
                value < 10 ? 2 : value < 100 ? 1 : 0, value, unit->name);
  return text;
}

std::string textOf(const TimeSum &time) {
  if (!time.launches)
    return "-";
  return duration(time.seconds) + " (" + duration(time.low) + " to " +
         duration(time.high) + (time.isEstimate ? ", estimated)" : ")");
}

json jsonOf(const TimeSum &time, uint64_t launches) {
  json result = {{"seconds", time.seconds},
                 {"low", time.low},
                 {"high", time.high},
                 {"launches", time.launches},
                 {"interval_is_estimate", time.isEstimate}};
  if (time.launches < launches)
    result["unpredicted"] = time.why;
  return result;
}

/// Right-aligned columns but for the last.
std::string table(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
    text += "  " + row.back() + "\n";
  }
  return text;
}

KernelSum launchOf(const json &line, const std::string &chip) {
  KernelSum launch;
  launch.chip = chip;
  launch.symbol = line.at("kernel");
  launch.launches = 1;
  launch.workgroups = line.at("workgroups");
  launch.instructions = line.at("instructions");
  launch.classes = line.at("classes");
  if (auto predicted = line.find("predicted"); predicted != line.end()) {
    const double seconds = predicted->at("seconds");
    const double factor = 1 + double(predicted->at("time_error"));
    launch.time.seconds = seconds;
    launch.time.low = seconds / factor;
    launch.time.high = seconds * factor;
    launch.time.launches = 1;
    launch.time.isEstimate = predicted->at("error_is_estimate");
  } else if (line.contains("unpredicted")) {
    launch.time.why = line.at("unpredicted");
  }
  return launch;
}

} // namespace

TimeSum &TimeSum::operator+=(const TimeSum &other) {
  seconds += other.seconds;
  low += other.low;
  high += other.high;
  launches += other.launches;
  isEstimate |= other.isEstimate;
  if (why.empty())
    why = other.why;
  return *this;
}

KernelSum &KernelSum::operator+=(const KernelSum &other) {
  launches += other.launches;
  workgroups += other.workgroups;
  instructions += other.instructions;
  for (const auto &[name, count] : other.classes)
    classes[name] += count;
  time += other.time;
  return *this;
}

void Summary::read(std::istream &log) {
  std::map<std::pair<std::string, std::string>, KernelSum> sums;
  std::map<uint64_t, std::vector<std::string>> chips; // of processes
  for (std::string text; std::getline(log, text);) {
    const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_discarded())
      continue;
    const std::string record = line.at("record");
    const uint64_t process = line.at("process");
    if (record == "process") {
      chips[process] = line.at("chips").get<std::vector<std::string>>();
      processes.push_back({process, line.at("program"),
                                   line.value("error", ""), chips[process]});
    } else if (record == "launch") {
      // A child that was forked says nothing of its devices: its parent's.
      const size_t device = line.at("device");
      auto known = chips.find(process);
      if (known == chips.end() && !chips.empty())
        known = chips.begin();
      const std::string chip =
          known != chips.end() && device < known->second.size()
              ? known->second[device]
              : "";
      const KernelSum launch = launchOf(line, chip);
      auto [at, isNew] = sums.try_emplace({chip, launch.symbol}, launch);
      if (!isNew)
        at->second += launch;
      if (auto finding = line.find("finding"); finding != line.end())
        findings.push_back(
            {finding->at("by"), launch.symbol, finding->at("message")});
    } else if (record == "refusal") {
      refusals.push_back(line.at("message"));
    }
  }
  for (const auto &[key, kernel] : sums)
    kernels.push_back(kernel);
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelSum &a, const KernelSum &b) {
              return std::tie(b.instructions, a.chip, a.symbol) <
                     std::tie(a.instructions, b.chip, b.symbol);
            });
}

KernelSum Summary::total() const {
  KernelSum all;
  for (const KernelSum &kernel : kernels)
    all += kernel;
  return all;
}

std::string Summary::text() const {
  std::string text;
  std::set<std::string> chips;
  for (const Process &process : processes) {
    chips.insert(process.chips.begin(), process.chips.end());
    if (!process.error.empty())
      text += "fovea-sim: no device: " + process.error + "\n";
  }
  if (processes.empty())
    return "fovea-sim: the program did not use HIP: nothing in it opened "
           "libamdhip64.so, or what did has HIP linked into it\n";
  const KernelSum all = total();
  std::string names;
  for (const std::string &chip : chips)
    names += (names.empty() ? "" : ", ") + chip;
  text += "fovea-sim: " +
          counted(processes.size(), "process", "processes") + " on simulated " +
          (names.empty() ? "devices" : names) + ": " +
          counted(all.launches, "launch", "launches") + " of " +
          counted(kernels.size(), "kernel", "kernels") + "\n";
  if (!kernels.empty()) {
    std::vector<std::vector<std::string>> rows{
        {"launches", "workgroups", "instructions"}};
    auto add = [&](const KernelSum &kernel, const std::string &name) {
      rows.push_back({std::to_string(kernel.launches),
                      std::to_string(kernel.workgroups),
                      std::to_string(kernel.instructions)});
      if (timed)
        rows.back().push_back(textOf(kernel.time));
      rows.back().push_back(name);
    };
    if (timed)
      rows[0].push_back("predicted time");
    rows[0].push_back("kernel");
    for (const KernelSum &kernel : kernels)
      add(kernel, demangled(kernel.symbol) +
                      (chips.size() > 1 ? " (" + kernel.chip + ")" : ""));
    if (kernels.size() > 1)
      add(all, "in all");
    text += table(rows);
  }
  std::set<std::string> told;
  for (const KernelSum &kernel : kernels)
    if (timed && kernel.time.launches < kernel.launches &&
        told.insert(kernel.time.why).second)
      text += "  without a prediction: " + kernel.time.why + "\n";
  if (timed && all.time.launches)
    text += "  Times are predictions of a model, and nine of ten published ones "
            "lie in their intervals;\n  nothing was measured on a GPU.\n";
  for (const std::string &refusal : refusals)
    text += "  refused: " + refusal + "\n";
  for (const Finding &finding : findings)
    text += "  found by " + finding.by + ": " + finding.message + "\n";
  if (findings.empty())
    text += "  found: nothing (" +
            (watched.empty() ? "bounds and budget are always watched; "
                               "--check=all watches more"
                             : "watched: " + watched) +
            ")\n";
  return text;
}

json Summary::toJson() const {
  json result = {{"processes", json::array()},
                           {"kernels", json::array()},
                           {"findings", json::array()},
                           {"refusals", refusals}};
  for (const Process &process : processes) {
    json row = {{"process", process.id},
                          {"program", process.program},
                          {"chips", process.chips}};
    if (!process.error.empty())
      row["error"] = process.error;
    result["processes"].push_back(std::move(row));
  }
  auto figuresOf = [&](const KernelSum &kernel) {
    json row = {{"launches", kernel.launches},
                          {"workgroups", kernel.workgroups},
                          {"instructions", kernel.instructions},
                          {"classes", kernel.classes}};
    if (timed)
      row["predicted"] = jsonOf(kernel.time, kernel.launches);
    return row;
  };
  for (const KernelSum &kernel : kernels) {
    json row = figuresOf(kernel);
    row["chip"] = kernel.chip;
    row["symbol"] = kernel.symbol;
    row["kernel"] = demangled(kernel.symbol);
    result["kernels"].push_back(std::move(row));
  }
  for (const Finding &finding : findings)
    result["findings"].push_back({{"by", finding.by},
                                  {"symbol", finding.kernel},
                                  {"message", finding.message}});
  result["total"] = figuresOf(total());
  return result;
}
