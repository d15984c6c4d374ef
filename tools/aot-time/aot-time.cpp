//===- aot-time.cpp - predict how long kernels take -----------------------===//
//
// The command line: which kernels at which sizes, and which outputs.
//
//===----------------------------------------------------------------------===//

#include "Calibration.h"
#include "CommandLine.h"
#include "CountRun.h"
#include "Main.h"
#include "Packages.h"
#include "Reports.h"
#include "Version.h"
#include "fovea/Package/Counted.h"
#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <unistd.h>

using namespace fovea;
using namespace fovea::timing;
using tool::writeFile;

namespace {

enum ExitCode { kPredicted = 0, kUsage = 2, kDevice = 3 };

constexpr const char *kDescription =
    R"(Predicts how long kernels take on an AMD GPU, and shows what they wait for.

A few workgroups of a launch are executed on the simulated device; a model of
the chip's compute units replays their instructions clock by clock and extends
the result to the whole grid. No GPU is used, and a prediction is no
measurement: docs/Timing.md says what is modelled and how far to trust it,
docs/AotTime.md how to read the results.

Kernels come from kernel descriptions (docs/KernelDescription.md), from folders
of them, and from packages of this project. One kernel at one size is reported
in full; several kernels or sizes become a table, in which the first kernel is
the measure of the others. Large buffers repeat 4 MiB of the values that the
description asks for: time does not depend on values, except where a kernel
branches on them.)";

constexpr const char *kExamples =
    R"(
Examples:
  # Any code object with a description, at its own sizes and at others
  aot-time attention.json
  aot-time attention.json --set seqlen=16384,heads=32

  # What to improve: costs by instruction, and a picture of the hot loop
  aot-time attention.json --annotate --timeline=loop.html --perfetto=loop.json

  # A kernel of a package over lengths
  aot-time --package=build/kernels --head-dim=128 --mask=causal-top-left \
           --seqlen=1024,4096,16384

  # What the main loop executes for a block of 64 keys, on any simulated chip
  aot-time --package=build/kernels --count --per seqlen_k=64x8 --heads=1 \
           --seqlen-q=128 --seqlen-k=512

  # Ours beside others, ratio to ours: as a table, and as a page for a browser
  aot-time --package=build/kernels --head-dim=128 theirs/ --seqlen=1024,4096
  aot-time --package=build/kernels --head-dim=128 theirs/ --seqlen=1024,4096 \
           --report=html -o comparison.html

  # What a GPU's report (docs/Qualify.md) changes, and predictions with it
  aot-time --calibrate=report.json
  aot-time --calibrate=report.json --package=build/kernels --head-dim=128

Exit codes: 0 all predicted, 2 wrong usage, a description that does not fit, too
little memory or output that is lost, 3 a kernel failed on the simulated device.
Of several the largest counts.)";

/// An option that sets a variable, or sweeps over values of it. What kernels
/// call `heads` and `seqlen` otherwise: LaunchLoop.cpp.
struct SizeOption {
  const char *option, *variable, *what;
};
constexpr SizeOption kSizes[] = {
    {"--batch", "batch", "Batches"},
    {"--heads", "heads", "Query heads"},
    {"--heads-k", "heads_k", "Key heads"},
    {"--seqlen", "seqlen", "Query rows and keys"},
    {"--seqlen-q", "seqlen_q", "Query rows"},
    {"--seqlen-k", "seqlen_k", "Keys"},
};

struct CommandLine {
  std::vector<std::string> inputs, sets, sweeps;
  std::array<std::string, std::size(kSizes)> sizes;
  PackageQuery package;
  sim::TimingOptions timing;
  double clockGHz = 0;
  bool annotate = false, count = false;
  std::string per, calibrate;
  std::string report = "text", output, json, timeline, perfetto;
  std::optional<uint64_t> timelineStart;
  uint64_t timelineClocks = 0;
  unsigned timelineLaunch = 1;
};

