//===- TimeRun.cpp - predicting a subject ---------------------------------===//
//
// Each launch of a subject goes to the model.
//
//===----------------------------------------------------------------------===//

#include "TimeRun.h"

#include "Analysis.h"
#include "LaunchLoop.h"
#include "Main.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

using namespace fovea;
using namespace fovea::timing;

namespace {

class Described : public Subject {
public:
  explicit Described(std::string path) : path(std::move(path)) {}
  std::string label() const override {
    return std::filesystem::path(path).stem().string();
  }
  bool problem(const describe::Overrides &overrides, describe::Problem &result,
               std::string &error) const override {
    return describe::load(path, overrides, result, error);
  }
  std::string computed(const describe::Problem &problem) const override {
    if (!problem.check)
      return "";
    const describe::Check &check = *problem.check;
    const auto q = check.buffers.find("q");
    if (q == check.buffers.end() || problem.buffers[q->second].shape.empty())
      return "";
    const describe::Buffer &buffer = problem.buffers[q->second];
    std::string mask = toString(check.mask);
    std::replace(mask.begin(), mask.end(), '_', '-');
    const auto v = check.buffers.find("v");
    return attentionText(
        check.kind == describe::Check::AttentionBackward ? "backward"
                                                         : "forward",
        describe::typeName(buffer.type), buffer.shape.back(),
        v == check.buffers.end() ? 0 : problem.buffers[v->second].shape.back(),
        mask);
  }
  bool image(const std::string &codeObject, std::string &bytes,
             std::string &error) const override {
    const bool isRead = tool::readFile(codeObject, bytes, error, kMostImageMiB);
    if (isRead && bytes.empty())
      error = "the code object '" + codeObject + "' is empty";
    if (!error.empty())
      error = path + ": " + error;
    return isRead && !bytes.empty();
  }

private:
  std::string path;
};

} // namespace

bool timing::describedSubjects(const std::string &path,
                               std::vector<std::unique_ptr<Subject>> &subjects,
                               std::string &error) {
  std::vector<std::string> files;
  if (!describe::findDescriptions(path, files, error))
    return false;
  for (std::string &file : files)
    subjects.push_back(std::make_unique<Described>(std::move(file)));
  return true;
}

std::string timing::attentionText(const std::string &op,
                                  const std::string &dtype, int64_t headDim,
                                  int64_t headDimV, const std::string &mask) {
  return op + ", " + dtype + ", head dimension " + std::to_string(headDim) +
         (headDimV && headDimV != headDim ? "/" + std::to_string(headDimV)
                                          : "") +
         ", mask " + mask;
}

SubjectTime timing::predictSubject(const Subject &subject,
                                   const describe::Overrides &overrides,
                                   const sim::TimingOptions &options) {
  SubjectTime result;
  result.label = subject.label();
  result.schedule = subject.schedule();
  LaunchLoop loop(subject, &options);
  const bool all = loop.run(overrides, [&](const LaunchLoop::Item &item) {
    LaunchTime timed;
    timed.launch = item.launch;
    timed.kernel = item.kernel;
    const auto start = std::chrono::steady_clock::now();
    sim::Status status = sim::predict(item.code, item.kernel, item.config,
                                      options, timed.report);
    if (!status)
      return status;
    moveBarrierWaits(timed.report);
    timed.hostSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    result.launches.push_back(std::move(timed));
    return status;
  });
  if (!all)
    result.launches.clear();
  result.problem = std::move(loop.problem);
  result.computed = subject.computed(result.problem);
  result.target = std::move(loop.target);
  result.notes = std::move(loop.notes);
  result.error = std::move(loop.error);
  result.deviceError = loop.deviceError;
  return result;
}

double SubjectTime::seconds() const {
  double sum = 0;
  for (const LaunchTime &launch : launches)
    sum += launch.report.seconds;
  return sum;
}

std::vector<sim::MemberTime> SubjectTime::members() const {
  std::vector<sim::MemberTime> sums;
  for (const LaunchTime &launch : launches) {
    const std::vector<sim::MemberTime> &members = launch.report.members;
    sums.resize(members.size());
    for (size_t i = 0; i != members.size(); ++i) {
      sums[i].name = members[i].name;
      sums[i].seconds += members[i].seconds;
    }
  }
  return sums;
}

double SubjectTime::flops() const {
  double sum = 0;
  for (const LaunchTime &launch : launches)
    sum += launch.launch.flops;
  return sum;
}

double SubjectTime::hostSeconds() const {
  double sum = 0;
  for (const LaunchTime &launch : launches)
    sum += launch.hostSeconds;
  return sum;
}

std::string timing::bytesText(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.3g %s" : "%.0f %s", bytes,
                units[unit]);
  return text;
}

std::string timing::timeText(double seconds) {
  char text[48];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}
