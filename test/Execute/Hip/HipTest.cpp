//===- HipTest.cpp - programs that clang builds from HIP ------------------===//
//
// Runs every case of this folder's .hip files as a test of its own, on the
// devices that the environment asks for (CMakeLists.txt: one chip an entry).
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <gtest/gtest.h>

using namespace fovea::test;

namespace fovea::test {
void PrintTo(const Case &one, std::ostream *out) { *out << one.name; }
} // namespace fovea::test

extern "C" const char *fovea_sim_last_report(void);

namespace {

class Hip : public testing::TestWithParam<Case> {
protected:
  // A fault ends with its test.
  void TearDown() override {
    if (HasFailure())
      for (int i = 0, n = 0; hipGetDeviceCount(&n) == 0 && i < n; ++i)
        (void)hipSetDevice(i), (void)hipDeviceReset();
    (void)hipSetDevice(0);
    (void)hipGetLastError();
  }
};

TEST_P(Hip, AgreesWithTheHost) {
  Report report;
  GetParam().run(report);
  EXPECT_TRUE(report.ok()) << report.count << " differences:\n"
                           << report.text << fovea_sim_last_report();
  EXPECT_GT(report.compared, 0) << "the case checks nothing";
}

INSTANTIATE_TEST_SUITE_P(Corpus, Hip, testing::ValuesIn(Case::all()),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.name;
                         });

} // namespace
