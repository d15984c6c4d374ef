//===- TimeRun.cpp - predicting a subject ---------------------------------===//
//
// A device of the subject's chip, its buffers, and its launches one by one.
//
//===----------------------------------------------------------------------===//

#include "TimeRun.h"

#include "Analysis.h"
#include "Buffers.h"
#include "fovea/Package/CodeObject.h"
#include "fovea/Simulator/CodeObject.h"
#include "fovea/Simulator/Device.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

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
  bool image(const std::string &codeObject, std::vector<char> &bytes,
             std::string &error) const override {
    std::ifstream file(codeObject, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    if (!file || bytes.empty()) {
      error = path + ": cannot read the code object " + codeObject;
      return false;
    }
    return true;
  }

private:
  std::string path;
};

std::string joined(const std::vector<sim::KernelInfo> &kernels) {
  std::string text;
  for (const sim::KernelInfo &kernel : kernels)
    text += (text.empty() ? "" : ", ") + kernel.name;
  return text;
}

/// The state of one prediction.
class Run {
public:
  Run(const Subject &subject, const sim::TimingOptions &options,
      SubjectTime &result)
      : subject(subject), options(options), result(result) {}

  bool run(const describe::Overrides &overrides) {
    if (!subject.problem(overrides, result.problem, result.error) ||
        !openDevice())
      return false;
    std::unique_ptr<Buffers> buffers =
        Buffers::create(*device, result.problem, result.notes, result.error);
    if (!buffers)
      return false;
    for (const describe::Launch &launch : result.problem.launches)
      if (launch.grid[0] && launch.grid[1] && launch.grid[2] &&
          !time(launch, *buffers))
        return false;
    if (result.launches.empty())
      return fail("nothing is launched: every grid is empty");
    return true;
  }

private:
  bool fail(const std::string &why) {
    result.error = why;
    return false;
  }

  bool openDevice() {
    result.target = result.problem.target;
    if (result.problem.launches.empty())
      return fail(result.problem.path + " has no launches");
    if (result.target.empty()) {
      std::vector<char> bytes;
      const std::string &name = result.problem.launches.front().codeObject;
      if (!subject.image(name, bytes, result.error))
        return false;
      Expected<CodeObjectInfo> info =
          inspectCodeObject(bytes.data(), bytes.size());
      if (!info)
        return fail(name + ": " + info.status().message());
      result.target = info->target.arch;
    }
    const std::string chip = result.target.substr(0, result.target.find(':'));
    const sim::ChipInfo *known = sim::findChip(chip);
    if (known && !sim::hasTiming(*known)) {
      std::string timed;
      for (const sim::ChipInfo &other : sim::knownChips())
        if (sim::hasTiming(other))
          timed += (timed.empty() ? "" : ", ") + std::string(other.target);
      return fail("there is no timing model of " + chip + "; there is one of " +
                  timed);
    }
    if (sim::Status status = sim::Device::create(result.target, device);
        !status)
      return fail(status.message());
    return true;
  }

  sim::CodeObject *load(const std::string &name) {
    std::shared_ptr<sim::CodeObject> &code = codes[name];
    if (code)
      return code.get();
    std::vector<char> bytes;
    if (!subject.image(name, bytes, result.error))
      return nullptr;
    if (sim::Status status =
            sim::CodeObject::load(device, bytes.data(), bytes.size(), code);
        !status) {
      fail(name + ": " + status.message());
      return nullptr;
    }
    return code.get();
  }

  bool time(const describe::Launch &launch, const Buffers &buffers) {
    sim::CodeObject *code = load(launch.codeObject);
    if (!code)
      return false;
    const std::vector<sim::KernelInfo> &kernels = code->kernels();
    const sim::KernelInfo *kernel =
        launch.kernel.empty() ? (kernels.size() == 1 ? &kernels[0] : nullptr)
                              : code->findKernel(launch.kernel);
    if (!kernel)
      return fail(launch.codeObject +
                  (launch.kernel.empty() ? " has several kernels; name one of "
                                         : " has no kernel '" + launch.kernel +
                                               "'; there are: ") +
                  joined(kernels));
    LaunchTime timed;
    timed.launch = launch;
    timed.kernel = *kernel;
    const std::vector<uint8_t> arguments = launch.bind(buffers.addresses());
    sim::LaunchConfig config;
    config.grid = launch.grid;
    config.block = launch.block;
    config.dynamicLdsBytes = launch.dynamicLds;
    config.kernarg = arguments.data();
    config.kernargBytes = arguments.size();
    const auto start = std::chrono::steady_clock::now();
    if (sim::Status status =
            sim::predict(*code, *kernel, config, options, timed.report);
        !status) {
      result.deviceError = true;
      return fail(status.message());
    }
    moveBarrierWaits(timed.report);
    timed.hostSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    result.launches.push_back(std::move(timed));
    return true;
  }

  const Subject &subject;
  const sim::TimingOptions &options;
  SubjectTime &result;
  std::shared_ptr<sim::Device> device;
  std::map<std::string, std::shared_ptr<sim::CodeObject>> codes;
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

SubjectTime timing::predictSubject(const Subject &subject,
                                   const describe::Overrides &overrides,
                                   const sim::TimingOptions &options) {
  SubjectTime result;
  result.label = subject.label();
  if (!Run(subject, options, result).run(overrides))
    result.launches.clear();
  return result;
}

double SubjectTime::seconds() const {
  double sum = 0;
  for (const LaunchTime &launch : launches)
    sum += launch.report.seconds;
  return sum;
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
