//===- TextReport.cpp - a prediction for people ---------------------------===//
//
// The report of one kernel and the comparison of several.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "Format.h"
#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace fovea;
using namespace fovea::timing;
using sim::Stall;
using sim::TimingReport;

namespace {

std::string bar(double share, unsigned width = 24) {
  const double cells = std::min(1.0, std::max(0.0, share)) * width;
  std::string text(size_t(std::lround(cells)), '#');
  text.resize(width, '.');
  return text;
}

std::string unitLine(const char *name, double share,
                     const std::string &more = "") {
  return format("    %-14s [%s] %5.1f %%", name, bar(share).c_str(),
                share * 100) +
         (more.empty() ? "" : "   " + more) + "\n";
}

std::string countText(double count, const char *one, const char *many) {
  return format("%.0f %s", count, count == 1 ? one : many);
}

std::string wavesText(double waves) {
  return format("%.3g %s", waves, waves == 1 ? "wave" : "waves");
}

std::string placesText(const LaunchTime &launch) {
  const TimingReport &r = launch.report;
  const auto &grid = launch.launch.grid;
  const auto &block = launch.launch.block;
  const uint64_t items = uint64_t(block[0]) * block[1] * block[2];
  std::string text =
      format("  grid %u x %u x %u: %llu workgroups of %llu work-items (%s)\n",
             grid[0], grid[1], grid[2], (unsigned long long)r.workgroups,
             (unsigned long long)items,
             countText(r.wavesPerWorkgroup, "wave", "waves").c_str());
  text += format(
      "  %u VGPRs, %u AGPRs, %u SGPRs, %s of LDS", launch.kernel.vgprs,
      launch.kernel.agprs, launch.kernel.sgprs,
      bytesText(double(launch.kernel.staticLdsBytes) + launch.launch.dynamicLds)
          .c_str());
  if (launch.kernel.privateBytes)
    text += format(", %u B of scratch a work-item (spills cost memory traffic)",
                   launch.kernel.privateBytes);
  return text + format("\n  %s on a compute unit at a time, limited by %s: "
                       "%s a SIMD\n",
                       countText(r.resident, "workgroup", "workgroups").c_str(),
                       r.residentLimit.c_str(),
                       wavesText(r.wavesPerSimd).c_str());
}

std::string summaryText(const LaunchTime &launch) {
  const TimingReport &r = launch.report;
  std::string text =
      format("\n  time       %-14s", timeText(r.seconds).c_str());
  if (r.launchSeconds > 0)
    text += format("of that %s to start and end a launch",
                   timeText(r.launchSeconds).c_str());
  text += format("\n             %-14s%s\n",
                 format("x or / %.2f", 1 + r.timeError).c_str(),
                 r.errorIsEstimate
                     ? "a guess: too few kernels of this chip are published"
                     : "nine of ten published attention kernels are within");
  const double flops = launch.launch.flops > 0 ? launch.launch.flops : r.flops;
  if (flops > 0 && r.seconds > 0) {
    const double rate = flops / r.seconds;
    text += format("  rate       %-14s",
                   format("%.1f TFLOPS", rate / 1e12).c_str());
    if (r.peakFlops > 0) {
      const double peak = r.peakFlops, here = peak * r.clockHz / r.peakClockHz;
      text +=
          format("%.1f %% of the peak of %.0f TFLOPS, %.1f %% of the peak at "
                 "this clock",
                 100 * rate / peak, peak / 1e12, 100 * rate / here);
    }
    text += "\n";
    if (launch.launch.flops > 0 && r.flops > 0)
      text +=
          format("  executed   %-14sof the operations that the rate credits "
                 "(masked and padded work is more than 1)\n",
                 format("%.2f times", r.flops / launch.launch.flops).c_str());
  }
  if (creditIsDoubtful(launch))
    text +=
        "             the kernel did not do what is credited: are the "
        "arguments right, or do workgroups\n             get their work from "
        "memory that others change?\n";
  text +=
      format("  clock      %-14s", format("%.2f GHz", r.clockHz / 1e9).c_str());
  text +=
      r.peakClockHz > r.clockHz * 1.0001
          ? format("of at most %.2f; --clock sets it\n", r.peakClockHz / 1e9)
          : "the chip's highest\n";
  if (!r.board.empty())
    text += format("  board      %-13s clocks, power and memory; --board sets it\n",
                   r.board.c_str());
  text += format(
      "  grid       %-14scompute units are at work %.0f %% of the time%s\n",
      format("%.2f rounds", r.rounds).c_str(), r.busyShare * 100,
      r.busyShare < 0.85 ? r.rounds < 1
                               ? ": the grid is too small to fill the chip"
                               : ": the last workgroups run alone"
                         : "");
  text += format("  memory     %-14s",
                 format("L1 %.0f %%", r.l1HitRate * 100).c_str());
  text += format(
      "hits, L2 %.0f %%; %s from memory%s\n", r.l2HitRate * 100,
      bytesText(r.memoryBytes).c_str(),
      r.seconds > 0
          ? format(" (%.0f GB/s)", r.memoryBytes / r.seconds / 1e9).c_str()
          : "");
  return text;
}

std::string unitsText(const TimingReport &r) {
  std::string text = "\n  how busy the units of a working compute unit are\n";
  text += unitLine(
      "matrix cores", r.matrix,
      format("%.1f %% over the whole launch and chip", r.matrixOfChip * 100));
  text += unitLine("vector ALU", r.valu);
  text += unitLine("scalar ALU", r.salu);
  text += unitLine(
      "LDS", r.lds,
      r.ldsConflictShare > 0.005
          ? format("bank conflicts are %.0f %% of it", r.ldsConflictShare * 100)
          : "");
  text += unitLine("vector memory", r.vectorMemory);
  return text + unitLine("issue slots", r.issue);
}

std::string stallsText(const TimingReport &r, const Analysis &analysis) {
  std::string text = "\n  what a wave's time goes into\n";
  text += format("    %-14s %5.1f %%   an instruction issues\n", "issuing",
                 r.issuedShare * 100);
  double rest = 0;
  unsigned shown = 0;
  for (const auto &[stall, share] : analysis.stalls) {
    if (share < 0.01 && shown) {
      rest += share;
      continue;
    }
    const Advice advice = adviceFor(stall);
    text += format("    %-14s %5.1f %%   %s\n",
                   std::string(sim::name(stall)).c_str(), share * 100,
                   std::string(advice.means).c_str());
    // Advice where it pays; for a busy matrix core it is that all is well.
    if (shown < 3 && share > 0.05 && !advice.helps.empty())
      text += format("    %-14s           -> %s\n", "",
                     std::string(advice.helps).c_str());
    ++shown;
  }
  if (rest > 0)
    text += format("    %-14s %5.1f %%\n", "other reasons", rest * 100);
  return text;
}

std::string hotText(const TimingReport &r, const Analysis &analysis) {
  std::string text;
  for (size_t i = 0; i < analysis.loops.size(); ++i) {
    const Loop &loop = analysis.loops[i];
    const bool hot = int(i) == analysis.hot;
    if (!loop.innermost || (!hot && loop.share < 0.1))
      continue;
    text += format(
        "\n  %s %s to %s: %.1f %% of the time, %.4g iterations a wave on "
        "average, %zu instructions\n",
        hot ? "hot loop" : "loop",
        offsetText(r.instructions[loop.first].offset).c_str(),
        offsetText(r.instructions[loop.last].offset).c_str(), loop.share * 100,
        loop.iterations, loop.last - loop.first + 1);
    text += format(
        "    an iteration takes a wave %.0f clocks, and keeps the matrix "
        "core busy for %.0f and the\n    vector ALU for %.0f of them; %s of a "
        "SIMD in turn\n",
        loop.clocks, loop.matrix, loop.valu, wavesText(r.wavesPerSimd).c_str());
  }
  text +=
      "\n  instructions that take most time (--annotate shows all)\n"
      "     share    clocks each   waits mostly for        at  instruction\n";
  for (size_t i : analysis.costliest(10)) {
    const sim::InstTiming &inst = r.instructions[i];
    if (analysis.share[i] <= 0)
      continue;
    const auto [stall, clocks] = Analysis::mainStall(inst);
    text +=
        format("    %5.1f %%  %13.1f   %-14s %9s  ", analysis.share[i] * 100,
               inst.issues ? Analysis::clocksOf(inst, r.slotClocks) /
                                 double(inst.issues)
                           : 0,
               clocks ? std::string(sim::name(stall)).c_str() : "-",
               offsetText(inst.offset).c_str()) +
        inst.text + "\n";
  }
  return text;
}

std::string launchText(const LaunchTime &launch) {
  const Analysis analysis(launch.report);
  std::string text =
      "kernel " + launch.kernel.name + "\n" + placesText(launch) +
      summaryText(launch) + unitsText(launch.report) +
      stallsText(launch.report, analysis) + hotText(launch.report, analysis);
  for (const std::string &note : launch.report.notes)
    text += "  note: " + note + "\n";
  text += format(
      "  predicted from %s in %.1f s on this host\n",
      countText(double(launch.report.samples.size()), "workgroup", "workgroups")
          .c_str(),
      launch.hostSeconds);
  return text;
}

/// Everything after a row's name is 60 columns wide at most.
constexpr size_t kNameWidth = 20;

/// A name in its column; one that does not fit is a line of its own.
std::string nameText(const std::string &name, size_t width) {
  std::string text = name.size() > width ? name + "\n" : name;
  text.resize(name.size() > width ? text.size() + width : width, ' ');
  return text;
}

std::string firstLine(const std::string &text) {
  return text.substr(0, text.find('\n'));
}

} // namespace

