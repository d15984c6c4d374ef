//===- Rows.cpp - from choices to tuning rows -----------------------------===//

#include "Rows.h"

#include "Main.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

using namespace fovea;
using namespace fovea::tune;
using nlohmann::ordered_json;

namespace {

/// Buckets of one number of heads, in the order of their lengths. Neighbours
/// with one schedule are one.
using Column = std::vector<TableRow>;

Column columnOf(const ProblemKey &problem, std::vector<const Found *> buckets) {
  std::sort(buckets.begin(), buckets.end(), [](const Found *a, const Found *b) {
    return a->size.seqlen < b->size.seqlen;
  });
  Column column;
  for (const Found *found : buckets) {
    if (!column.empty() && column.back().row.schedule == found->schedule) {
      column.back().row.maxSeqlenQ = found->size.seqlen;
      column.back().gain = std::min(column.back().gain, found->gain);
      continue;
    }
    TableRow &row = column.emplace_back();
    row.row.problem = problem;
    row.row.maxSeqlenQ = found->size.seqlen;
    row.row.maxBatchHeads = found->size.batchHeads();
    row.row.schedule = found->schedule;
    row.parameters = found->parameters;
    row.gain = found->gain;
  }
  column.back().row.maxSeqlenQ = TuningRow::kAny;
  return column;
}

bool areAlike(const Column &a, const Column &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TableRow &x, const TableRow &y) {
                      return x.row.maxSeqlenQ == y.row.maxSeqlenQ &&
                             x.row.schedule == y.row.schedule;
                    });
}

ordered_json limit(int64_t value) {
  return value == TuningRow::kAny ? ordered_json() : ordered_json(value);
}

} // namespace

std::vector<TableRow> tune::rowsOf(const ProblemKey &problem,
                                   const std::vector<Found> &buckets) {
  std::map<int64_t, std::vector<const Found *>> byHeads;
  bool anyChosen = false;
  for (const Found &found : buckets) {
    byHeads[found.size.batchHeads()].push_back(&found);
    anyChosen |= !found.isBaseline;
  }
  if (!anyChosen)
    return {};
  std::vector<Column> columns;
  for (const auto &[heads, found] : byHeads) {
    Column column = columnOf(problem, found);
    // Numbers of heads whose columns are alike are one.
    if (!columns.empty() && areAlike(columns.back(), column)) {
      for (size_t i = 0; i != column.size(); ++i)
        column[i].gain = std::min(column[i].gain, columns.back()[i].gain);
      columns.pop_back();
    }
    columns.push_back(std::move(column));
  }
  for (TableRow &row : columns.back())
    row.row.maxBatchHeads = TuningRow::kAny;
  // The first row that holds a launch counts, by length before heads: a long
  // row of few heads must not be hidden by a shorter one of more, so each
  // column has a row at every end.
  std::set<int64_t> ends;
  for (const Column &column : columns)
    for (const TableRow &row : column)
      ends.insert(row.row.maxSeqlenQ);
  std::vector<TableRow> table;
  for (int64_t end : ends)
    for (const Column &column : columns) {
      TableRow row =
          *std::find_if(column.begin(), column.end(), [&](const TableRow &one) {
            return end <= one.row.maxSeqlenQ;
          });
      row.row.maxSeqlenQ = end;
      // What the next number of heads takes too needs no row.
      if (!table.empty() && table.back().row.maxSeqlenQ == end &&
          table.back().row.schedule == row.row.schedule) {
        row.gain = std::min(row.gain, table.back().gain);
        table.pop_back();
      }
      table.push_back(std::move(row));
    }
  return table;
}

ordered_json tune::toJson(const TableRow &row, const std::string &by) {
  ordered_json parameters = ordered_json::object();
  for (const auto &[key, value] : row.parameters.names)
    parameters[key] = value;
  for (const auto &[key, value] : row.parameters.numbers)
    parameters[key] = value;
  return {{"problem", row.row.problem.str()},
          {"max_seqlen_q", limit(row.row.maxSeqlenQ)},
          {"max_seqlen_k", limit(row.row.maxSeqlenK)},
          {"max_batch_heads", limit(row.row.maxBatchHeads)},
          {"schedule", row.row.schedule},
          {"parameters", parameters},
          {"gain", std::round(row.gain * 100) / 100},
          {"by", by}};
}

/// The rows of a file; none if it is not there.
static bool readTable(const std::string &path, ordered_json &table,
                      std::string &error) {
  table = ordered_json::array();
  std::ifstream file(path);
  if (!file)
    return true;
  table = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (table.is_array())
    return true;
  error = "'" + path +
          "' is there and is no list of tuning rows; name another file";
  return false;
}

bool tune::checkTable(const std::string &path, std::string &error) {
  ordered_json ignored;
  return readTable(path, ignored, error);
}

bool tune::mergeTable(const std::string &path,
                      const std::vector<std::string> &problems,
                      const ordered_json &rows, std::string &error) {
  ordered_json old, table = ordered_json::array();
  if (!readTable(path, old, error))
    return false;
  for (const ordered_json &row : old)
    if (!row.is_object() || !row.contains("problem") ||
        std::count(problems.begin(), problems.end(), row["problem"]) == 0)
      table.push_back(row);
  table.insert(table.end(), rows.begin(), rows.end());
  // Those of a problem keep their order.
  std::map<std::string, ordered_json> groups;
  for (const ordered_json &row : table)
    groups[row.value("problem", "")].push_back(row);
  table = ordered_json::array();
  for (const auto &[problem, group] : groups)
    table.insert(table.end(), group.begin(), group.end());
  if (table == old && std::filesystem::exists(path))
    return true;
  return tool::writeFile(path, table.dump(2) + "\n", error);
}
