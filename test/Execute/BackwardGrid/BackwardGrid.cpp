//===- BackwardGrid.cpp - compiled gradients over the grid of problems ----===//
//
// Runs the backward kernels of a package as ForwardGrid runs forward ones:
// every pair of type, head dimension, mask, GQA ratio, length, layout, class of
// values, magnitude of dout, and where out and lse come from; then each kernel
// once. Runs with other thread counts and the workgroups in reverse must agree
// to the last bit, the gradients must be the derivative of what the package's
// forward kernel computes, and faults in the simulated matrix instructions must
// be noticed.
//
//   FoveaBackwardGrid --package=kernels [--grid=full|thin] [--hip=sim]
//     [gtest options]
//
//===----------------------------------------------------------------------===//

#include "../ForwardGrid/Pairwise.h"
#include "BackwardRun.h"
#include "Report.h"
#include "fovea/Package/Keys.h"
#include "fovea/Reference/Inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

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
const Heads kHeads[] = {{1, 4, 1}, {2, 2, 2}, {1, 6, 3}};

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
  std::vector<int64_t> lengths, headDims;
};
const Grid kGrids[] = {
    {"full",
     {257, 129, 65, 17, 1, 0, 2, 63, 64, 128},
     {64, 128, 32, 16, 40, 80, 96, 192, 256}},
    // For chips that run the code of another but for a few instructions.
    {"thin", {129, 65, 17, 1, 0}, {64, 128, 40}}};
const Grid *grid = &kGrids[0];

const Guards kGuards[] = {Guards::Auto, Guards::Canary};

std::unique_ptr<Session> session;

/// A test whose body is a function.
class FunctionTest : public testing::Test {
public:
  explicit FunctionTest(std::function<void()> body) : body(std::move(body)) {}
  void TestBody() override { body(); }

private:
  const std::function<void()> body;
};

void add(const char *suite, std::string name, std::function<void()> body) {
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)))
      letter = '_';
  testing::RegisterTest(
      suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
      [=]() -> FunctionTest * { return new FunctionTest(body); });
}

/// Large gradients that stay finite in the type.
double largeDout(ElemType type) { return type == ElemType::F16 ? 64 : 16384; }

void expectPass(const BackwardCase &c, const RunOptions &options) {
  const RunReport report = session->run(c, options);
  std::printf("%s\n", tableRow(*session, c, report).c_str());
  EXPECT_EQ(outcomeName(report.outcome), std::string("pass"))
      << describeRun(*session, c, report);
}

void addGrid() {
  // Lengths come first: their pairs are the most, so they lead the rows.
  const std::vector<size_t> levels = {
      grid->lengths.size(),   grid->lengths.size(), grid->headDims.size(),
      std::size(kInputs),     std::size(kPlaces),   std::size(kMasks),
      std::size(kHeads),      std::size(kTypes),    std::size(kGuards),
      /*large dout*/ 2,
      /*forward on device*/ 2};
  size_t count = 0;
  for (const auto &row : fovea::test::pairwise(levels)) {
    BackwardCase c;
    ForwardCase &f = c.forward;
    f.seqQ = grid->lengths[row[0]];
    f.seqK = grid->lengths[row[1]];
    f.headDim = grid->headDims[row[2]];
    f.input = kInputs[row[3]];
    f.layout = kPlaces[row[4]].layout;
    f.rowPadding = kPlaces[row[4]].padding;
    f.offset = kPlaces[row[4]].offset;
    f.mask = kMasks[row[5]];
    f.batch = kHeads[row[6]].batch;
    f.heads = kHeads[row[6]].heads;
    f.headsK = kHeads[row[6]].headsK;
    f.type = kTypes[row[7]];
    f.seed = ++count;
    if (row[9])
      c.doutScale = largeDout(f.type);
    RunOptions options;
    options.guards = kGuards[row[8]];
    add("Grid", c.str() + " " + std::to_string(count),
        [=] { expectPass(c, options); });
  }
  std::printf("%s: %zu cases of the %s grid\n", session->arch().c_str(), count,
              grid->name);
}

