//===- ForwardGrid.cpp - compiled kernels over the grid of problems -------===//
//
// Runs the kernels of a package on every type, head dimension, mask, GQA ratio,
// length, layout and class of values, thinned so that every pair of them meets,
// and prints each error with its budget; then each kernel of the package once,
// those that the grid does not choose among them, and that none has scratch. On
// the simulated device it also plants faults into the matrix instructions and
// expects them to be noticed. The chip is that of the device
// (FOVEA_SIM_TARGET); a row of kGrids says how much of the grid it gets.
//
//   FoveaForwardGrid --package=kernels [--grid=full|thin|minimal]
//     [--scratch=HEAD_DIM,... of kernels that may have some] [gtest options]
//
//===----------------------------------------------------------------------===//

#include "ForwardRun.h"
#include "Pairwise.h"
#include "Report.h"
#include "fovea/Package/Keys.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

using namespace fovea::reference;
using namespace fovea::run;

namespace {

const ElemType kTypes[] = {ElemType::BF16, ElemType::F16};
const Mask kMasks[] = {Mask::CausalBottomRight, Mask::CausalTopLeft,
                       Mask::None};
const InputKind kInputs[] = {
    InputKind::Normal, InputKind::Uniform, InputKind::Large, InputKind::OnesV,
    InputKind::Spike,  InputKind::Zeros,   InputKind::Masked};

struct Heads {
  int64_t batch, heads, headsK;
};
const Heads kHeads[] = {{1, 4, 1}, {2, 2, 2}, {1, 8, 1}};

/// Order of the dimensions, elements between rows, elements off alignment.
struct Place {
  Layout layout;
  int64_t padding, offset;
};
const Place kPlaces[] = {{Layout::BHSD, 0, 0},
                         {Layout::BSHD, 0, 0},
                         {Layout::SBHD, 0, 0},
                         {Layout::BSHD, 24, 8},
                         {Layout::BHSD, 3, 1}};

/// How much of the grid is run. The package has the kernels of every head
/// dimension here, in all types and masks.
struct Grid {
  const char *name;
  uint64_t rounds; ///< each holds all pairs; together they hold most triples
  std::vector<int64_t> lengths, headDims;
};
const Grid kGrids[] = {
    {"full",
     4,
     {1000, 129, 65, 17, 1, 0, 2, 63, 64, 127, 128, 257},
     {128, 64, 16, 40, 80, 96, 192, 256, 320, 512}},
    // For chips that run the code of another but for a few instructions.
    {"thin", 1, {257, 129, 65, 17, 1, 0}, {128, 64, 40, 256, 512}},
    // For chips that run the code of another but for a workaround, or all of it.
    {"minimal", 1, {129, 65, 17}, {128, 64}}};
const Grid *grid = &kGrids[0];

const Guards kGuards[] = {Guards::Auto, Guards::Canary};

std::unique_ptr<Session> session;
Session::Options sessionOptions;
std::set<int64_t> mayHaveScratch; ///< head dimensions

std::vector<ForwardCase> thinnedGrid(std::vector<Guards> &guards) {
  std::vector<ForwardCase> cases;
  // Lengths come first: their pairs are the most, so they lead the rows.
  const std::vector<size_t> levels = {
      grid->lengths.size(),  grid->lengths.size(),
      grid->headDims.size(), std::size(kInputs),
      std::size(kPlaces),    std::size(kMasks),
      std::size(kHeads),     std::size(kTypes),
      std::size(kGuards),    2};
  std::vector<std::vector<size_t>> rows;
  for (uint64_t round = 0; round < grid->rounds; ++round)
    for (auto &row : fovea::test::pairwise(levels, round))
      rows.push_back(std::move(row));
  for (const auto &row : rows) {
    ForwardCase c;
    c.seqQ = grid->lengths[row[0]];
    c.seqK = grid->lengths[row[1]];
    c.headDim = grid->headDims[row[2]];
    c.input = kInputs[row[3]];
    c.layout = kPlaces[row[4]].layout;
    c.rowPadding = kPlaces[row[4]].padding;
    c.offset = kPlaces[row[4]].offset;
    c.mask = kMasks[row[5]];
    c.batch = kHeads[row[6]].batch;
    c.heads = kHeads[row[6]].heads;
    c.headsK = kHeads[row[6]].headsK;
    c.type = kTypes[row[7]];
    guards.push_back(kGuards[row[8]]);
    c.lse = row[9] == 0;
    c.seed = cases.size() + 1;
    cases.push_back(c);
  }
  return cases;
}

/// What pairs do not bring together: rows without keys beside full ones, both
/// causal masks at the lengths where tiles end, one key.
std::vector<ForwardCase> chosenCases() {
  std::vector<ForwardCase> cases;
  auto add = [&](ElemType type, int64_t dim, Mask mask, int64_t seqQ,
                 int64_t seqK, InputKind input) {
    ForwardCase c;
    c.type = type;
    c.headDim = dim;
    c.mask = mask;
    c.seqQ = seqQ;
    c.seqK = seqK;
    c.input = input;
    c.heads = 2;
    c.seed = 1000 + cases.size();
    cases.push_back(c);
  };
  for (ElemType type : kTypes)
    for (Mask mask : {Mask::CausalTopLeft, Mask::CausalBottomRight}) {
      add(type, 128, mask, 257, 100, InputKind::OnesV);
      add(type, 128, mask, 100, 257, InputKind::OnesV);
      add(type, 64, mask, 129, 129, InputKind::Normal);
      add(type, 64, mask, 300, 1, InputKind::Normal);
      add(type, 128, mask, 200, 333, InputKind::Large);
    }
  return cases;
}

std::string testName(const ForwardCase &c, Guards guards) {
  std::string name = c.str().substr(sizeof("forward"));
  if (guards == Guards::Canary)
    name += " canary";
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)))
      letter = '_';
  return name;
}

