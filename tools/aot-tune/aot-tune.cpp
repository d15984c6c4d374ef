//===- aot-tune.cpp - searches schedules for problems and chips -----------===//
//
// The command line, and the run over problems and buckets.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Children.h"
#include "CommandLine.h"
#include "Main.h"
#include "Model.h"
#include "Report.h"
#include "Rows.h"
#include "TemporaryFolder.h"
#include "Version.h"
#include "fovea/Package/Counted.h"
#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::tune;
using nlohmann::json;
using tool::ChildResult;
using tool::runChildren;

namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };
constexpr int kInterrupted = 128; // and the signal's number

constexpr const char *kDescription =
    R"(Searches schedules of attention kernels for chips and sizes, and writes tuning
rows for those that beat the compiler's own choice.

Each schedule is compiled, refused if it spills registers or uses scratch, and timed:
on a GPU of the chip where this machine has one, or else by the timing model, which is
a prediction and is called so in all that comes of it. What ties with the compiler's
choice does not take its place. Lists have commas between their values.
docs/AotTune.md is the manual.)";

constexpr const char *kExamples =
    R"(
Examples:
  aot-tune --target=gfx908 --op=forward --dtype=bf16 --head-dim=128 \
      --seqlen=512,4096 --batch=4 --heads=16 -o rows.json
  aot-package tune kernels/gfx908.fovea --rows=rows.json
  aot-tune --target=gfx90a,gfx942 --op=forward,backward --dtype=fp16,bf16 \
      --head-dim=64,128 --budget=10m -o tuning

Run again, a search goes on where it was. Exit codes: 0 done, also where the budget
ended it; 1 rows or answers can't be written, or measuring failed; 2 wrong usage; 130
and 143 interrupted by SIGINT or SIGTERM, what was learned is kept.)";

struct CommandLine {
  std::vector<std::string> targets, ops = {"forward"}, dtypes, masks = {"none"};
  std::vector<int64_t> headDims, seqlens = {512, 1024, 2048, 4096};
  std::vector<int64_t> batches = {1}, heads = {16};
  std::vector<double> clocks;
  int64_t headsK = 0;
  std::string algorithm, output, state, by = "auto", hip, budget;
  std::string report = "text";
  unsigned workers = 1;
  bool quiet = false;
};

/// The signal that came, or 0. One more ends the program at once.
volatile std::sig_atomic_t interrupted = 0;
extern "C" void onSignal(int signal) {
  interrupted = signal;
  (void)std::signal(signal, SIG_DFL);
}

int usage(const std::string &error) {
  std::fprintf(stderr, "aot-tune: %s\n", error.c_str());
  return kUsage;
}

void addOptions(CLI::App &app, CommandLine &line) {
  const std::string what = "What to tune", sizes = "Sizes of launches",
                    search = "The search", output = "Output";
  auto list = [&](const char *name, auto &into, const char *help,
                  const char *type, const std::string &group) {
    return app.add_option(name, into, help)
        ->delimiter(',')
        ->allow_extra_args(false) // a list is one argument
        ->type_name(type)
        ->group(group);
  };
  const CLI::Validator positive = CLI::Range(1, 1 << 30).description("");
  list("--target", line.targets, "Chips", "CHIP", what)->required();
  list("--op", line.ops, "Operations (forward): forward, backward", "OP", what);
  list("--dtype", line.dtypes, "Types of elements: fp16, bf16", "TYPE", what)
      ->required();
  list("--head-dim", line.headDims, "Head dimensions", "N", what)->required();
  app.add_option("--algorithm", line.algorithm,
                 "Of backward, to search one algorithm alone and not both, "
                 "atomic16 only so: deterministic, atomic, atomic16")
      ->group(what);
  list("--seqlen", line.seqlens,
       "Ends of the buckets: queries, and as many keys (512,1024,2048,4096)",
       "N", sizes)
      ->check(positive);
  list("--batch", line.batches, "Batch sizes (1)", "N", sizes)->check(positive);
  list("--heads", line.heads, "Query heads (16)", "N", sizes)->check(positive);
  app.add_option("--heads-k", line.headsK, "Key heads (as query heads)")
      ->check(positive)
      ->type_name("N")
      ->group(sizes);
  list("--mask", line.masks,
       "Masks that launches have, or windows as 127:0; a schedule is searched "
       "under the first and may be slower under none (none)",
       "MASK", sizes);
  app.add_option("--by", line.by,
                 "How times are had; auto measures where there is a GPU of the "
                 "chip: auto (default), prediction, measurement")
      ->check(
          CLI::IsMember({"auto", "prediction", "measurement"}).description(""))
      ->group(search);
  app.add_option("--hip", line.hip,
                 "HIP library to look for a GPU with: auto, rocm, or a path "
                 "(default: auto)")
      ->group(search);
  list(
      "--clock", line.clocks,
      "Predictions: clocks (GHz) at which a schedule must be no slower either, "
      "beside the one of the power model",
      "GHZ", search)
      ->check(tool::finite(0.01, 100));
  app.add_option("--budget", line.budget,
                 "Time (90s, 10m, 2h) or number of schedules to spend, shared "
                 "among the buckets; the best so far is taken (default: none)")
      ->group(search);
  app.add_option("-j", line.workers, "Schedules to try at a time (1)")
      ->check(CLI::Range(1, 256).description(""))
      ->type_name("N")
      ->group(search);
  app.add_option("--state", line.state,
                 "Where answers are kept, for this and other runs (default: "
                 "OUTPUT.state, FOLDER/aot-tune.state)")
      ->type_name("FILE")
      ->group(search);
  app.add_option("-o,--output", line.output,
                 "Tuning rows: a .json file, or a folder that gets one a chip")
      ->required()
      ->type_name("PATH")
      ->group(output);
  app.add_option("--report", line.report,
                 "What to print: text (default), json, none")
      ->check(CLI::IsMember({"text", "json", "none"}).description(""))
      ->group(output);
  app.add_flag("-q,--quiet", line.quiet, "No progress")->group(output);
}

