//===- Report.h - what a run looks like to its reader -----------*- C++ -*-===//
//
// A run as lines of text, as a row of a table, and as JSON.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_REPORT_H
#define FOVEA_TOOLS_AOTRUN_REPORT_H

#include "BackwardRun.h"

#include <nlohmann/json.hpp>
#include <string>

namespace fovea::run {

/// The run in full.
std::string describeRun(const Session &session, const ForwardCase &problem,
                        const RunReport &report);
std::string describeRun(const Session &session, const BackwardCase &problem,
                        const RunReport &report);

/// Heading of the table, and one row; all cells padded to one width. Of a
/// backward pass the gradient which used most of its budget.
std::string tableHead(bool simulated);
std::string tableRow(const Session &session, const ForwardCase &problem,
                     const RunReport &report);
std::string tableRow(const Session &session, const BackwardCase &problem,
                     const RunReport &report);

nlohmann::json toJson(const Session &session, const ForwardCase &problem,
                      const RunReport &report);
nlohmann::json toJson(const Session &session, const BackwardCase &problem,
                      const RunReport &report);

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_REPORT_H