class GridTest : public testing::Test {
public:
  /// `kernel` 0: the one that libfovea picks.
  GridTest(const ForwardCase &problem, Guards guards, uint32_t kernel = 0)
      : problem(problem), guards(guards), kernel(kernel) {}

  void TestBody() override {
    RunOptions options;
    options.guards = guards;
    options.kernel = kernel;
    const RunReport report = session->run(problem, options);
    std::printf("%s\n", tableRow(*session, problem, report).c_str());
    EXPECT_EQ(outcomeName(report.outcome), std::string("pass"))
        << describeRun(*session, problem, report);
    if (report.checked && problem.lse)
      EXPECT_LE(report.comparison.lse.error, report.comparison.lse.budget);
  }

private:
  const ForwardCase problem;
  const Guards guards;
  const uint32_t kernel;
};

/// A fault in the simulated matrix instructions must not go unnoticed.
class PlantedFault : public testing::Test {
public:
  explicit PlantedFault(const char *fault) : fault(fault) {}

  void TestBody() override {
    auto set = reinterpret_cast<int (*)(const char *, const char *)>(
        fovea_hip_symbol(session->context(), "fovea_sim_set"));
    ASSERT_NE(set, nullptr);
    ForwardCase problem;
    problem.seqQ = problem.seqK = 130;
    ASSERT_EQ(set("mfma-fault", fault), 0);
    const RunReport report = session->run(problem, {});
    ASSERT_EQ(set("mfma-fault", "none"), 0);
    EXPECT_EQ(outcomeName(report.outcome), std::string("MISMATCH"));
    EXPECT_EQ(session->run(problem, {}).outcome, Outcome::Pass);
  }

private:
  const char *const fault;
};

/// A kernel keeps to registers: what spills goes through memory.
class NoScratch : public testing::Test {
public:
  explicit NoScratch(int32_t bytes) : bytes(bytes) {}
  void TestBody() override { EXPECT_EQ(bytes, 0); }

private:
  const int32_t bytes;
};

