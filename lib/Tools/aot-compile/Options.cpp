//===- Options.cpp - aot-compile's command line ---------------------------===//

#include "Options.h"
#include "BuildId.h"
#include "Problem.h"
#include "Scores.h"
#include "Shard.h"
#include "SpecFile.h"
#include "Targets.h"
#include "TuningFile.h"
#include "fovea/Package/ReadFile.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <thread>

using namespace fovea;
using namespace fovea::tools;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral kOverview =
    "Fovea's ahead-of-time compiler of attention kernels.\n\n"
    "  One kernel:\n"
    "    aot-compile --target=gfx942 --op=forward --dtype=bf16 --head-dim=128 "
    "\\\n"
    "                --mask=causal-bottom-right --emit=hsaco -o k.hsaco\n"
    "  What a launch of it must pass, and the kernel on its way:\n"
    "    aot-compile ... --emit=contract\n"
    "    aot-compile ... --emit=mlir --stage=tiles\n"
    "    aot-compile ... --emit=asm -o k.s --report=text\n"
    "  A package of many (2 x 2 x 3 here); run it again and only what is "
    "missing\n"
    "  or changed is compiled:\n"
    "    aot-compile --target=gfx942 --op=forward --dtype=fp16,bf16 \\\n"
    "                --head-dim=64,128 --emit=package -o kernels \\\n"
    "                --mask=none,causal-top-left,causal-bottom-right\n"
    "    aot-compile --spec=kernels.json --emit=package -o kernels\n"
    "    aot-compile --spec=sdpa.json --target=gfx942 --emit=package -o "
    "kernels "
    "--dry-run\n"
    "  A problem or schedule written by hand:\n"
    "    aot-compile ... --emit=mlir --stage=scheduled -o k.mlir\n"
    "    aot-compile k.mlir --emit=none --report=text\n";

static constexpr llvm::StringLiteral kMoreHelp =
    "\nHead dimensions are the multiples of 8 from 8 to 512; of the "
    "algorithm\n"
    "atomic to 384 on gfx11. With "
    "several kernels -o names a folder. MLIR's flags "
    "(--mlir-print-ir-after-all,\n"
    "--mlir-timing, ...) and LLVM's work too: --help-hidden. "
    "docs/AotCompile.md is the manual.\n\n"
    "Exit status: 0 all done; 1 a kernel failed or could not be stored, the\n"
    "others are kept; 2 the request is wrong or impossible, nothing was "
    "compiled;\n130 and 143 interrupted by SIGINT or SIGTERM, what was "
    "finished "
    "is kept.\n";

// LLVM's parser keeps no copies.
static const std::string kOperationsHelp =
    "Operations: " + spec::namesOf(spec::allOperations());
static const std::string kTypesHelp =
    "Types of q, k, v and out: " + spec::namesOf(kDataTypes);

namespace {
/// The options, registered with LLVM's parser as long as this lives.
struct Options {
  cl::OptionCategory category{"aot-compile options"};