/// A problem for one kernel by its key, with tails on both sides.
bool caseOfKernel(const fovea_kernel_info_t &info, ForwardCase &c) {
  const fovea::Expected<fovea::ProblemKey> key =
      fovea::ProblemKey::parse(info.problem);
  if (!key || key->op != fovea::Operation::Backward)
    return false;
  c.type = key->dtype == fovea::DataType::F16 ? ElemType::F16 : ElemType::BF16;
  c.headDim = key->headDim;
  c.mask = key->mask == fovea::MaskKind::None ? Mask::None
           : key->mask == fovea::MaskKind::CausalTopLeft
               ? Mask::CausalTopLeft
               : Mask::CausalBottomRight;
  c.heads = 2;
  c.seqQ = info.block_m + 37;
  c.seqK = info.block_m + 2 * info.block_n + 29;
  c.layout = Layout::BSHD;
  c.seed = info.id;
  return true;
}

/// Queries that see no key, and keys that no query sees, beside full ones.
BackwardCase smallCase(ElemType type, Mask mask) {
  BackwardCase c;
  c.forward.type = type;
  c.forward.headDim = 64;
  c.forward.mask = mask;
  c.forward.heads = 4;
  c.forward.headsK = 2;
  c.forward.seqQ = 300;
  c.forward.seqK = 200;
  return c;
}

using SetSimulator = int (*)(const char *, const char *);
SetSimulator setSimulator() {
  return reinterpret_cast<SetSimulator>(
      fovea_hip_symbol(session->context(), "fovea_sim_set"));
}

/// Bits of the gradients do not depend on who runs when.
void expectSameBits(const BackwardCase &c) {
  SetSimulator set = setSimulator();
  ASSERT_NE(set, nullptr);
  RunOptions options;
  options.check = false;
  const RunReport first = session->run(c, options);
  ASSERT_EQ(first.outcome, Outcome::Pass) << first.message;
  const std::pair<const char *, const char *> schedules[] = {
      {"1", "forward"}, {"1", "reverse"}, {"3", "forward"}, {"4", "reverse"}};
  for (const auto &[threads, order] : schedules) {
    ASSERT_EQ(set("threads", threads), 0);
    ASSERT_EQ(set("order", order), 0);
    const RunReport again = session->run(c, options);
    ASSERT_EQ(set("threads", "0"), 0);
    ASSERT_EQ(set("order", "forward"), 0);
    ASSERT_EQ(again.gradients.size(), first.gradients.size());
    for (size_t i = 0; i < first.gradients.size(); ++i)
      EXPECT_EQ(again.gradients[i].values, first.gradients[i].values)
          << first.gradients[i].name << " with " << threads << " threads, "
          << order;
  }
}

