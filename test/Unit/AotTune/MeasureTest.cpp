//===- MeasureTest.cpp - measuring, with the simulated device for a GPU ---===//
//
// The course alone: events, turns, medians. That its times are no GPU's is what
// the program must say, and is tested here too.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "LaunchRun.h"

#include <gtest/gtest.h>

using namespace fovea;
using launch::Machine;
using launch::Measured;
using launch::MeasureOptions;

namespace {

describe::Problem problem(const char *rows) {
  describe::Problem result;
  std::string error;
  EXPECT_TRUE(describe::load(FOVEA_DESCRIPTION,
                             {{"heads", "2"},
                              {"heads_k", "1"},
                              {"seqlen_q", rows},
                              {"seqlen_k", rows}},
                             result, error))
      << error;
  EXPECT_TRUE(launch::complete(result, error)) << error;
  return result;
}

MeasureOptions quick() {
  MeasureOptions options;
  options.warmSeconds = 0.01;
  options.rounds = 3;
  options.roundSeconds = 0;
  return options;
}

} // namespace

TEST(Measure, TimesEachDescription) {
  std::string error;
  const std::unique_ptr<Machine> machine = Machine::open("sim", error);
  ASSERT_TRUE(machine) << error;
  EXPECT_TRUE(machine->isSimulated());
  EXPECT_EQ(machine->deviceOf("gfx942"), "gfx942:sramecc+:xnack-");
  EXPECT_EQ(machine->deviceOf("gfx950"), "");
  // Much work is told from little, and the order does not matter.
  const Measured measured =
      machine->measure({problem("256"), problem("16")}, quick(), "gfx942");
  ASSERT_EQ(measured.error, "");
  ASSERT_EQ(measured.seconds.size(), 2u);
  ASSERT_EQ(measured.spread.size(), 2u);
  EXPECT_GT(measured.seconds[0], 1.5 * measured.seconds[1]);
  EXPECT_GT(measured.seconds[1], 0);
}

TEST(Measure, SaysWhatIsWrong) {
  std::string error;
  const std::unique_ptr<Machine> machine = Machine::open("sim", error);
  ASSERT_TRUE(machine) << error;
  describe::Problem lost = problem("16");
  lost.launches[0].codeObject = "nowhere.hsaco";
  EXPECT_NE(machine->measure({lost}, quick(), "gfx942").error.find("nowhere"),
            std::string::npos);
  EXPECT_EQ(machine->measure({problem("16")}, quick(), "gfx908").error,
            "no device of target 'gfx908'");
  EXPECT_EQ(machine->measure({}, quick(), "gfx942").error,
            "nothing to measure");
  describe::Problem other = problem("16");
  other.buffers.pop_back();
  EXPECT_NE(machine->measure({problem("16"), other}, quick(), "gfx942")
                .error.find("has other buffers"),
            std::string::npos);
}

// A simulated device is never called a GPU.
TEST(Measure, ASimulatedDeviceIsNoGpu) {
  const nlohmann::json sim = tune::probeDevice("gfx942", "sim");
  EXPECT_FALSE(sim.contains("device"));
  EXPECT_NE(sim.value("none", "").find("simulated"), std::string::npos);
  EXPECT_TRUE(tune::measure({}, {}, "gfx942", {}, {}, "sim").contains("error"));
}
