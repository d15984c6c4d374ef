//===- FactsTest.cpp - what a machine says of itself ----------------------===//

#include "Facts.h"
#include "Probes.h"
#include "fovea/Simulator/Chip.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace fovea::qualify;

namespace {

TEST(Facts, ChipsOfTheDriver) {
  EXPECT_EQ(chipOfVersion(0), "");
  EXPECT_EQ(chipOfVersion(90402), "gfx942");
  EXPECT_EQ(chipOfVersion(90010), "gfx90a");
  EXPECT_EQ(chipOfVersion(110501), "gfx1151");
  EXPECT_EQ(chipOfVersion(120001), "gfx1201");
  const std::filesystem::path folder = testing::TempDir() + "/topology";
  const unsigned versions[] = {0, 90402, 110000}; // a CPU comes first
  for (size_t i = 0; i != std::size(versions); ++i) {
    std::filesystem::create_directories(folder / std::to_string(i));
    std::ofstream(folder / std::to_string(i) / "properties")
        << "cpu_cores_count 8\ngfx_target_version " << versions[i]
        << "\nsimd_count 4\n";
  }
  EXPECT_EQ(chipsOfDriver(folder.string()),
            (std::vector<std::string>{"gfx942", "gfx1100"}));
  EXPECT_TRUE(chipsOfDriver(folder.string() + "/none").empty());
}

TEST(Facts, VariablesThatAreSetWarn) {
  ::setenv("HSA_OVERRIDE_GFX_VERSION", "11.0.0", 1);
  ::unsetenv("AMD_SERIALIZE_KERNEL");
  const nlohmann::json facts = environmentFacts();
  ::unsetenv("HSA_OVERRIDE_GFX_VERSION");
  size_t found = 0;
  for (const nlohmann::json &fact : facts) {
    if (fact["name"] == "HSA_OVERRIDE_GFX_VERSION") {
      EXPECT_EQ(fact["value"], "11.0.0");
      EXPECT_TRUE(fact.count("warns"));
      ++found;
    } else if (fact["name"] == "AMD_SERIALIZE_KERNEL") {
      EXPECT_TRUE(fact["value"].is_null());
      EXPECT_FALSE(fact.count("warns"));
      ++found;
    }
  }
  EXPECT_EQ(found, 2u);
}

// A chip that is new to the simulator needs a place in CMakeLists.txt.
TEST(Probes, EachSimulatedChipHasThem) {
  for (const fovea::sim::ChipInfo &chip : fovea::sim::knownChips()) {
    const ChipProbes *probes = probesOf(std::string(chip.target).c_str());
    ASSERT_TRUE(probes) << chip.target;
    bool kinds[std::size(kProbeKinds)] = {};
    for (size_t i = 0; i != probes->count; ++i)
      kinds[int(probes->probes[i].kind)] = true;
    for (size_t kind = 0; kind != std::size(kinds); ++kind)
      EXPECT_TRUE(kinds[kind]) << chip.target << ": " << kProbeKinds[kind];
  }
  EXPECT_FALSE(probesOf("gfx906"));
}

} // namespace
