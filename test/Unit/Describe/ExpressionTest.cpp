//===- ExpressionTest.cpp - arithmetic on named numbers -------------------===//

#include "Expression.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fovea::describe;

namespace {

bool lookUp(const std::string &name, Number &value, std::string &error) {
  if (name == "n")
    value = int64_t(100);
  else if (name == "half_")
    value = 0.5;
  else {
    error = "no variable '" + name + "'";
    return false;
  }
  return true;
}

std::string value(const std::string &text) {
  Number number;
  std::string error;
  if (!evaluate(text, lookUp, number, error))
    return "error: " + error;
  return number.integer ? std::to_string(number.whole)
                        : "f" + std::to_string(number.fraction);
}

TEST(Expression, FollowsC) {
  const std::pair<const char *, int64_t> cases[] = {
      {"1 + 2 * 3", 1 + 2 * 3},
      {"(1 + 2) * 3", 9},
      {"7 / 2", 7 / 2},
      {"-7 / 2", -7 / 2},
      {"-7 % 4", -7 % 4},
      {"10 - 4 - 3", 10 - 4 - 3},
      {"1 << 4 + 1", 1 << (4 + 1)},
      {"-8 >> 1", -8 >> 1},
      {"6 & 3 | 8 ^ 1", (6 & 3) | (8 ^ 1)},
      {"1 < 2 == 1", (1 < 2) == 1},
      {"3 >= 3 && 2 != 2 || 5 > 4", 1},
      {"!0 + !7", 1},
      {"~5", ~5},
      {"- - 3", 3},
      {"n > 50 ? n / 2 : n", 50},
      {"n > 200 ? 1 : n > 50 ? 2 : 3", 2},
      {"0x1F + 010", 31 + 10}, // no octal
      {"n % 8 != 0 || n > 16384 ? 3 : 5", 3},
  };
  for (const auto &[text, expected] : cases)
    EXPECT_EQ(value(text), std::to_string(expected)) << text;
}

TEST(Expression, MixesIntegersAndFractions) {
  EXPECT_EQ(value("1 / 4.0"), "f0.250000");
  EXPECT_EQ(value("n * half_"), "f50.000000");
  EXPECT_EQ(value("1e2 == n"), "1");
  EXPECT_EQ(value("1 / sqrt(64)"), "f0.125000");
  EXPECT_EQ(value("half_ < 1"), "1");
  EXPECT_EQ(value(".5e1"), "f5.000000");
}

TEST(Expression, HasFunctions) {
  EXPECT_EQ(value("min(3, 2) + max(3, 2)"), "5");
  EXPECT_EQ(value("min(0.5, 2)"), "f0.500000");
  EXPECT_EQ(value("ceildiv(n, 64)"), "2");
  EXPECT_EQ(value("ceildiv(-7, 4)"), "-1");
  EXPECT_EQ(value("ceildiv(0, 4)"), "0");
  EXPECT_EQ(value("align(n, 64)"), "128");
  EXPECT_EQ(value("align(128, 64)"), "128");
  EXPECT_EQ(value("abs(-4) + abs(4)"), "8");
  EXPECT_EQ(value("floor(-1.5)"), "-2");
  EXPECT_EQ(value("ceil(1.5)"), "2");
  EXPECT_EQ(value("log2(8)"), "f3.000000");
  EXPECT_EQ(value("exp2(-1)"), "f0.500000");
  EXPECT_EQ(value("log(1)"), "f0.000000");
  EXPECT_EQ(value("pow(2, 10)"), "f1024.000000");
}

TEST(Expression, OnlyTheNeededArmCounts) {
  EXPECT_EQ(value("n == 0 ? 1 / 0 : 7"), "7");
  EXPECT_EQ(value("n != 0 || 1 / 0"), "1");
  EXPECT_EQ(value("n == 0 && 1 % 0"), "0");
  EXPECT_EQ(value("n ? 7 : ceildiv(1, 0)"), "7");
  EXPECT_EQ(value("n ? 7 : floor(1e300)"), "7");
  EXPECT_EQ(value("n ? 7 : floor(log(0))"), "7");
  EXPECT_EQ(value("n ? 7 : abs(-9223372036854775807 - 1)"), "7");
}

TEST(Expression, SaysWhatIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"1 +", "something is missing at the end in '1 +'"},
      {"", "something is missing"},
      {"(1", "without its ')'"},
      {"1 2", "unexpected '2'"},
      {"m + 1", "no variable 'm'"},
      {"n == 0 ? m : 1", "no variable 'm'"},
      {"n ? 1", "without its ':'"},
      {"1 / 0", "division by zero"},
      {"1 % 0", "division by zero"},
      {"1.0 / 0", "division by zero"},
      {"ceildiv(1, 0)", "division by zero"},
      {"1.5 % 2", "'%' wants integers"},
      {"1.5 << 2", "'<<' wants integers"},
      {"~0.5", "'~' wants an integer"},
      {"9223372036854775807 + 1", "64-bit overflow of 9223372036854775807 + 1"},
      {"9223372036854775807 * 2", "64-bit overflow"},
      {"-9223372036854775807 - 2", "64-bit overflow"},
      {"(-9223372036854775807 - 1) / -1", "64-bit overflow"},
      {"1 << 63", "64-bit overflow"},
      {"1 >> 64", "64-bit overflow"},
      {"18446744073709551616", "exceeds 64 bits"},
      {"-(-9223372036854775807 - 1)", "64-bit overflow of a negation"},
      {"abs(-9223372036854775807 - 1)", "64-bit overflow of 'abs'"},
      {"1e400", "exceeds fp64"},
      {"1e308 * 10", "fp64 overflow of '*'"},
      {"1e308 + 1e308", "fp64 overflow of '+'"},
      {"-1e308 - 1e308", "fp64 overflow of '-'"},
      {"1e308 / 1e-10", "fp64 overflow of '/'"},
      {"pow(10, 400)", "'pow' has no finite value"},
      {"sqrt(-1)", "'sqrt' has no finite value"},
      {"log(0)", "'log' has no finite value"},
      {"floor(1e300)", "64-bit overflow of 'floor'"},
      {"align(9223372036854775807, 64)", "64-bit overflow of 'align'"},
      {"sqrt(1, 2)", "'sqrt' takes 1 argument, not 2"},
      {"min(1)", "'min' takes 2 arguments, not 1"},
      {"min(1, 2", "do not end in ')'"},
      {"tan(1)", "no function 'tan'; there are: min"},
      {"$", "unexpected '$'"},
  };
  for (const auto &[text, expected] : cases) {
    const std::string found = value(text);
    EXPECT_EQ(found.compare(0, 7, "error: "), 0) << text << ": " << found;
    EXPECT_NE(found.find(expected), std::string::npos) << text << ": " << found;
  }
}

TEST(Expression, EndsOnDeepNesting) {
  for (const char *token : {"(", "-", "!", "1 ? ", "min("}) {
    std::string text;
    for (int i = 0; i < 100000; ++i)
      text += token;
    EXPECT_NE(value(text).find("error"), std::string::npos) << token;
  }
}

} // namespace
