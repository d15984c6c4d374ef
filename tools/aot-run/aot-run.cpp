//===- aot-run.cpp - run attention kernels and check them -----------------===//
//
// The command line over ForwardRun: one problem or a suite, from a kernel
// package, on a device.
//
//===----------------------------------------------------------------------===//

#include "BackwardRun.h"
#include "Blocks.h"
#include "CommandLine.h"
#include "Groups.h"
#include "Main.h"
#include "Npy.h"
#include "Packages.h"
#include "Report.h"
#include "Scores.h"
#include "Sequences.h"
#include "SessionOptions.h"
#include "Suites.h"
#include "Version.h"
#include "fovea/Package/OperationSpec.h"

#include <cfloat>
#include <cstdio>
#include <set>
#include <unistd.h>

using namespace fovea;
using namespace fovea::run;
using namespace fovea::reference;
using tool::kDevice, tool::kUsage;

namespace {

constexpr const char *kDescription =
    R"(Runs attention kernels of a package on a device and checks the results
against attention, or its gradients, computed in fp64.

The device is that of the HIP library in use: a GPU where ROCm finds one,
otherwise the simulated one. Time on the simulated device is the simulator's
own and says nothing about a GPU.)";

constexpr const char *kExamples =
    R"(
Examples:
  # One head of 1024 x 1024, head dimension 128, all keys
  aot-run --package=build/kernels --dtype=bf16 --head-dim=128

  # Grouped keys, causal, another layout, log-sum-exp not asked for
  aot-run --package=build/kernels --dtype=fp16 --head-dim=64 --heads=8 \
          --heads-k=2 --mask=causal-bottom-right --seqlen-q=1000 \
          --seqlen-k=1000 --layout=bshd --no-lse

  # Tensors from NumPy, the result to a file
  aot-run --package=build/kernels --dtype=bf16 --head-dim=128 --seqlen-q=77 \
          --seqlen-k=77 --q=q.npy --k=k.npy --v=v.npy --save-out=out.npy

  # Gradients, each against its budget; out and lse from the device's forward pass
  aot-run --package=build/kernels --op=backward --dtype=bf16 --head-dim=64 \
          --mask=causal-bottom-right --forward-on-device --save-dq=dq.npy

  # A table of problems; the simulated device whatever there is, as another chip
  aot-run --package=build/kernels --suite=demo --hip=sim
  aot-run --package=mi100 --suite=demo --hip=sim --target=gfx908

  # A score program, a cap of 5 and slopes up to 0.1 (aot-compile --score=...)
  aot-run --package=scored --dtype=bf16 --head-dim=64 --heads=4 \
          --score=softcap,alibi --captures=5,0.1

  # What is in a package
  aot-run --package=build/kernels --list

Exit codes: 0 all passed, 1 a result is wrong, 2 wrong usage, a problem that no
kernel fits, too little memory or output that is lost, 3 the device or its library
failed.
docs/Accuracy.md says when a result is right.)";

struct CommandLine {
  Session::Options session;
  BackwardCase backward; ///< its `forward` is the problem of both operations
  RunOptions run;
  std::string suite, qFile, kFile, vFile, doutFile, op = "forward";
  std::string saveOut, saveGradient[3];
  double scale = 0;
  std::string score, scoreFile, scoreText;
  std::vector<double> captures;
  std::string blocks;
  std::string varlen;
  float dropout = 0;
  uint64_t philoxSeed = 1, philoxOffset = 0;
  bool swapsWords = false;
  bool list = false, json = false;
};

const std::map<std::string, ElemType> kTypes = [] {
  std::map<std::string, ElemType> names;
  for (const DataTypeInfo &info : kDataTypes) {
    names[info.name] = info.type;
    if (info.otherName)
      names[info.otherName] = info.type;
  }
  return names;
}();
const std::map<std::string, Layout> kLayouts = {
    {"bhsd", Layout::BHSD}, {"bshd", Layout::BSHD}, {"sbhd", Layout::SBHD}};