/// The chips, operations, types and head dimensions as subjects.
bool readSubjects(const CommandLine &line, std::vector<Subject> &subjects,
                  std::string &error) {
  std::vector<std::string> targets;
  for (const std::string &text : line.targets) {
    Expected<std::vector<std::string>> found = tools::targetsOf(text);
    if (!found) {
      error = found.status().message();
      return false;
    }
    for (const std::string &target : *found)
      if (std::count(targets.begin(), targets.end(), target) == 0)
        targets.push_back(target);
  }
  for (const std::string &target : targets)
    for (const std::string &op : line.ops)
      for (const std::string &dtype : line.dtypes)
        for (int64_t headDim : line.headDims) {
          // Either name of a type, as aot-compile takes them.
          const DataTypeInfo *type = findDataType(dtype);
          Expected<ProblemKey> key = ProblemKey::parse(
              op + ";dtype=" + (type ? std::string(type->name) : dtype) +
              ";head_dim=" + std::to_string(headDim));
          if (!key) {
            error = key.status().message();
            return false;
          }
          key->groups[kWindowGroup] = kWindowVersion;
          if (std::any_of(subjects.begin(), subjects.end(),
                          [&](const Subject &subject) {
                            return subject.target == target &&
                                   subject.problem == *key;
                          })) {
            error = "'" + key->str() + "' is asked for twice; leave one of " +
                    "equal values of --op, --dtype and --head-dim out";
            return false;
          }
          subjects.push_back({target, *key, ""});
          if (key->op == OpKind::Backward)
            subjects.back().algorithm = line.algorithm;
        }
  if (line.algorithm.empty())
    return true;
  if (!spec::specOf(OpKind::Backward).findAlgorithm(line.algorithm))
    error = "--algorithm: unknown algorithm '" + line.algorithm +
            "'; known: deterministic, atomic, atomic16";
  else if (std::count(line.ops.begin(), line.ops.end(), "backward") == 0)
    error = "--algorithm is of backward; add it to --op, or leave --algorithm "
            "out";
  return error.empty();
}

bool readSizes(const CommandLine &line, std::vector<Size> &sizes,
               std::string &error) {
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t batch : line.batches)
    for (int64_t heads : line.heads)
      for (int64_t seqlen : line.seqlens) {
        const Size size{batch, heads, line.headsK ? line.headsK : heads,
                        seqlen};
        if (size.heads % size.headsK != 0) {
          error = "--heads-k: " + std::to_string(size.headsK) +
                  " key heads do not divide " + std::to_string(heads) +
                  " query heads";
          return false;
        }
        // Rows know the product of batch and heads alone.
        if (!seen.insert({size.batchHeads(), seqlen}).second) {
          error = "two sizes have " + std::to_string(size.batchHeads()) +
                  " heads in all batches at length " + std::to_string(seqlen) +
                  ", and rows tell launches by that; leave one out of --batch "
                  "or --heads";
          return false;
        }
        sizes.push_back(size);
      }
  std::sort(sizes.begin(), sizes.end(), [](const Size &a, const Size &b) {
    return std::make_pair(a.batchHeads(), a.seqlen) <
           std::make_pair(b.batchHeads(), b.seqlen);
  });
  return true;
}

