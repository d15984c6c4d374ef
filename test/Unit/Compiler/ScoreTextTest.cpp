//===- ScoreTextTest.cpp - the names of score programs --------------------===//
//
// Spellings of one program have one digest, other programs others, and a digest
// stays what it is.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/ScoreText.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace fovea;

namespace {

class ScoreTextTest : public ::testing::Test {
protected:
  ScoreTextTest() : context(dialects(), MLIRContext::Threading::DISABLED) {}

  static const DialectRegistry &dialects() {
    static const DialectRegistry *registry = [] {
      auto *all = new DialectRegistry;
      registerFoveaDialects(*all);
      return all;
    }();
    return *registry;
  }

  /// The op of a backward pass with a program of these ops.
  attn::BackwardOp parse(const std::string &ops) {
    const std::string text = R"(
      !t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
      !l = memref<?x?x?xf32, strided<[?, ?, 1]>>
      !w = memref<?xi8>
      func.func @f(%t: !t, %l: !l, %w: !w, %scale: f32) {
        attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w)
            scale(%scale) score {
        ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
      )" + ops + R"(
        } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
        return
      })";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << ops;
    attn::BackwardOp found;
    if (module)
      module->walk([&](attn::BackwardOp op) { found = op; });
    return found;
  }
  std::string textOf(const std::string &ops) {
    attn::BackwardOp op = parse(ops);
    return op ? attn::canonicalScore(op.getScore()).text : "no program";
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr const char *kSoftcap = R"(
  %cap = arith.constant 30.0 : f32
  %small = arith.divf %x, %cap : f32
  %bounded = math.tanh %small : f32
  %s = arith.mulf %bounded, %cap : f32
  attn.yield %s : f32)";

} // namespace

TEST_F(ScoreTextTest, IsWhatPackagesHaveBeenBuiltWith) {
  attn::BackwardOp op = parse(kSoftcap);
  ASSERT_TRUE(op);
  const attn::ScoreText softcap = attn::canonicalScore(op.getScore());
  EXPECT_EQ(softcap.text, "score 1\n"
                          "%0 = arith.constant 0x41f00000 : f32\n"
                          "%1 = arith.divf x, %0 : f32\n"
                          "%2 = math.tanh %1 : f32\n"
                          "%3 = arith.mulf %2, %0 : f32\n"
                          "yield %3");
  EXPECT_EQ(scoreDigits(softcap.digest), "736062940417eeab");
  FailureOr<ProblemKey> key = attn::keyOf(op);
  ASSERT_TRUE(succeeded(key));
  EXPECT_EQ(key->score, softcap.digest);
}

TEST_F(ScoreTextTest, SpellingsOfOneProgramAreOne) {
  const std::string softcap = textOf(kSoftcap);
  const char *spellings[] = {
      // Another order of operands and ops, two constants, a dead op.
      R"(%dead = arith.addi %i, %j : i32
         %again = arith.constant 30.0 : f32
         %cap = arith.constant 30.0 : f32
         %small = arith.divf %x, %again : f32
         %bounded = math.tanh %small : f32
         %s = arith.mulf %cap, %bounded : f32
         attn.yield %s : f32)",
      // What folds, attributes that say what is said anyway, notes.
      R"(%half = arith.constant 15.0 : f32
         %one = arith.constant 1.0 : f32
         %cap = arith.addf %half, %half : f32
         %y = arith.mulf %one, %x fastmath<none> : f32
         %small = arith.divf %y, %cap {note = "by the cap"} : f32
         %bounded = math.tanh %small : f32
         %s = arith.mulf %bounded, %cap : f32
         attn.yield %s : f32)",
      // The same value twice.
      R"(%cap = arith.constant 30.0 : f32
         %small = arith.divf %x, %cap : f32
         %less = arith.divf %x, %cap : f32
         %never = arith.constant false
         %either = arith.select %never, %less, %small : f32
         %bounded = math.tanh %either : f32
         %s = arith.mulf %bounded, %cap : f32
         attn.yield %s : f32)",
  };
  for (const char *spelling : spellings)
    EXPECT_EQ(textOf(spelling), softcap) << spelling;
}

