//===- Rows.cpp - from choices to tuning rows -----------------------------===//

#include "Rows.h"

#include "Device.h"
#include "FileLock.h"
#include "Main.h"
#include "fovea/Package/OperationSpec.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <unistd.h>

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

/// Empty, or what is wrong with a row of a file.
static std::string faultOf(const ordered_json &row) {
  if (!row.is_object())
    return "is no object";
  const auto problem = row.find("problem"), by = row.find("by"),
             parameters = row.find("parameters");
  if (problem == row.end() || !problem->is_string())
    return "has no 'problem' that is a text";
  if (by != row.end() && !by->is_string())
    return "has a 'by' that is no text";
  if (parameters == row.end())
    return "";
  if (!parameters->is_object())
    return "has 'parameters' that are no object";
  for (const auto &[name, value] : parameters->items())
    if (!value.is_string() && !value.is_number_integer())
      return "has '" + name +
             "' among its parameters, neither a text nor a whole number";
  return "";
}

bool tune::readTable(const std::string &path, ordered_json &table,
                     std::string &error) {
  table = ordered_json::array();
  const Expected<std::string> text = readWhole(path);
  if (!text && text.status().code() == StatusCode::NotFound)
    return true;
  if (!text) {
    error = text.status().message();
    return false;
  }
  table = ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  error = "'" + path + "' is there and is no list of tuning rows";
  bool isTable = table.is_array();
  for (size_t i = 0; isTable && i != table.size(); ++i)
    if (const std::string fault = faultOf(table[i]); !fault.empty()) {
      error += ": [" + std::to_string(i) + "] " + fault;
      isTable = false;
    }
  error += "; name another file";
  if (isTable)
    error.clear();
  return isTable;
}

static std::string groupOf(const std::string &problem, OpKind op,
                           const std::string &algorithm) {
  return spec::specOf(op).sumsNarrowly(algorithm) ? problem + " by " + algorithm
                                                  : problem;
}

std::string tune::groupOf(const ProblemKey &problem,
                          const std::string &algorithm) {
  return ::groupOf(problem.str(), problem.op, algorithm);
}

std::string tune::groupOf(const ordered_json &row) {
  const std::string problem = row["problem"];
  const auto parameters = row.find("parameters");
  if (parameters == row.end())
    return problem;
  const auto algorithm = parameters->find("algorithm");
  const Expected<ProblemKey> key = ProblemKey::parse(problem);
  return algorithm != parameters->end() && algorithm->is_string() && key
             ? groupOf(*key, *algorithm)
             : problem;
}

std::vector<ScheduleChoice> tune::choicesOf(const ordered_json &table,
                                            const std::string &group) {
  std::vector<ScheduleChoice> choices;
  for (const ordered_json &row : table) {
    if (groupOf(row) != group || !row.contains("parameters"))
      continue;
    ScheduleChoice choice;
    for (const auto &[name, value] : row["parameters"].items())
      if (value.is_string())
        choice.names[name] = value.get<std::string>();
      else
        choice.numbers[name] = value.get<int>();
    choices.push_back(std::move(choice));
  }
  return choices;
}

/// mergeTable() without other runs.
static bool mergeAlone(const std::string &path,
                       const std::vector<std::string> &groups,
                       const ordered_json &rows, bool arePredicted,
                       std::vector<std::string> &kept, std::string &error) {
  ordered_json old;
  if (!readTable(path, old, error))
    return false;
  std::set<std::string> replaced(groups.begin(), groups.end());
  if (arePredicted)
    for (const ordered_json &row : old)
      if (row.value("by", "").rfind(Method::kMeasured, 0) == 0 &&
          replaced.erase(tune::groupOf(row)))
        kept.push_back(tune::groupOf(row));
  // Those of a group keep their order.
  std::map<std::string, ordered_json> byGroup;
  auto add = [&](const ordered_json &table, bool isNew) {
    for (const ordered_json &row : table)
      if (const std::string group = tune::groupOf(row);
          replaced.count(group) == size_t(isNew))
        byGroup[group].push_back(row);
  };
  add(old, /*isNew=*/false);
  add(rows, /*isNew=*/true);
  ordered_json table = ordered_json::array();
  for (const auto &[name, group] : byGroup)
    table.insert(table.end(), group.begin(), group.end());
  if (table == old && std::filesystem::exists(path))
    return true;
  return tool::writeFile(path, table.dump(2) + "\n", error);
}

bool tune::mergeTable(const std::string &path,
                      const std::vector<std::string> &groups,
                      const ordered_json &rows, bool arePredicted,
                      std::vector<std::string> &kept, std::string &error) {
  // Reading and writing are one step. The file itself is replaced by another.
  const std::filesystem::path place = std::filesystem::path(path).parent_path();
  const int folder = open(place.empty() ? "." : place.c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool isDone = [&] {
    const FileLock lock(folder);
    return mergeAlone(path, groups, rows, arePredicted, kept, error);
  }();
  if (folder >= 0)
    (void)close(folder);
  return isDone;
}
