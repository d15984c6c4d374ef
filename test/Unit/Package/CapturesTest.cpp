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
      EXPECT_LE(signatureOf(key, &algorithm, *parseCaptures(all)).bytes,
                kMaxArgumentBytes);
    }
}
