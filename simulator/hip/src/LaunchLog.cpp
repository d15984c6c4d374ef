//===- LaunchLog.cpp - a line of JSON for each launch ---------------------===//
//
// Lines are put together here and not by a library: they have a handful of
// fields, and this library needs none for anything else.
//
//===----------------------------------------------------------------------===//

#include "LaunchLog.h"

#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

using namespace fovea;
using namespace fovea::hipsim;

namespace {

/// A string of JSON. Bytes that are no ASCII become '?': names of kernels may
/// hold anything, JSON only UTF-8.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (c == '"' || c == '\\')
      (result += '\\') += c;
    else
      result += c < ' ' || c > '~' ? '?' : c;
  }
  return result + "\"";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

template <typename List>
std::string listOf(const List &numbers) {
  std::string text;
  for (const auto n : numbers)
    text += (text.empty() ? "[" : ", ") + std::to_string(n);
  return text + "]";
}

std::string program() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, size_t(size)) : std::string();
}

/// What found a launch's fault: a checker, or the simulator itself.
std::string finderOf(const sim::Status &status) {
  switch (status.code()) {
  case sim::ErrorCode::CheckFailed: {
    constexpr std::string_view before = "check '";
    const std::string &text = status.message();
    const size_t at = text.find(before);
    if (at == std::string::npos)
      return "check";
    const size_t name = at + before.size();
    return text.substr(name, text.find('\'', name) - name);
  }
  case sim::ErrorCode::IllegalAddress:
    return std::string(sim::nameOf(sim::kCheckBounds));
  case sim::ErrorCode::BudgetExceeded:
    return std::string(sim::nameOf(sim::kCheckBudget));
  case sim::ErrorCode::IllegalInstruction:
    return "instruction";
  case sim::ErrorCode::Trap:
    return "trap";
  case sim::ErrorCode::Deadlock:
    return "deadlock";
  default:
    return "launch";
  }
}

} // namespace

std::shared_ptr<LaunchLog> LaunchLog::open(const std::string &path) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return file < 0 ? nullptr
                  : std::shared_ptr<LaunchLog>(new LaunchLog(file));
}

LaunchLog::~LaunchLog() { (void)close(file); }

void LaunchLog::write(std::string line) {
  line += "}\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(file, line.data() + done, line.size() - done);
    if (wrote <= 0)
      return; // a full disk is no fault of the program that is watched
    done += size_t(wrote);
  }
}

static std::string begin(const char *record) {
  return "{\"record\": \"" + std::string(record) +
         "\", \"process\": " + std::to_string(getpid());
}

void LaunchLog::process(const std::vector<std::string> &chips,
                        const std::string &error) {
  std::string line = begin("process") + ", \"program\": " + quoted(program());
  std::string names;
  for (const std::string &chip : chips)
    names += (names.empty() ? "" : ", ") + quoted(chip);
  line += ", \"chips\": [" + names + "]";
  if (!error.empty())
    line += ", \"error\": " + quoted(error);
  write(std::move(line));
}

void LaunchLog::launch(int device, const sim::KernelInfo &kernel,
                       const sim::LaunchConfig &config,
                       const sim::Counters &counters, const sim::Status &status,
                       const PredictedTime *predicted) {
  std::array<uint64_t, 3> grid{config.grid[0], config.grid[1], config.grid[2]};
  if (config.gridWorkItems[0])
    for (size_t d = 0; d < 3; ++d)
      grid[d] = (config.gridWorkItems[d] + config.block[d] - 1) / config.block[d];
  std::string line = begin("launch") + ", \"device\": " +
                     std::to_string(device) +
                     ", \"kernel\": " + quoted(kernel.name) +
                     ", \"grid\": " + listOf(grid) +
                     ", \"block\": " + listOf(config.block) +
                     ", \"workgroups\": " + std::to_string(counters.workgroups) +
                     ", \"instructions\": " +
                     std::to_string(counters.instructions) + ", \"classes\": {";
  for (unsigned i = 0; i < sim::kInstClasses; ++i)
    line += (i ? ", " : "") + quoted(sim::name(sim::InstClass(i))) + ": " +
            std::to_string(counters.byClass[i]);
  line += "}, \"host_seconds\": " + number(counters.seconds);
  if (predicted && predicted->why.empty())
    line += ", \"predicted\": {\"seconds\": " + number(predicted->seconds) +
            ", \"time_error\": " + number(predicted->error) +
            ", \"error_is_estimate\": " +
            (predicted->isEstimate ? "true" : "false") + "}";
  else if (predicted)
    line += ", \"unpredicted\": " + quoted(predicted->why);
  if (!status)
    line += ", \"finding\": {\"by\": " + quoted(finderOf(status)) +
            ", \"message\": " + quoted(status.message()) + "}";
  write(std::move(line));
}

void LaunchLog::refusal(const std::string &why) {
  write(begin("refusal") + ", \"message\": " + quoted(why));
}