void addOptions(CLI::App &app, CommandLine &line) {
  app.option_defaults()->always_capture_default();
  app.add_option("inputs", line.inputs,
                 "Kernel descriptions, or folders of them")
      ->type_name("FILE|FOLDER")
      ->default_str("");
  app.add_option(
         "--set", line.sets,
         "Values in place of the description's: NAME=EXPR[,NAME=EXPR...]")
      ->allow_extra_args(false)
      ->type_name("NAME=EXPR")
      ->default_str("");
  app.add_option(
         "--sweep", line.sweeps,
         "Predict for each value: NAME=V1,V2,...; several sweeps multiply")
      ->allow_extra_args(false)
      ->type_name("NAME=V,V...")
      ->default_str("");
  for (size_t i = 0; i < std::size(kSizes); ++i)
    app.add_option(kSizes[i].option, line.sizes[i],
                   std::string(kSizes[i].what) + ": the variable '" +
                       kSizes[i].variable + "'; several values are a sweep")
        ->type_name("N[,N...]");

  const char *package = "A kernel package";
  app.add_option("--package", line.package.package,
                 "Kernel package, or a folder of packages (default: those of "
                 "FOVEA_PACKAGE, or else the installed ones)")
      ->default_str("")
      ->group(package);
  app.add_option("--target", line.package.target, "Only packages of this chip")
      ->group(package);
  app.add_option("--op", line.package.op,
                 "Operation, all its kernels: " +
                     CLI::detail::join(fovea::spec::operationNames(true), ", "))
      ->check(CLI::IsMember(fovea::spec::operationNames(true)).description(""))
      ->group(package);
  app.add_option("--dtype", line.package.dtype,
                 "Element type: " +
                     fovea::spec::namesOf(fovea::kDataTypes))
      ->check(CLI::IsMember(fovea::spec::dataTypeNames()).description(""))
      ->group(package);
  app.add_option("--head-dim", line.package.headDim, "Head dimension")
      ->check(CLI::Range(1, 1024).description(""))
      ->group(package);
  app.add_option("--head-dim-v", line.package.headDimV,
                 "That of v and out, if it is another")
      ->check(CLI::Range(1, 1024).description(""))
      ->group(package);
  app.add_option(
         "--mask", line.package.mask,
         "Mask: a window LEFT:RIGHT, as aot-run takes it, or a name: none, "
         "causal-top-left, causal-bottom-right")
      ->check([](const std::string &text) {
        return fovea::parseWindow(text)
                   ? std::string()
                   : "'" + text +
                         "' is none of none, causal-top-left, "
                         "causal-bottom-right, and no window LEFT:RIGHT";
      })
      ->group(package);
  app.add_option("--score", line.package.score,
                 "Score program of the kernels, by the name or the digits that "
                 "aot-package prints; what it captures are variables and "
                 "buffers capture0, capture1, ... (default: kernels without)")
      ->type_name("NAME")
      ->default_str("")
      ->group(package);
  app.add_option("--layout", line.package.layout,
                 "Order of the axes in memory: bhsd, bshd, sbhd")
      ->check(CLI::IsMember({"bhsd", "bshd", "sbhd"}).description(""))
      ->group(package);
  app.add_option(
         "--schedule", line.package.schedule,
         "Only the kernel of this schedule, by its text or as tables call it: "
         "s1, s2, ... (default: all, side by side)")
      ->group(package);

  const char *model = "The model";
  app.add_option("--clock", line.clockGHz,
                 "Clock of the chip in GHz; 0: what its power limit allows")
      ->check(tool::finite(0, 10))
      ->group(model);
  app.add_option("--board", line.timing.board,
                 "Product with the chip, which sets clocks, power and memory: "
                 "rx7900xtx, w7900, ... (docs/AotTime.md; default: the first "
                 "of the chip)")
      ->type_name("NAME")
      ->default_str("")
      ->group(model);
  app.add_option("--resident", line.timing.residentWorkgroups,
                 "Workgroups that share a compute unit; 0: as many as fit")
      ->check(CLI::Range(0, 64).description(""))
      ->group(model);
  app.add_option("--samples", line.timing.maxSamples,
                 "Workgroups to replay; more are slower and more exact")
      ->check(CLI::Range(1, 1024).description(""))
      ->group(model);

  app.add_flag("--ensemble", line.timing.ensemble,
               "Predict by other constants as well, within what is known of "
               "the chip; tables say how far a ratio moves, and by which "
               "(docs/Timing.md)")
      ->group(model);

  app.add_option("--calibrate", line.calibrate,
                 "Scale predictions by what a GPU measured: a report of "
                 "aot-qualify. Alone: say what it changes")
      ->check(CLI::ExistingFile.description(""))
      ->type_name("REPORT")
      ->group(model);

  const char *counting = "Counting";
  app.add_flag("--count", line.count,
               "Count what a wave executes and LDS bank conflicts, and predict "
               "nothing; all workgroups run. For every simulated chip")
      ->group(counting);
  app.add_option("--per", line.per,
                 "Count what so much more of a variable adds, over several "
                 "steps: seqlen_k=64x8")
      ->type_name("NAME=STEP[xTIMES]")
      ->default_str("")
      ->group(counting);

  const char *output = "Output";
  app.add_option("--report", line.report,
                 "The report; html is a page that draws kernels and sizes "
                 "beside each other: text, json, html, none")
      ->check(CLI::IsMember({"text", "json", "html", "none"}).description(""))
      ->group(output);
  app.add_option("-o,--output", line.output,
                 "Write the report to a file and not to the terminal")
      ->type_name("FILE")
      ->group(output);
  app.add_option("--json", line.json, "Write all figures to a file")
      ->type_name("FILE")
      ->group(output);
  app.add_flag("--annotate", line.annotate,
               "Print the disassembly with what each instruction costs")
      ->group(output);
  app.add_option(
         "--timeline", line.timeline,
         "Draw what units and waves do: a page (.html) or a picture (.svg)")
      ->type_name("FILE")
      ->group(output);
  app.add_option("--perfetto", line.perfetto,
                 "Write the same for ui.perfetto.dev (Chrome trace events)")
      ->type_name("FILE")
      ->group(output);
  app.add_option("--timeline-start", line.timelineStart,
                 "First clock to show (default: the hot loop in full swing)")
      ->check(tool::whole())
      ->group(output);
  app.add_option("--timeline-clocks", line.timelineClocks,
                 "Clocks to show; 0: two iterations of the hot loop")
      ->check(CLI::Range(0, 1000000).description(""))
      ->group(output);
  app.add_option("--timeline-launch", line.timelineLaunch,
                 "Which of a description's launches to show")
      ->check(CLI::Range(1, 1000).description(""))
      ->group(output);
}

