//===- FeatureGrid.cpp - every two features together ----------------------===//
//
// A row of kFeatures is what a kernel or its call may have; the program makes
// the kernels from the table. The thin grid has few kernels, in which every two
// features meet, and of each feature one without any other; the full one has a
// kernel for each pair. Results are held to the fp64 reference. Two features
// that can't meet are a row of kRefusals, and the compiler's reason has to name
// both.
//
//===----------------------------------------------------------------------===//

#include "../../../runtime/src/CompilerApi.h"
#include "../../Unit/Package/TestPackage.h"
#include "../ForwardGrid/Grid.h"
#include "CaseMemory.h"
#include "Groups.h"

using namespace fovea;
using namespace fovea::test;

namespace {

constexpr unsigned kForward = spec::only(OpKind::Forward),
                   kBackward = spec::only(OpKind::Backward),
                   kBoth = spec::kOfAttention;

/// A program of the library. All but the last capture one thing.
struct Program {
  const char *name;
  double most; ///< as CaptureFill has it
  enum { None, Added, Stored } gradient = None;
};

/// A kernel, and what is given to it.
struct Plan {
  rt::KernelOrder order;
  run::ForwardCase c; ///< of a backward pass that of its forward pass
  std::vector<Program> programs;
  bool hasSequences = false, hasLists = false, drops = false;
  bool isLong = false; ///< of more blocks than one, some of them seen whole