const std::map<std::string, InputKind> kInputs = [] {
  std::map<std::string, InputKind> names;
  for (const InputKindRow &row : inputKinds())
    names.emplace(row.name, row.kind);
  return names;
}();
const std::map<std::string, Guards> kGuards = {{"auto", Guards::Auto},
                                               {"exact", Guards::Exact},
                                               {"canary", Guards::Canary}};

constexpr const char *kGradients[] = {"dq", "dk", "dv"};

/// Only the names, where CLI11 would also print and take the numbers behind.
template <typename Value>
void addChoice(CLI::App &app, const std::string &option, Value &value,
               const std::map<std::string, Value> &choices,
               const std::string &what) {
  std::vector<std::string> names;
  std::string list, initial;
  for (const auto &[name, choice] : choices) {
    names.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
    if (choice == value)
      initial = name;
  }
  app.add_option_function<std::string>(
         option,
         [&value, &choices](const std::string &name) {
           value = choices.at(name);
         },
         what + ": " + list + " (default " + initial + ")")
      ->check(CLI::Validator(
          [names](std::string &text) {
            for (const std::string &name : names)
              if (text == name)
                return std::string();
            std::string known;
            for (const std::string &name : names)
              known += (known.empty() ? "" : ", ") + name;
            return "'" + text + "' is none of " + known;
          },
          ""))
      ->type_name("NAME");
}

