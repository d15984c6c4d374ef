//===- Images.cpp - loading what packages have, and the suite -------------===//

#include "Commands.h"
#include "Packages.h"
#include "Parts.h"
#include "TemporaryFolder.h"
#include "fovea/Package/PackageReader.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::qualify;
using nlohmann::json;

/// The HIP library of a session, for another context.
static std::string libraryOf(const Request &request) {
  if (!request.session.hip.empty())
    return request.session.hip;
  const char *set = std::getenv("FOVEA_HIP_LIBRARY");
  return set && *set ? set : "auto";
}

/// Those packages whose code the device runs; the others are named.
static std::vector<std::string> fitting(const run::Session &session,
                                        const Request &request, json &result) {
  std::vector<std::string> files, fit;
  std::string error;
  if (!cli::packageFiles(request.session.package, files, error)) {
    result["why"] = error;
    return fit;
  }
  const Expected<TargetId> device = TargetId::parse(session.arch());
  for (const std::string &file : files) {
    const Expected<PackageReader> package = PackageReader::open(file);
    if (package && device &&
        checkTargetRunsOn(package->target(), *device).ok()) {
      fit.push_back(file);
      continue;
    }
    result["left_out"].push_back(
        {{"package", file},
         {"why", package ? "it is for " + package->target().str()
                         : package.status().message()}});
  }
  return fit;
}

json qualify::loadImages(const run::Session &session, const Request &request) {
  json result = {{"result", "not run"}};
  const std::vector<std::string> files = fitting(session, request, result);
  if (files.empty()) {
    if (!result.count("why"))
      result["why"] = "no package of '" + request.session.package +
                      "' is for " + session.arch();
    return result;
  }
  if (request.session.device != 0) {
    result["why"] = kFirstDeviceAlone;
    return result;
  }
  pkg::VerifyOptions options;
  options.load = libraryOf(request);
  std::ostringstream out, err;
  const int code = pkg::verify(files, options, {out, err});
  result["result"] = code == 0 ? "pass" : "FAILS";
  result["packages"] = files;
  auto lines = [](const std::string &text) {
    json all = json::array();
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      all.push_back(line);
    return all;
  };
  result["says"] = lines(out.str());
  if (!err.str().empty())
    result["errors"] = lines(err.str());
  return result;
}

/// fovea-cts beside this program, or empty.
static std::string suitePath() {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path suite = self.parent_path() / "fovea-cts";
  return !error && std::filesystem::exists(suite, error) ? suite.string() : "";
}

/// Runs a program to its end, its output in a file; how it ended.
static int runProgram(const std::vector<std::string> &words,
                      const std::string &output) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // What ends this process, as a time limit does, ends the program.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (std::freopen(output.c_str(), "w", stdout) && dup2(1, 2) == 2)
      (void)execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

json qualify::runConformance(const run::Session &session,
                             const Request &request) {
  json result = {{"result", "not run"}};
  const std::string suite = suitePath();
  if (suite.empty()) {
    result["why"] = "fovea-cts is not beside this program; build and install "
                    "with FOVEA_BUILD_CTS";
    return result;
  }
  const std::vector<std::string> files = fitting(session, request, result);
  if (files.empty()) {
    if (!result.count("why"))
      result["why"] = "no package is for " + session.arch();
    return result;
  }
  if (request.session.device != 0) {
    result["why"] = kFirstDeviceAlone;
    return result;
  }
  const tool::TemporaryFolder folder("aot-qualify");
  if (!folder.error().empty()) {
    result["why"] = folder.error();
    return result;
  }
  ::setenv("FOVEA_HIP_LIBRARY", libraryOf(request).c_str(), 1);
  const std::string report = folder.path() + "/report.json",
                    text = folder.path() + "/output";
  std::vector<std::string> words = {suite, "--gtest_brief=1",
                                    "--gtest_output=json:" + report};
  words.insert(words.end(), files.begin(), files.end());
  const int code = runProgram(words, text);
  std::ifstream file(report);
  const json suites = json::parse(file, nullptr, false);
  if (suites.is_object()) {
    result["result"] = code == 0 ? "pass" : "FAILS";
    const int total = suites.value("tests", 0),
              failed = suites.value("failures", 0);
    int skipped = 0;
    for (const json &one : suites.value("testsuites", json::array()))
      for (const json &test : one.value("testsuite", json::array())) {
        skipped += test.value("result", "") == "SKIPPED";
        if (!test.count("failures"))
          continue;
        result["failures"].push_back(
            {{"test", one.value("name", "") + "." + test.value("name", "")},
             {"message", test["failures"][0].value("failure", "")}});
      }
    result["tests"] = total;
    result["failed"] = failed;
    result["skipped"] = skipped;
  } else {
    std::ifstream output(text);
    std::stringstream all;
    all << output.rdbuf();
    std::string tail = all.str();
    constexpr size_t kTail = 2000;
    if (tail.size() > kTail)
      tail = tail.substr(tail.size() - kTail);
    result["result"] = "FAILS";
    result["why"] = "the suite ended with status " + std::to_string(code) +
                    " before it had reported";
    result["says"] = tail;
  }
  return result;
}