bool readConditions(const CommandLine &line, std::vector<Condition> &conditions,
                    std::string &error) {
  for (const std::string &mask : line.masks) {
    if (!parseWindow(mask)) {
      error = "--mask: '" + mask +
              "' is none of none, causal-top-left, causal-bottom-right, and no "
              "window LEFT:RIGHT";
      return false;
    }
    conditions.push_back({mask, 0});
    for (double clock : line.clocks)
      conditions.push_back({mask, clock});
  }
  return true;
}

/// Lines of progress; on a terminal one that is drawn over.
class Progress {
public:
  explicit Progress(size_t buckets, bool quiet)
      : buckets(buckets), quiet(quiet), terminal(isatty(STDERR_FILENO)) {}
  ~Progress() { erase(); }
  void begin() { ++bucket; }
  void tell(const std::string &line) {
    ++tried;
    if (quiet)
      return;
    erase();
    std::fprintf(stderr, "[bucket %zu/%zu, schedule %zu] %s%s", bucket, buckets,
                 tried, terminal ? line.substr(0, 100).c_str() : line.c_str(),
                 terminal ? "" : "\n");
  }

private:
  void erase() {
    if (terminal && !quiet)
      std::fputs("\r\033[K", stderr);
  }
  size_t buckets, bucket = 0, tried = 0;
  bool quiet, terminal;
};

/// How the times of a chip are had. False with `error` set.
bool chooseMethod(const CommandLine &line, const std::string &target,
                  Method &method, std::string &note, std::string &error) {
  method = Method();
  method.hip = line.hip;
  if (line.by == "prediction" && !line.hip.empty()) {
    error = "--hip: a HIP library is looked for a GPU, and --by=prediction "
            "wants none; leave one of them out";
    return false;
  }
  json answer = {{"none", ""}};
  if (line.by != "prediction")
    runChildren(
        {[&] { return probeDevice(target, line.hip).dump(); }}, 1,
        [&](size_t, ChildResult result) {
          if (result.failure.empty())
            answer = json::parse(result.output);
          else
            answer = {{"none", "the HIP library: " + result.failure}};
        },
        [] { return false; }, [] { return interrupted != 0; });
  if (answer.contains("device")) {
    method.isMeasured = true;
    method.device = answer["device"];
    if (!line.clocks.empty())
      error = "--clock is of predictions, and " + target +
              " is measured; leave it out, or take --by=prediction";
    return error.empty();
  }
  const std::string why = answer.value("none", "");
  if (line.by == "measurement") {
    error = "--by=measurement: there is no GPU to measure " + target +
            " on: " + why + "; --by=prediction needs none";
    return false;
  }
  note = why;
  error = noModelOf(target);
  return error.empty();
}

/// What the runtime takes where no row says otherwise: of gradients the
/// algorithm with fewer products, which is the atomic one, where the chip has
/// it.
ScheduleChoice baselineOf(const Subject &subject, std::string &error) {
  std::vector<ScheduleChoice> choices;
  if (!subject.algorithm.empty())
    choices.push_back({{}, {{"algorithm", subject.algorithm}}});
  else if (subject.problem.op == OpKind::Backward)
    for (const char *algorithm : {"atomic", "deterministic"})
      choices.push_back({{}, {{"algorithm", algorithm}}});
  if (choices.empty())
    choices.emplace_back();
  error.clear();
  for (const ScheduleChoice &choice : choices) {
    Expected<KernelRecord> plan =
        tools::planKernel({subject.target, subject.problem, choice});
    if (plan) {
      error.clear();
      return choice;
    }
    error = plan.status().message();
  }
  return {};
}

class Run {
public:
  Run(const CommandLine &line, std::vector<Subject> subjects,
      std::vector<Size> sizes, std::vector<Condition> conditions)
      : line(line), subjects(std::move(subjects)), sizes(std::move(sizes)),
        conditions(std::move(conditions)),
        progress(this->subjects.size() * this->sizes.size(), line.quiet) {
    session.workers = line.workers;
    session.model = modelBuildId();
    session.folder = scratch.path();
    session.isInterrupted = [] { return interrupted != 0; };
    session.tell = [this](const std::string &text) { progress.tell(text); };
  }