  cl::opt<std::string> input{cl::Positional, cl::desc("[file.mlir]"),
                             cl::cat(category)};
  cl::list<std::string> targets{
      "target", cl::CommaSeparated, cl::value_desc("chip,..."),
      cl::desc("Chips to compile for, families such as gfx11, or all; "
               "--list-targets shows them"),
      cl::cat(category)};
  cl::list<std::string> ops{"op", cl::CommaSeparated, cl::value_desc("op,..."),
                            cl::desc(kOperationsHelp), cl::cat(category)};
  cl::list<std::string> dtypes{"dtype", cl::CommaSeparated,
                               cl::value_desc("type,..."), cl::desc(kTypesHelp),
                               cl::cat(category)};
  cl::list<std::string> headDims{
      "head-dim", cl::CommaSeparated, cl::value_desc("n,..."),
      cl::desc("Head dimensions"), cl::cat(category)};
  cl::list<std::string> headDimsV{
      "head-dim-v", cl::CommaSeparated, cl::value_desc("n,..."),
      cl::desc("Head dimensions of v and out; without it that of q and k"),
      cl::cat(category)};
  cl::list<std::string> masks{
      "mask", cl::CommaSeparated, cl::value_desc("mask,..."),
      cl::desc("Masks: any (default), one kernel that takes mask and window "
               "when it is launched; or compiled in: none, causal-top-left, "
               "causal-bottom-right"),
      cl::cat(category)};
  cl::list<std::string> groups{
      "groups", cl::CommaSeparated, cl::value_desc("name+...,..."),
      cl::desc("Feature groups that the kernels take when they are launched, "
               "besides a window: none (default), or names joined by '+'"),
      // There is nothing to choose from.
      spec::featureGroups().size() == 1 ? cl::Hidden : cl::NotHidden,
      cl::cat(category)};
  cl::list<std::string> score{
      "score", cl::CommaSeparated, cl::value_desc("name,..."),
      cl::desc("Score programs that the kernels have, computed in this order; "
               "--list-scores shows them"),
      cl::cat(category)};
  cl::opt<std::string> scoreFile{
      "score-file", cl::value_desc("file.mlir"),
      cl::desc("Score programs of one's own, by their names for --score; "
               "without it the only one"),
      cl::cat(category)};
  cl::list<std::string> scoreGradients{
      "score-gradients", cl::CommaSeparated, cl::value_desc("capture,..."),
      cl::desc("Gradients of what the score programs capture, by name or "
               "number, that backward kernels give: none (default), all, or a "
               "list"),
      cl::cat(category)};
  cl::list<std::string> storedGradients{
      "stored-gradients", cl::CommaSeparated, cl::value_desc("capture,..."),
      cl::desc("Of captures of 16 bits with an element for each query and key: "
               "gradients that are stored in that type, and not added to "
               "memory in f32"),
      cl::cat(category)};
  cl::opt<std::string> spec{"spec", cl::value_desc("file"),
                            cl::desc("Kernels as a JSON file, in place of the "
                                     "options above; --target goes with one "
                                     "that names no chips"),
                            cl::cat(category)};
  cl::opt<std::string> emit{"emit", cl::value_desc("form"), cl::cat(category),
                            cl::init("hsaco")};
  cl::opt<std::string> stage{"stage", cl::value_desc("stage"),
                             cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::value_desc("path"),
      cl::desc("File, '-' for standard output, or folder"), cl::cat(category)};
  cl::opt<bool> prune{"prune", cl::cat(category),
                      cl::desc("With --emit=package: drop kernels that are in "
                               "the package and not asked for")};
  cl::opt<bool> reproducible{
      "reproducible", cl::cat(category),
      cl::desc("With --emit=package: keep no compile times, so that equal "
               "requests give equal bytes")};
  cl::opt<std::string> shard{
      "shard", cl::value_desc("i/n"), cl::cat(category),
      cl::desc("With --emit=package: the i-th of n parts of all that is asked "
               "for, one a machine; aot-package merge makes one package of "
               "them, with the bytes of --reproducible on one machine")};
  std::vector<std::unique_ptr<cl::opt<int>>> overrides;
  cl::opt<std::string> inst{"inst", cl::value_desc("name"),
                            cl::desc("Schedule: matrix instruction"),
                            cl::cat(category)};
  cl::list<std::string> algorithms{
      "algorithm", cl::CommaSeparated, cl::value_desc("name,..."),
      cl::desc("Schedule of forward: flash (default); split, whose workgroups "
               "share out the keys. Of backward: deterministic (default), "
               "whose bits are the same in every run; atomic, which adds dq up "
               "in memory; atomic16, which does so in 16 bits. A list gives a "
               "kernel of each"),
      cl::cat(category)};
  cl::opt<int> optLevel{"O",
                        cl::Prefix,
                        cl::init(3),
                        cl::value_desc("0-3"),
                        cl::desc("Optimisation level of LLVM (default 3)"),
                        cl::cat(category)};
  cl::opt<int> workers{"j",
                       cl::Prefix,
                       cl::init(0),
                       cl::value_desc("n"),
                       cl::desc("Kernels to compile at a time (default: one a "
                                "processor)"),
                       cl::cat(category)};
  cl::opt<std::string> report{"report", cl::value_desc("text|json"),
                              cl::desc("Print each kernel's figures"),
                              cl::cat(category)};
  cl::opt<std::string> reportFile{
      "report-file", cl::value_desc("file"),
      cl::desc("Where the report goes (default: standard output)"),
      cl::cat(category)};
  cl::opt<std::string> remarks{
      "remarks-filter", cl::value_desc("regex"),
      cl::desc("Show remarks of these categories, e.g. attn"),
      cl::cat(category)};
  cl::opt<bool> dryRun{
      "dry-run", cl::cat(category),
      cl::desc("Count kernels and estimate time, memory and size; compile and "
               "write nothing")};
  cl::opt<bool> quiet{"q", cl::desc("No progress and no summary"),
                      cl::cat(category)};
  cl::opt<bool> listTargets{"list-targets",
                            cl::desc("Print the chips and what they have"),
                            cl::cat(category)};
  cl::opt<bool> listScores{"list-scores",
                           cl::desc("Print the library of score programs"),
                           cl::cat(category)};
  cl::extrahelp moreHelp{kMoreHelp};
  std::vector<std::string> texts; ///< descriptions made here

