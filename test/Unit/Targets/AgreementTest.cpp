//===- AgreementTest.cpp - the runtime and the device agree ---------------===//
//
// The package library decides what the dispatcher hands to HIP, the simulator's
// loader what a device takes. Neither knows the other's table, so each of all
// code objects is put to each of all devices, and the two must answer alike.
//
//===----------------------------------------------------------------------===//

#include "../Package/TestPackage.h"

#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/Device.h"

using namespace fovea;
using namespace fovea::test;

namespace {

struct Simulated {
  TargetId target; ///< as HIP's gcnArchName has it
  std::shared_ptr<sim::Device> device;
};

/// Every simulated chip with every setting of the features that it has.
std::vector<Simulated> devices() {
  std::vector<Simulated> all;
  for (const sim::ChipInfo &chip : sim::knownChips()) {
    const std::string name(chip.target);
    std::vector<std::string> texts = {name};
    for (auto [feature, has] :
         {std::pair("sramecc", chip.sramecc), std::pair("xnack", chip.xnack)}) {
      if (has == sim::Feature::Unsupported)
        continue;
      std::vector<std::string> next;
      for (const std::string &text : texts)
        for (const char *sign : {"+", "-"})
          next.push_back(text + ":" + feature + sign);
      texts = std::move(next);
    }
    for (const std::string &text : texts) {
      Simulated &made = all.emplace_back();
      made.target = *TargetId::parse(text);
      sim::Status status = sim::Device::create(text, made.device);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
  return all;
}

} // namespace

TEST(Agreement, TablesHaveTheSameChips) {
  EXPECT_GE(sim::knownChips().size(), 14u);
  for (const sim::ChipInfo &simulated : sim::knownChips()) {
    SCOPED_TRACE(std::string(simulated.target));
    const Chip *chip = findChip(simulated.target);
    ASSERT_TRUE(chip);
    EXPECT_EQ(chip->family, simulated.genericTarget);
    EXPECT_EQ(chip->xnack, simulated.xnack != sim::Feature::Unsupported);
    EXPECT_EQ(chip->sramecc, simulated.sramecc != sim::Feature::Unsupported);
  }
}

TEST(Agreement, TheSameCodeRunsOnTheSameDevices) {
  const std::vector<Simulated> all = devices();
  int taken = 0, generic = 0, refused = 0;
  for (const Chip &chip : allChips())
    for (uint32_t xnack : {0, 1, 2, 3})
      for (uint32_t sramecc : {0, 1, 2, 3})
        // V5 and V6, with a generic version or none.
        for (auto [abi, version] : {std::pair(3, 0), std::pair(3, 1),
                                    std::pair(4, 0), std::pair(4, 1)}) {
          std::vector<uint8_t> image =
              makeImage(std::string(chip.name), "code", xnack, sramecc);
          image[8] = uint8_t(abi);
          image[51] = uint8_t(version);
          Expected<CodeObjectInfo> info =
              inspectCodeObject(image.data(), image.size());
          for (const Simulated &one : all) {
            const Status status =
                info ? checkTargetRunsOn(info->target, one.target)
                     : info.status();
            // The image holds no code, so what is taken fails later on.
            std::shared_ptr<sim::CodeObject> object;
            const sim::Status loaded = sim::CodeObject::load(
                one.device, image.data(), image.size(), object);
            ASSERT_FALSE(loaded.ok());
            const bool takes = loaded.code() == sim::ErrorCode::InvalidImage;
            ASSERT_TRUE(takes ||
                        loaded.code() == sim::ErrorCode::TargetMismatch)
                << loaded.message();
            ASSERT_EQ(status.ok(), takes)
                << chip.name << ", xnack bits " << xnack << ", sramecc bits "
                << sramecc << ", ABI " << abi << ", version " << version
                << " on " << one.target.str() << ": '" << status.message()
                << "', '" << loaded.message() << "'";
            taken += takes;
            generic += takes && chip.isGeneric();
            refused += !takes;
          }
        }
  EXPECT_GT(taken, 500);
  EXPECT_GT(generic, 100);
  EXPECT_GT(refused, 10000);
}
