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

TEST(Rows, ReplaceThoseOfTheirProblems) {
  const std::string path = testing::TempDir() + "/aot-tune-rows.json";
  std::filesystem::remove(path);
  std::string error;
  auto row = [](const char *problem, int64_t limit) {
    return ordered_json{{"problem", problem}, {"max_seqlen_q", limit}};
  };
  auto read = [&] {
    std::ifstream file(path);
    return ordered_json::parse(file);
  };
  ASSERT_TRUE(mergeTable(path, {"p", "q"},
                         {row("q", 9), row("q", 10), row("p", 1)}, error))
      << error;
  EXPECT_EQ(read(), ordered_json({row("p", 1), row("q", 9), row("q", 10)}));
  ASSERT_TRUE(
      mergeTable(path, {"p"}, ordered_json::array({row("p", 2)}), error))
      << error;
  EXPECT_EQ(read(), ordered_json({row("p", 2), row("q", 9), row("q", 10)}));
  // A problem that keeps the default loses its rows.
  ASSERT_TRUE(mergeTable(path, {"q"}, ordered_json::array(), error)) << error;
  EXPECT_EQ(read(), ordered_json::array({row("p", 2)}));
  std::ofstream(path) << "{}";
  EXPECT_FALSE(mergeTable(path, {"q"}, ordered_json::array(), error));
  EXPECT_NE(error.find("is no list of tuning rows"), std::string::npos);
  std::filesystem::remove(path);
}
