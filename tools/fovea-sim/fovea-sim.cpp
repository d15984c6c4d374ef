//===- fovea-sim.cpp - any HIP program on the simulated chip --------------===//
//
// The command line: puts the simulated HIP library in HIP's place, runs a program,
// and sums up what it did.
//
//===----------------------------------------------------------------------===//

#include "Child.h"
#include "CommandLine.h"
#include "Main.h"
#include "Program.h"
#include "Summary.h"
#include "TemporaryFolder.h"
#include "Version.h"
#include "fovea/HipSim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace fovea;
using namespace fovea::foveasim;

namespace {

/// As env, nice and timeout have them.
enum ExitCode { kOwn = 125, kUnusable = 126, kNotFound = 127 };

constexpr const char *kDescription =
    R"(Runs any HIP program on a simulated chip, without a GPU or ROCm.

The simulated HIP library takes the place of libamdhip64.so for the program and
all that it starts: C++ built by hipcc or clang, Python that loads HIP as Triton
does, anything that opens the library by its name or its path. The code objects
that it loads are executed instruction by instruction; at the end comes a summary.)";

constexpr const char *kFooter = R"(
Where to begin:
  fovea-sim ./saxpy                       run it, count what kernels execute
  fovea-sim --target=gfx90a ./saxpy       on another chip
  fovea-sim --check=all ./saxpy           find races, missing waits, values
                                          never written (docs/Checkers.md); build
                                          with -gline-tables-only for source lines
  fovea-sim --time ./saxpy                predict how long its kernels take
  fovea-sim --check=all --error-exitcode=9 python3 test.py
                                          fail in CI when something is found
  fovea-sim --report=json -o run.json ./saxpy

What is behind the program's name is the program's. Settings of the simulated
library that have no option here are environment variables, FOVEA_SIM_THREADS,
FOVEA_SIM_BUDGET and others (docs/HipSim.md); docs/FoveaSim.md is the manual.
A chip without a timing model has no predictions; a program that is linked
statically, or with HIP in it, cannot be run.

Exit status: the program's, or 128 and the number of the signal that ended it;
that of --error-exitcode; 125 wrong usage, or this command failed; 126 the program
cannot be run; 127 there is no such program.)";

int complain(const std::string &text, int code = kOwn) {
  std::fprintf(stderr, "fovea-sim: %s\n", text.c_str());
  return code;
}

/// Where this command's own arguments end: behind the program's name.
int ownArguments(const CLI::App &app, int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--")
      return std::min(i + 2, argc);
    if (argument.empty() || argument[0] != '-' || argument == "-")
      return i + 1;
    const CLI::Option *option = app.get_option_no_throw(argument);
    if (option && option->get_items_expected_max() > 0)
      ++i; // its value is a word of its own
  }
  return argc;
}

void prepend(const char *variable, const std::string &path) {
  const char *before = std::getenv(variable);
  const std::string value =
      before && *before ? path + ":" + before : path;
  setenv(variable, value.c_str(), /*overwrite=*/1);
}

/// The folder of the libraries that have HIP's names, or "".
std::string placeOfHip() {
  std::error_code ignored;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path place =
      (program.parent_path() / FOVEA_SIM_PLACE).lexically_normal();
  return std::filesystem::exists(place / "libfovea_simplace.so", ignored)
             ? place.string()
             : std::string();
}

/// A variable of the simulated library, and the option that gives it.
struct Setting {
  const char *variable;
  const char *option;
  const std::string &value;
};

/// Hands the options on, and has the library itself say whether they will do.
bool hand(const std::vector<Setting> &settings, std::string &error) {
  for (const Setting &setting : settings)
    if (!setting.value.empty())
      setenv(setting.variable, setting.value.c_str(), /*overwrite=*/1);
  const std::string said = fovea_sim_describe();
  if (said.rfind("fovea simulated HIP:", 0) == 0)
    return true;
  error = said;
  for (const Setting &setting : settings)
    if (!setting.value.empty() && error.rfind(setting.variable, 0) == 0)
      error.replace(0, std::strlen(setting.variable), setting.option);
  return false;
}

bool settingIs(const char *variable, const char *value) {
  const char *text = std::getenv(variable);
  return text && !std::strcmp(text, value);
}

struct Request {
  std::string program, target, check, report = "text", output;
  std::vector<std::string> arguments;
  bool time = false;
  int errorExitCode = 0;
};

int writeSummary(const Request &request, const Summary &summary,
                 const Ending &ending) {
  std::string text;
  if (request.report == "text")
    text = summary.text();
  if (request.report == "json") {
    nlohmann::json json = summary.toJson();
    json["program"] = request.arguments;
    json["exit_status"] = ending.shellStatus();
    json["signal"] = ending.signal;
    text = json.dump(2) + "\n";
  }
  if (request.report == "none" || request.output.empty()) {
    std::fputs(text.c_str(), stderr);
    return 0;
  }
  if (std::string error; !tool::writeFile(request.output, text, error))
    return complain(error);
  return 0;
}

