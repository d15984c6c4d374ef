//===- aot-launch.cpp - launch kernels of any code object -----------------===//
//
// The command line over LaunchRun: descriptions, or folders of them.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "LaunchRun.h"
#include "Main.h"
#include "Version.h"
#include "fovea/Package/Chips.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

using namespace fovea;
using namespace fovea::launch;
using describe::Problem;
using tool::kDevice, tool::kUsage;

namespace {

constexpr const char *kDescription =
    R"(Launches kernels of any code object as a kernel description says, and
checks the results where it says what is right.

docs/KernelDescription.md has the format. The device is the first of the
description's target in the HIP library in use: a GPU where ROCm finds one,
otherwise the simulated one.)";

constexpr const char *kExamples =
    R"(
Examples:
  aot-launch attention.json
  aot-launch attention.json --set seqlen=4096,heads=2
  aot-launch kernels/ --hip=sim
  aot-launch attention.json --list

Exit codes: 0 all passed, 1 a result is wrong, 2 wrong usage, a description that
does not fit, too little memory or output that is lost, 3 the device or its
library failed. Of several descriptions the largest code counts.)";

std::string format(const char *text, double a, double b) {
  char buffer[96];
  std::snprintf(buffer, sizeof(buffer), text, a, b);
  return buffer;
}

std::string describeNumber(const describe::Number &number) {
  return number.integer ? std::to_string(number.whole)
                        : format("%g", number.fraction, 0);
}