int usage(const std::string &error) {
  std::fprintf(stderr, "aot-time: %s\n", error.c_str());
  return kUsage;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// One of the sizes asked for: its values of the sweeps, and these with what is
/// the same everywhere.
struct Point {
  Swept swept;
  describe::Overrides overrides;
};

std::vector<std::string> splitList(const std::string &text) {
  std::vector<std::string> values{""};
  for (char c : text)
    if (c == ',')
      values.emplace_back();
    else
      values.back() += c;
  return values;
}

bool readPoints(const CommandLine &line, std::vector<Point> &points,
                std::string &error) {
  Point base;
  for (const std::string &text : line.sets)
    if (!describe::parseOverrides(text, base.overrides, error))
      return false;
  std::vector<std::pair<std::string, std::vector<std::string>>> sweeps;
  std::set<std::string> given;
  for (const auto &[name, value] : base.overrides)
    given.insert(name);
  auto isNew = [&](const std::string &name) {
    if (given.insert(name).second)
      return true;
    error = "'" + name +
            "' has values by more than one of --set, --sweep and the options "
            "of sizes; leave one";
    return false;
  };
  for (const std::string &text : line.sweeps) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || !equals || equals + 1 == text.size()) {
      error = "--sweep wants NAME=V1,V2,..., not '" + text + "'";
      return false;
    }
    if (!isNew(text.substr(0, equals)))
      return false;
    sweeps.push_back(
        {text.substr(0, equals), splitList(text.substr(equals + 1))});
  }
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    if (line.sizes[i].empty())
      continue;
    if (!isNew(kSizes[i].variable))
      return false;
    const std::vector<std::string> values = splitList(line.sizes[i]);
    if (values.size() == 1)
      base.overrides[kSizes[i].variable] = values[0];
    else
      sweeps.push_back({kSizes[i].variable, values});
  }
  points = {base};
  for (const auto &[name, values] : sweeps) {
    std::vector<Point> next;
    for (const Point &point : points)
      for (const std::string &value : values) {
        if (value.empty()) {
          error = "the sweep over '" + name + "' has an empty value";
          return false;
        }
        Point more = point;
        more.swept.push_back({name, value});
        more.overrides[name] = value;
        next.push_back(std::move(more));
      }
    points = std::move(next);
  }
  return true;
}