int runRequest(const Request &request) {
  std::string path, error;
  switch (findProgram(request.program, path)) {
  case ProgramState::Good:
    break;
  case ProgramState::NotFound:
    return complain(path, kNotFound);
  case ProgramState::Unusable:
    return complain(path, kUnusable);
  }
  const std::string place = placeOfHip();
  if (place.empty())
    return complain("the libraries that take HIP's place are not where they are "
                    "installed beside this command, in " FOVEA_SIM_PLACE
                    " seen from it; install the simulator anew");
  if (place.find(':') != std::string::npos)
    return complain("the loader takes ':' for the end of a path, and there is one "
                    "in '" + place + "'; move the installation");
  // One's own log is gone on with, and kept.
  tool::TemporaryFolder folder("fovea-sim");
  const char *named = std::getenv("FOVEA_SIM_LOG");
  std::string log = named ? named : "";
  if (log.empty() && folder.path().empty())
    return complain(folder.error());
  if (log.empty())
    log = folder.path() + "/log";
  std::error_code none;
  const auto before = std::filesystem::file_size(log, none);
  const std::string time = request.time ? "1" : "";
  if (!hand({{"FOVEA_SIM_LOG", "the log", log},
             {"FOVEA_SIM_TARGET", "--target", request.target},
             {"FOVEA_SIM_CHECK", "--check", request.check},
             {"FOVEA_SIM_TIME", "--time", time}},
            error))
    return complain(error);
  setenv("FOVEA_SIM_HIP", place.c_str(), /*overwrite=*/1);
  prepend("LD_LIBRARY_PATH", place);
  prepend("LD_AUDIT", place + "/libfovea_simplace.so");
  std::ifstream lines;
  // This process's own line is not of the program.
  lines.open(log);
  lines.seekg(none ? 0 : std::streamoff(before));
  std::string own;
  std::getline(lines, own);

  Ending ending;
  if (!runProgram(path, request.arguments, ending, error))
    return complain(error, kUnusable);
  lines.clear();
  Summary summary;
  summary.timed = settingIs("FOVEA_SIM_TIME", "1");
  if (!settingIs("FOVEA_SIM_CHECK", "none"))
    if (const char *checks = std::getenv("FOVEA_SIM_CHECK"))
      summary.watched = checks;
  summary.read(lines);
  if (const int failed = writeSummary(request, summary, ending))
    return failed;
  if (ending.signal)
    complain("the program was ended by signal " +
             std::to_string(ending.signal) + " (" + strsignal(ending.signal) +
             ")");
  if (request.errorExitCode && !ending.shellStatus() &&
      !(summary.findings.empty() && summary.refusals.empty()))
    return request.errorExitCode;
  return ending.shellStatus();
}

int runTool(int argc, char **argv) {
  CLI::App app(kDescription, "fovea-sim");
  app.footer(kFooter);
  cli::addVersion(app);
  Request request;
  std::vector<std::string> unread;
  app.add_option("program", request.program, "What to run, as a shell finds it")
      ->required();
  app.add_option("arguments", unread, "Its arguments, whatever they are");
  app.add_option("--target", request.target,
                 "Chip to simulate, or several with commas between them, each a "
                 "device (default: FOVEA_SIM_TARGET, or else " FOVEA_SIM_DEFAULT_TARGET
                 ")");
  app.add_option("--check", request.check,
                 "What kernels are watched for: all, none, or names of checkers "
                 "with commas between them (docs/Checkers.md)");
  app.add_flag("--time", request.time,
               "Predict each launch's time on the chip, with its interval");
  app.add_option("--report", request.report, "Form of the summary: text, json, none")
      ->check(CLI::IsMember({"text", "json", "none"}).description(""))
      ->capture_default_str();
  app.add_option("-o,--output", request.output,
                 "File for the summary (default: standard error)")
      ->type_name("FILE");
  app.add_option("--error-exitcode", request.errorExitCode,
                 "Exit status where something was found or refused and the "
                 "program ended well")
      ->check(CLI::Range(1, 255).description(""))
      ->type_name("NUMBER");
  holdSignals();
  const int own = ownArguments(app, argc, argv);
  if (const std::optional<int> code = tool::parse(app, own, argv, kOwn))
    return *code;
  request.arguments.push_back(request.program);
  request.arguments.insert(request.arguments.end(), argv + own, argv + argc);
  return runRequest(request);
}

} // namespace

int main(int argc, char **argv) {
  return tool::run("fovea-sim", kOwn, [&] { return runTool(argc, argv); });
}