std::string timing::offsetText(uint32_t offset) {
  const int32_t value = int32_t(offset);
  return value < 0 ? format("-0x%x", unsigned(-int64_t(value)))
                   : format("+0x%x", unsigned(value));
}

std::string timing::scheduleText(const std::string &head,
                                 const std::string &schedule) {
  constexpr size_t kWidth = 80;
  const std::string indent(head.size(), ' ');
  std::string text = head, line;
  auto end = [&] {
    text += line + "\n" + indent;
    line.clear();
  };
  for (size_t begin = 0; begin < schedule.size();) {
    const size_t stop =
        std::min(schedule.find_first_of(",;", begin), schedule.size() - 1) + 1;
    const std::string item = schedule.substr(begin, stop - begin);
    if (!line.empty() && indent.size() + line.size() + item.size() > kWidth) {
      end();
      line = "  ";
    }
    line += item;
    if (item.back() == ';')
      end();
    begin = stop;
  }
  return text + line + "\n";
}

std::string timing::variablesText(const describe::Problem &problem) {
  std::string text;
  for (const auto &[name, value] : problem.variables)
    text += (text.empty() ? "" : " ") + name + "=" +
            (value.integer ? std::to_string(value.whole)
                           : format("%g", value.fraction));
  return text;
}

bool timing::creditIsDoubtful(const LaunchTime &launch) {
  const TimingReport &r = launch.report;
  const double credited = launch.launch.flops;
  return (r.flops > 0 && r.flops < 0.7 * credited) ||
         credited > r.peakFlops * r.seconds;
}