void addOptions(CLI::App &app, CommandLine &line) {
  ForwardCase &c = line.backward.forward;
  c.seqQ = c.seqK = 1024;
  app.option_defaults()->always_capture_default();
  addSessionOptions(app, line.session);
  app.add_flag("--list", line.list, "List the package's kernels and stop")
      ->group("Where");

  const auto length = CLI::Range(int64_t(0), int64_t(1) << 31).description("");
  app.add_option("--op", line.op,
                 "Operation: " +
                     CLI::detail::join(spec::operationNames(true), ", "))
      ->check(CLI::IsMember(spec::operationNames(true)).description(""));
  addChoice(app, "--dtype", c.type, kTypes, "Element type");
  app.add_option("--head-dim", c.headDim, "Head dimension")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_option("--head-dim-v", c.headDimV,
                 "That of v and out, if it is another "
                 "(docs/HeadDimensions.md)")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_option_function<std::string>(
         "--mask",
         [&c](const std::string &text) {
           const std::optional<Window> window = parseWindow(text);
           if (!window)
             throw CLI::ValidationError(
                 "--mask", "'" + text +
                               "' is none of none, causal-top-left, "
                               "causal-bottom-right, and no window LEFT:RIGHT");
           c.mask = *window;
         },
         "Mask: a window LEFT:RIGHT of keys before and past the diagonal, "
         "numbers or inf, with ',top-left' or ',bottom-right' (default), or "
         "one a side, as in 128:0 or 64:inf,top-left or "
         "7:-3,top-left:bottom-right; or a name: none, causal-top-left, "
         "causal-bottom-right (default: none)")
      ->type_name("MASK");
  app.add_option_function<std::vector<int64_t>>(
         "--window-size",
         [&c](const std::vector<int64_t> &sides) {
           auto side = [](int64_t n) { return n < 0 ? Window::kInfinite : n; };
           c.mask = Window(side(sides[0]), side(sides[1]),
                           Alignment::BottomRight, Alignment::BottomRight);
         },
         "The same as flash-attn spells it: LEFT,RIGHT counted from the bottom "
         "right, -1 for no bound")
      ->delimiter(',')
      ->expected(2)
      ->excludes("--mask");
  for (const GroupOption &option : groupOptions()) {
    if (!option.help)
      continue;
    app.add_option_function<std::string>(
           std::string("--") + option.name,
           [&c, &option](const std::string &text) {
             auto values = option.parse(text);
             if (!values)
               throw CLI::ValidationError(std::string("--") + option.name,
                                          "'" + text + "' is no " +
                                              option.type);
             c.groups.push_back({&option, std::move(*values)});
           },
           option.help)
        ->type_name(option.type);
  }
  app.add_option("--score", line.score,
                 "Score program that the kernels have: its name in the "
                 "package, or the 16 digits of its key")
      ->type_name("NAME");
  app.add_option("--score-file", line.scoreFile,
                 "With --score and FOVEA_COMPILE=auto: a file of MLIR with "
                 "functions that it names, which are compiled on demand")
      ->type_name("FILE")
      ->needs("--score");
  app.add_option(
         "--captures", line.captures,
         "With --score, a number for each thing that it captures, in "
         "its order: the value of a scalar; of a tensor, whose elements "
         "are chosen by chance, the largest one (default 1 each)")
      ->delimiter(',')
      ->default_str("")
      ->needs("--score")
      ->type_name("NUMBERS");
  app.add_option("--blocks", line.blocks,
                 "Lists of blocks of so many queries and keys, of all that the "
                 "mask shows something of, or of this part of all by chance; "
                 "'shared': the same for all batches and heads")
      ->check(CLI::Validator(
          [](const std::string &text) {
            return parseBlocks(text) ? std::string()
                                     : "'" + text +
                                           "' is no Q_BLOCKxKV_BLOCK:mask or "
                                           "Q_BLOCKxKV_BLOCK:random:PART, with "
                                           ":shared behind it or not";
          },
          ""))
      ->type_name("QxKV:KIND");
  CLI::Option *dropout =
      app.add_option("--dropout", line.dropout,
                     "Drop weights with this probability (docs/Dropout.md)")
          ->check(tool::finite(0, 1))
          ->type_name("P");
  app.add_option("--philox-seed", line.philoxSeed,
                 "Seed of the generator for --dropout")
      ->check(tool::whole())
      ->needs(dropout);
  app.add_option("--philox-offset", line.philoxOffset,
                 "Its first counter, for --dropout")
      ->check(tool::whole())
      ->needs(dropout);
  app.add_flag("--philox-0213", line.swapsWords,
               "Of four keys the words 0, 2, 1, 3, as in AOTriton 0.10 to 0.13")
      ->needs(dropout);
  CLI::Option *varlen =
      app.add_option("--varlen", line.varlen,
                     "Sequences of so many queries, and keys if these are not "
                     "as many. Layouts: " +
                         layoutsOfSequences() +
                         ". Behind them ':th' where the heads of a row of lse "
                         "lie beside one another, ':batched' where lse has "
                         "batches")
          ->check(CLI::Validator(
              [](const std::string &text) {
                std::string error;
                parseSequences(text, error);
                return error;
              },
              ""))
          ->type_name("LAYOUT:LENGTHS");
  app.add_option("--batch", c.batch, "Batches")
      ->check(length)
      ->excludes(varlen);
  app.add_option("--heads", c.heads, "Query heads")->check(length);
  app.add_option("--heads-k", c.headsK, "Key heads; divides --heads")
      ->check(length);
  app.add_option("--seqlen-q", c.seqQ, "Query rows")
      ->check(length)
      ->excludes(varlen);
  app.add_option("--seqlen-k", c.seqK, "Keys")->check(length)->excludes(varlen);
  addChoice(app, "--layout", c.layout, kLayouts,
            "Order of batch, head, sequence and head dimension in memory");
  app.add_option("--row-padding", c.rowPadding,
                 "Elements between the rows of each tensor")
      ->check(length);
  auto *equalRows =
      app.add_option("--equal-rows", c.equalRows,
                     "This tensor's rows are one, its stride along the "
                     "sequence 0: q, k, v or dout")
          ->check(CLI::IsMember({"q", "k", "v", "dout"}).description(""))
          ->type_name("NAME");
  app.add_option("--scale", line.scale,
                 "Factor on q.k^T (default 1/sqrt(head-dim))")
      ->check(tool::finite(-spec::kMostScale, spec::kMostScale));
  app.add_flag("!--no-lse", c.lse, "Do not ask for the log-sum-exp");

  addChoice(app, "--input", c.input, kInputs, "What the tensors hold");
  app.add_option("--seed", c.seed, "Seed of the generator")
      ->check(tool::whole());
  app.add_option("--dout-scale", line.backward.doutScale,
                 "Standard deviation of dout")
      ->check(tool::finite(0, FLT_MAX));
  for (auto [name, file] : {std::pair{"--q", &line.qFile},
                            {"--k", &line.kFile},
                            {"--v", &line.vFile},
                            {"--dout", &line.doutFile}})
    app.add_option(name, *file,
                   "Take this tensor from a .npy file [batch, heads, seq, dim]")
        ->check(CLI::ExistingFile.description(""))
        ->excludes(varlen)
        ->excludes(equalRows)
        ->type_name("FILE");

  app.add_option("--suite", line.suite,
                 "Run a table of problems: " + suiteHelp())
      ->check(CLI::IsMember({"demo"}).description(""))
      ->group("How");
  app.add_option("--repeat", line.run.repeat, "Launches of each problem")
      ->check(CLI::Range(1, 1000000).description(""))
      ->group("How");
  app.add_option("--kernel", line.run.kernel,
                 "Id of the kernel to use, from --list (default: the library "
                 "picks)")
      ->check(CLI::Range(int64_t(0), int64_t(UINT32_MAX)).description(""))
      ->group("How");
  app.add_option("--splits", line.run.splits,
                 "Forward: workgroups that share out the keys of a block of "
                 "rows; 1: none do (0: the library picks)")
      ->check(CLI::Range(0, spec::kMaxSplits).description(""))
      ->group("How");
  app.add_flag("--check,!--no-check", line.run.check,
               "Compare with the fp64 reference (default yes)")
      ->group("How");
  addChoice(app, "--guards", line.run.guards, kGuards,
            "What lies around the tensors");
  app.add_flag("--forward-on-device", line.run.forwardOnDevice,
               "Start the backward pass from what the package's forward kernel "
               "computes, whose error then adds to the gradients', not from "
               "the reference's out and lse")
      ->group("How");
  app.add_flag("--deterministic,!--no-deterministic", line.run.deterministic,
               "Take only gradients whose bits are the same in every run "
               "(default yes); no: also kernels that add with atomics")
      ->group("How");
  app.add_flag("--narrow-sums", line.run.narrowSums,
               "Take only kernels that sum dq in 16 bits; with "
               "--no-deterministic")
      ->group("How");
  for (int i = 0; i < 3; ++i)
    app.add_option(std::string("--save-") + kGradients[i], line.saveGradient[i],
                   "Write this gradient as .npy, float32")
        ->type_name("FILE")
        ->excludes(varlen)
        ->group("How");
  app.add_option("--save-out", line.saveOut,
                 "Write the output [batch, heads, seq, dim] as .npy, float32")
      ->excludes(varlen)
      ->group("How");
  app.add_flag("--json", line.json, "Print JSON")->group("How");
}

