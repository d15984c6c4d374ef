//===- TargetIdTest.cpp - which code runs on which device -----------------===//

#include "TestPackage.h"

using namespace fovea;
using namespace fovea::test;

namespace {
Status check(const std::string &code, const std::string &device) {
  return checkTargetRunsOn(*TargetId::parse(code), *TargetId::parse(device));
}
} // namespace

TEST(TargetIdTest, ReadsAndPrintsHipSpelling) {
  for (const char *text :
       {"gfx942", "gfx942:xnack-", "gfx942:sramecc+:xnack-",
        "gfx90a:sramecc-:xnack+", "gfx1151", "gfx9-4-generic:xnack+"}) {
    Expected<TargetId> target = TargetId::parse(text);
    ASSERT_TRUE(target) << target.status().message();
    EXPECT_EQ(target->str(), text);
  }
  for (const char *text :
       {"", "942", "gfx", "gfx942:xnack", "gfx942:foo+", "GFX942",
        "gfx942:xnack+:xnack-", "gfx942::xnack+", "gfx942:", "gfx942:xnack+:"})
    EXPECT_FALSE(TargetId::parse(text)) << text;
}

TEST(TargetIdTest, AChipIsKnownWithItsFeatures) {
  for (const char *text : {"gfx942", "gfx908:sramecc-:xnack+", "gfx1100",
                           "gfx9-4-generic:sramecc+", "gfx10-1-generic:xnack+"})
    EXPECT_TRUE(checkTarget(*TargetId::parse(text)).ok()) << text;
  expectFailure(checkTarget(*TargetId::parse("gfx943")),
                StatusCode::InvalidArgument,
                "no chip 'gfx943' is known; known");
  expectFailure(checkTarget(*TargetId::parse("gfx1100:xnack-")),
                StatusCode::InvalidArgument, "gfx1100 has no xnack");
  expectFailure(checkTarget(*TargetId::parse("gfx900:sramecc+")),
                StatusCode::InvalidArgument, "gfx900 has no sramecc");
}

TEST(TargetIdTest, FeaturesOfCodeMustMatchTheDevice) {
  EXPECT_TRUE(check("gfx942", "gfx942:sramecc+:xnack-").ok());
  EXPECT_TRUE(check("gfx942", "gfx942").ok());
  EXPECT_TRUE(check("gfx942:xnack-", "gfx942:sramecc+:xnack-").ok());
  expectFailure(check("gfx942:xnack+", "gfx942:sramecc+:xnack-"),
                StatusCode::Incompatible,
                "it is for gfx942:xnack+ and needs xnack+; the device "
                "gfx942:sramecc+:xnack- runs with xnack-; compile for gfx942 "
                "without xnack, which runs on both, or run with HSA_XNACK=1");
  expectFailure(check("gfx942:xnack-", "gfx942:sramecc+:xnack+"),
                StatusCode::Incompatible, "HSA_XNACK=0");
  expectFailure(check("gfx942:sramecc-", "gfx942:sramecc+:xnack-"),
                StatusCode::Incompatible,
                "needs sramecc-; the device gfx942:sramecc+:xnack- runs with "
                "sramecc+; compile for gfx942 without sramecc, which runs on "
                "both");
  expectFailure(check("gfx942:sramecc-", "gfx942"), StatusCode::Incompatible,
                "does not state its sramecc");
}

// All nine states of code on all four of a device, for chips that have both
// features, one and none, by the rule itself.
TEST(TargetIdTest, EveryStateOfEveryFeature) {
  constexpr FeatureState kStates[] = {FeatureState::Any, FeatureState::Off,
                                      FeatureState::On};
  for (const Chip &chip : allChips()) {
    if (chip.isGeneric())
      continue;
    for (FeatureState xnack : kStates)
      for (FeatureState sramecc : kStates)
        for (int bits = 0; bits != 4; ++bits) {
          const TargetId code{std::string(chip.name), xnack, sramecc};
          TargetId device{std::string(chip.name)};
          if (chip.xnack)
            device.xnack = kStates[1 + bits % 2];
          if (chip.sramecc)
            device.sramecc = kStates[1 + bits / 2];
          const bool runs =
              (xnack == FeatureState::Any || xnack == device.xnack) &&
              (sramecc == FeatureState::Any || sramecc == device.sramecc);
          EXPECT_EQ(checkTargetRunsOn(code, device).ok(), runs)
              << code.str() << " on " << device.str();
        }
  }
  expectFailure(check("gfx1100:xnack+", "gfx1100"), StatusCode::Incompatible,
                "gfx1100 has no xnack that could be on or off");
}

// Every target's code on every chip: its own, and its family's.
TEST(TargetIdTest, GenericCodeRunsOnItsMembersOnly) {
  int generic = 0;
  for (const Chip &code : allChips())
    for (const Chip &device : allChips()) {
      if (device.isGeneric())
        continue;
      const bool member = code.isGeneric() && device.family == code.name;
      generic += member;
      EXPECT_EQ(check(std::string(code.name), std::string(device.name)).ok(),
                member || code.name == device.name)
          << code.name << " on " << device.name;
    }
  EXPECT_EQ(generic, 6 + 2 + 4 + 7 + 8 + 2);
  expectFailure(check("gfx11-generic", "gfx1201"), StatusCode::Incompatible,
                "it is for gfx11-generic, which is gfx1100, gfx1101, gfx1102, "
                "gfx1103, gfx1150, gfx1151, gfx1152, gfx1153; the device is "
                "gfx1201; compile for gfx1201 or gfx12-generic");
  expectFailure(check("gfx950", "gfx942"), StatusCode::Incompatible,
                "it is for gfx950, the device is gfx942; compile for gfx942 or "
                "gfx9-4-generic");
  expectFailure(check("gfx942", "gfx90a"), StatusCode::Incompatible,
                "the device is gfx90a; compile for gfx90a");
  // A chip of tomorrow runs what is named like it, and nothing else is known.
  EXPECT_TRUE(check("gfx1999", "gfx1999").ok());
  EXPECT_FALSE(check("gfx12-generic", "gfx1999").ok());
  // Features count for generic code as for a chip's. A family may offer fewer
  // than a member has.
  EXPECT_TRUE(check("gfx9-4-generic:xnack-", "gfx950:sramecc+:xnack-").ok());
  expectFailure(check("gfx9-4-generic:xnack+", "gfx950:sramecc+:xnack-"),
                StatusCode::Incompatible, "compile for gfx9-4-generic without");
  expectFailure(check("gfx9-generic:sramecc+", "gfx906:sramecc+:xnack-"),
                StatusCode::Incompatible, "gfx9-generic has no sramecc");
}

TEST(TargetIdTest, CloserCodeFitsBetter) {
  const TargetId device = *TargetId::parse("gfx942:sramecc+:xnack-");
  int last = -1;
  for (const char *text : {"gfx9-4-generic", "gfx9-4-generic:xnack-",
                           "gfx9-4-generic:sramecc+:xnack-", "gfx942",
                           "gfx942:xnack-", "gfx942:sramecc+:xnack-"}) {
    const int fit = targetFit(*TargetId::parse(text), device);
    EXPECT_GT(fit, last) << text;
    last = fit;
  }
}
