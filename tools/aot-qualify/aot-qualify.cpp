//===- aot-qualify.cpp - the first hour with a GPU ------------------------===//
//
// The command line, and the parts of a report, each in a process of its own: a
// kernel that brings HIP down, or never ends, takes its part alone with it.
//
//===----------------------------------------------------------------------===//

#include "Children.h"
#include "CommandLine.h"
#include "Facts.h"
#include "Main.h"
#include "Packages.h"
#include "Parts.h"
#include "ProbeRun.h"
#include "SessionOptions.h"
#include "Summary.h"
#include "Version.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <set>
#include <unistd.h>

using namespace fovea;
using namespace fovea::qualify;
using nlohmann::json;

namespace {

enum ExitCode { kGood = 0, kFound = 1, kUsage = 2, kDevice = 3 };

constexpr const char *kDescription =
    R"(Qualifies a GPU: what HIP, driver and chip a machine has, whether every image of
the packages loads, whether kernels compute what they must, where the hardware's
bits differ from the simulator's, and how fast attention is beside what is
predicted. Writes one report, as JSON and as a page for a browser, which can be
sent back: aot-time --calibrate=REPORT takes it.

Without a GPU it runs on the simulated device, to be tried; the report says so and
has no speeds in it. Needs no compiler and no network.)";

constexpr const char *kExamples =
    R"(
Examples:
  # All of it, with the installed packages: about ten minutes on a GPU
  aot-qualify

  # One's own packages, the second GPU, into other files
  HIP_VISIBLE_DEVICES=1 aot-qualify --package=library -o mi300x

  # Whether the hardware computes what the simulator does, and nothing else
  aot-qualify --parts=instructions

  # A try without a GPU: a few problems on a simulated chip
  aot-qualify --hip=sim --target=gfx1100 --package=kernels --cases=10

  # With what PyTorch, AOTriton and AITER do on this machine
  python3 -m fovea qualify

Exit codes: 0 all is as it has to be, 1 something was found (FOUND: in the output,
and at the head of the page), 2 wrong usage or output that is lost, 3 there is no
device. docs/Qualify.md says what each part means.)";

constexpr const char *kParts[] = {"images", "conformance", "instructions",
                                  "kernels", "benchmark"};

struct CommandLine {
  Request request;
  std::vector<std::string> parts{std::begin(kParts), std::end(kParts)};
  std::string output = "fovea-report", peers;
  unsigned timeout = 1800;
};

void addOptions(CLI::App &app, CommandLine &line) {
  app.option_defaults()->always_capture_default();
  Request &request = line.request;
  run::addSessionOptions(app, request.session);
  app.add_option("--parts", line.parts,
                 "Parts of the report to make, with commas between them: "
                 "images, conformance, instructions, kernels, benchmark")
      ->delimiter(',')
      ->check(CLI::IsMember(std::set<std::string>(std::begin(kParts),
                                                  std::end(kParts)))
                  .description(""))
      ->default_str("all")
      ->type_name("PARTS")
      ->group("What");
  app.add_option("--cases", request.cases,
                 "Problems of an operation that the kernels are given; 0: the "
                 "whole grid")
      ->check(CLI::Range(0, 100000).description(""))
      ->group("What");
  app.add_option("--seqlen", request.lengths, "Lengths of the benchmark")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->default_str("512,1024,2048,4096,8192,16384")
      ->type_name("N[,N...]")
      ->group("What");
  app.add_option("--heads", request.heads, "Heads of the benchmark")
      ->check(CLI::Range(1, 1024).description(""))
      ->group("What");
  app.add_option("--tokens", request.tokens,
                 "Batch times length in the benchmark, at least one batch")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->group("What");
  app.add_option("--timeout", line.timeout,
                 "Seconds that a part may take; 0: any time")
      ->check(CLI::Range(0, 1000000).description(""))
      ->group("What");
  app.add_option("--peers", line.peers,
                 "Takes what PyTorch and other libraries do into the report, "
                 "from a file that 'python3 -m fovea qualify' has written")
      ->check(CLI::ExistingFile.description(""))
      ->type_name("FILE")
      ->group("What");
  app.add_option("-o,--output", line.output,
                 "The report's files: this name with .json and .html")
      ->type_name("NAME")
      ->group("Output");
}

int fail(const std::string &error, int code) {
  std::fprintf(stderr, "aot-qualify: %s\n", error.c_str());
  return code;
}

std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm utc{};
  (void)gmtime_r(&now, &utc);
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

using Part = std::function<json(run::Session &)>;