/// Refuses options that the chosen mode would ignore: a listing takes none of a
/// problem, a suite brings its problems, given tensors need no generator.
bool checkCombination(const CLI::App &app, const CommandLine &line,
                      std::string &error) {
  const std::set<std::string> where = {"help",   "package", "hip",
                                       "target", "device",  "list"};
  const std::set<std::string> suite = {"help",
                                       "package",
                                       "hip",
                                       "target",
                                       "device",
                                       "op",
                                       "suite",
                                       "seed",
                                       "repeat",
                                       "guards",
                                       "check",
                                       "json",
                                       "forward-on-device",
                                       "deterministic",
                                       "narrow-sums"};
  const std::set<std::string> forward = {"no-lse", "save-out", "splits"};
  const std::set<std::string> backward = {
      "dout",        "dout-scale", "forward-on-device", "deterministic",
      "narrow-sums", "save-dq",    "save-dk",           "save-dv"};
  const bool isForward = line.op == "forward";
  const bool allGiven = !line.qFile.empty() && !line.kFile.empty() &&
                        !line.vFile.empty() &&
                        (isForward || !line.doutFile.empty());
  for (const CLI::Option *option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty())
      continue;
    const std::string &name = option->get_lnames().front();
    if (line.list && !where.count(name))
      error = "--" + name + " has no effect with --list; leave one out";
    else if (!line.list && !line.suite.empty() && !suite.count(name))
      error = "--" + name +
              " has no effect with --suite, which has its own problems; leave "
              "one out";
    else if (allGiven && (name == "input" || name == "seed"))
      error =
          "--" + name +
          " has no effect when --q, --k and --v are all given; leave it out";
    else if ((isForward ? backward : forward).count(name))
      error = "--" + name + " has no effect with --op=" + line.op +
              "; leave one out";
    else if (isForward && name == "equal-rows" &&
             line.backward.forward.equalRows == "dout")
      error = "--equal-rows=dout has no effect with --op=forward; leave it out";
    else if (name == "dout-scale" && !line.doutFile.empty())
      error = "--dout-scale has no effect with --dout; leave one out";
    if (!error.empty())
      return false;
  }
  return true;
}

