//===- OperationSpecTest.cpp - the tables of the operations ---------------===//

#include "fovea/Package/OperationSpec.h"
#include "../../Support/KernelArgs.h"
#include "fovea/Package/WriteFile.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

using namespace fovea;
using namespace fovea::spec;

namespace {

ProblemKey keyOf(OpKind op) {
  ProblemKey key;
  key.op = op;
  key.headDim = 64;
  return key;
}

/// With those of the operation among the first `count` feature groups.
ProblemKey keyOf(OpKind op, size_t count) {
  ProblemKey key = keyOf(op);
  for (size_t row = 0; row != count; ++row)
    if (featureGroups()[row].isOf(op))
      key.groups[row] = featureGroups()[row].version;
  return key;
}

std::map<std::string, size_t> offsetsOf(const Signature &signature) {
  std::map<std::string, size_t> offsets;
  for (const Argument &argument : signature.arguments)
    offsets[argument.name] = argument.offset;
  return offsets;
}

#define FOVEA_TENSOR(Args, name, field)                                        \
  {name, offsetof(Args, field)},                                               \
      {name "_stride_batch", offsetof(Args, field##StrideBatch)},              \
      {name "_stride_head", offsetof(Args, field##StrideHead)}, {              \
    name "_stride_seq", offsetof(Args, field##StrideSeq)                       \
  }
#define FOVEA_SIZES(Args)                                                      \
  {"lse", offsetof(Args, lse)},                                                \
      {"lse_stride_batch", offsetof(Args, lseStrideBatch)},                    \
      {"lse_stride_head", offsetof(Args, lseStrideHead)},                      \
      {"seqlen_q", offsetof(Args, seqlenQ)},                                   \
      {"seqlen_k", offsetof(Args, seqlenK)},                                   \
      {"heads_q", offsetof(Args, headsQ)},                                     \
      {"group_size", offsetof(Args, groupSize)}, {                             \
    "scale", offsetof(Args, scale)                                             \
  }

} // namespace

// What packages of earlier versions hold was compiled for these segments.
TEST(OperationSpec, BaseGroupsKeepTheirLayout) {
  using F = test::ForwardArgs;
  const Signature forward = signatureOf(keyOf(OpKind::Forward));
  EXPECT_EQ(forward.bytes, sizeof(F));
  EXPECT_EQ(offsetsOf(forward),
            (std::map<std::string, size_t>{
                FOVEA_TENSOR(F, "q", q), FOVEA_TENSOR(F, "k", k),
                FOVEA_TENSOR(F, "v", v), FOVEA_TENSOR(F, "out", out),
                FOVEA_SIZES(F)}));
  using B = test::BackwardArgs;
  const Signature backward = signatureOf(keyOf(OpKind::Backward));
  EXPECT_EQ(backward.bytes, sizeof(B));
  EXPECT_EQ(offsetsOf(backward), (std::map<std::string, size_t>{
                                     FOVEA_TENSOR(B, "q", q),
                                     FOVEA_TENSOR(B, "k", k),
                                     FOVEA_TENSOR(B, "v", v),
                                     FOVEA_TENSOR(B, "out", out),
                                     FOVEA_TENSOR(B, "dout", dout),
                                     FOVEA_TENSOR(B, "dq", dq),
                                     FOVEA_TENSOR(B, "dk", dk),
                                     FOVEA_TENSOR(B, "dv", dv),
                                     {"workspace", offsetof(B, workspace)},
                                     FOVEA_SIZES(B)}));
}

TEST(OperationSpec, GroupsFollowOneAnother) {
  for (const OperationSpec &operation : allOperations()) {
    if (!operation.isAttention)
      continue;
    const Signature base = signatureOf(keyOf(operation.op));
    const Signature window = signatureOf(keyOf(operation.op, 1));
    ASSERT_EQ(window.arguments.size(), base.arguments.size() + 3);
    const size_t behind = base.find("scale")->offset + 4;
    EXPECT_EQ(window.find("window_left")->offset, behind);
    EXPECT_EQ(window.find("window_right")->offset, behind + 4);
    EXPECT_EQ(window.find("window_alignment")->offset, behind + 8);
    for (const Argument &argument : base.arguments)
      EXPECT_EQ(window.find(argument.name)->offset, argument.offset);
    EXPECT_EQ(base.find("window_left"), nullptr);
  }
}

TEST(OperationSpec, TensorsInAnotherOrderMoveTheirArguments) {
  const ProblemKey key = keyOf(OpKind::Forward);
  const Signature standard = signatureOf(key);
  std::vector<const TensorSpec *> order(standard.tensors.rbegin(),
                                        standard.tensors.rend());
  EXPECT_TRUE(isStandard(key, standard.tensors));
  EXPECT_FALSE(isStandard(key, order));
  const Signature turned = signatureOf(key, order);
  EXPECT_EQ(turned.bytes, standard.bytes);
  EXPECT_EQ(turned.find("lse")->offset, 0u);
  EXPECT_EQ(turned.find("q")->offset, 32u);
  EXPECT_LT(turned.find("out_stride_seq")->offset,
            turned.find("q_stride_batch")->offset);
  EXPECT_EQ(turned.find("scale")->offset, standard.find("scale")->offset);
  order.pop_back();
  EXPECT_EQ(signatureOf(key, order).find("q"), nullptr);
}

TEST(OperationSpec, RowsHoldTogether) {
  for (const OperationSpec &operation : allOperations()) {
    EXPECT_EQ(&specOf(operation.op), &operation);
    EXPECT_STREQ(toString(operation.op), operation.name);
    const Signature largest =
        signatureOf(keyOf(operation.op, featureGroups().size()));
    EXPECT_LE(largest.tensors.size(), kMaxTensors);
    EXPECT_LE(largest.bytes, kMaxArgumentBytes);
    std::set<std::string> names, suffixes;
    unsigned outputs = 0;
    for (const Argument &argument : largest.arguments)
      EXPECT_TRUE(names.insert(argument.name).second) << argument.name;
    for (const TensorSpec *tensor : largest.tensors) {
      EXPECT_TRUE(tensor->written || tensor->output == kNoOutput)
          << tensor->name;
      outputs |= tensor->output;
    }
    for (const AlgorithmSpec &algorithm : operation.algorithms) {
      EXPECT_EQ(operation.findAlgorithm(algorithm.name), &algorithm);
      const std::vector<const LaunchSpec *> launches =
          launchesOf(keyOf(operation.op, featureGroups().size()), algorithm);
      EXPECT_LE(launches.size(), kMaxLaunches);
      unsigned writes = 0;
      for (const LaunchSpec *launch : launches) {
        writes |= launch->writes;
        const auto found = operation.findLaunch(launch->suffix);
        EXPECT_EQ(found.launch, launch);
        EXPECT_TRUE(!found.algorithm || found.algorithm == &algorithm);
        EXPECT_EQ(launch->writes & ~outputs, 0u);
        EXPECT_LE(launch->credited, launch->products);
      }
      EXPECT_EQ(writes, outputs) << algorithm.name;
      for (const LaunchSpec &launch : algorithm.launches)
        EXPECT_TRUE(suffixes.insert(launch.suffix).second) << launch.suffix;
    }
    for (const GroupSpec &group : featureGroups())
      for (const LaunchSpec &launch : group.launches)
        if (group.isOf(operation.op))
          EXPECT_TRUE(suffixes.insert(launch.suffix).second) << launch.suffix;
    EXPECT_EQ(operation.findAlgorithm("none"), nullptr);
    EXPECT_EQ(operation.findLaunch("none").launch, nullptr);
  }
}

TEST(OperationSpec, WorkspacesAreAsBefore) {
  const OperationSpec &backward = specOf(OpKind::Backward);
  EXPECT_EQ(specOf(OpKind::Forward).algorithms[0].workspace.bytes(2, 3, 5, 64),
            0);
  EXPECT_EQ(
      backward.findAlgorithm("deterministic")->workspace.bytes(2, 3, 5, 64),
      2 * 3 * 5 * 4);
  // Of a batch 15 rows are padded to 16.
  EXPECT_EQ(backward.findAlgorithm("atomic")->workspace.bytes(2, 3, 5, 64),
            2 * 16 * 65 * 4);
  EXPECT_EQ(backward.findAlgorithm("atomic")->workspace.bytes(2, 3, 0, 64), 0);
  // No other multiplies by the shares of the keys.
  EXPECT_EQ(backward.findAlgorithm("atomic")->workspace.bytes(2, 3, 5, 64, 7),
            2 * 16 * 65 * 4);
  const AlgorithmSpec &split = *specOf(OpKind::Forward).findAlgorithm("split");
  EXPECT_EQ(split.workspace.bytes(2, 3, 5, 64, 7), 2 * 3 * 5 * 7 * 68 * 4);
}

// Rows of a head are padded to 32 and have 32 behind them, also where there are
// none, for the kernel that adds to no query; columns are padded to 64.
TEST(OperationSpec, NarrowSumsLieInWholeBlocks) {
  const OperationSpec &backward = specOf(OpKind::Backward);
  const AlgorithmSpec &narrow = *backward.findAlgorithm("atomic16");
  EXPECT_TRUE(narrow.sumsNarrowly());
  EXPECT_FALSE(narrow.deterministic);
  EXPECT_EQ(narrow.workspace.bytes(2, 3, 33, 40), 2 * 3 * 96 * (4 + 2 * 64));
  EXPECT_EQ(narrow.workspace.bytes(2, 3, 32, 72), 2 * 3 * 64 * (4 + 2 * 128));
  EXPECT_EQ(narrow.workspace.bytes(2, 3, 0, 64), 2 * 3 * 32 * (4 + 2 * 64));
  for (const char *other : {"deterministic", "atomic"})
    EXPECT_FALSE(backward.findAlgorithm(other)->sumsNarrowly());
  // Half of what sums of fp32 take.
  EXPECT_LT(narrow.workspace.bytes(4, 16, 4096, 128),
            0.52 * backward.findAlgorithm("atomic")->workspace.bytes(
                       4, 16, 4096, 128));
}

TEST(OperationSpec, AlgorithmsHaveArgumentsOfTheirOwn) {
  const AlgorithmSpec &split = *specOf(OpKind::Forward).findAlgorithm("split");
  const ProblemKey key = keyOf(OpKind::Forward, featureGroups().size());
  const Signature without = signatureOf(key), with = signatureOf(key, &split);
  ASSERT_EQ(with.arguments.size(), without.arguments.size() + 3);
  for (size_t i = 0; i != without.arguments.size(); ++i) {
    EXPECT_EQ(with.arguments[i].name, without.arguments[i].name);
    EXPECT_EQ(with.arguments[i].offset, without.arguments[i].offset);
  }
  EXPECT_EQ(with.arguments[without.arguments.size()].name, "workspace");
  EXPECT_EQ(with.arguments[without.arguments.size() + 1].name, "splits");
  EXPECT_EQ(with.arguments.back().name, "packed_heads");
  EXPECT_EQ(groupsOf(key, &split).back(), &split.own);
  EXPECT_EQ(groupsOf(key).size() + 1, groupsOf(key, &split).size());
  // Behind the tensors of all groups.
  size_t tensors = specOf(OpKind::Forward).base.tensors.size();
  for (const GroupSpec &group : featureGroups())
    tensors += group.tensors.size();
  EXPECT_EQ(numberOf(OpKind::Forward, split.own.tensors[0]), tensors);
}

// A group of one operation is in no key of another, however it is asked for.
TEST(OperationSpec, GroupsAreOfTheirOperations) {
  const GroupSpec &dlse = featureGroups()[size_t(findGroup("dlse"))];
  EXPECT_TRUE(dlse.isOf(OpKind::Backward));
  EXPECT_FALSE(dlse.isOf(OpKind::Forward));
  EXPECT_EQ(operationsOf(dlse), "backward");
  EXPECT_EQ(operationsOf(featureGroups()[kWindowGroup]), "forward, backward");
  const std::string rest = ";dlse=1;dtype=bf16;head_dim=64";
  EXPECT_TRUE(bool(ProblemKey::parse("backward" + rest)));
  auto key = ProblemKey::parse("forward" + rest);
  ASSERT_FALSE(bool(key));
  EXPECT_NE(
      key.status().message().find("dlse is a feature group of backward alone"),
      std::string::npos)
      << key.status().message();
}

TEST(OperationSpec, SinksHaveHeadsAlone) {
  const Signature signature =
      signatureOf(keyOf(OpKind::Forward, featureGroups().size()));
  const int number = signature.tensor("sinks");
  ASSERT_GE(number, 0);
  EXPECT_EQ(shapeOf(*signature.tensors[size_t(number)]), "[heads_q]");
  EXPECT_NE(signature.find("sinks_stride_head"), nullptr);
  EXPECT_EQ(signature.find("sinks_stride_batch"), nullptr);
}

//===----------------------------------------------------------------------===//
// Documentation
//===----------------------------------------------------------------------===//

namespace {

/// The arguments of a group, those of a signature from `next` on.
std::string argumentTable(const std::string &title, const GroupSpec &group,
                          const Signature &signature, size_t &next) {
  const char *types[] = {"pointer", "int64", "int32", "float"};
  std::string text = "\n### " + title + ", group `" + group.name +
                     "`, version " + std::to_string(group.version) +
                     "\n| offset | argument | type | unit | meaning |\n"
                     "|---|---|---|---|---|\n";
  for (; next != signature.arguments.size(); ++next) {
    const Argument &argument = signature.arguments[next];
    text += "| " + std::to_string(argument.offset) + " | `" + argument.name +
            "` | " + types[size_t(argument.kind)] + " | " + argument.unit +
            " | " + argument.meaning + " |\n";
  }
  return text;
}

/// The tables of docs/KernelAbi.md.
std::string argumentTables() {
  std::string text;
  for (const OperationSpec &operation : allOperations()) {
    const std::string title = std::string("`attn.") + operation.name + "`";
    const size_t groups = featureGroups().size();
    size_t next = 0;
    for (size_t count = 0; count <= groups; ++count)
      if (count == 0 || featureGroups()[count - 1].isOf(operation.op))
        text += argumentTable(
            title, count == 0 ? operation.base : featureGroups()[count - 1],
            signatureOf(keyOf(operation.op, count)), next);
    for (const AlgorithmSpec &algorithm : operation.algorithms) {
      size_t own = next;
      if (algorithm.own.name)
        text += argumentTable(
            title + " by algorithm `" + algorithm.name + "`", algorithm.own,
            signatureOf(keyOf(operation.op, groups), &algorithm), own);
    }
  }
  return text;
}

} // namespace

// FOVEA_WRITE_DOCS=1 writes the tables instead.
TEST(OperationSpec, IsWhatTheDocumentationSays) {
  const std::string path = FOVEA_DOCS "/KernelAbi.md";
  std::ifstream file(path);
  std::stringstream read;
  read << file.rdbuf();
  std::string text = read.str();
  const std::string begin = "<!-- tables of the arguments: made by "
                            "OperationSpecTest -->\n",
                    end = "<!-- end of the tables -->\n";
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos) << path;
  ASSERT_NE(to, std::string::npos) << path;
  const size_t inner = from + begin.size();
  if (std::getenv("FOVEA_WRITE_DOCS")) {
    text.replace(inner, to - inner, argumentTables());
    ASSERT_FALSE(writeWhole(path, text));
    return;
  }
  EXPECT_EQ(text.substr(inner, to - inner), argumentTables())
      << "run this test once with FOVEA_WRITE_DOCS=1 to write " << path;
}

//===----------------------------------------------------------------------===//
// Visibility
//===----------------------------------------------------------------------===//

TEST(Visibility, TextsOfWindows) {
  for (const MaskInfo &info : kMasks) {
    EXPECT_EQ(toString(Window(info.kind)), info.name);
    EXPECT_EQ(parseWindow(info.name), info.window);
    EXPECT_EQ(parseWindow(info.option), info.window);
  }
  const Alignment top = Alignment::TopLeft, bottom = Alignment::BottomRight;
  const int64_t inf = Window::kInfinite;
  const std::pair<const char *, Window> windows[] = {
      {"128:0", {128, 0, bottom, bottom}},
      {"-3:inf,top-left", {-3, inf, top, top}},
      {"inf:-7,bottom-right:top-left", {inf, -7, bottom, top}},
  };
  for (const auto &[text, window] : windows)
    EXPECT_EQ(parseWindow(text), window) << text;
  EXPECT_EQ(toString(windows[0].second), "window(128:0, bottom_right)");
  EXPECT_EQ(toString(windows[2].second),
            "window(inf:-7, bottom_right:top_left)");
  for (const char *text :
       {"", ":", "1", "1:", ":1", "1:2:3", "1:2,", "1:2,top", "x:1",
        "1:2,top-left:", "1:2,top-left:top-left:top-left", "causal",
        "9223372036854775808:0", " 1:2"})
    EXPECT_FALSE(parseWindow(text)) << text;
}

TEST(Visibility, BandsAreTheFormula) {
  const int64_t inf = Window::kInfinite;
  const int64_t sides[] = {inf, inf - 1, INT64_MIN, -9, -3, -1, 0, 1, 4, 7, 30};
  for (int64_t seqQ : {1, 3, 6, 9})
    for (int64_t seqK : {0, 1, 3, 6, 9})
      for (int64_t left : sides)
        for (int64_t right : sides)
          for (Alignment la : {Alignment::TopLeft, Alignment::BottomRight})
            for (Alignment ra : {Alignment::TopLeft, Alignment::BottomRight}) {
              const Window window(left, right, la, ra);
              const Band band = bandOf(window, seqQ, seqK);
              EXPECT_LE(-seqQ, band.first);
              EXPECT_LE(band.end, std::max(seqK, -seqQ));
              bool same[] = {true, true, true};
              for (int64_t i = 0; i < seqQ; ++i)
                for (int64_t j = 0; j < seqK; ++j) {
                  using Wide = __int128;
                  const Wide dl = la == Alignment::TopLeft ? 0 : seqK - seqQ;
                  const Wide dr = ra == Alignment::TopLeft ? 0 : seqK - seqQ;
                  const bool sees = (left == inf || j >= i + dl - left) &&
                                    (right == inf || j <= i + dr + right);
                  EXPECT_EQ(band.keysOf(i, seqK).sees(j), sees)
                      << toString(window) << " " << seqQ << "x" << seqK << " "
                      << i << ", " << j;
                  same[0] &= sees;
                  same[1] &= sees == (j <= i);
                  same[2] &= sees == (j <= i + seqK - seqQ);
                }
              // A mask that is said to be the same is the same. (It may be the
              // same and not be noticed where a window shows nothing.)
              for (const MaskInfo &info : kMasks)
                if (isSame(info.kind, window, seqQ, seqK)) {
                  EXPECT_TRUE(same[int(info.kind)])
                      << toString(window) << " " << info.name;
                }
            }
  for (const MaskInfo &info : kMasks)
    for (int64_t seqQ : {0, 1, 7})
      for (int64_t seqK : {0, 1, 7})
        EXPECT_TRUE(isSame(info.kind, info.window, seqQ, seqK)) << info.name;
}

TEST(Visibility, ArgumentsSaturate) {
  EXPECT_EQ(windowArgument(Window::kInfinite), INT32_MAX);
  EXPECT_EQ(windowArgument(INT64_MIN), -INT32_MAX);
  EXPECT_EQ(windowArgument(-5), -5);
  EXPECT_EQ(windowAlignment({0, 0, Alignment::TopLeft, Alignment::BottomRight}),
            2);
  EXPECT_EQ(windowAlignment({0, 0, Alignment::BottomRight, Alignment::TopLeft}),
            1);
}