/// Runs a part on a session of its own in a child.
json runPart(const CommandLine &line, const std::string &name,
             const Part &part) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  if (isatty(STDERR_FILENO))
    std::fprintf(stderr, "\r\033[K%s", name.c_str());
  bool isLate = false;
  json result;
  tool::runChildren(
      {[&] {
        std::string error;
        bool deviceError = false;
        std::unique_ptr<run::Session> session =
            run::Session::open(line.request.session, error, deviceError);
        json given = session ? part(*session)
                             : json{{"result", "DEVICE ERROR"}, {"why", error}};
        if (!session && !deviceError)
          given["usage"] = true;
        session.reset();
        // What kernels and libraries say need not be UTF-8.
        return given.dump(-1, ' ', false, json::error_handler_t::replace);
      }},
      /*atATime=*/1,
      [&](size_t, const tool::ChildResult &child) {
        result = json::parse(child.output, nullptr, false);
        if (!result.is_object())
          result = {{"result", "FAILS"},
                    {"why", "the process ended: " + child.failure}};
      },
      [] { return false; },
      [&] { return isLate = line.timeout && elapsed() > line.timeout; });
  if (isLate)
    result = {{"result", "FAILS"},
              {"why", "it took longer than " + std::to_string(line.timeout) +
                          " s and was ended; --timeout gives more"}};
  result["host_seconds"] = elapsed();
  if (isatty(STDERR_FILENO))
    std::fputs("\r\033[K", stderr);
  return result;
}

/// What `python3 -m fovea qualify` has found out.
bool readPeers(const std::string &path, json &peers, std::string &error) {
  std::string text;
  if (!tool::readFile(path, text, error)) {
    error = "--peers: " + error;
    return false;
  }
  peers = json::parse(text, nullptr, false);
  if (peers.is_object() && peers.value("format", json()) == "fovea-peers")
    return true;
  error = "--peers: '" + path + "' is none of the files that "
          "'python3 -m fovea qualify' writes";
  return false;
}

int makeReport(const CommandLine &line) {
  std::string error;
  json report = {{"format", "fovea-qualify"},
                 {"version", 1},
                 {"fovea", FOVEA_PROJECT_VERSION},
                 {"time", timeNow()},
                 {"environment", environmentFacts()}};
  if (!line.peers.empty() && !readPeers(line.peers, report["peers"], error))
    return fail(error, kUsage);
  const Request &request = line.request;
  report["device"] = runPart(line, "device", [&](run::Session &session) {
    json facts = deviceFacts(session, request.session.device);
    facts["result"] = "pass";
    return facts;
  });
  const std::pair<const char *, Part> parts[] = {
      {"images",
       [&](run::Session &session) { return loadImages(session, request); }},
      {"conformance",
       [&](run::Session &session) { return runConformance(session, request); }},
      {"instructions",
       [&](run::Session &session) { return runProbes(session); }},
      {"kernels",
       [&](run::Session &session) { return runKernels(session, request); }},
      {"benchmark",
       [&](run::Session &session) { return runBenchmark(session, request); }}};
  const bool hasDevice = report["device"]["result"] == "pass";
  if (!hasDevice && report["device"].count("usage"))
    return fail(report["device"].value("why", ""), kUsage);
  for (const auto &[name, part] : parts)
    if (hasDevice &&
        std::count(line.parts.begin(), line.parts.end(), name))
      report[name] = runPart(line, name, part);
  const std::vector<std::string> findings = findingsOf(report);
  report["findings"] = findings;
  report["result"] = !hasDevice ? "no device" : findings.empty() ? "pass" : "found";
  std::printf("%s %s%s\n%s", report["device"].value("arch", "no device").c_str(),
              report["device"].value("name", "").c_str(),
              report["device"].value("simulated", false)
                  ? ": simulated, no GPU"
                  : "",
              summaryOf(report).c_str());
  if (!tool::writeFile(line.output + ".json", report.dump(1) + "\n", error) ||
      !tool::writeFile(line.output + ".html", pageOf(report), error))
    return fail(error, kUsage);
  std::printf("report: %s.json, %s.html\n", line.output.c_str(),
              line.output.c_str());
  return !hasDevice ? kDevice : findings.empty() ? kGood : kFound;
}

} // namespace

static int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app(kDescription, "aot-qualify");
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  cli::addVersion(app);
  addOptions(app, line);
  if (const std::optional<int> code = tool::parse(app, argc, argv, kUsage))
    return *code;
  std::string error, &package = line.request.session.package;
  if (line.request.lengths.empty())
    line.request.lengths = {512, 1024, 2048, 4096, 8192, 16384};
  if (package.empty() && !cli::findPackages(package, error))
    return fail("--package: " + error, kUsage);
  return makeReport(line);
}

int main(int argc, char **argv) {
  return tool::run("aot-qualify", kUsage, [&] { return runTool(argc, argv); });
}