  Options() {
    texts.reserve(2 + allOverrides().size());
    std::string &forms = texts.emplace_back("What to make of each kernel:");
    for (const EmitInfo &info : allEmits())
      forms += "\n  " + info.name.str() +
               std::string(12 - info.name.size(), ' ') + info.description.str();
    emit.setDescription(forms);
    stage.setDescription(
        texts.emplace_back("With --emit=mlir: " + stageChoices()));
    for (const OverrideInfo &info : allOverrides()) {
      std::string &text =
          texts.emplace_back("Schedule: " + info.description.str());
      overrides.push_back(std::make_unique<cl::opt<int>>(
          llvm::StringRef(info.option), cl::value_desc("n"), cl::desc(text),
          cl::cat(category)));
    }
  }

  /// The stages that MLIR can be printed after.
  static std::string stageChoices() {
    std::string text;
    for (Stage at = Stage::Problem; at < Stage::Hsaco; at = Stage(int(at) + 1))
      text += (text.empty() ? "" : ", ") + stageName(at).str();
    return text;
  }

  bool isOwn(const cl::Option &option) const {
    return llvm::is_contained(option.Categories, &category);
  }
};

/// Turns parsed options into a request.
class RequestBuilder {
public:
  RequestBuilder(Options &options, Request &request)
      : options(options), request(request) {}

  llvm::Error build(int argc, char **argv);

private:
  void readOutput();
  void readLimits(int argc, char **argv);
  void readProblemOptions();
  void readSpec();
  llvm::Error readInput();
  std::shared_ptr<const ScoreChoice> readScores();
  std::vector<ScheduleOverrides> readOverrides();
  bool anyOverride() const;
  void refuse(const cl::Option &option, llvm::StringRef why) {
    if (option.getNumOccurrences())
      complaints.add(
          (option.ArgStr.size() > 1 ? "--" : "-") + option.ArgStr.str(), why);
  }
  bool readFile(llvm::StringRef what, const std::string &path,
                std::string &text);

  Options &options;
  Request &request;
  Complaints complaints;
};
} // namespace

static std::vector<Item> items(const cl::list<std::string> &list) {
  std::vector<Item> result;
  for (const std::string &text : list)
    result.push_back({text, "--" + list.ArgStr.str()});
  return result;
}

bool RequestBuilder::anyOverride() const {
  return options.inst.getNumOccurrences() ||
         options.algorithms.getNumOccurrences() ||
         llvm::any_of(options.overrides, [](const auto &option) {
           return option->getNumOccurrences() > 0;
         });
}

/// One for each algorithm that is named.
std::vector<ScheduleOverrides> RequestBuilder::readOverrides() {
  ScheduleOverrides result;
  for (auto [info, option] :
       llvm::zip_equal(allOverrides(), options.overrides)) {
    if (!option->getNumOccurrences())
      continue;
    if (*option < info.smallest)
      complaints.add("--" + info.option.str(),
                     "must be at least " + llvm::Twine(info.smallest) +
                         ", found " + llvm::Twine(int(*option)));
    result.*info.member = *option;
  }
  if (options.inst.getNumOccurrences() && options.inst.empty())
    complaints.add("--inst", "names no matrix instruction");
  result.inst = options.inst;
  if (options.algorithms.empty())
    return {result};
  std::vector<ScheduleOverrides> all;
  for (const std::string &name : options.algorithms) {
    if (!isAlgorithm(name))
      complaints.add("--algorithm", "unknown algorithm '" + name +
                                        "'; known: " + algorithmNames());
    if (llvm::any_of(all, [&](const ScheduleOverrides &other) {
          return other.algorithm == name;
        }))
      complaints.add("--algorithm", "'" + name + "' is in the list twice");
    result.algorithm = name;
    all.push_back(result);
  }
  return all;
}

