//===- KeysTest.cpp - canonical texts of problems -----------------------===//

#include "TestPackage.h"

using namespace fovea;
using namespace fovea::test;

TEST(ProblemKeyTest, CanonicalTextLeavesDefaultsOut) {
  EXPECT_EQ(makeProblem(128, DataType::BF16, MaskKind::CausalBottomRight).str(),
            "forward;dtype=bf16;head_dim=128;mask=causal_bottom_right");
  EXPECT_EQ(makeProblem(64, DataType::F16).str(),
            "forward;dtype=fp16;head_dim=64");
  ProblemKey gradients = makeProblem(64, DataType::F16);
  gradients.op = OpKind::Backward;
  EXPECT_EQ(gradients.str(), "backward;dtype=fp16;head_dim=64");
}

TEST(ProblemKeyTest, AScoreProgramIsPartOfTheContract) {
  ProblemKey key = makeProblem(64);
  key.score = 0x0123456789abcdef;
  EXPECT_EQ(key.str(), "forward;dtype=bf16;head_dim=64;score=0123456789abcdef");
  EXPECT_NE(key, makeProblem(64));
  EXPECT_NE(key.base(), makeProblem(64).base());
  Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(*parsed, key);
  EXPECT_EQ(scoreDigits(~uint64_t(0)), "ffffffffffffffff");
}

TEST(ProblemKeyTest, GradientsOfCapturesAreOtherKernels) {
  ProblemKey key = makeProblem(64);
  key.op = OpKind::Backward;
  key.score = 0x0123456789abcdef;
  const ProblemKey without = key;
  key.scoreGradients = 1 | 4;
  EXPECT_EQ(key.str(), "backward;dtype=bf16;head_dim=64;score=0123456789abcdef;"
                       "score_gradients=0+2");
  EXPECT_NE(key, without);
  EXPECT_NE(key.base(), without.base());
  for (unsigned captures = 1; captures != 256; ++captures) {
    key.scoreGradients = uint8_t(captures);
    Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
    ASSERT_TRUE(parsed) << parsed.status().message();
    EXPECT_EQ(*parsed, key);
  }
}

TEST(ProblemKeyTest, GradientsThatAreStoredAreOtherKernels) {
  ProblemKey key = makeProblem(64);
  key.op = OpKind::Backward;
  key.score = 0x0123456789abcdef;
  key.scoreGradients = 1 | 4;
  const ProblemKey added = key;
  key.storedGradients = 4;
  EXPECT_EQ(key.str(), "backward;dtype=bf16;head_dim=64;score=0123456789abcdef;"
                       "score_gradients=0+2;stored_gradients=2");
  EXPECT_NE(key.base(), added.base());
  Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(*parsed, key);
}

TEST(ProblemKeyTest, OfAttentionAloneAreHeadDimensionsAndMasks) {
  ProblemKey key;
  key.op = OpKind::DropoutMask;
  key.dtype = DataType::BF16;
  key.groups = spec::neededGroups(key.op);
  EXPECT_EQ(key.str(), "dropout_mask;dropout=1;dtype=bf16");
  Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(*parsed, key);
}

TEST(ProblemKeyTest, EveryKeySurvivesPrintingAndParsing) {
  for (OpKind op : {OpKind::Forward, OpKind::Backward})
    for (DataType dtype : {DataType::F16, DataType::BF16})
      for (MaskKind mask : {MaskKind::None, MaskKind::CausalTopLeft,
                            MaskKind::CausalBottomRight})
        for (int32_t dim = kMinHeadDim; dim <= kMaxHeadDim;
             dim += kHeadDimStep) {
          ProblemKey key = makeProblem(dim, dtype, mask);
          key.setHeadDims(dim, std::min(dim, kMaxHeadDimV));
          key.op = op;
          Expected<ProblemKey> parsed = ProblemKey::parse(key.str());
          ASSERT_TRUE(parsed) << parsed.status().message();
          EXPECT_EQ(*parsed, key);
        }
}

TEST(ProblemKeyTest, ReadsKeysInAnyOrderAndSpelledOutDefaults) {
  Expected<ProblemKey> key =
      ProblemKey::parse("forward;mask=none;head_dim_v=40;head_dim=40;"
                        "dtype=fp16");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->str(), "forward;dtype=fp16;head_dim=40");
}

TEST(ProblemKeyTest, RefusesAndNamesWhatItCannotRead) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "unknown operation ''"},
      {"sideways;dtype=fp16;head_dim=64",
       "unknown operation 'sideways'; known: forward, backward, dropout_mask"},
      {"forward;head_dim=64", "'dtype' is missing"},
      {"forward;dtype=fp16", "'head_dim' is missing"},
      {"forward;dtype=fp8;head_dim=64",
       "dtype 'fp8' is not fp16, bf16 or fp32"},
      {"forward;dtype=fp16;head_dim=12", "head_dim '12' is not 8 to 576"},
      {"forward;dtype=fp16;head_dim=64;head_dim_v=520",
       "head_dim_v '520' is not 8 to 512"},
      {"forward;dtype=fp16;head_dim=576", "head_dim_v is head_dim, 576"},
      {"forward;dtype=fp16;head_dim=584", "head_dim '584'"},
      {"forward;dtype=fp16;head_dim=64x", "head_dim '64x'"},
      {"forward;dtype=fp16;head_dim=64;head_dim=64", "given twice"},
      {"forward;dtype=fp16;head_dim=64;bias=1", "unknown key 'bias'"},
      {"forward;dtype=fp16;head_dim", "not of the form key=value"},
      {"forward;dtype=fp16;head_dim=64;mask=causal", "mask 'causal'"},
      {"forward;dtype=fp16;head_dim=64;score=softcap",
       "score 'softcap' is not 16 hexadecimal digits"},
      {"forward;dtype=fp16;head_dim=64;score=0000000000000000", "not all 0"},
      {"forward;dtype=fp16;head_dim=64;score=123456789abcdef", "score '1"},
      {"forward;dtype=fp16;head_dim=64;score=0123456789abcdeF", "score '0"},
      {"forward;dtype=fp16;head_dim=64;score=00123456789abcdef", "score '0"},
      {"backward;dtype=fp16;head_dim=64;score_gradients=0",
       "key 'score' is missing"},
      {"forward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=0",
       "score_gradients are of backward alone"},
      {"backward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=",
       "score_gradients '' is not numbers of captures, 0 to 7"},
      {"backward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=2+0",
       "score_gradients '2+0'"},
      {"backward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=0+8",
       "score_gradients '0+8'"},
      {"backward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=bias",
       "score_gradients 'bias'"},
      {"backward;dtype=fp16;head_dim=64;score=0123456789abcdef;"
       "score_gradients=1;stored_gradients=0+1",
       "stored_gradients 0+1 are not all among score_gradients"},
      {"dropout_mask;dtype=fp16", "key 'dropout' is missing"},
      {"dropout_mask;dropout=1;dtype=fp16;head_dim=64",
       "head_dim is not of dropout_mask"},
      {"dropout_mask;dropout=1;dtype=fp16;mask=causal_top_left",
       "mask is not of dropout_mask"},
      {"dropout_mask;dropout=1;dtype=fp16;window=1",
       "window is a feature group of forward, backward alone"},
  };
  for (const auto &[text, part] : cases)
    expectFailure(ProblemKey::parse(text).status(), StatusCode::InvalidArgument,
                  part);
}
