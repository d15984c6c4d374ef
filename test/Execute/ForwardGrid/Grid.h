//===- Grid.h - what the grids of problems have in common -------*- C++ -*-===//
//
// Tests that are functions, and a main that opens a package on a device, over
// the factors that the forward and the backward grid combine (GridCases.h). A
// program defines a table of its grids and what to register; tests then use
// `session`.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_GRID_H
#define FOVEA_TEST_GRID_H

#include "ForwardRun.h"
#include "GridCases.h"
#include "Report.h"
#include "fovea/Package/Keys.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fovea::test {

using namespace reference;
using namespace run;

/// What main() was told: the package's kernels have a mask each compiled in.
inline bool hasNamedMasks = false;
inline std::vector<Window> masks() {
  if (hasNamedMasks)
    return {std::begin(kNamedMasks), std::end(kNamedMasks)};
  return {std::begin(kWindows), std::end(kWindows)};
}

/// The cases of a grid, with those masks.
inline std::vector<GridCase> thinnedGrid(const Grid &grid,
                                         const std::vector<size_t> &ownLevels) {
  return run::thinnedGrid(grid, ownLevels, masks());
}

/// What main() makes of the command line.
inline std::unique_ptr<Session> session;
inline const Grid *grid = nullptr;
inline std::set<int64_t> mayHaveScratch; ///< head dimensions
/// Head dimensions of kernels that keep up to kMovedScalars scalar registers in
/// lanes of a vector register ahead of their loops.
inline std::set<int64_t> mayMoveScalars;
inline constexpr int kMovedScalars = 4;

/// Registers a test whose body is a function.
inline void addTest(const char *suite, std::string name,
                    std::function<void()> body) {
  class FunctionTest : public testing::Test {
  public:
    explicit FunctionTest(std::function<void()> body) : body(std::move(body)) {}
    void TestBody() override { body(); }

  private:
    const std::function<void()> body;
  };
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)))
      letter = '_';
  testing::RegisterTest(
      suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
      [=]() -> testing::Test * { return new FunctionTest(body); });
}

/// Runs a forward or backward case, prints its row, and expects it to pass.
template <typename Case>
RunReport expectPass(const Case &c, const RunOptions &options) {
  RunReport report = session->run(c, options);
  std::printf("%s\n", tableRow(*session, c, report).c_str());
  EXPECT_EQ(outcomeName(report.outcome), std::string("pass"))
      << describeRun(*session, c, report);
  return report;
}

/// Calls `add` with each kernel of the operation and a problem for it, whose
/// lengths are to be set; and adds that it has no scratch: a kernel keeps to
/// registers, what spills goes through memory.
inline void forEachKernel(
    OpKind operation,
    const std::function<void(const fovea_kernel_info_t &, ForwardCase)> &add) {
  for (uint32_t id = 1; id <= fovea_kernel_count(session->context()); ++id) {
    fovea_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(session->context(), id, &info))
      continue;
    const Expected<ProblemKey> key = ProblemKey::parse(info.problem);
    if (!key || key->op != operation)
      continue;
    ForwardCase c;
    c.type = key->dtype;
    c.headDim = key->headDim;
    c.mask = key->mask;
    if (key->takesWindow()) // each another
      c.mask = kWindows[id % std::size(kWindows)];
    c.heads = 2;
    c.layout = Layout::BSHD;
    c.seed = info.id;
    add(info, c);
    if (!mayHaveScratch.count(c.headDim))
      addTest("NoScratch", "id " + std::to_string(id) + " " + info.problem,
              [info, scalars = mayMoveScalars.count(c.headDim) ? kMovedScalars : 0] {
                EXPECT_EQ(info.scratch_bytes, 0);
                EXPECT_EQ(info.vgpr_spills, 0);
                EXPECT_LE(info.sgpr_spills, scalars);
              });
  }
}

using SetSimulator = int (*)(const char *, const char *);
/// Sets an option of the simulated device; null on another.
inline SetSimulator setSimulator() {
  return reinterpret_cast<SetSimulator>(
      fovea_hip_symbol(session->context(), "fovea_sim_set"));
}

/// Adds that faults in the simulated matrix instructions do not go unnoticed:
/// `check` is given the report of a run with each.
template <typename Case>
void addPlantedFaults(const Case &c,
                      std::function<void(const RunReport &)> check) {
  if (!session->simulated())
    return; // real hardware takes no faults
  for (const char *fault : {"swap-rows-of-a", "rotate-k", "swap-blocks-of-d"})
    addTest("PlantedFault", fault, [=] {
      const SetSimulator set = setSimulator();
      ASSERT_NE(set, nullptr);
      ASSERT_EQ(set("mfma-fault", fault), 0);
      const RunReport report = session->run(c, {});
      ASSERT_EQ(set("mfma-fault", "none"), 0);
      EXPECT_EQ(outcomeName(report.outcome), std::string("MISMATCH"));
      check(report);
      EXPECT_EQ(session->run(c, {}).outcome, Outcome::Pass);
    });
}

/// The body of main(): options, device, tests. Without --grid the first of
/// `grids` is run.
inline int gridMain(int argc, char **argv, const std::vector<Grid> &grids,
                    void (*registerTests)()) {
  testing::InitGoogleTest(&argc, argv);
  Session::Options options;
  grid = &grids.front();
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = std::min(text.find('='), text.size() - 1);
    const std::string name = text.substr(0, equals),
                      value = text.substr(equals + 1);
    if (name == "--package") {
      options.package = value;
    } else if (name == "--hip") {
      options.hip = value;
    } else if (name == "--scratch" || name == "--moved-scalars") {
      std::istringstream list(value);
      for (std::string dim; std::getline(list, dim, ',');)
        (name == "--scratch" ? mayHaveScratch : mayMoveScalars)
            .insert(std::atoll(dim.c_str()));
    } else if (name == "--masks") {
      hasNamedMasks = value == "named";
    } else if (name == "--grid") {
      const auto found =
          std::find_if(grids.begin(), grids.end(),
                       [&](const Grid &row) { return row.name == value; });
      if (found == grids.end()) {
        std::fprintf(stderr, "--grid: there is no grid %s; there are",
                     value.c_str());
        for (const Grid &row : grids)
          std::fprintf(stderr, " %s", row.name);
        std::fprintf(stderr, "\n");
        return 2;
      }
      grid = &*found;
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

} // namespace fovea::test

#endif // FOVEA_TEST_GRID_H