/// What is made, and where it goes.
void RequestBuilder::readOutput() {
  auto emit = llvm::find_if(allEmits(), [&](const EmitInfo &info) {
    return info.name == options.emit.getValue();
  });
  if (emit == allEmits().end()) {
    std::string known;
    for (const EmitInfo &info : allEmits())
      known += (known.empty() ? "" : ", ") + info.name.str();
    complaints.add("--emit",
                   "unknown form '" + options.emit + "'; known: " + known);
  } else {
    request.emit = emit->emit;
  }
  if (request.emit == Emit::Mlir) {
    std::optional<Stage> stage = parseStage(options.stage);
    if (!options.stage.getNumOccurrences())
      complaints.add("--emit=mlir",
                     "needs --stage; known: " + Options::stageChoices());
    else if (options.stage == "hsaco")
      complaints.add("--stage", "'hsaco' is no MLIR here; use --emit=hsaco");
    else if (!stage)
      complaints.add("--stage", "unknown stage '" + options.stage +
                                    "'; known: " + Options::stageChoices());
    else
      request.stage = *stage;
  } else {
    refuse(options.stage, "goes with --emit=mlir only");
  }
  if (request.emit != Emit::Package)
    for (const cl::Option *option :
         {static_cast<cl::Option *>(&options.prune),
          static_cast<cl::Option *>(&options.reproducible),
          static_cast<cl::Option *>(&options.shard)})
      refuse(*option, "goes with --emit=package only");
  request.prune = options.prune;
  request.reproducible =
      options.reproducible || options.shard.getNumOccurrences();
  if (options.shard.getNumOccurrences()) {
    if (llvm::Expected<Shard> shard = parseShard(options.shard))
      request.shard = *shard;
    else
      complaints.add("--shard", llvm::toString(shard.takeError()));
  }
  request.dryRun = options.dryRun;
  if (request.dryRun)
    refuse(options.report, "has figures of compiled kernels, and --dry-run "
                           "compiles none");
  request.output = options.output;
  if (options.output.getNumOccurrences() && options.output.empty())
    complaints.add("-o", "names no file");

  if (request.emit == Emit::Description &&
      llvm::StringRef(request.output).ends_with(kCodeObjectExtension))
    complaints.add(
        "-o", "'" + request.output +
                  "' is where the description will look for the "
                  "code object; name it otherwise, as '" +
                  request.output.substr(0, request.output.size() -
                                               kCodeObjectExtension.size()) +
                  ".json'");

  if (options.report.getNumOccurrences()) {
    if (options.report == "text")
      request.report = ReportFormat::Text;
    else if (options.report == "json")
      request.report = ReportFormat::Json;
    else
      complaints.add("--report", "unknown format '" + options.report +
                                     "'; known: text, json");
  } else {
    refuse(options.reportFile, "goes with --report only");
  }
  request.reportFile =
      options.reportFile.empty() ? "-" : options.reportFile.getValue();
  if (request.reportFile != "-" &&
      (request.reportFile == request.output ||
       llvm::sys::fs::equivalent(request.reportFile, request.output)))
    complaints.add("--report-file", "is the file of -o, '" + request.output +
                                        "'; each needs its own");
  if (request.emit == Emit::None) {
    if (!options.report.getNumOccurrences())
      complaints.add("--emit=none", "makes nothing without --report");
    if (options.output.getNumOccurrences())
      complaints.add("-o", "has nothing to hold with --emit=none");
  }
  bool artifactOnStdout =
      request.output == "-" ||
      (request.output.empty() && emitInfo(request.emit).isText &&
       request.emit != Emit::None);
  if (request.report != ReportFormat::None && request.reportFile == "-" &&
      artifactOnStdout)
    complaints.add("--report", "and --emit=" + options.emit +
                                   " would both go to standard output; give -o "
                                   "FILE or --report-file=FILE");
}