/// A problem for one kernel by its key, with tails on both sides.
bool caseOfKernel(const fovea_kernel_info_t &info, ForwardCase &c) {
  const fovea::Expected<fovea::ProblemKey> key =
      fovea::ProblemKey::parse(info.problem);
  if (!key || key->op != fovea::Operation::Forward)
    return false;
  c.type = key->dtype == fovea::DataType::F16 ? ElemType::F16 : ElemType::BF16;
  c.headDim = key->headDim;
  c.mask = key->mask == fovea::MaskKind::None ? Mask::None
           : key->mask == fovea::MaskKind::CausalTopLeft
               ? Mask::CausalTopLeft
               : Mask::CausalBottomRight;
  c.heads = 2;
  c.seqQ = info.block_m + 37;
  c.seqK = 3 * info.block_n + 29;
  c.layout = Layout::BSHD;
  c.seed = info.id;
  return true;
}

void registerGrid(const char *suite, const std::string &name,
                  const ForwardCase &c, Guards guards, uint32_t kernel) {
  testing::RegisterTest(
      suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
      [=]() -> GridTest * { return new GridTest(c, guards, kernel); });
}

void registerTests() {
  std::vector<Guards> guards;
  std::vector<ForwardCase> cases = thinnedGrid(guards);
  for (const ForwardCase &c : chosenCases()) {
    cases.push_back(c);
    guards.push_back(Guards::Auto);
  }
  for (size_t i = 0; i < cases.size(); ++i)
    registerGrid("Grid",
                 testName(cases[i], guards[i]) + "_" + std::to_string(i),
                 cases[i], guards[i], 0);
  const size_t kernels = fovea_kernel_count(session->context());
  std::printf("%s: %zu cases of the %s grid, %zu kernels\n",
              session->arch().c_str(), cases.size(), grid->name, kernels);
  for (uint32_t id = 1; id <= kernels; ++id) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    ForwardCase c;
    if (fovea_kernel_info(session->context(), id, &info) ||
        !caseOfKernel(info, c))
      continue;
    const std::string name =
        "id_" + std::to_string(id) + "_" + testName(c, Guards::Auto);
    registerGrid("EveryKernel", name, c, Guards::Auto, id);
    if (mayHaveScratch.count(c.headDim))
      continue;
    const int32_t scratch = info.scratch_bytes;
    testing::RegisterTest(
        "NoScratch", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [scratch]() -> NoScratch * { return new NoScratch(scratch); });
  }
  if (!session->simulated())
    return; // real hardware takes no faults
  for (const char *fault : {"swap-rows-of-a", "rotate-k", "swap-blocks-of-d"}) {
    std::string name = fault;
    std::replace(name.begin(), name.end(), '-', '_');
    testing::RegisterTest(
        "PlantedFault", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [fault]() -> PlantedFault * { return new PlantedFault(fault); });
  }
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char *package = std::getenv("FOVEA_PACKAGE"))
    sessionOptions.package = package;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--package=", 10) == 0) {
      sessionOptions.package = argv[i] + 10;
    } else if (std::strncmp(argv[i], "--hip=", 6) == 0) {
      sessionOptions.hip = argv[i] + 6;
    } else if (std::strncmp(argv[i], "--scratch=", 10) == 0) {
      std::istringstream list(argv[i] + 10);
      for (std::string dim; std::getline(list, dim, ',');)
        mayHaveScratch.insert(std::atoll(dim.c_str()));
    } else if (std::strncmp(argv[i], "--grid=", 7) == 0) {
      grid = std::find_if(std::begin(kGrids), std::end(kGrids),
                          [&](const Grid &row) {
                            return row.name == std::string(argv[i] + 7);
                          });
      if (grid == std::end(kGrids)) {
        std::fprintf(stderr, "--grid is full, thin or minimal, not %s\n", argv[i] + 7);
        return 2;
      }
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (sessionOptions.package.empty()) {
    std::fprintf(stderr, "name a kernel package: --package=PATH [--hip=sim]\n");
    return 2;
  }
  std::string error;
  bool deviceError = false;
  session = Session::open(sessionOptions, error, deviceError);
  if (!session) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 3;
  }
  registerTests();
  if (!testing::GTEST_FLAG(list_tests))
    std::printf("%s\n", tableHead(session->simulated()).c_str());
  const int result = RUN_ALL_TESTS();
  session.reset();
  return result;
}
