//===- CapturesTest.cpp - what score programs capture ---------------------===//

#include "fovea/Package/OperationSpec.h"

#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::spec;

TEST(Captures, TextsReadBack) {
  for (const char *text : {"", "f32", "i32", "f32, i32", "bf16[?]", "i1[?, 1]",
                           "bf16[batch:?, head:?, query:?, key:1], f32",
                           "i32[query+key:?]", "f16[batch+head+query+key:1]"}) {
    auto captures = parseCaptures(text);
    ASSERT_TRUE(captures) << captures.status().message();
    EXPECT_EQ(toString(*captures), text);
  }
}

TEST(Captures, OthersAreRefused) {
  for (const char *text :
       {"bf16", "i1", "f64[?]", "f32[]", "f32[?", "f32[1, ?]", "f32[2]",
        "f32[key+query:?]", "f32[key]", "f32[?, ?, ?, ?, ?]", "f32,f32", "f32 ",
        "f32, ", "f32, f32, f32, f32, f32, f32, f32, f32, f32"}) {
    auto captures = parseCaptures(text);
    ASSERT_FALSE(captures) << text;
    EXPECT_NE(captures.status().message().find(text), std::string::npos)
        << captures.status().message();
  }
}

// A capture is passed as scalar, or as address, strides and extents.
TEST(Captures, FollowTheGroups) {
  ProblemKey key;
  key.headDim = 64;
  const Signature plain = signatureOf(key);
  const AlgorithmSpec &split = *specOf(OpKind::Forward).findAlgorithm("split");
  const Signature with =
      signatureOf(key, &split, *parseCaptures("f32, bf16[?, key:1]"));
  size_t at = plain.arguments.size();
  const struct {
    const char *name;
    ArgKind kind;
    Source source;
    uint8_t dim;
  } wanted[] = {{"capture0", ArgKind::F32, Source::Capture, 0},
                {"capture1", ArgKind::Pointer, Source::Capture, 0},
                {"capture1_stride0", ArgKind::I64, Source::CaptureStride, 0},
                {"capture1_stride1", ArgKind::I64, Source::CaptureStride, 1},
                {"capture1_extent0", ArgKind::I32, Source::CaptureExtent, 0},
                {"capture1_extent1", ArgKind::I32, Source::CaptureExtent, 1}};
  for (const auto &row : wanted) {
    const Argument &argument = with.arguments[at++];
    EXPECT_EQ(argument.name, row.name);
    EXPECT_EQ(argument.kind, row.kind);
    EXPECT_EQ(argument.source, row.source);
    EXPECT_EQ(argument.dim, row.dim);
    EXPECT_EQ(argument.offset % sizeOf(row.kind), 0u);
  }
  EXPECT_EQ(with.arguments[at].name, "workspace");
  for (size_t i = 0; i != plain.arguments.size(); ++i)
    EXPECT_EQ(plain.arguments[i].offset, with.arguments[i].offset);
}

// Gradients follow what is captured, and are no part of other keys.
TEST(Captures, GradientsFollowThem) {
  ProblemKey key;
  key.op = OpKind::Backward;
  key.headDim = 64;
  key.score = 1;
  const auto captures = parseCaptures("f32, i32[?], bf16[?, key:1]");
  const Signature plain = signatureOf(key, nullptr, *captures);
  key.scoreGradients = 1 | 4;
  const Signature with = signatureOf(key, nullptr, *captures);
  const struct {
    const char *name;
    ArgKind kind;
    Source source;
    uint8_t index, dim;
  } wanted[] = {
      {"dcapture0", ArgKind::Pointer, Source::CaptureGradient, 0, 0},
      {"dcapture2", ArgKind::Pointer, Source::CaptureGradient, 2, 0},
      {"dcapture2_stride0", ArgKind::I64, Source::CaptureGradientStride, 2, 0},
      {"dcapture2_stride1", ArgKind::I64, Source::CaptureGradientStride, 2, 1}};
  size_t at = plain.arguments.size();
  ASSERT_EQ(with.arguments.size(), at + std::size(wanted));
  for (const auto &row : wanted) {
    const Argument &argument = with.arguments[at++];
    EXPECT_EQ(argument.name, row.name);
    EXPECT_EQ(argument.kind, row.kind);
    EXPECT_EQ(argument.source, row.source);
    EXPECT_EQ(argument.index, row.index);
    EXPECT_EQ(argument.dim, row.dim);
  }
  for (size_t i = 0; i != plain.arguments.size(); ++i)
    EXPECT_EQ(plain.arguments[i].offset, with.arguments[i].offset);
}

TEST(Captures, KnowWhoseElementsTheyHave) {
  const std::pair<const char *, bool> cases[] = {
      {"bf16[batch:?, head:?, query:?, key:1]", true},
      {"f32[key:?, query:?, head:?, batch:?]", true},
      {"f32[batch:?, head:?]", false},
      {"f32[batch:?, head:?, query:?, ?]", false},
      {"f32[batch:?, head:?, query+key:?, query+key:?]", false},
      {"f32", false}};
  for (const auto &[text, isOfEach] : cases)
    EXPECT_EQ((*parseCaptures(text))[0].hasElementOfEach(), isOfEach) << text;
}

TEST(Captures, AsManyAsThereCanBeFit) {
  std::string all;
  for (size_t i = 0; i != kMaxCaptures; ++i)
    all += std::string(i ? ", " : "") + "f32[?, ?, ?, ?]";
  for (const OperationSpec &operation : allOperations())
    for (const AlgorithmSpec &algorithm : operation.algorithms) {
      ProblemKey key;
      key.op = operation.op;
      key.headDim = 64;
      for (size_t row = 0; row != featureGroups().size(); ++row)
        key.groups[row] = featureGroups()[row].version;
      if (operation.op == OpKind::Backward)
        key.scoreGradients = 255;
      EXPECT_LE(signatureOf(key, &algorithm, *parseCaptures(all)).bytes,
                kMaxArgumentBytes);
    }
}