void printList(const Problem &problem) {
  std::printf("%s\n  file    %s\n", problem.name.c_str(), problem.path.c_str());
  if (!problem.target.empty())
    std::printf("  target  %s\n", problem.target.c_str());
  for (const auto &[name, value] : problem.variables)
    std::printf("  set     %s = %s\n", name.c_str(),
                describeNumber(value).c_str());
  for (const describe::Buffer &buffer : problem.buffers) {
    std::string shape;
    for (int64_t extent : buffer.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    std::printf("  buffer  %s: %s [%s], %llu bytes\n", buffer.name.c_str(),
                describe::typeName(buffer.type), shape.c_str(),
                static_cast<unsigned long long>(buffer.bytes));
  }
  for (const describe::Launch &l : problem.launches)
    std::printf(
        "  launch  %s: grid %u x %u x %u, block %u x %u x %u, %zu bytes "
        "of arguments\n",
        l.name.c_str(), l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
        l.block[2], l.arguments.size());
}

std::string indented(const std::string &lines) {
  std::string text;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    text += "    " + lines.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

void printReport(const Problem &problem, const Report &report) {
  std::string line = std::string(outcomeName(report.outcome)) + "  " +
                     problem.name + " (" + problem.path + ")";
  if (report.outcome == Outcome::Pass && !report.checked)
    line += ": ran, not compared";
  for (const describe::Compared &compared : report.verdict.compared) {
    line += "\n    " + compared.what +
            format(": error %.2e of %.2e", compared.error, compared.budget);
    if (compared.rmsBudget > 0)
      line += format(", rms %.2e of %.2e", compared.rms, compared.rmsBudget);
  }
  for (size_t i = 0; i < report.seconds.size(); ++i) {
    const describe::Launch &launch = problem.launches[i];
    line += "\n    " + launch.name + format(": %.3f s", report.seconds[i], 0);
  }
  std::printf("%s\n%s", line.c_str(), indented(report.message).c_str());
  std::fflush(stdout);
}

nlohmann::json toJson(const Problem &problem, const Report &report) {
  nlohmann::json json = {{"description", problem.path},
                         {"name", problem.name},
                         {"outcome", outcomeName(report.outcome)},
                         {"checked", report.checked}};
  if (!report.message.empty())
    json["message"] = report.message;
  for (const auto &[name, value] : problem.variables)
    json["variables"][name] = value.integer ? nlohmann::json(value.whole)
                                            : nlohmann::json(value.fraction);
  for (const describe::Compared &compared : report.verdict.compared)
    json["compared"][compared.what] = {{"error", compared.error},
                                       {"budget", compared.budget},
                                       {"rms", compared.rms},
                                       {"rms_budget", compared.rmsBudget}};
  for (size_t i = 0; i < report.seconds.size(); ++i)
    json["launches"].push_back({{"name", problem.launches[i].name},
                                {"seconds", report.seconds[i]},
                                {"flops", problem.launches[i].flops}});
  return json;
}

/// The simulated library has the devices that the descriptions want, unless
/// somebody chose.
void chooseTargets(const std::vector<Problem> &problems,
                   const std::string &chosen) {
  if (!chosen.empty())
    setenv("FOVEA_SIM_TARGET", chosen.c_str(), /*overwrite=*/1);
  std::set<std::string> targets;
  for (const Problem &problem : problems)
    if (!problem.target.empty())
      targets.insert(simulatedChipFor(problem.target));
  std::string list;
  for (const std::string &target : targets)
    list += (list.empty() ? "" : ",") + target;
  if (!list.empty())
    setenv("FOVEA_SIM_TARGET", list.c_str(), /*overwrite=*/0);
}

} // namespace

static int runTool(int argc, char **argv) {
  CLI::App app(kDescription, "aot-launch");
  app.footer(kExamples);
  cli::addVersion(app);
  std::vector<std::string> paths, settings;
  std::string hip, target, error;
  int device = -1;
  bool check = true, list = false, json = false;
  app.add_option("descriptions", paths, "Descriptions, or folders of them")
      ->required()
      ->type_name("PATH");
  app.add_option("--set", settings,
                 "Variables in place of the descriptions': name=expression, "
                 "with commas between several")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--hip", hip,
                 "HIP library: auto, rocm, sim, or a path (default: "
                 "FOVEA_HIP_LIBRARY, or else auto)");
  app.add_option("--target", target,
                 "Chip to run on; the simulated device becomes it (default: "
                 "FOVEA_SIM_TARGET, or else the descriptions')");
  app.add_option("--device", device,
                 "Number of the device (default: the first of the target)")
      ->check(CLI::Range(0, INT_MAX).description(""));
  app.add_flag("--check,!--no-check", check,
               "Compare with the fp64 reference (default yes)");
  app.add_flag("--list", list, "Show what the descriptions say and stop");
  app.add_flag("--json", json, "Print JSON");
  if (const std::optional<int> code = tool::parse(app, argc, argv, kUsage))
    return *code;

  auto usage = [&] {
    std::fprintf(stderr, "aot-launch: %s\n", error.c_str());
    return kUsage;
  };
  describe::Overrides overrides;
  for (const std::string &setting : settings)
    if (!describe::parseOverrides(setting, overrides, error))
      return usage();
  std::vector<std::string> files;
  for (const std::string &path : paths)
    if (!describe::findDescriptions(path, files, error))
      return usage();
  // A description that cannot be had with these variables does not keep the
  // others of its folder from running.
  std::vector<Problem> problems;
  int worst = 0;
  for (const std::string &file : files) {
    Problem problem;
    if (describe::load(file, overrides, problem, error) &&
        (list || complete(problem, error))) {
      problems.push_back(std::move(problem));
      continue;
    }
    worst = usage();
  }
  if (problems.empty())
    return worst;
  if (list) {
    for (const Problem &problem : problems)
      printList(problem);
    return worst;
  }
  chooseTargets(problems, target);
  std::unique_ptr<Machine> machine = Machine::open(hip, error);
  if (!machine) {
    std::fprintf(stderr, "aot-launch: %s\n", error.c_str());
    return kDevice;
  }
  nlohmann::json all = nlohmann::json::array();
  for (const Problem &problem : problems) {
    const Report report = machine->run(problem, check, device, target);
    worst = std::max(worst, exitCode(report.outcome));
    if (json)
      all.push_back(toJson(problem, report));
    else
      printReport(problem, report);
  }
  if (json)
    std::printf("%s\n", all.dump(2).c_str());
  return worst;
}

int main(int argc, char **argv) {
  return tool::run("aot-launch", kUsage, [&] { return runTool(argc, argv); });
}