/// dout . (out(x + h u) - out(x - h u)) against gradient . (2 h u), for each of
/// q, k and v in the direction of its own gradient: both sides are sums of many
/// roundings, but the signal adds up and they do not.
void expectDerivative(const BackwardCase &c) {
  const ForwardCase &f = c.forward;
  const size_t queries = size_t(f.batch * f.heads * f.seqQ * f.headDim),
               keys = size_t(f.batch * f.headsK * f.seqK * f.headDim);
  Random random(7);
  auto normal = [&](size_t count) {
    std::vector<double> values(count);
    for (double &value : values)
      value = roundTo(f.type, random.normal());
    return values;
  };
  RunOptions options;
  options.check = false;
  options.forwardOnDevice = true;
  GivenInputs &given = options.given;
  given.q = normal(queries);
  given.k = normal(keys);
  given.v = normal(keys);
  given.dout = normal(queries);
  const RunReport report = session->run(c, options);
  ASSERT_EQ(report.outcome, Outcome::Pass) << report.message;
  std::vector<double> *inputs[] = {&given.q, &given.k, &given.v};
  for (size_t which = 0; which < 3; ++which) {
    const std::vector<float> &gradient = report.gradients[which].values;
    double norm2 = 0;
    for (float value : gradient)
      norm2 += double(value) * value;
    ASSERT_GT(norm2, 0);
    // A step of this length along the whole gradient.
    constexpr double kStep = 2;
    const std::vector<double> at = *inputs[which];
    std::vector<double> ends[2] = {at, at};
    double predicted = 0, difference = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const double step = kStep * double(gradient[i]) / std::sqrt(norm2);
      ends[0][i] = roundTo(f.type, at[i] - step);
      ends[1][i] = roundTo(f.type, at[i] + step);
      predicted += double(gradient[i]) * (ends[1][i] - ends[0][i]);
    }
    for (int side : {0, 1}) {
      *inputs[which] = ends[side];
      const RunReport moved = session->run(f, options);
      ASSERT_EQ(moved.outcome, Outcome::Pass) << moved.message;
      for (size_t i = 0; i < moved.out.size(); ++i)
        difference += (side ? 1 : -1) * double(moved.out[i]) * given.dout[i];
    }
    *inputs[which] = at;
    std::printf("%s %s: out moves by %.5g, the gradient says %.5g\n",
                c.str().c_str(), report.gradients[which].name, difference,
                predicted);
    EXPECT_NEAR(difference, predicted, 0.02 * predicted)
        << report.gradients[which].name;
  }
}

/// A fault in the simulated matrix instructions must not go unnoticed.
void expectNoticed(const char *fault) {
  SetSimulator set = setSimulator();
  ASSERT_NE(set, nullptr);
  const BackwardCase c = smallCase(ElemType::BF16, Mask::None);
  ASSERT_EQ(set("mfma-fault", fault), 0);
  const RunReport report = session->run(c, {});
  ASSERT_EQ(set("mfma-fault", "none"), 0);
  EXPECT_EQ(outcomeName(report.outcome), std::string("MISMATCH"));
  for (const GradientReport &gradient : report.gradients)
    EXPECT_FALSE(gradient.comparison.pass) << gradient.name;
  EXPECT_EQ(session->run(c, {}).outcome, Outcome::Pass);
}

void registerTests() {
  addGrid();
  for (uint32_t id = 1; id <= fovea_kernel_count(session->context()); ++id) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    BackwardCase c;
    if (fovea_kernel_info(session->context(), id, &info) ||
        !caseOfKernel(info, c.forward))
      continue;
    RunOptions options;
    options.kernel = id;
    add("EveryKernel", "id " + std::to_string(id) + " " + c.str(),
        [=] { expectPass(c, options); });
  }
  for (ElemType type : kTypes)
    for (Mask mask : kMasks) {
      const BackwardCase c = smallCase(type, mask);
      add("Derivative", c.str(), [=] { expectDerivative(c); });
      if (session->simulated())
        add("SameBits", c.str(), [=] { expectSameBits(c); });
    }
  if (session->simulated()) // real hardware takes no faults
    for (const char *fault : {"swap-rows-of-a", "rotate-k", "swap-blocks-of-d"})
      add("PlantedFault", fault, [=] { expectNoticed(fault); });
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  Session::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::string value =
        text.substr(std::min(text.find('='), text.size() - 1) + 1);
    if (text.rfind("--package=", 0) == 0) {
      options.package = value;
    } else if (text.rfind("--hip=", 0) == 0) {
      options.hip = value;
    } else if (text.rfind("--grid=", 0) == 0) {
      grid = std::find_if(std::begin(kGrids), std::end(kGrids),
                          [&](const Grid &row) { return row.name == value; });
      if (grid == std::end(kGrids)) {
        std::fprintf(stderr, "--grid is full or thin, not %s\n", value.c_str());
        return 2;
      }
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (options.package.empty()) {
    std::fprintf(stderr, "name a kernel package: --package=PATH [--hip=sim]\n");
    return 2;
  }
  std::string error;
  bool deviceError = false;
  session = Session::open(options, error, deviceError);
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