TEST_F(ScoreTextTest, OtherProgramsAreOthers) {
  const char *programs[] = {
      "attn.yield %x : f32",
      kSoftcap,
      // The last bit of a constant.
      R"(%c = arith.constant 0x41F00001 : f32
         %0 = arith.divf %x, %c : f32
         %1 = math.tanh %0 : f32
         %2 = arith.mulf %1, %c : f32
         attn.yield %2 : f32)",
      // Operands where their order counts.
      R"(%c = arith.constant 30.0 : f32
         %0 = arith.divf %c, %x : f32
         %1 = math.tanh %0 : f32
         %2 = arith.mulf %1, %c : f32
         attn.yield %2 : f32)",
      // The derivative of equal operands is that of the first.
      R"(%c = arith.constant 30.0 : f32
         %0 = arith.maximumf %x, %c : f32
         attn.yield %0 : f32)",
      R"(%c = arith.constant 30.0 : f32
         %0 = arith.maximumf %c, %x : f32
         attn.yield %0 : f32)",
      // Arguments, predicates, flags.
      R"(%0 = arith.sitofp %i : i32 to f32
         %1 = arith.cmpf olt, %x, %0 : f32
         %2 = arith.select %1, %x, %0 : f32
         attn.yield %2 : f32)",
      R"(%0 = arith.sitofp %j : i32 to f32
         %1 = arith.cmpf olt, %x, %0 : f32
         %2 = arith.select %1, %x, %0 : f32
         attn.yield %2 : f32)",
      R"(%0 = arith.sitofp %i : i32 to f32
         %1 = arith.cmpf ult, %x, %0 : f32
         %2 = arith.select %1, %x, %0 : f32
         attn.yield %2 : f32)",
      R"(%0 = arith.sitofp %i : i32 to f32
         %1 = arith.cmpf olt, %x, %0 fastmath<nnan> : f32
         %2 = arith.select %1, %x, %0 : f32
         attn.yield %2 : f32)",
      R"(%0 = arith.cmpi slt, %i, %j : i32
         %1 = arith.uitofp %0 : i1 to f32
         attn.yield %1 : f32)",
      R"(%0 = arith.cmpi ult, %i, %j : i32
         %1 = arith.uitofp %0 : i1 to f32
         attn.yield %1 : f32)",
      // A derivative of one's own.
      R"(%0 = math.exp %x : f32
         attn.yield %0 : f32)",
      R"(%0 = math.exp %x : f32
         attn.yield %0, %x : f32, f32)",
      // A predicate, and a score that is -infinity in its place.
      R"(%0 = arith.cmpi sle, %j, %i : i32
         attn.yield %x, %0 : f32, i1)",
      R"(%0 = arith.cmpi sle, %j, %i : i32
         attn.yield %x, %0, %x : f32, i1, f32)",
      R"(%none = arith.constant 0xFF800000 : f32
         %0 = arith.cmpi sle, %j, %i : i32
         %1 = arith.select %0, %x, %none : f32
         attn.yield %1 : f32)",
  };
  llvm::StringMap<const char *> seen;
  for (const char *program : programs) {
    auto [at, isNew] = seen.try_emplace(textOf(program), program);
    EXPECT_TRUE(isNew) << program << "\nhas the text of\n" << at->second;
  }
}

TEST_F(ScoreTextTest, TheRulesDerivativeIsNoPartOfIt) {
  const std::string before = textOf(kSoftcap);
  attn::BackwardOp op = parse(kSoftcap);
  ASSERT_TRUE(op);
  ASSERT_TRUE(succeeded(attn::differentiate(op.getScore(), {})));
  EXPECT_EQ(attn::canonicalScore(op.getScore()).text, before);
  // Of which they know none it is.
  EXPECT_EQ(textOf("%0 = arith.bitcast %x : f32 to i32\n"
                   "%1 = arith.bitcast %0 : i32 to f32\n"
                   "attn.yield %1, %x : f32, f32"),
            "score 1\n%0 = arith.bitcast x : i32\n%1 = arith.bitcast %0 : f32\n"
            "yield %1, x");
}

TEST_F(ScoreTextTest, SaysWhatIsSeen) {
  const std::string capped = "score 1\n"
                             "%0 = arith.constant 0x40000000 : f32\n"
                             "%1 = arith.mulf x, %0 : f32\n"
                             "%2 = arith.cmpi sle key, query : i1\n"
                             "yield %1 seen %2";
  const std::string ops = R"(
    %two = arith.constant 2.0 : f32
    %s = arith.mulf %x, %two : f32
    %seen = arith.cmpi sle, %j, %i : i32
  )";
  EXPECT_EQ(textOf(ops + "attn.yield %s, %seen : f32, i1"), capped);
  // The rules' derivative is no part of it, another is.
  EXPECT_EQ(textOf(ops + "attn.yield %s, %seen, %two : f32, i1, f32"), capped);
  EXPECT_EQ(textOf(ops + "attn.yield %s, %seen, %x : f32, i1, f32"),
            capped + ", x");
  attn::BackwardOp op = parse(ops + "attn.yield %s, %seen : f32, i1");
  ASSERT_TRUE(op);
  ASSERT_TRUE(succeeded(attn::differentiate(op.getScore(), {})));
  EXPECT_EQ(attn::canonicalScore(op.getScore()).text, capped);
  // What is always seen has no predicate.
  EXPECT_EQ(textOf("%true = arith.constant true\n"
                   "%seen = arith.ori %true, %true : i1\n"
                   "attn.yield %x, %seen : f32, i1"),
            textOf("attn.yield %x : f32"));
}

TEST_F(ScoreTextTest, LongProgramsNeedNoStack) {
  std::string ops = "%v0 = math.exp %x : f32\n";
  for (int i = 1; i != 5000; ++i)
    ops += "%v" + std::to_string(i) + " = math.exp %v" + std::to_string(i - 1) +
           " : f32\n";
  EXPECT_EQ(
      llvm::StringRef(textOf(ops + "attn.yield %v4999 : f32")).count('\n'),
      5001u);
}
