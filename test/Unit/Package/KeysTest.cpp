//===- KeysTest.cpp - canonical texts of problems and targets -------------===//

#include "TestPackage.h"

using namespace fovea;
using namespace fovea::test;

TEST(ProblemKeyTest, CanonicalTextLeavesDefaultsOut) {
  EXPECT_EQ(makeProblem(128, DataType::BF16, MaskKind::CausalBottomRight).str(),
            "forward;dtype=bf16;head_dim=128;mask=causal_bottom_right");
  EXPECT_EQ(makeProblem(64, DataType::F16).str(),
            "forward;dtype=fp16;head_dim=64");
}

TEST(ProblemKeyTest, EveryKeySurvivesPrintingAndParsing) {
  for (DataType dtype : {DataType::F16, DataType::BF16})
    for (MaskKind mask :
         {MaskKind::None, MaskKind::CausalTopLeft, MaskKind::CausalBottomRight})
      for (int32_t dim = kMinHeadDim; dim <= kMaxHeadDim; dim += kHeadDimStep) {
        const ProblemKey key = makeProblem(dim, dtype, mask);
        Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
        ASSERT_TRUE(parsed) << parsed.status().message();
        EXPECT_EQ(*parsed, key);
      }
}

TEST(ProblemKeyTest, ReadsKeysInAnyOrderAndSpelledOutDefaults) {
  Expected<ProblemKey> key =
      ProblemKey::parse("forward;mask=none;head_dim=40;dtype=fp16");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->str(), "forward;dtype=fp16;head_dim=40");
}

TEST(ProblemKeyTest, RefusesAndNamesWhatItCannotRead) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "unknown operation ''"},
      {"backward;dtype=fp16;head_dim=64", "unknown operation 'backward'"},
      {"forward;head_dim=64", "'dtype' is missing"},
      {"forward;dtype=fp16", "'head_dim' is missing"},
      {"forward;dtype=fp8;head_dim=64", "dtype 'fp8' is not fp16 or bf16"},
      {"forward;dtype=fp16;head_dim=12", "head_dim '12' is not 16 to 512"},
      {"forward;dtype=fp16;head_dim=520", "head_dim '520'"},
      {"forward;dtype=fp16;head_dim=64x", "head_dim '64x'"},
      {"forward;dtype=fp16;head_dim=64;head_dim=64", "given twice"},
      {"forward;dtype=fp16;head_dim=64;bias=1", "unknown key 'bias'"},
      {"forward;dtype=fp16;head_dim", "not of the form key=value"},
      {"forward;dtype=fp16;head_dim=64;mask=causal", "mask 'causal'"},
  };
  for (const auto &[text, part] : cases)
    expectFailure(ProblemKey::parse(text).status(), StatusCode::InvalidArgument,
                  part);
}

TEST(TargetIdTest, ReadsAndPrintsHipSpelling) {
  for (const char *text : {"gfx942", "gfx942:xnack-", "gfx942:sramecc+:xnack-",
                           "gfx90a:sramecc-:xnack+", "gfx1151"}) {
    Expected<TargetId> target = TargetId::parse(text);
    ASSERT_TRUE(target) << target.status().message();
    EXPECT_EQ(target->str(), text);
  }
  for (const char *text : {"", "942", "gfx", "gfx942:xnack", "gfx942:foo+",
                           "GFX942", "gfx942:xnack+:xnack-", "gfx942::xnack+"})
    EXPECT_FALSE(TargetId::parse(text)) << text;
}

TEST(TargetIdTest, FeaturesOfCodeMustMatchTheDevice) {
  auto check = [](const char *code, const char *device) {
    return checkTargetRunsOn(*TargetId::parse(code), *TargetId::parse(device));
  };
  EXPECT_TRUE(check("gfx942", "gfx942:sramecc+:xnack-").ok());
  EXPECT_TRUE(check("gfx942:xnack-", "gfx942:sramecc+:xnack-").ok());
  expectFailure(check("gfx942:xnack+", "gfx942:sramecc+:xnack-"),
                StatusCode::Incompatible, "needs xnack on");
  expectFailure(check("gfx942:sramecc-", "gfx942:sramecc+:xnack-"),
                StatusCode::Incompatible, "needs sramecc off");
  expectFailure(check("gfx942:sramecc-", "gfx942"), StatusCode::Incompatible,
                "not stated");
  expectFailure(check("gfx950", "gfx942"), StatusCode::Incompatible,
                "it is for gfx950, the device is gfx942");
}