double timing::speedRatio(const SubjectTime &subject,
                          const SubjectTime &first) {
  const double seconds = subject.seconds(), base = first.seconds();
  if (seconds <= 0 || base <= 0)
    return 0;
  if (subject.flops() > 0 && first.flops() > 0)
    return (subject.flops() / seconds) / (first.flops() / base);
  return base / seconds;
}

std::string timing::textReport(const SubjectTime &subject) {
  std::string text = subject.label;
  if (!subject.problem.name.empty() && subject.problem.name != subject.label)
    text += ": " + subject.problem.name;
  text += "\n" + subject.target + ", " + variablesText(subject.problem) + "\n";
  if (!subject.schedule.empty())
    text += scheduleText("schedule ", subject.schedule);
  if (subject.launches.size() > 1)
    text += format("%zu launches take %s\n", subject.launches.size(),
                   timeText(subject.seconds()).c_str());
  for (const LaunchTime &launch : subject.launches)
    text += "\n" + launchText(launch);
  for (const std::string &note : subject.notes)
    text += "note: " + note + "\n";
  return text;
}

std::string timing::comparisonText(const std::vector<ComparedPoint> &points) {
  size_t width = 6;
  bool several = false, anyDoubt = false;
  for (const ComparedPoint &point : points)
    several |= point.subjects.size() > 1;
  std::map<std::string, std::string> schedules; // by label
  for (const ComparedPoint &point : points)
    for (const SubjectTime &subject : point.subjects) {
      width = std::max(width,
                       (several ? subject.label : nameOf(point.swept)).size());
      if (several && !subject.schedule.empty())
        schedules[subject.label] = subject.schedule;
    }
  width = std::min(width, kNameWidth);
  std::string text =
      nameText("kernel", width) + format("  %11s  %8s  %8s  %8s  %5s", "time",
                                         "TFLOPS", "of peak", "matrix", "GHz");
  text += several ? "  ratio\n" : "\n";
  for (const ComparedPoint &point : points) {
    if (!point.swept.empty() && (several || point.subjects.size() > 1))
      text += nameOf(point.swept) + "\n";
    for (const SubjectTime &subject : point.subjects) {
      text +=
          nameText(several ? subject.label : nameOf(point.swept), width) + "  ";
      if (!subject.error.empty()) {
        text += firstLine(subject.error) + "\n";
        continue;
      }
      const ComparedRow row = comparedRow(subject, point.subjects.front());
      const ComparedCells cells = cellsOf(row);
      text += format("%11s  %8s  %8s  %8s  %5s", cells.time.c_str(),
                     cells.rate.c_str(), cells.peak.c_str(), cells.chip.c_str(),
                     cells.clock.c_str());
      if (several)
        text += format("  %5s", cells.ratio.c_str());
      anyDoubt |= row.doubtful;
      text += row.doubtful ? "  !\n" : "\n";
      if (row.range.least > 0)
        text += format("  of the ensemble %.2f (%s) to %.2f (%s)\n",
                       row.range.least, row.range.leastBy.c_str(),
                       row.range.greatest, row.range.greatestBy.c_str());
    }
  }
  text += "matrix: share of the launch that the chip's matrix cores are busy\n";
  if (several)
    text += "ratio: speed (TFLOPS) over that of the first kernel of the block; "
            "~: a tie,\n"
            "       closer to 1 than the model's error\n";
  if (anyDoubt)
    text += "!: the kernel executed much less than it is credited with; the "
            "rate means\n   nothing\n";
  if (!schedules.empty())
    text += "schedules, which --schedule takes by these texts or as s1, s2, "
            "...:\n";
  for (const auto &[label, schedule] : schedules)
    text += scheduleText("  " + label + "  ", schedule);
  return text;
}