/// Options of a package without --package, and nothing to time at all, mean the
/// packages that there are anyway.
bool choosePackage(const CLI::App &app, CommandLine &line, std::string &error) {
  std::string meant;
  if (line.inputs.empty() && line.calibrate.empty())
    meant = "nothing to time; name a description or a folder, or --package "
            "(--help has examples)";
  for (const CLI::Option *option : app.get_options())
    if (option->count() && option->get_group() == "A kernel package")
      meant = option->get_name() + " is about --package; name one or leave it "
                                   "out";
  if (!line.package.package.empty() || meant.empty() ||
      cli::findPackages(line.package.package, error))
    return true;
  error = meant + ": " + error;
  return false;
}

/// What is wrong with how the report is asked for; empty for nothing.
std::string reportMisuse(const CommandLine &line) {
  if (line.report == "none" && !line.annotate && !line.output.empty())
    return "--report=none writes no report; leave --output '" + line.output +
           "' out, or choose another report";
  if (line.annotate && (line.report == "json" || line.report == "html"))
    return "--annotate is text, and would spoil what --report=" + line.report +
           " writes; leave one out";
  if (line.report != "html")
    return "";
  if (line.count)
    return "--report=html draws predictions, and --count predicts nothing; "
           "take --report=text or json";
  if (line.output.empty() && isatty(STDOUT_FILENO))
    return "--report=html is a page for a browser; name its file with "
           "--output, as -o comparison.html";
  return "";
}

/// What is wrong with how calibration is asked for; empty for nothing.
std::string calibrationMisuse(const CLI::App &app, const CommandLine &line) {
  if (line.calibrate.empty())
    return "";
  if (app.get_option("--clock")->count())
    return "--calibrate scales predictions at the clock that the model "
           "expects, and --clock gives another; leave one out";
  if (!line.inputs.empty() || !line.package.package.empty())
    return "";
  // Alone it says what it is, as text or JSON, and times nothing.
  for (const CLI::Option *option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() && name != "--calibrate" && name != "--report" &&
        name != "--output" && name != "--json")
      return name + " is about kernels, and --calibrate alone times none; "
                    "name a description or --package, or leave " +
             name + " out";
  }
  return line.report == "html" ? "--report=html draws predictions, and "
                                 "--calibrate alone makes none; name a "
                                 "description or --package"
                               : "";
}

/// Options that the chosen mode would ignore are refused.
bool checkCombination(const CLI::App &app, const CommandLine &line,
                      std::string &error) {
  for (const CLI::Option *option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty())
      continue;
    const std::string &name = option->get_lnames().front();
    if (line.timeline.empty() && line.perfetto.empty() &&
        name.compare(0, 9, "timeline-") == 0)
      error = "--" + name + " is about --timeline and --perfetto; name one";
    if (!line.count && name == "per")
      error = "--per is about --count; add it or leave --per out";
    if (line.count &&
        (option->get_group() == "The model" || name == "annotate" ||
         name == "perfetto" || name.compare(0, 8, "timeline") == 0))
      error = "--count predicts nothing; leave --" + name + " out";
  }
  if (!line.timeline.empty() && !endsWith(line.timeline, ".html") &&
      !endsWith(line.timeline, ".svg"))
    error =
        "--timeline: '" + line.timeline + "' ends neither in .html nor .svg";
  if (error.empty())
    error = reportMisuse(line);
  if (error.empty())
    error = calibrationMisuse(app, line);
  return error.empty();
}

/// How much to show from a given start on.
uint64_t clocksFrom(const CommandLine &line) {
  return line.timelineClocks ? line.timelineClocks : 4000;
}