/// Numbers, and what other programs' flags mean for us.
void RequestBuilder::readLimits(int argc, char **argv) {
  if (options.optLevel < 0 || options.optLevel > 3)
    complaints.add("-O", "must be 0 to 3, found " +
                             llvm::Twine(int(options.optLevel)));
  if (request.emit == Emit::Mlir && !options.report.getNumOccurrences())
    refuse(options.optLevel, "has no effect on --emit=mlir: the level is "
                             "LLVM's");
  request.optLevel = options.optLevel;
  constexpr int maxWorkers = 256;
  if (options.workers.getNumOccurrences() &&
      (options.workers < 1 || options.workers > maxWorkers))
    complaints.add("-j", "must be 1 to " + llvm::Twine(maxWorkers) +
                             ", found " + llvm::Twine(int(options.workers)));
  request.workers = options.workers > 0
                        ? unsigned(options.workers)
                        : std::max(1u, std::thread::hardware_concurrency());
  request.quiet = options.quiet;
  request.remarks = options.remarks;
  if (std::string error;
      !request.remarks.empty() && !llvm::Regex(request.remarks).isValid(error))
    complaints.add("--remarks-filter",
                   "'" + llvm::Twine(request.remarks) +
                       "' is no regular expression: " + error);

  bool observes = false, steersLLVM = false;
  for (auto &[name, option] : cl::getRegisteredOptions()) {
    if (!option->getNumOccurrences() || options.isOwn(*option))
      continue;
    (name.starts_with("mlir-") ? observes : steersLLVM) = true;
  }
  if (observes || steersLLVM) {
    // MLIR's print to one stream as they go, and a link resets all for a moment
    // (hsaco::setOptionRestorer).
    if (options.workers > 1)
      complaints.add("-j", "the flags of MLIR and LLVM hold for the whole "
                           "process, so kernels are compiled one at a time");
    request.workers = 1;
  }
  // Which of them change code is not known here, so all count as if they did.
  if (steersLLVM)
    request.llvmFlags.assign(argv + 1, argv + argc);
}

bool RequestBuilder::readFile(llvm::StringRef what, const std::string &path,
                              std::string &text) {
  fovea::Expected<std::string> read = readFileOrStdin(path);
  if (!read) {
    complaints.add(what, read.status().message());
    return false;
  }
  // Editors of some systems begin texts with it.
  llvm::StringRef content = *read;
  content.consume_front("\xef\xbb\xbf");
  text = content.str();
  return true;
}

/// Null after complaints.
std::shared_ptr<const ScoreChoice> RequestBuilder::readScores() {
  std::shared_ptr<InputFile> own;
  if (options.scoreFile.getNumOccurrences()) {
    own = std::make_shared<InputFile>();
    own->name = options.scoreFile;
    if (!readFile("--score-file", own->name, own->text))
      return nullptr;
  }
  return chooseScores(llvm::join(options.score, ","), own,
                      options.score.empty() ? "--score-file" : "--score",
                      complaints, request.notes);
}

void RequestBuilder::readProblemOptions() {
  Axes axes;
  axes.targets = items(options.targets);
  axes.ops = items(options.ops);
  axes.dtypes = items(options.dtypes);
  axes.headDims = items(options.headDims);
  axes.headDimsV = items(options.headDimsV);
  axes.masks = items(options.masks);
  axes.groups = items(options.groups);
  if (axes.targets.empty())
    complaints.add("--target", "is missing; known: " + target::targetNames());
  if (axes.ops.empty())
    complaints.add("--op", "is missing; known: " +
                               spec::namesOf(spec::allOperations()));
  if (axes.dtypes.empty())
    complaints.add("--dtype",
                   "is missing; known: " + spec::namesOf(kDataTypes));
  axes.noHeadDims = {"is missing; possible: multiples of " +
                         std::to_string(kHeadDimStep) + " from " +
                         std::to_string(kMinHeadDim) + " to " +
                         std::to_string(kMaxHeadDimV),
                     "--head-dim"};
  if (axes.masks.empty())
    axes.masks.push_back({kAnyMask.str(), "--mask"});
  if (axes.groups.empty())
    axes.groups.push_back({kNoGroups.str(), "--groups"});
  axes.schedules = readOverrides();
  if (options.score.getNumOccurrences() ||
      options.scoreFile.getNumOccurrences()) {
    axes.where = options.score.getNumOccurrences() ? "--score" : "--score-file";
    axes.scores = readScores();
    if (!axes.scores)
      return;
  }
  if (options.scoreGradients.getNumOccurrences())
    axes.scoreGradients = {llvm::join(options.scoreGradients, ","),
                           "--score-gradients"};
  if (options.storedGradients.getNumOccurrences())
    axes.storedGradients = {llvm::join(options.storedGradients, ","),
                            "--stored-gradients"};
  for (Item *gradients : {&axes.scoreGradients, &axes.storedGradients})
    if (gradients->text == "none")
      *gradients = {};
  addJobs(axes, request.jobs, complaints);
}