/// Reads the .npy files that were given and checks their shapes.
bool readInputs(CommandLine &line, std::string &error) {
  const ForwardCase &c = line.backward.forward;
  if (!line.scoreFile.empty()) {
    const bool isRead = tool::readFile(line.scoreFile, line.scoreText, error);
    if (isRead && line.scoreText.empty())
      error = "'" + line.scoreFile + "' is empty";
    if (!error.empty()) {
      error = "--score-file: " + error;
      return false;
    }
  }
  const struct {
    const std::string &file;
    std::vector<double> &values;
    std::vector<int64_t> shape;
  } tensors[] = {
      {line.qFile, line.run.given.q, {c.batch, c.heads, c.seqQ, c.headDim}},
      {line.kFile, line.run.given.k, {c.batch, c.headsK, c.seqK, c.headDim}},
      {line.vFile, line.run.given.v, {c.batch, c.headsK, c.seqK, c.dimOfV()}},
      {line.doutFile,
       line.run.given.dout,
       {c.batch, c.heads, c.seqQ, c.dimOfV()}},
  };
  auto text = [](const std::vector<int64_t> &shape) {
    std::string all;
    for (int64_t extent : shape)
      all += (all.empty() ? "" : ", ") + std::to_string(extent);
    return "[" + all + "]";
  };
  for (const auto &tensor : tensors) {
    if (tensor.file.empty())
      continue;
    NpyArray array;
    if (!readNpy(tensor.file, array, error))
      return false;
    if (array.shape != tensor.shape) {
      error = tensor.file + " has shape " + text(array.shape) +
              "; the options say " + text(tensor.shape);
      return false;
    }
    tensor.values = std::move(array.values);
  }
  return true;
}

int listKernels(const Session &session) {
  const size_t count = fovea_kernel_count(session.context());
  std::printf("%4s  %-8s %-56s %-9s %5s %5s %6s %7s %5s\n", "id", "target",
              "problem", "block", "vgpr", "agpr", "LDS", "scratch", "waves");
  for (uint32_t id = 1; id <= count; ++id) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(session.context(), id, &info))
      continue;
    std::printf("%4u  %-8s %-56s %4dx%-4d %5d %5d %6d %7d %5d\n", id,
                info.target, info.problem, info.block_m, info.block_n,
                info.vgprs, info.agprs, info.lds_bytes, info.scratch_bytes,
                info.occupancy);
  }
  return 0;
}