/// Pictures of one launch.
bool writePictures(const CommandLine &line, const SubjectTime &subject,
                   std::string &error) {
  if (line.timelineLaunch > subject.launches.size()) {
    error = "--timeline-launch is " + std::to_string(line.timelineLaunch) +
            "; the description's last is " +
            std::to_string(subject.launches.size());
    return false;
  }
  const LaunchTime &launch = subject.launches[line.timelineLaunch - 1];
  const Analysis analysis(launch.report);
  timing::Window window = steadyWindow(launch.report, analysis, 2, 4000);
  if (line.timelineStart)
    window = {*line.timelineStart, *line.timelineStart + clocksFrom(line)};
  else if (line.timelineClocks)
    window.end = window.begin + line.timelineClocks;
  if (lanesOf(launch.report, window).events.empty()) {
    error = "nothing issues in clocks " + std::to_string(window.begin) +
            " to " + std::to_string(window.end) +
            "; --timeline-start is beyond the end";
    return false;
  }
  if (!line.timeline.empty() &&
      !writeFile(line.timeline,
                 endsWith(line.timeline, ".svg")
                     ? timelineSvg(subject, launch, window)
                     : timelineHtml(subject, launch, window),
                 error))
    return false;
  return line.perfetto.empty() ||
         writeFile(line.perfetto, perfettoTrace(subject, launch, window).dump(),
                   error);
}

/// Where a long run is; on a terminal only.
class Progress {
public:
  explicit Progress(size_t total)
      : total(total), terminal(isatty(STDERR_FILENO)) {}
  ~Progress() {
    if (terminal)
      std::fputs("\r\033[K", stderr);
  }
  void next(const std::string &what) {
    ++done;
    if (terminal)
      std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", done, total, what.c_str());
  }

private:
  size_t total, done = 0;
  bool terminal;
};

void complain(const std::string &label, const std::string &point,
              const std::string &error) {
  std::fprintf(stderr, "aot-time: %s%s%s: %s\n", label.c_str(),
               point.empty() ? "" : " ", point.c_str(), error.c_str());
}

/// To the terminal, or where --output says.
bool writeReport(const CommandLine &line, const std::string &text,
                 std::string &error) {
  if (!line.output.empty())
    return writeFile(line.output, text, error);
  std::fputs(text.c_str(), stdout);
  return true;
}

using Subjects = std::vector<std::unique_ptr<Subject>>;

int runCount(const CommandLine &line, const Subjects &subjects,
             const std::vector<Point> &points) {
  std::string error;
  std::optional<CountStep> step;
  if (!line.per.empty() && !parseCountStep(line.per, step.emplace(), error))
    return usage(error);
  int worst = kPredicted;
  nlohmann::json all = {{"version", 1}, {"runs", nlohmann::json::array()}};
  std::string text;
  Progress progress(points.size() * subjects.size());
  for (const Point &point : points)
    for (const std::unique_ptr<Subject> &subject : subjects) {
      progress.next(subject->label() + " " + nameOf(point.swept));
      const SubjectCount counted =
          countSubject(*subject, point.overrides, step);
      all["runs"].push_back(toJson(counted));
      all["runs"].back()["point"] = nameOf(point.swept);
      if (counted.error.empty()) {
        text += (text.empty() ? "" : "\n") + countText(counted);
        continue;
      }
      complain(counted.label, nameOf(point.swept), counted.error);
      worst = std::max<int>(worst, counted.deviceError ? kDevice : kUsage);
    }
  if (line.report == "json")
    text = all.dump(1) + "\n";
  if (line.report != "none" && !writeReport(line, text, error))
    return usage(error);
  if (!line.json.empty() && !writeFile(line.json, all.dump(1) + "\n", error))
    return usage(error);
  return worst;
}

nlohmann::json allJson(const std::vector<ComparedPoint> &table, bool single) {
  nlohmann::json all = {{"version", 1}, {"runs", nlohmann::json::array()}};
  for (const ComparedPoint &point : table)
    for (const SubjectTime &subject : point.subjects) {
      nlohmann::json entry = toJson(subject, single);
      entry["point"] = nameOf(point.swept);
      all["runs"].push_back(std::move(entry));
    }
  return all;
}

/// The report in another form than JSON, with the annotations; empty where
/// there is nothing to tell.
std::string reportOf(const CommandLine &line,
                     const std::vector<ComparedPoint> &table, bool single) {
  if (line.report == "html")
    return comparisonHtml(table);
  const SubjectTime &first = table[0].subjects[0];
  std::string text;
  if (line.report == "text" && !single)
    text = comparisonText(table);
  else if (line.report == "text" && first.error.empty())
    text = textReport(first);
  if (single && first.error.empty() && line.annotate)
    for (const LaunchTime &launch : first.launches)
      text += "\n" + annotatedText(launch);
  return text;
}