  int run();

private:
  bool chooseMethods(std::string &error);
  bool chooseBaselines(std::string &error);
  void tuneOne(const Subject &subject, const ScheduleChoice &baseline);
  std::string pathOf(const std::string &target) const;
  bool writeRows(std::string &error);
  void print();

  const CommandLine &line;
  std::vector<Subject> subjects;
  std::vector<Size> sizes;
  std::vector<Condition> conditions;
  tool::TemporaryFolder scratch{"aot-tune"};
  Session session;
  Progress progress;
  std::map<std::string, Method> methods;                ///< by target
  std::vector<ScheduleChoice> baselines;                ///< of the subjects
  std::map<std::string, nlohmann::ordered_json> tables; ///< as found, by path
  std::vector<Tuned> results;
  size_t begun = 0, rows = 0;
};

} // namespace

std::string Run::pathOf(const std::string &target) const {
  const std::filesystem::path path(line.output);
  return path.extension() == ".json" ? line.output
                                     : (path / (target + ".json")).string();
}

bool Run::chooseMethods(std::string &error) {
  for (const Subject &subject : subjects) {
    if (methods.count(subject.target))
      continue;
    std::string note;
    if (!chooseMethod(line, subject.target, methods[subject.target], note,
                      error))
      return false;
    if (line.quiet)
      continue;
    const Method &method = methods[subject.target];
    std::fprintf(
        stderr, "aot-tune: note: %s: times are %s%s\n", subject.target.c_str(),
        method.isMeasured ? (method.name() + (" on " + method.device)).c_str()
                          : "predicted by a model (docs/Timing.md), "
                            "and measured on no GPU",
        note.empty() ? "" : ("; " + note).c_str());
  }
  return true;
}

bool Run::chooseBaselines(std::string &error) {
  for (const Subject &subject : subjects) {
    baselines.push_back(baselineOf(subject, error));
    if (!error.empty())
      return false;
  }
  return true;
}

void Run::tuneOne(const Subject &subject, const ScheduleChoice &baseline) {
  Tuned &tuned = results.emplace_back();
  tuned.subject = subject;
  session.method = methods[subject.target];
  tuned.by = session.method.name();
  if (session.method.isMeasured)
    tuned.by += " on " + session.method.device;
  Bench bench(subject, baseline, session);
  const std::vector<Axis> axes = axesOf(subject);
  // What has a row is held against the default again.
  std::vector<ScheduleChoice> seeds =
      choicesOf(tables[pathOf(subject.target)],
                groupOf(subject.problem, subject.algorithm));
  const size_t buckets = subjects.size() * sizes.size();
  for (const Size &size : sizes) {
    progress.begin();
    session.budget.beginShare(buckets - begun++);
    Found found = searchBucket(axes, baseline, seeds, size, conditions, bench);
    if (!session.error.empty() || interrupted)
      return;
    if (!found.isBaseline &&
        std::find(seeds.begin(), seeds.end(), found.chosen) == seeds.end())
      seeds.push_back(found.chosen);
    tuned.buckets.push_back(std::move(found));
  }
}

bool Run::writeRows(std::string &error) {
  struct Fresh {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    std::vector<std::string> groups, kept;
    bool arePredicted = false;
  };
  std::map<std::string, Fresh> all; ///< by path
  for (const Tuned &tuned : results) {
    Fresh &fresh = all[pathOf(tuned.subject.target)];
    fresh.arePredicted = !methods[tuned.subject.target].isMeasured;
    const std::string group =
        groupOf(tuned.subject.problem, tuned.subject.algorithm);
    // Of what was not held against the default nothing is known.
    if (tuned.buckets.size() != sizes.size() ||
        !std::all_of(tuned.buckets.begin(), tuned.buckets.end(),
                     [](const Found &found) { return found.isDecided; })) {
      std::fprintf(stderr,
                   "aot-tune: note: %s %s: of some size the default, or what "
                   "has a row, was not timed, and its rows stay as they are; "
                   "the same command goes on\n",
                   tuned.subject.target.c_str(), group.c_str());
      continue;
    }
    fresh.groups.push_back(group);
    for (const TableRow &row : rowsOf(tuned.subject.problem, tuned.buckets))
      fresh.rows.push_back(toJson(row, tuned.by));
  }
  for (auto &[path, fresh] : all) {
    if (!mergeTable(path, fresh.groups, fresh.rows, fresh.arePredicted,
                    fresh.kept, error))
      return false;
    rows += fresh.rows.size();
    for (const std::string &group : fresh.kept) {
      rows -= size_t(std::count_if(
          fresh.rows.begin(), fresh.rows.end(),
          [&](const auto &row) { return groupOf(row) == group; }));
      std::fprintf(stderr,
                   "aot-tune: note: '%s' has measured rows of %s, which stay: "
                   "predicted ones do not take their place; take them out of "
                   "the file, or name another with -o\n",
                   path.c_str(), group.c_str());
    }
  }
  return true;
}