void RequestBuilder::readSpec() {
  for (const cl::Option &option :
       std::initializer_list<std::reference_wrapper<const cl::Option>>{
           options.ops, options.dtypes, options.headDims, options.headDimsV,
           options.masks, options.groups, options.score, options.scoreFile,
           options.scoreGradients, options.storedGradients, options.inst,
           options.algorithms})
    refuse(option, "contradicts --spec, which says what to compile");
  for (const auto &option : options.overrides)
    refuse(*option, "contradicts --spec, which says what to compile; "
                    "\"schedules\" is its key");
  if (options.spec.getNumOccurrences() > 1)
    complaints.add("--spec", "is given twice; one spec may be a list of "
                             "objects");
  std::string text;
  if (readFile("--spec", options.spec, text))
    request.jobs = parseSpec(options.spec, text, items(options.targets),
                             complaints, request.repeated, request.notes);
  addTuningRows(request.jobs, complaints);
}

llvm::Error RequestBuilder::readInput() {
  for (const cl::Option &option :
       std::initializer_list<std::reference_wrapper<const cl::Option>>{
           options.ops, options.dtypes, options.headDims, options.headDimsV,
           options.masks, options.groups, options.score, options.scoreFile,
           options.scoreGradients, options.storedGradients, options.spec})
    refuse(option, "contradicts input file '" + options.input +
                       "', which says what to compile");
  std::vector<const target::TargetInfo *> targets;
  for (const Selected &selected :
       selectTargets(items(options.targets), complaints))
    targets.push_back(selected.target);
  std::vector<ScheduleOverrides> overrides = readOverrides();
  if (overrides.size() > 1)
    complaints.add("--algorithm", "takes one name with an input file, whose "
                                  "functions name the kernels");
  InputFile &input = request.input.emplace();
  input.name = options.input == "-" ? "<stdin>" : options.input.getValue();
  if (!readFile("input", options.input, input.text) || complaints.any())
    return llvm::Error::success();
  llvm::Expected<std::vector<Job>> jobs =
      readProblems(input, targets, overrides.front());
  if (!jobs)
    return jobs.takeError();
  request.jobs = std::move(*jobs);
  return llvm::Error::success();
}

llvm::Error RequestBuilder::build(int argc, char **argv) {
  readOutput();
  readLimits(argc, argv);
  llvm::Error inputError = llvm::Error::success();
  if (options.input.getNumOccurrences())
    inputError = readInput();
  else if (options.spec.getNumOccurrences())
    readSpec();
  else
    readProblemOptions();
  if (!complaints.any())
    return inputError;
  std::string text = complaints.str();
  if (inputError)
    text += llvm::toString(std::move(inputError));
  return llvm::createStringError(llvm::StringRef(text).rtrim());
}

llvm::Expected<CommandLine> fovea::tools::parseCommandLine(int argc,
                                                           char **argv) {
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  static Options options;
  cl::HideUnrelatedOptions(options.category);
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << compilerBuildId() << "\n"; });
  std::string said;
  llvm::raw_string_ostream os(said);
  auto parse = [argc, argv](llvm::raw_ostream &os) {
    // Two dashes for long options: or else '--head-dims' were '-h' and more.
    return cl::ParseCommandLineOptions(argc, argv, kOverview, &os,
                                       /*VFS=*/nullptr, /*EnvVar=*/nullptr,
                                       /*LongOptionsUseDoubleDash=*/true);
  };
  hsaco::setOptionRestorer([parse] { parse(llvm::nulls()); });
  if (!parse(os))
    return llvm::createStringError(llvm::StringRef(said).rtrim());
  // LLVM takes the last of several, and the others would be ignored. --spec has
  // a remedy of its own.
  for (const cl::Option *option :
       llvm::make_second_range(cl::getRegisteredOptions()))
    if (option->getNumOccurrencesFlag() == cl::Optional &&
        option->getNumOccurrences() > 1 && option != &options.spec)
      return llvm::createStringError(
          (option->ArgStr.size() > 1 ? "--" : "-") + option->ArgStr +
          " is given " + llvm::Twine(option->getNumOccurrences()) +
          " times, and has one value; leave one of them");
  CommandLine result;
  if (options.listTargets) {
    if (argc > 2)
      return llvm::createStringError(
          "--list-targets: prints the chips and goes with nothing else");
    result.listTargets = true;
    return result;
  }
  if (options.listScores) {
    if (argc > 2)
      return llvm::createStringError(
          "--list-scores: prints the library and goes with nothing else");
    result.listScores = true;
    return result;
  }
  RequestBuilder builder(options, result.request);
  if (llvm::Error error = builder.build(argc, argv))
    return error;
  return result;
}
