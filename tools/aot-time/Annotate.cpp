//===- Annotate.cpp - disassembly with costs ------------------------------===//
//
// Instructions in order of address; what was never executed is left out, and a
// line of dots stands where it was.
//
//===----------------------------------------------------------------------===//

#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace fovea;
using namespace fovea::timing;
using sim::InstTiming;
using sim::Stall;

namespace {

/// "matrix-pipe 80, port 12": reasons for at least a twentieth of the waiting,
/// in clocks of one issue.
std::string reasons(const InstTiming &inst) {
  std::vector<std::pair<uint64_t, unsigned>> sorted;
  uint64_t sum = 0;
  for (unsigned s = 0; s < sim::kStalls; ++s) {
    sum += inst.stalls[s];
    if (inst.stalls[s])
      sorted.push_back({inst.stalls[s], s});
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < 3; ++i) {
    if (i && sorted[i].first * 20 < sum)
      break;
    char part[64];
    std::snprintf(part, sizeof part, "%s%s %.1f", i ? ", " : "",
                  std::string(sim::name(Stall(sorted[i].second))).c_str(),
                  double(sorted[i].first) / double(inst.issues));
    text += part;
  }
  return text;
}

} // namespace

std::string timing::annotatedText(const LaunchTime &launch) {
  const sim::TimingReport &report = launch.report;
  const Analysis analysis(report);
  std::string text =
      "annotated disassembly of " + launch.kernel.name +
      "\n"
      "  share: of the time of all waves. busy, conflict, wait: clocks of one "
      "issue, on\n  its unit, of that in LDS bank conflicts, and before it (at "
      "s_barrier: behind it).\n  The delay of a branch stands at the "
      "instruction "
      "to which it leads.\n\n"
      "            share      issues   busy  conflict     wait        at  "
      "instruction                                          waits for\n";
  uint32_t expected = 0;
  std::string source;
  char line[640];
  for (size_t i = 0; i < report.instructions.size(); ++i) {
    const InstTiming &inst = report.instructions[i];
    std::string margin;
    for (size_t l = 0; l < analysis.loops.size(); ++l) {
      const Loop &loop = analysis.loops[l];
      const bool inside = i >= loop.first && i <= loop.last;
      if (i == loop.first) {
        std::snprintf(line, sizeof line,
                      "%sloop: %.4g iterations of a wave, %.0f clocks each, "
                      "%.1f %% of the time\n",
                      int(l) == analysis.hot ? "hot " : "", loop.iterations,
                      loop.clocks, loop.share * 100);
        text += line;
      }
      if (inside)
        margin = int(l) == analysis.hot ? "#" : margin == "#" ? "#" : "|";
    }
    if (i && inst.offset > expected + 4)
      text += "            ...\n";
    if (!inst.source.empty() && inst.source != source)
      text += "            " + inst.source + "\n";
    source = inst.source;
    expected = inst.offset + 4;
    uint64_t waited = 0;
    for (uint64_t clocks : inst.stalls)
      waited += clocks;
    const double issues = double(std::max<uint64_t>(1, inst.issues));
    const double share = analysis.share[i];
    const std::string heat(size_t(std::min(6.0, std::ceil(share * 200))), '*');
    char conflict[16] = "";
    if (inst.conflictClocks)
      std::snprintf(conflict, sizeof conflict, "%.1f",
                    double(inst.conflictClocks) / issues);
    std::snprintf(
        line, sizeof line,
        "%-1s %-6s %6.2f %%  %10llu  %5.1f  %8s  %7.1f  %8s  %-52s %s",
        margin.c_str(), share >= 0.0025 ? heat.c_str() : "", share * 100,
        (unsigned long long)inst.issues, double(inst.busyClocks) / issues,
        conflict, double(waited) / issues, offsetText(inst.offset).c_str(),
        inst.text.c_str(), waited ? reasons(inst).c_str() : "");
    std::string row = line;
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}
