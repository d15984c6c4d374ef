//===- Measure.cpp - kernels measured against one another -----------------===//
//
// All kernels of a comparison run on one device with the same buffers, round by
// round, in an order that chance gives, so that heat and neighbours meet each
// of them alike.
//
//===----------------------------------------------------------------------===//

#include "MachineImpl.h"
#include "Main.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

using namespace fovea;
using namespace fovea::launch;
using describe::Problem;

namespace {

/// A value below which a share of the sorted values lies.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[size_t(std::lround(share * double(values.size() - 1)))];
}

class Race : OnDevice {
public:
  Race(const HipCalls &hip, const ModuleCalls &modules,
       const std::vector<Problem> &problems, const MeasureOptions &options,
       Measured &result)
      : OnDevice(hip, modules), problems(problems), options(options),
        result(result) {}

  void run() {
    if (!makeBuffers() || !findFunctions() || !createEvents() || !warmUp())
      return;
    std::mt19937_64 random(options.seed);
    std::vector<size_t> order(problems.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<double>> times(problems.size());
    for (unsigned round = 0; round != options.rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t place : order) {
        double seconds = 0;
        if (!timeOne(place, repeats[place], seconds))
          return;
        times[place].push_back(seconds);
      }
    }
    for (const std::vector<double> &one : times) {
      const double median = quantile(one, 0.5);
      result.seconds.push_back(median);
      result.spread.push_back((quantile(one, 0.75) - quantile(one, 0.25)) /
                              median);
    }
  }

private:
  bool fail(const std::string &why) {
    result.error = why;
    return false;
  }
  bool call(HipStatus status, const std::string &what) override {
    return status == 0 || fail(what + ": " + hip.explain(status));
  }

  /// Each buffer once, as large as any of the descriptions wants it.
  bool makeBuffers() {
    for (const Problem &problem : problems)
      if (problem.buffers.size() != problems.front().buffers.size())
        return fail("'" + problem.name + "' has other buffers than '" +
                    problems.front().name + "'");
    uint64_t all = 0;
    std::vector<describe::Buffer> buffers = problems.front().buffers;
    for (size_t i = 0; i != buffers.size(); ++i) {
      for (const Problem &problem : problems)
        if (problem.buffers[i].bytes > buffers[i].bytes)
          buffers[i] = problem.buffers[i];
      // Nobody looks at the results.
      if (buffers[i].fill.kind == describe::Fill::Reference)
        buffers[i].fill.kind = describe::Fill::Normal;
      all += buffers[i].bytes;
    }
    if (!tool::fitsMemory("the buffers of the description", all, result.error))
      return false;
    for (const describe::Buffer &buffer : buffers) {
      std::vector<uint8_t> bytes;
      if (!describe::fillBuffer(buffer, nullptr, bytes, result.error) ||
          !upload(bytes))
        return false;
    }
    return true;
  }

  bool findFunctions() {
    for (const Problem &problem : problems) {
      std::vector<void *> &found = functions.emplace_back();
      for (const describe::Launch &launch : problem.launches) {
        void *&module = loaded[launch.codeObject];
        std::string image;
        if (!module && (!readImage(launch.codeObject, image, result.error) ||
                        !call(modules.load(&module, image.data()),
                              "hipModuleLoadData of " + launch.codeObject)))
          return false;
        found.push_back(nullptr);
        if (!call(
                modules.function(&found.back(), module, launch.kernel.c_str()),
                "hipModuleGetFunction of '" + launch.kernel + "'"))
          return false;
      }
    }
    return true;
  }

  /// Seconds of all launches of a description, the mean of so many repeats.
  bool timeOne(size_t place, unsigned count, double &seconds) {
    if (!call(hip.eventRecord(start, nullptr), "hipEventRecord"))
      return false;
    for (unsigned i = 0; i != count; ++i)
      for (size_t l = 0; l != functions[place].size(); ++l) {
        const describe::Launch &launch = problems[place].launches[l];
        const bool isEmpty =
            std::count(launch.grid.begin(), launch.grid.end(), 0u) > 0;
        if (!isEmpty &&
            !call(modules.launchOf(functions[place][l], launch, addresses),
                  "launch of '" + launch.name + "'"))
          return false;
      }
    float milliseconds = 0;
    if (!call(hip.eventRecord(stop, nullptr), "hipEventRecord") ||
        !call(hip.synchronize(), "'" + problems[place].name + "'") ||
        !call(hip.eventElapsed(&milliseconds, start, stop),
              "hipEventElapsedTime"))
      return false;
    seconds = double(milliseconds) * 1e-3 / double(count);
    return seconds > 0 ||
           fail("'" + problems[place].name + "' takes no time by its events");
  }

  /// Launches until the clock has settled, and finds how many launches a time
  /// is the mean of.
  bool warmUp() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    auto elapsed = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    repeats.assign(problems.size(), 1);
    double before = 0;
    constexpr double kMost = 10; // times warmSeconds
    do {
      double sum = 0;
      for (size_t place = 0; place != problems.size(); ++place) {
        double seconds = 0;
        if (!timeOne(place, repeats[place], seconds))
          return false;
        repeats[place] = unsigned(
            std::clamp(std::ceil(options.roundSeconds / seconds), 1.0, 1000.0));
        sum += seconds;
      }
      result.isSettled =
          before > 0 && std::abs(sum - before) <= options.settled * before;
      before = sum;
    } while (elapsed() < options.warmSeconds ||
             (!result.isSettled && elapsed() < kMost * options.warmSeconds));
    return true;
  }

  const std::vector<Problem> &problems;
  const MeasureOptions &options;
  Measured &result;
  std::vector<std::vector<void *>> functions; ///< of each problem's launches
  std::vector<unsigned> repeats;
};

} // namespace

Measured Machine::measure(const std::vector<Problem> &problems,
                          const MeasureOptions &options,
                          const std::string &target) {
  Measured result;
  const int device = impl->findDevice(target);
  if (problems.empty() || device < 0) {
    result.error = problems.empty() ? "nothing to measure"
                                    : "no device of target '" + target + "'";
    return result;
  }
  if (HipStatus status = impl->hip.setDevice(device)) {
    result.error = "hipSetDevice: " + impl->hip.explain(status);
    return result;
  }
  {
    Race(impl->hip, impl->modules, problems, options, result).run();
  }
  if (!result.error.empty()) {
    result.seconds.clear();
    result.spread.clear();
    // A fault leaves the device unusable until it is reset.
    (void)impl->hip.reset();
  }
  return result;
}