template <typename Case>
int runSuite(Session &session, const CommandLine &line,
             const std::vector<Case> &cases) {
  // Progress goes where it does not mix with the table or JSON.
  const bool terminal = isatty(STDERR_FILENO);
  nlohmann::json all = nlohmann::json::array();
  int worst = 0;
  if (!line.json) {
    std::printf("device: %s, %s\n%s\n", session.arch().c_str(),
                session.library().c_str(),
                tableHead(session.simulated()).c_str());
    std::fflush(stdout);
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case &problem = cases[i];
    if (terminal)
      std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", i + 1, cases.size(),
                   problem.str().c_str());
    const RunReport report = session.run(problem, line.run);
    if (terminal)
      std::fputs("\r\033[K", stderr);
    worst = std::max(worst, exitCode(report.outcome));
    if (line.json)
      all.push_back(toJson(session, problem, report));
    else
      std::printf("%s\n", tableRow(session, problem, report).c_str());
    if (!line.json && report.outcome != Outcome::Pass)
      std::printf("%s\n", report.message.c_str());
    std::fflush(stdout);
  }
  if (line.json)
    std::printf("%s\n", all.dump(2).c_str());
  else if (session.simulated())
    std::printf("sim time: the simulator's on this host, not GPU time\n");
  return worst;
}

int runSuite(Session &session, const CommandLine &line) {
  std::vector<ForwardCase> forward = suiteCases(line.suite);
  for (ForwardCase &problem : forward)
    problem.seed = line.backward.forward.seed;
  std::vector<BackwardCase> backward = backwardSuiteCases(line.suite);
  for (BackwardCase &problem : backward)
    problem.forward.seed = line.backward.forward.seed;
  return line.op == "forward" ? runSuite(session, line, forward)
                              : runSuite(session, line, backward);
}

/// Writes a tensor, if a file is named and there is one.
bool save(const std::string &file, const std::vector<int64_t> &shape,
          const std::vector<float> &values) {
  std::string error;
  if (file.empty() || values.empty() || writeNpy(file, shape, values, error))
    return true;
  std::fprintf(stderr, "aot-run: %s\n", error.c_str());
  return false;
}

template <typename Case>
int runOne(Session &session, const CommandLine &line, const Case &problem) {
  const RunReport report = session.run(problem, line.run);
  if (line.json)
    std::printf("%s\n", toJson(session, problem, report).dump(2).c_str());
  else
    std::printf("%s\n%s\n%s\n", describeRun(session, problem, report).c_str(),
                tableHead(session.simulated()).c_str(),
                tableRow(session, problem, report).c_str());
  const ForwardCase &c = line.backward.forward;
  bool saved =
      save(line.saveOut, {c.batch, c.heads, c.seqQ, c.dimOfV()}, report.out);
  for (size_t i = 0;
       i < std::min(report.gradients.size(), std::size(line.saveGradient)); ++i)
    saved &= save(line.saveGradient[i], report.gradients[i].shape,
                  report.gradients[i].values);
  return saved ? exitCode(report.outcome) : kUsage;
}

int fail(const std::string &error, int code) {
  std::fprintf(stderr, "aot-run: %s\n", error.c_str());
  return code;
}

int runAlone(Session &session, const CommandLine &line) {
  return line.op == "forward" ? runOne(session, line, line.backward.forward)
                              : runOne(session, line, line.backward);
}

/// Gives a problem the lists of blocks that were asked for, of what its mask
/// and score program show.
int runListed(Session &session, CommandLine &line) {
  if (line.blocks.empty())
    return runAlone(session, line);
  ForwardCase &c = line.backward.forward;
  const BlocksFill fill = *parseBlocks(line.blocks);
  if (fill.isShared && c.sequences && c.input == reference::InputKind::Masked)
    return fail(
        "--input=masked: lists that are shared name blocks that shorter "
        "sequences do not have, and there kernels meet what is masked; "
        "leave ':shared' out of --blocks",
        kUsage);
  CaseBlocks blocks(fill, c);
  if (std::string error = blocks.upload(session); !error.empty())
    return fail(error, kDevice);
  c.listed = blocks.listed();
  c.listsName = line.blocks;
  c.given.push_back(blocks.group());
  return runAlone(session, line);
}

