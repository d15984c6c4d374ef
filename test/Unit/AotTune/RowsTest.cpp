//===- RowsTest.cpp - rows of buckets -------------------------------------===//

#include "Rows.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

using namespace fovea;
using namespace fovea::tune;
using nlohmann::ordered_json;

namespace {

Found bucket(int64_t seqlen, int64_t heads, const std::string &schedule) {
  Found found;
  found.size = {1, heads, heads, seqlen};
  found.schedule = schedule;
  found.isBaseline = schedule == "a";
  return found;
}

/// "512/16 b; -/- a": limits and schedules.
std::string textOf(const std::vector<TableRow> &rows) {
  auto limit = [](int64_t value) {
    return value == TuningRow::kAny ? "-" : std::to_string(value);
  };
  std::string text;
  for (const TableRow &row : rows)
    text += (text.empty() ? "" : "; ") + limit(row.row.maxSeqlenQ) + "/" +
            limit(row.row.maxBatchHeads) + " " + row.row.schedule;
  return text;
}

std::string rows(const std::vector<Found> &buckets) {
  return textOf(rowsOf(ProblemKey(), buckets));
}

} // namespace

TEST(Rows, NoneWhereTheDefaultIsKept) {
  EXPECT_EQ(rows({bucket(256, 16, "a"), bucket(512, 16, "a")}), "");
}

TEST(Rows, NeighboursAreOne) {
  EXPECT_EQ(rows({bucket(256, 16, "b"), bucket(512, 16, "b")}), "-/- b");
  EXPECT_EQ(
      rows({bucket(1024, 16, "a"), bucket(512, 16, "b"), bucket(256, 16, "b")}),
      "512/- b; -/- a");
}

TEST(Rows, ColumnsOfHeads) {
  EXPECT_EQ(rows({bucket(256, 16, "b"), bucket(256, 64, "a"),
                  bucket(512, 16, "a"), bucket(512, 64, "a")}),
            "256/16 b; 256/- a; -/- a");
  EXPECT_EQ(rows({bucket(256, 16, "b"), bucket(256, 64, "b"),
                  bucket(512, 16, "a"), bucket(512, 64, "a")}),
            "256/- b; -/- a");
}

TEST(Rows, TellTheLeastGainOfWhatTheyServe) {
  std::vector<Found> buckets;
  double gain = 2;
  for (int64_t heads : {16, 64})
    for (int64_t seqlen : {256, 512}) {
      buckets.push_back(bucket(seqlen, heads, "b"));
      buckets.back().gain = gain;
      gain = heads == 16 && seqlen == 256 ? 1.5 : 3;
    }
  const std::vector<TableRow> one = rowsOf(ProblemKey(), buckets);
  ASSERT_EQ(textOf(one), "-/- b");
  EXPECT_EQ(one[0].gain, 1.5);
}

TEST(Rows, NameWhatTheyWouldCompile) {
  const ordered_json table = ordered_json::parse(
      R"([{"problem": "p", "parameters": {"waves": 2, "inst": "i"}},
          {"problem": "q", "parameters": {"waves": 4}}, {"problem": "p"}])");
  const std::vector<ScheduleChoice> choices = choicesOf(table, "p");
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(toString(choices[0]), "inst=i waves=2");
}

TEST(Rows, ReplaceThoseOfTheirProblems) {
  const std::string path = testing::TempDir() + "/aot-tune-rows.json";
  std::filesystem::remove(path);
  std::string error;
  std::vector<std::string> kept;
  auto merge = [&](const std::vector<std::string> &problems,
                   const ordered_json &rows, bool arePredicted = true) {
    return mergeTable(path, problems, rows, arePredicted, kept, error);
  };
  auto row = [](const char *problem, int64_t limit) {
    return ordered_json{{"problem", problem}, {"max_seqlen_q", limit}};
  };
  auto read = [&] {
    std::ifstream file(path);
    return ordered_json::parse(file);
  };
  ASSERT_TRUE(merge({"p", "q"}, {row("q", 9), row("q", 10), row("p", 1)}))
      << error;
  EXPECT_EQ(read(), ordered_json({row("p", 1), row("q", 9), row("q", 10)}));
  ASSERT_TRUE(merge({"p"}, ordered_json::array({row("p", 2)}))) << error;
  EXPECT_EQ(read(), ordered_json({row("p", 2), row("q", 9), row("q", 10)}));
  // A problem that keeps the default loses its rows.
  ASSERT_TRUE(merge({"q"}, ordered_json::array())) << error;
  EXPECT_EQ(read(), ordered_json::array({row("p", 2)}));
  EXPECT_TRUE(kept.empty());
  // What was measured gives way to measurements alone.
  ordered_json measured = row("p", 3);
  measured["by"] = "measured on gfx942";
  ASSERT_TRUE(merge({"p"}, ordered_json::array({measured}), false)) << error;
  ASSERT_TRUE(
      merge({"p", "r"}, ordered_json::array({row("p", 4), row("r", 1)})))
      << error;
  EXPECT_EQ(kept, std::vector<std::string>{"p"});
  EXPECT_EQ(read(), ordered_json({measured, row("r", 1)}));
  ASSERT_TRUE(merge({"p"}, ordered_json::array({row("p", 5)}), false)) << error;
  EXPECT_EQ(read(), ordered_json({row("p", 5), row("r", 1)}));
  // Of one problem those with narrow sums and the others.
  const char *backward = "backward;dtype=bf16;head_dim=64;window=1";
  ordered_json wide = row(backward, 6), narrow = row(backward, 7);
  wide["parameters"] = {{"algorithm", "atomic"}};
  narrow["parameters"] = {{"algorithm", "atomic16"}};
  const std::string group = std::string(backward) + " by atomic16";
  EXPECT_EQ(groupOf(narrow), group);
  ASSERT_TRUE(merge({backward}, ordered_json::array({wide}))) << error;
  ASSERT_TRUE(merge({group}, ordered_json::array({narrow}))) << error;
  EXPECT_EQ(read(), ordered_json({wide, narrow, row("p", 5), row("r", 1)}));
  EXPECT_EQ(choicesOf(read(), group).at(0).names.at("algorithm"), "atomic16");
  EXPECT_EQ(choicesOf(read(), backward).size(), 1u);
  ASSERT_TRUE(merge({backward}, ordered_json::array())) << error;
  EXPECT_EQ(read(), ordered_json({narrow, row("p", 5), row("r", 1)}));
  for (const auto &[text, fault] :
       {std::pair("{}", "is no list of tuning rows; name"),
        {"[1]", "[0] is no object"},
        {"[{\"problem\": 3}]", "[0] has no 'problem'"},
        {"[{\"problem\": \"p\", \"parameters\": {\"waves\": 1.5}}]",
         "[0] has 'waves' among its parameters, neither"}}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(merge({"q"}, ordered_json::array())) << text;
    EXPECT_NE(error.find(fault), std::string::npos) << error;
  }
  std::filesystem::remove(path);
}
