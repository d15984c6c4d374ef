//===- Summary.h - a report for people --------------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_SUMMARY_H
#define FOVEA_TOOLS_AOTQUALIFY_SUMMARY_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fovea::qualify {

extern const char kQualifyPage[];

/// What a reader has to look at, one line each, the worst first; empty: nothing.
std::vector<std::string> findingsOf(const nlohmann::json &report);

/// The report as lines for a terminal.
std::string summaryOf(const nlohmann::json &report);

/// The report as a page.
std::string pageOf(const nlohmann::json &report);

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_SUMMARY_H
