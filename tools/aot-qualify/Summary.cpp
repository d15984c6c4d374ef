//===- Summary.cpp - a report for people ----------------------------------===//

#include "Summary.h"

#include "Page.h"

#include <cstdio>

using namespace fovea;
using nlohmann::json;

namespace {

std::string text(const json &value, const char *name) {
  const auto found = value.find(name);
  return found != value.end() && found->is_string() ? found->get<std::string>()
                                                    : "";
}

/// "element 17: device 0x1, simulator 0x2; from 0x3 0x4 0x5"
std::string firstText(const json &first) {
  std::string all = "element " + first["at"].dump();
  if (first.count("row"))
    all = "tile " + first["tile"].dump() + ", row " + first["row"].dump() +
          ", column " + first["column"].dump();
  all += ": device " + text(first, "device") + ", simulator " +
         text(first, "simulator");
  if (first.count("inputs"))
    for (const json &input : first["inputs"])
      all += (&input == &first["inputs"][0] ? "; from " : " ") +
             input.get<std::string>();
  return all;
}

void findProbes(const json &part, std::vector<std::string> &findings) {
  for (const json &probe : part.value("probes", json::array())) {
    if (text(probe, "result") == "pass")
      continue;
    std::string line = text(probe, "name") + " (" + text(probe, "what") + "): ";
    line += probe.count("differ")
                ? probe["differ"].dump() + " of " + probe["count"].dump() +
                      " results are not " + text(probe, "rule") +
                      (probe.count("first") ? "; " + firstText(probe["first"])
                                            : "")
                : text(probe, "why");
    findings.push_back(line);
  }
}

void findOrders(const json &part, std::vector<std::string> &findings) {
  for (const json &probe : part.value("probes", json::array())) {
    if (!probe.count("order"))
      continue;
    const json &device = probe["order"]["device"],
               &simulator = probe["order"]["simulator"];
    if (text(device, "order") != text(simulator, "order"))
      findings.push_back(text(probe, "name") + ": the device adds otherwise than "
                         "the simulator: " + text(device, "order") + " (" +
                         device["matches"].dump() + " of " +
                         device["of"].dump() + " results)");
  }
}

constexpr std::pair<const char *, const char *> kParts[] = {
    {"device", "device"},           {"images", "images"},
    {"conformance", "conformance"}, {"instructions", "instructions"},
    {"kernels", "kernels"},         {"benchmark", "benchmark"}};

std::string figuresOf(const std::string &name, const json &part) {
  auto size = [&](const char *list) {
    return std::to_string(part.value(list, json::array()).size());
  };
  if (name == "images" && part.count("says"))
    return part["says"].empty() ? ""
                                : part["says"].back().get<std::string>();
  if (name == "conformance" && part.count("tests"))
    return part["tests"].dump() + " tests, " + part["failed"].dump() +
           " failed, " + part["skipped"].dump() + " skipped";
  if (name == "instructions" && part.count("probes"))
    return size("probes") + " probes beside the simulated " +
           text(part, "chip");
  if (name == "kernels" && part.count("problems"))
    return size("problems") + " problems against fp64, " + size("refused") +
           " refused; beside the simulator: " + text(part, "beside_simulator");
  if (name == "benchmark" && part.count("rows")) {
    size_t measured = 0, predicted = 0;
    for (const json &row : part["rows"]) {
      measured += row.count("measured") && row["measured"].count("seconds");
      predicted += row.count("predicted") && row["predicted"].count("seconds");
    }
    return std::to_string(measured) + " measured, " +
           std::to_string(predicted) + " predicted" +
           (part.count("without_measurement")
                ? "; not measured: " + text(part, "without_measurement")
                : "");
  }
  return "";
}

} // namespace

std::vector<std::string> qualify::findingsOf(const json &report) {
  std::vector<std::string> findings;
  for (const auto &[key, name] : kParts) {
    const auto found = report.find(key);
    if (found == report.end())
      continue;
    const json &part = *found;
    const std::string result = text(part, "result");
    if (result == "pass" || result == "not run")
      continue;
    const size_t before = findings.size();
    findProbes(part, findings);
    for (const json &failure : part.value("failures", json::array()))
      findings.push_back(text(failure, "test") + ": " +
                         text(failure, "message"));
    for (const json &problem : part.value("problems", json::array()))
      if (text(problem, "result") != "pass")
        findings.push_back(text(problem, "text") + ": " +
                           text(problem, "result") + ": " +
                           text(problem, "message"));
    for (const json &error : part.value("errors", json::array()))
      findings.push_back(std::string(name) + ": " + error.get<std::string>());
    for (const json &row : part.value("rows", json::array()))
      if (row.count("measured") && row["measured"].count("why"))
        findings.push_back("benchmark, " + text(row, "op") + " " +
                           text(row, "dtype") + " d" + row["head_dim"].dump() +
                           " " + text(row, "mask") + " " +
                           row["seqlen"].dump() + ": " + text(row["measured"], "why"));
    if (findings.size() == before)
      findings.push_back(std::string(name) + ": " + result + ": " +
                         text(part, "why"));
  }
  if (report.count("instructions"))
    findOrders(report["instructions"], findings);
  return findings;
}

std::string qualify::summaryOf(const json &report) {
  std::string lines;
  for (const auto &[key, name] : kParts) {
    const auto found = report.find(key);
    if (found == report.end())
      continue;
    const std::string figures = figuresOf(key, *found),
                      why = text(*found, "why");
    char head[64];
    std::snprintf(head, sizeof head, "%-13s %-12s ", name,
                  text(*found, "result").c_str());
    lines += head + (figures.empty() ? why : figures) + "\n";
  }
  if (report.count("instructions"))
    for (const json &probe :
         report["instructions"].value("probes", json::array()))
      if (probe.count("order"))
        lines += "  " + text(probe, "name") + ": " +
                 text(probe["order"]["device"], "order") +
                 (probe["order"]["device"]["found"] == true
                      ? ""
                      : " fits best, and not all") +
                 "\n";
  for (const json &warning : report["device"].value("warnings", json::array()))
    lines += "note: " + warning.get<std::string>() + "\n";
  for (const json &variable : report["environment"])
    if (variable.count("warns"))
      lines += "note: " + text(variable, "name") + "=" +
               text(variable, "value") + ": " + text(variable, "warns") + "\n";
  for (const std::string &finding : findingsOf(report))
    lines += "FOUND: " + finding + "\n";
  return lines;
}

std::string qualify::pageOf(const json &report) {
  return timing::pageWith(kQualifyPage, report);
}
