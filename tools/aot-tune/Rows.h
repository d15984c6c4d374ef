//===- Rows.h - from choices to tuning rows ---------------------*- C++ -*-===//
//
// Rows of a tuning table (docs/PackageFormat.md) with what a compiler needs to
// make their kernels, in a file that aot-package and aot-compile read.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_ROWS_H
#define FOVEA_TOOLS_AOTTUNE_ROWS_H

#include "Search.h"

#include <nlohmann/json.hpp>

namespace fovea::tune {

struct TableRow {
  TuningRow row;
  ScheduleChoice parameters; ///< that give its schedule
  double gain = 1;           ///< over the default, of what it serves the least
};

/// The rows of a problem. A bucket reaches from the size below to its own, the
/// last has no end; neighbours with one schedule are one row. None where every
/// bucket keeps the default.
std::vector<TableRow> rowsOf(const ProblemKey &problem,
                             const std::vector<Found> &buckets);

/// As the file has them. \param by  "predicted", "measured on ..."
nlohmann::ordered_json toJson(const TableRow &row, const std::string &by);

/// The rows of a file; none if it is not there. False with `error` set: it
/// can't be read or is no list of rows.
bool readTable(const std::string &path, nlohmann::ordered_json &table,
               std::string &error);

/// What the rows that belong together have in common: the problem, and of
/// algorithms whose sums are narrow, which callers see who ask for them, the
/// algorithm: "backward;dtype=bf16;head_dim=64;window=1 by atomic16".
std::string groupOf(const nlohmann::ordered_json &row);
std::string groupOf(const ProblemKey &problem, const std::string &algorithm);

/// What the rows of a group would have compiled.
std::vector<ScheduleChoice> choicesOf(const nlohmann::ordered_json &table,
                                      const std::string &group);

/// Puts rows in the place of the rows of `groups` in the file, which is made
/// if it is not there; others stay, and so do those that were measured where
/// the new ones are predicted. The file is written whole or not at all, and not
/// at all where nothing changes. False with `error` set.
/// \param kept  gets the groups whose measured rows stay
bool mergeTable(const std::string &path, const std::vector<std::string> &groups,
                const nlohmann::ordered_json &rows, bool arePredicted,
                std::vector<std::string> &kept, std::string &error);

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_ROWS_H