  void addGroup(const char *name) {
    const auto row = size_t(spec::findGroup(name));
    order.problem.groups[row] = spec::featureGroups()[row].version;
  }
  bool isForward() const { return order.problem.op == OpKind::Forward; }
};

/// What some kernels or calls have. Of a factor's features there is one at a
/// time.
struct Feature {
  const char *factor, *name;
  unsigned ops;
  void (*add)(Plan &plan);
};
/// Algorithms before what needs one; programs in the order in which they are
/// composed.
constexpr Feature kFeatures[] = {
    {"mask", "causal", kBoth,
     [](Plan &p) { p.c.mask = reference::Mask::CausalBottomRight; }},
    {"mask", "window", kBoth,
     [](Plan &p) {
       p.c.mask = {70, 20, Alignment::BottomRight, Alignment::TopLeft};
     }},
    {"algorithm", "split", kForward,
     [](Plan &p) { p.order.algorithm = "split"; }},
    {"algorithm", "atomic", kBackward,
     [](Plan &p) { p.order.algorithm = "atomic"; }},
    {"algorithm", "atomic16", kBackward,
     [](Plan &p) { p.order.algorithm = "atomic16"; }},
    {"cap", "softcap", kBoth,
     [](Plan &p) { p.programs.push_back({"softcap", 5}); }},
    {"slopes", "alibi", kBoth,
     [](Plan &p) { p.programs.push_back({"alibi", 0.05}); }},
    {"slopes", "dslopes", kBackward, // which are sums, in any order
     [](Plan &p) {
       if (p.order.algorithm.empty())
         p.order.algorithm = "atomic";
       p.programs.push_back({"alibi", 0.05, Program::Added});
     }},
    {"bias", "bias", kBoth, [](Plan &p) { p.programs.push_back({"bias", 3}); }},
    {"bias", "added_dbias", kBackward,
     [](Plan &p) { p.programs.push_back({"bias", 3, Program::Added}); }},
    {"bias", "stored_dbias", kBackward,
     [](Plan &p) { p.programs.push_back({"bias", 3, Program::Stored}); }},
    {"predicate", "documents", kBoth,
     [](Plan &p) { p.programs.push_back({"documents", 1}); }},
    {"sinks", "sinks", kBoth,
     [](Plan &p) {
       p.addGroup(p.isForward() ? "sinks" : "dsinks");
       p.c.groups.push_back({run::findOption("sinks"), {0.5, -1.0}});
     }},
    {"dlse", "dlse", kBackward,
     [](Plan &p) {
       p.addGroup("dlse");
       p.c.groups.push_back({run::findOption("dlse"), {0.5}});
     }},
    {"blocks", "blocks", kBoth,
     [](Plan &p) {
       p.addGroup("blocks");
       p.hasLists = true;
     }},
    {"varlen", "varlen", kBoth,
     [](Plan &p) {
       p.addGroup("varlen");
       p.hasSequences = true;
     }},
    {"dropout", "dropout", kBoth,
     [](Plan &p) {
       p.addGroup("dropout");
       p.drops = true;
     }},
    {"columns", "head_dims", kBoth,
     [](Plan &p) {
       p.addGroup("head_dims");
       p.c.headDim = 21;
       p.c.headDimV = 13;
     }},
    {"heads", "gqa", kBoth, [](Plan &p) { p.c.headsK = 1; }},
    {"type", "fp32", kBoth, // which by lanes takes long to compile
     [](Plan &p) {
       p.order.problem.dtype = DataType::F32;
       p.order.problem.headDim -= 8;
       p.c.headDim -= 8;
       p.c.headDimV -= p.c.headDimV ? 8 : 0;
     }},
};

/// Two features that kernels of an operation don't have together, on chips
/// whose names begin so, and what the compiler says. One twice: it has no
/// kernels by itself, of some type.
struct Refusal {
  unsigned op;
  const char *chips, *one, *other;
  std::vector<const char *> words;
};
const Refusal kRefusals[] = {
    {kBackward, "gfx90", "atomic16", "atomic16", {"atomic16", "bf16"}},
    {kBackward, "gfx11", "atomic16", "atomic16", {"atomic16", "bf16"}},
    {kBackward, "gfx", "atomic16", "fp32", {"atomic16", "f32"}},
    {kBackward, "gfx", "stored_dbias", "fp32", {"to be stored", "f32"}},
    {kBackward, "gfx1", "atomic", "fp32", {"atomic", "f32"}},
    {kBackward, "gfx1", "dslopes", "fp32", {"atomic", "f32"}},
};

using Features = std::vector<const Feature *>;

// What main() was told.
std::string chip;
OpKind op = OpKind::Forward;
rt::CompilerApi compiler;

bool isRefused(const Feature &a, const Feature &b) {
  const std::string_view one = a.name, other = b.name;
  for (const Refusal &row : kRefusals)
    if ((row.op & spec::only(op)) && chip.rfind(row.chips, 0) == 0 &&
        ((one == row.one && other == row.other) ||
         (one == row.other && other == row.one)))
      return true;
  return false;
}

std::string namesOf(const Features &features) {
  std::string names;
  for (const Feature *feature : features)
    names += (names.empty() ? "" : "+") + std::string(feature->name);
  return names.empty() ? "none" : names;
}

/// Some of what no feature is changes with the number.
Plan makePlan(const Features &features, size_t number) {
  Plan plan;
  plan.order.chip = chip;
  ProblemKey &problem = plan.order.problem;
  problem.op = op;
  problem.headDim = 24;
  problem.dtype = number % 2 ? DataType::F16 : DataType::BF16;
  plan.addGroup("window");
  run::ForwardCase &c = plan.c;
  c.headDim = 24;
  c.batch = c.heads = c.headsK = 2;
  c.layout = number % 3 ? Layout::BSHD : Layout::BHSD;
  c.seed = number + 1;
  for (const Feature *feature : features)
    feature->add(plan);
  c.type = problem.dtype;
  if (plan.hasLists)
    c.input = InputKind::Masked; // what no list has is NaN
  plan.isLong = plan.hasLists || number / 2 % 2;
  c.seqQ = plan.isLong ? 150 : 61;
  c.seqK = plan.isLong ? 210 : 75;
  return plan;
}

/// Empty, or why there is no such kernel. Gives the order its program.
std::string compile(Plan &plan, rt::OrderedKernel &kernel) {
  rt::KernelOrder &order = plan.order;
  bool isRefused = false;
  for (const Program &program : plan.programs)
    order.score.program +=
        (order.score.program.empty() ? "" : ",") + std::string(program.name);
  if (!plan.programs.empty()) {
    uint64_t digits = 0;
    ScoreRecord score;
    if (rt::Result found = compiler.findScore(order, digits, score, isRefused);
        !found.ok())
      return found.message;
    order.problem.score = digits;
  }
  for (size_t i = 0; i != plan.programs.size(); ++i) {
    const auto gradient = plan.programs[i].gradient;
    order.problem.scoreGradients |= uint8_t((gradient != Program::None) << i);
    order.problem.storedGradients |=
        uint8_t((gradient == Program::Stored) << i);
  }
  const rt::Result made = compiler.compile(order, kernel, isRefused);
  return made.ok() ? "" : made.message;
}

/// Runs a plan's case on the session's kernel.
void expectCase(const Plan &plan, const KernelRecord &record, size_t number) {
  run::ForwardCase c = plan.c;
  CaseMemory memory;
  if (plan.hasSequences) {
    const char *texts[][2] = {
        {"packed:30x41,0,65x20,3x53", "packed:30x41,0,150x210,3x53"},
        {"shifted:31x65,66x20:th", "shifted:31x65,150x210:th"}};
    memory.addSequences(*session, texts[number % 2][plan.isLong], c);
  }
  if (!plan.programs.empty()) {
    std::vector<run::CaptureFill> fills;
    for (const Program &program : plan.programs) {
      run::CaptureFill &fill = fills.emplace_back();
      fill.most = program.most;
      fill.poison = !plan.hasSequences; // by the mask of the longest
    }
    const ProblemKey &key = record.problem;
    memory.addScore(*session, record.score, fills, c, key.scoreGradients,
                    key.storedGradients);
  }
  if (plan.hasLists) {
    run::BlocksFill fill;
    fill.part = 0.7;
    memory.addBlocks(*session, fill, c);
  }
  if (plan.drops)
    c.dropout = dropoutOf(c, 0.3f, 0x1bf52, 0xfffffff0 + number, number % 2);
  if (testing::Test::HasFatalFailure())
    return;
  RunOptions options;
  const std::string &algorithm = plan.order.algorithm;
  options.splits = algorithm == "split" ? 3 : 0;
  options.deterministic = algorithm.empty();
  options.narrowSums = algorithm == "atomic16";
  if (plan.isForward()) {
    expectPass(c, options);
    return;
  }
  BackwardCase backward;
  backward.forward = c;
  const RunReport report = expectPass(backward, options);
  // Those of sinks and of what is captured come last, and none is left out.
  size_t gradients = 3;
  for (const run::CaseGroup &group : c.groups)
    gradients += group.option == run::findOption("sinks");
  for (const Program &program : plan.programs)
    gradients += program.gradient != Program::None;
  EXPECT_EQ(report.gradients.size(), gradients);
}

void expectKernel(const Features &features, size_t number) {
  SCOPED_TRACE(chip + " " + toString(op) + ": " + namesOf(features));
  Plan plan = makePlan(features, number);
  rt::OrderedKernel kernel;
  ASSERT_EQ(compile(plan, kernel), "");
  EXPECT_EQ(kernel.record.resources.scratchBytes, 0) << kernel.record.schedule;
  TempDir folder;
  Session::Options options;
  options.package = folder.file("kernel.fovea");
  options.hip = "sim";
  options.target = chip;
  kernel.record.fingerprint = "grid";
  {
    auto writer = PackageWriter::open(options.package, TargetId{chip});
    ASSERT_TRUE(writer) << writer.status().message();
    FOVEA_ASSERT_OK(
        writer->put(kernel.record, kernel.image.data(), kernel.image.size()));
  }
  std::string error;
  bool deviceError = false;
  session = Session::open(options, error, deviceError);
  ASSERT_TRUE(session) << error;
  expectCase(plan, kernel.record, number);
  // The same kernel without what its call may leave out.
  Features others;
  const GroupVersions least = makePlan({}, number).order.problem.groups;
  for (const Feature *feature : features)
    if (makePlan({feature}, number).order.problem.groups == least)
      others.push_back(feature);
  if (others.size() != features.size())
    expectCase(makePlan(others, number), kernel.record, number);
}

void expectRefusal(const Refusal &row, const Features &features) {
  Plan plan = makePlan(features, 0);
  rt::OrderedKernel kernel;
  const std::string why = compile(plan, kernel);
  EXPECT_NE(why, "") << namesOf(features) << " is no refusal any more";
  for (const char *word : row.words)
    EXPECT_NE(why.find(word), std::string::npos)
        << "'" << word << "' is not in: " << why;
}

/// The features of the operation, a list a factor.
std::vector<Features> makeFactors() {
  std::vector<Features> factors;
  for (const Feature &feature : kFeatures) {
    if (!(feature.ops & spec::only(op)) || isRefused(feature, feature))
      continue;
    if (factors.empty() ||
        std::string_view(factors.back().front()->factor) != feature.factor)
      factors.emplace_back();
    factors.back().push_back(&feature);
  }
  return factors;
}

/// Combinations in which every two features meet, and every other feature
/// alone: on chips of one family the first, on those of the other the second.
std::vector<Features> thinGrid(const std::vector<Features> &factors) {
  const bool isRdna = chip.rfind("gfx1", 0) == 0;
  std::vector<Features> grid;
  std::vector<size_t> levels; // none, then the features
  size_t count = 0;
  for (const Features &factor : factors) {
    levels.push_back(1 + factor.size());
    for (const Feature *feature : factor)
      if (count++ % 2 == isRdna)
        grid.push_back({feature});
  }
  const auto excludes = [&](size_t f, size_t a, size_t g, size_t b) {
    return a && b && isRefused(*factors[f][a - 1], *factors[g][b - 1]);
  };
  std::vector<std::vector<size_t>> rows = pairwise(levels, 0, excludes);
  constexpr uint64_t seeds = 100;
  for (uint64_t seed = 1; seed != seeds; ++seed)
    if (auto others = pairwise(levels, seed, excludes);
        others.size() < rows.size())
      rows = std::move(others);
  for (const std::vector<size_t> &row : rows) {
    Features &features = grid.emplace_back();
    for (size_t f = 0; f != row.size(); ++f)
      if (row[f])
        features.push_back(factors[f][row[f] - 1]);
  }
  return grid;
}

/// A kernel for each two features, and for each alone.
std::vector<Features> fullGrid(const std::vector<Features> &factors) {
  std::vector<Features> grid = {{}};
  for (auto f = factors.begin(); f != factors.end(); ++f)
    for (const Feature *one : *f) {
      grid.push_back({one});
      for (auto g = f + 1; g != factors.end(); ++g)
        for (const Feature *other : *g)
          if (!isRefused(*one, *other))
            grid.push_back({one, other});
    }
  return grid;
}

/// Every two features are on together somewhere, or a row says why not.
void expectEveryPair(const std::vector<Features> &factors,
                     const std::vector<Features> &grid) {
  auto isThere = [&](const Feature *one, const Feature *other) {
    return std::any_of(grid.begin(), grid.end(), [&](const Features &row) {
      return std::count(row.begin(), row.end(), one) &&
             std::count(row.begin(), row.end(), other);
    });
  };
  for (auto f = factors.begin(); f != factors.end(); ++f)
    for (auto g = f + 1; g != factors.end(); ++g)
      for (const Feature *one : *f)
        for (const Feature *other : *g)
          EXPECT_NE(isThere(one, other), isRefused(*one, *other))
              << one->name << ", " << other->name;
}

void registerTests(bool isFull) {
  const std::vector<Features> factors = makeFactors();
  const std::vector<Features> grid =
      isFull ? fullGrid(factors) : thinGrid(factors);
  for (size_t i = 0; i != grid.size(); ++i)
    addTest("Features", std::to_string(i) + "_" + namesOf(grid[i]),
            [=] { expectKernel(grid[i], i); });
  addTest("Features", "EveryPair", [=] { expectEveryPair(factors, grid); });
  for (const Refusal &row : kRefusals) {
    Features features;
    bool isOfOne = false;
    for (const Feature &feature : kFeatures)
      if (std::string_view(feature.name) == row.one ||
          std::string_view(feature.name) == row.other) {
        features.push_back(&feature);
        isOfOne |= isRefused(feature, feature);
      }
    if (isRefused(*features.front(), *features.back()) &&
        isOfOne == (features.size() == 1))
      addTest("Refused", namesOf(features),
              [=] { expectRefusal(row, features); });
  }
  std::printf("%s %s: %zu kernels of the %s grid\n", chip.c_str(), toString(op),
              grid.size(), isFull ? "full" : "thin");
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  bool isFull = false, isKnown = true;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = std::min(text.find('='), text.size() - 1);
    const std::string name = text.substr(0, equals),
                      value = text.substr(equals + 1);
    if (name == "--target")
      chip = value;
    else if (name == "--op" && (value == "forward" || value == "backward"))
      op = value == "forward" ? OpKind::Forward : OpKind::Backward;
    else if (name == "--grid" && (value == "thin" || value == "full"))
      isFull = value == "full";
    else
      isKnown = false;
  }
  if (!isKnown || chip.empty()) {
    std::fprintf(stderr,
                 "usage: %s --target=CHIP [--op=forward|backward] "
                 "[--grid=thin|full]\n",
                 argv[0]);
    return 2;
  }
  if (const rt::Result opened = compiler.open(FOVEA_COMPILER); !opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.message.c_str());
    return 3;
  }
  registerTests(isFull);
  const int result = RUN_ALL_TESTS();
  session.reset();
  return result;
}