int run(const CommandLine &line) {
  std::string error;
  std::optional<Calibration> calibration;
  if (!line.calibrate.empty() &&
      !readCalibration(line.calibrate, calibration.emplace(), error))
    return usage(error);
  if (line.inputs.empty() && line.package.package.empty()) {
    const std::string object = toJson(*calibration).dump(1) + "\n";
    const std::string text = line.report == "json"   ? object
                             : line.report == "text" ? toText(*calibration)
                                                     : "";
    const bool isWritten =
        (text.empty() || writeReport(line, text, error)) &&
        (line.json.empty() || writeFile(line.json, object, error));
    return isWritten ? int(kPredicted) : usage(error);
  }
  std::vector<Point> points;
  if (!readPoints(line, points, error))
    return usage(error);
  Subjects subjects;
  if (!line.package.package.empty() &&
      !packageSubjects(line.package, subjects, error))
    return usage(error);
  for (const std::string &input : line.inputs)
    if (!describedSubjects(input, subjects, error))
      return usage(error);
  if (line.count)
    return runCount(line, subjects, points);

  const bool single = subjects.size() == 1 && points.size() == 1;
  const bool pictures = !line.timeline.empty() || !line.perfetto.empty();
  if (!single && (pictures || line.annotate))
    return usage("--annotate, --timeline and --perfetto show one kernel at one "
                 "size, not " +
                 counted(subjects.size(), "kernel") + " at " +
                 counted(points.size(), "size"));

  sim::TimingOptions options = line.timing;
  options.clockHz = line.clockGHz * 1e9;
  if (pictures) {
    // Where the hot loop is is known afterwards: keep enough to choose from.
    constexpr uint64_t kKept = uint64_t(1) << 21;
    options.timelineStart = line.timelineStart.value_or(0);
    options.timelineClocks = line.timelineStart ? clocksFrom(line) : kKept;
  }

  int worst = kPredicted;
  std::vector<ComparedPoint> table;
  {
    Progress progress(points.size() * subjects.size());
    for (const Point &point : points) {
      table.push_back({point.swept, {}});
      for (const std::unique_ptr<Subject> &subject : subjects) {
        progress.next(subject->label() + " " + nameOf(point.swept));
        table.back().subjects.push_back(
            predictSubject(*subject, point.overrides, options));
        SubjectTime &last = table.back().subjects.back();
        if (calibration)
          calibrate(*calibration, last);
        if (!last.error.empty())
          worst = std::max<int>(worst, last.deviceError ? kDevice : kUsage);
      }
    }
  }
  nlohmann::json all;
  if (!line.json.empty() || line.report == "json")
    all = allJson(table, single);
  if (calibration && !all.is_null())
    all["calibration"] = toJson(*calibration);
  std::string text = line.report == "json" ? all.dump(1) + "\n"
                                           : reportOf(line, table, single);
  if (calibration && line.report == "text")
    text = toText(*calibration) + "\n" + text;
  const bool written = text.empty() || writeReport(line, text, error);
  for (const ComparedPoint &point : table)
    for (const SubjectTime &subject : point.subjects)
      if (!subject.error.empty())
        complain(subject.label, nameOf(point.swept), subject.error);
  if (!written)
    return usage(error);
  const SubjectTime &first = table[0].subjects[0];
  if (single && first.error.empty() && pictures &&
      !writePictures(line, first, error))
    return usage(error);
  if (!line.json.empty() && !writeFile(line.json, all.dump(1) + "\n", error))
    return usage(error);
  return worst;
}

} // namespace

static int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app(kDescription, "aot-time");
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  cli::addVersion(app);
  addOptions(app, line);
  if (const std::optional<int> code = tool::parse(app, argc, argv, kUsage))
    return *code;
  std::string error;
  if (!choosePackage(app, line, error) || !checkCombination(app, line, error))
    return usage(error);
  return run(line);
}

int main(int argc, char **argv) {
  return tool::run("aot-time", kUsage, [&] { return runTool(argc, argv); });
}