/// Gives a problem the score program that was asked for.
int runScored(Session &session, CommandLine &line) {
  ForwardCase &c = line.backward.forward;
  const OpKind op = line.op == "forward" ? OpKind::Forward : OpKind::Backward;
  std::string error;
  const std::optional<ScoreText> found = findScore(
      session, line.session.package, line.score, line.scoreText, op, c, error);
  std::vector<CaptureFill> fills;
  for (double most : line.captures)
    fills.emplace_back().most = most;
  if (found && fills.size() > found->captures.size())
    error =
        "--captures gives " + std::to_string(fills.size()) + " numbers, and '" +
        line.score + "' captures " +
        (found->captures.empty() ? "nothing" : spec::toString(found->captures));
  if (!error.empty())
    return fail(error, kUsage);
  CaseScore score(line.score, found->captures, fills, c);
  c.score = reference::readScoreProgram(found->text, score.values(), error);
  if (!c.score)
    return fail(error, kUsage);
  uint8_t gradients = op == OpKind::Backward ? found->gradients : 0;
  for (size_t i = 0; i != found->captures.size(); ++i)
    if (line.run.deterministic && !found->captures[i].hasElementOfEach())
      gradients &= uint8_t(~(1u << i));
  score.wantGradients(gradients, gradients & found->stored);
  c.scored = &score;
  if (error = score.upload(session); !error.empty())
    return fail(error, kDevice);
  if (!line.scoreText.empty())
    score.setText(line.scoreText);
  c.scoreName = line.score;
  c.given.push_back(score.group());
  return runListed(session, line);
}

int runProblem(Session &session, CommandLine &line) {
  std::optional<CaseSequences> sequences;
  if (!line.varlen.empty()) {
    ForwardCase &c = line.backward.forward;
    std::string error;
    sequences.emplace(*parseSequences(line.varlen, error), c);
    if (error = sequences->upload(session); !error.empty())
      return fail(error, kDevice);
    c.given.push_back(sequences->group());
  }
  if (line.dropout > 0) {
    ForwardCase &c = line.backward.forward;
    c.dropout = {line.dropout,    line.philoxSeed, line.philoxOffset,
                 line.swapsWords, c.heads,         c.seqQ,
                 c.seqK,          /*firstBatch=*/0};
  }
  return line.score.empty() ? runListed(session, line)
                            : runScored(session, line);
}

} // namespace

static int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app(kDescription, "aot-run");
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  fovea::cli::addVersion(app);
  addOptions(app, line);
  if (const std::optional<int> code = tool::parse(app, argc, argv, kUsage))
    return *code;
  if (app.count("--scale"))
    line.backward.forward.scale = float(line.scale);
  std::string error;
  std::string &package = line.session.package;
  if (package.empty() && !fovea::cli::findPackages(package, error))
    error = "--package: " + error;
  if (!error.empty() || !checkCombination(app, line, error) ||
      !readInputs(line, error)) {
    std::fprintf(stderr, "aot-run: %s\n", error.c_str());
    return kUsage;
  }
  bool deviceError = false;
  std::unique_ptr<Session> session =
      Session::open(line.session, error, deviceError);
  if (!session) {
    std::fprintf(stderr, "aot-run: %s\n", error.c_str());
    return deviceError ? kDevice : kUsage;
  }
  if (line.list)
    return listKernels(*session);
  return line.suite.empty() ? runProblem(*session, line)
                            : runSuite(*session, line);
}

int main(int argc, char **argv) {
  return tool::run("aot-run", kUsage, [&] { return runTool(argc, argv); });
}