void Run::print() {
  if (line.report == "json") {
    json all = {{"version", 1}, {"problems", json::array()}};
    for (const Tuned &tuned : results)
      all["problems"].push_back(reportJson(tuned));
    std::printf("%s\n", all.dump(1).c_str());
  } else if (line.report == "text") {
    for (const Tuned &tuned : results)
      std::printf("%s", reportText(tuned).c_str());
  }
  if (!line.quiet)
    std::fprintf(stderr,
                 "aot-tune: %s tried, %llu answered by the state file; %s in "
                 "'%s'\n",
                 counted(session.tried, "schedule").c_str(),
                 static_cast<unsigned long long>(session.known),
                 counted(rows, "tuning row").c_str(), line.output.c_str());
}

int Run::run() {
  std::string error;
  if (!line.budget.empty() && !session.budget.parse(line.budget))
    return usage("--budget: '" + line.budget +
                 "' is no time as 90s, 10m or 2h, and no number of schedules");
  const std::filesystem::path output(line.output);
  const bool isFile = output.extension() == ".json";
  if (!chooseBaselines(error) || !chooseMethods(error))
    return usage(error);
  if (isFile && methods.size() > 1)
    return usage("-o '" + line.output + "' is one chip's table, and " +
                 std::to_string(methods.size()) +
                 " chips are asked for; give a folder");
  if (!isFile) {
    std::error_code code;
    std::filesystem::create_directories(output, code);
    if (code)
      return usage("cannot write '" + line.output + "': " + code.message());
  }
  for (const auto &[target, method] : methods)
    if (!readTable(pathOf(target), tables[pathOf(target)], error))
      return usage(error);
  if (!scratch.error().empty())
    return usage(scratch.error());
  const std::string state = !line.state.empty() ? line.state
                            : isFile ? line.output + ".state"
                                     : (output / "aot-tune.state").string();
  if (!session.state.open(state, error))
    return usage(error);
  for (size_t i = 0; i != subjects.size(); ++i) {
    tuneOne(subjects[i], baselines[i]);
    if (interrupted) {
      std::fprintf(stderr,
                   "aot-tune: interrupted by %s: no rows are written, and what "
                   "was learned is kept in '%s'; the same command goes on\n",
                   interrupted == SIGINT ? "SIGINT" : "SIGTERM", state.c_str());
      return kInterrupted + int(interrupted);
    }
    if (!session.error.empty()) {
      std::fprintf(stderr, "aot-tune: %s\n", session.error.c_str());
      // What was finished before has its rows.
      if (!writeRows(error))
        std::fprintf(stderr, "aot-tune: %s\n", error.c_str());
      return kFailed;
    }
  }
  if (!writeRows(error)) {
    std::fprintf(stderr, "aot-tune: %s\n", error.c_str());
    return kFailed;
  }
  print();
  return kDone;
}

static int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app(kDescription, "aot-tune");
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  cli::addVersion(app);
  addOptions(app, line);
  if (const std::optional<int> code = tool::parse(app, argc, argv, kUsage))
    return *code;
  std::string error;
  std::vector<Subject> subjects;
  std::vector<Size> sizes;
  std::vector<Condition> conditions;
  if (!readSubjects(line, subjects, error) || !readSizes(line, sizes, error) ||
      !readConditions(line, conditions, error))
    return usage(error);
  for (int signal : {SIGINT, SIGTERM})
    (void)std::signal(signal, onSignal);
  return Run(line, std::move(subjects), std::move(sizes), std::move(conditions))
      .run();
}

int main(int argc, char **argv) {
  return tool::run("aot-tune", kUsage, [&] { return runTool(argc, argv); });
}
