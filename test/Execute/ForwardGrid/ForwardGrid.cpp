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

#include "Grid.h"

using namespace fovea::test;

namespace {

const std::vector<Grid> kGrids = {
    {"full",
     4,
     {1000, 129, 65, 17, 1, 0, 2, 63, 64, 127, 128, 257},
     {128, 64, 16, 40, 80, 96, 192, 256, 320, 512}},
    // For chips that run the code of another but for a few instructions.
    {"thin", 1, {257, 129, 65, 17, 1, 0}, {128, 64, 40, 256, 512}},
    // For chips that run the code of another but for a workaround, or all of
    // it.
    {"minimal", 1, {129, 65, 17}, {128, 64, 256}}};

/// What pairs do not bring together: rows without keys beside full ones, both
/// causal masks at the lengths where tiles end, one key, keys that grow.
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
      add(type, 64, mask, 70, 200, InputKind::Equal);
    }
  // References that grow past what products begin at, in rows beside others
  // that stay small.
  for (ElemType type : kTypes)
    for (int64_t dim : {64, 128})
      add(type, dim, Mask::None, 40, 500, InputKind::Rising);
  return cases;
}

/// Rows so long that what single keys weigh is below the least normal number of
/// fp16: flat, with a spike, and with a leader that weighs as much as all
/// others.
std::vector<ForwardCase> longCases() {
  std::vector<ForwardCase> cases;
  std::vector<int64_t> lengths = {4096, 16384, 32768};
  if (grid->name == std::string("minimal"))
    lengths = {16384};
  for (ElemType type : kTypes)
    for (int64_t seqK : lengths)
      for (InputKind input :
           {InputKind::Zeros, InputKind::Spike, InputKind::Leader}) {
        ForwardCase c;
        c.type = type;
        c.headDim = 64;
        c.mask = Mask::None;
        c.seqQ = 33;
        c.seqK = seqK;
        c.input = input;
        c.heads = 1;
        c.seed = 2000 + cases.size();
        cases.push_back(c);
      }
  return cases;
}

/// Logits that are all the same weigh the same, however large: the output has
/// the bits of that for logits of 0.
void expectEqualLogitsGiveMeans(ElemType type) {
  ForwardCase c;
  c.type = type;
  c.headDim = 64;
  c.mask = Mask::None;
  c.seqQ = 70;
  c.seqK = 1000;
  c.heads = 1;
  c.input = InputKind::Equal;
  const RunReport large = expectPass(c, {});
  c.input = InputKind::Zeros;
  const RunReport zeros = expectPass(c, {});
  EXPECT_EQ(large.out, zeros.out);
}

void add(const char *suite, const ForwardCase &c, RunOptions options,
         size_t number) {
  std::string name = c.str().substr(sizeof("forward"));
  if (options.guards == Guards::Canary)
    name += " canary";
  addTest(suite, name + " " + std::to_string(number), [=] {
    const RunReport report = expectPass(c, options);
    if (report.checked && c.lse)
      EXPECT_LE(report.comparison.lse.error, report.comparison.lse.budget);
  });
}

void registerTests() {
  size_t count = 0;
  RunOptions options;
  for (const GridCase &row : thinnedGrid(*grid, {/*lse*/ 2})) {
    ForwardCase c = row.problem;
    c.lse = row.own[0] == 0;
    options.guards = row.guards;
    add("Grid", c, options, count++);
  }
  options.guards = Guards::Auto;
  for (const ForwardCase &c : chosenCases())
    add("Grid", c, options, count++);
  for (const ForwardCase &c : longCases())
    add("LongRows", c, options, count++);
  for (ElemType type : kTypes)
    addTest("EqualLogits", type == ElemType::F16 ? "fp16" : "bf16",
            [=] { expectEqualLogitsGiveMeans(type); });
  std::printf("%s: %zu cases of the %s grid\n", session->arch().c_str(), count,
              grid->name);
  forEachKernel(fovea::OpKind::Forward,
                [&](const fovea_kernel_info_t &info, ForwardCase c) {
                  c.seqQ = info.block_m + 37;
                  c.seqK = 3 * info.block_n + 29;
                  options.kernel = info.id;
                  add("EveryKernel", c, options, info.id);
                });
  ForwardCase c;
  c.seqQ = c.seqK = 130;
  addPlantedFaults(c, [](const RunReport &) {});
}

} // namespace

int main(int argc, char **argv) {
  return gridMain(argc, argv, kGrids, registerTests);
}
