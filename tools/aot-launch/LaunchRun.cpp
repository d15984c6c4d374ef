//===- LaunchRun.cpp - run what a description says ------------------------===//
//
// The HIP library is opened through libfovea, which knows where to look.
//
//===----------------------------------------------------------------------===//

#include "LaunchRun.h"

#include "MachineImpl.h"
#include "Main.h"
#include "fovea/Package/CodeObject.h"

#include <map>

using namespace fovea;
using namespace fovea::launch;
using namespace fovea::describe;
using fovea::run::DeviceToHost;
using fovea::run::HipCalls;
using fovea::run::HipStatus;
using fovea::run::HostToDevice;

namespace {

/// Whether a chip runs code of a target, whose features don't count: they say
/// how code was compiled.
bool runsOn(const std::string &target, const std::string &arch) {
  TargetId code;
  code.arch = target.substr(0, target.find(':'));
  const Expected<TargetId> device = TargetId::parse(arch);
  return device && checkTargetRunsOn(code, *device).ok();
}

} // namespace

bool ModuleCalls::find(fovea_context_t *context, std::string &error) {
  auto one = [&](auto &pointer, const char *name) {
    void *symbol = fovea_hip_symbol(context, name);
    pointer =
        reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(symbol);
    if (!symbol && error.empty())
      error = fovea_last_message();
  };
  one(load, "hipModuleLoadData");
  one(unload, "hipModuleUnload");
  one(function, "hipModuleGetFunction");
  one(launch, "hipModuleLaunchKernel");
  return error.empty();
}

HipStatus ModuleCalls::launchOf(void *function, const Launch &what,
                                const std::vector<void *> &addresses) const {
  // Markers of the list.
  void *const kBuffer = reinterpret_cast<void *>(1);
  void *const kSize = reinterpret_cast<void *>(2);
  void *const kEnd = reinterpret_cast<void *>(3);
  std::vector<uint64_t> places;
  for (void *memory : addresses)
    places.push_back(uint64_t(memory));
  std::vector<uint8_t> arguments = what.bind(places);
  size_t size = arguments.size();
  void *extra[] = {kBuffer, arguments.data(), kSize, &size, kEnd};
  const auto &g = what.grid, &b = what.block;
  return launch(function, g[0], g[1], g[2], b[0], b[1], b[2], what.dynamicLds,
                nullptr, nullptr, extra);
}

OnDevice::~OnDevice() {
  for (void *memory : addresses)
    (void)hip.free(memory);
  for (auto &[path, module] : loaded)
    (void)modules.unload(module);
  for (void *event : {start, stop})
    if (event)
      (void)hip.eventDestroy(event);
}

bool OnDevice::upload(const std::vector<uint8_t> &bytes) {
  void *memory = nullptr;
  if (!call(hip.malloc(&memory, bytes.empty() ? 16 : bytes.size()),
            "hipMalloc of " + std::to_string(bytes.size()) + " bytes"))
    return false;
  addresses.push_back(memory);
  return bytes.empty() ||
         call(hip.memcpy(memory, bytes.data(), bytes.size(), HostToDevice),
              "hipMemcpy");
}

bool OnDevice::createEvents() {
  return call(hip.eventCreate(&start), "hipEventCreate") &&
         call(hip.eventCreate(&stop), "hipEventCreate");
}

bool fovea::launch::readImage(const std::string &path, std::string &bytes,
                              std::string &error) {
  if (!tool::readFile(path, bytes, error, kMostImageMiB))
    return false;
  if (bytes.empty())
    error = "'" + path + "' is empty and so no code object";
  return !bytes.empty();
}

bool fovea::launch::complete(Problem &problem, std::string &error) {
  for (Launch &launch : problem.launches) {
    if (!problem.target.empty() && !launch.kernel.empty())
      continue;
    std::string image;
    if (!readImage(launch.codeObject, image, error))
      return false;
    const std::string what = problem.path + ": launch '" + launch.name +
                             "' names no kernel, and " + launch.codeObject;
    const Expected<CodeObjectInfo> info =
        inspectCodeObject(image.data(), image.size());
    const Expected<std::vector<std::string>> kernels =
        kernelsOf(image.data(), image.size());
    if (info && problem.target.empty())
      problem.target = info->target.str();
    if (!launch.kernel.empty())
      continue; // what is no code object by itself, HIP may take
    std::string names;
    if (kernels)
      for (const std::string &name : *kernels)
        names += (names.empty() ? "" : ", ") + name;
    if (kernels && kernels->size() == 1) {
      launch.kernel = names;
      continue;
    }
    error =
        what + (!kernels        ? ": " + kernels.status().message()
                : names.empty() ? " has none"
                                : " has several kernels; name one of " + names);
    return false;
  }
  return true;
}

int Machine::Impl::findDevice(const std::string &target) const {
  for (size_t i = 0; i < arches.size(); ++i)
    if (runsOn(target, arches[i]))
      return int(i);
  return -1;
}

namespace {

/// One run of a description's launches.
class Run : OnDevice {
public:
  Run(const HipCalls &hip, const ModuleCalls &modules, const Problem &problem,
      Report &report)
      : OnDevice(hip, modules), problem(problem), report(report) {}

  void execute(bool check) {
    std::string error;
    if (!fill(check, error)) {
      report.outcome = Outcome::Refused;
      report.message = error;
      return;
    }
    for (const std::vector<uint8_t> &bytes : contents)
      if (!upload(bytes))
        return;
    if (!createEvents())
      return;
    for (const Launch &launch : problem.launches)
      if (!runLaunch(launch))
        return;
    if (checker && download()) {
      report.verdict = checker->compare(contents);
      report.checked = true;
      if (!report.verdict.pass) {
        report.outcome = Outcome::Mismatch;
        report.message = report.verdict.message;
      }
    }
  }

private:
  bool call(HipStatus status, const std::string &what) override {
    if (status == 0)
      return true;
    report.outcome = Outcome::DeviceError;
    report.message = what + ": " + hip.explain(status);
    return false;
  }

  bool refuse(const std::string &why) {
    report.outcome = Outcome::Refused;
    report.message = why;
    return false;
  }

  /// First contents on the host. Unchecked, what the reference would have made
  /// is 0.
  bool fill(bool check, std::string &error) {
    uint64_t bytes = 0;
    for (const Buffer &buffer : problem.buffers)
      bytes += buffer.bytes;
    if (!tool::fitsMemory("the buffers of the description", bytes, error))
      return false;
    contents.resize(problem.buffers.size());
    for (size_t i = 0; i < contents.size(); ++i) {
      Buffer buffer = problem.buffers[i];
      if (buffer.fill.kind == Fill::Reference)
        buffer.fill.kind = Fill::Zeros;
      if (!fillBuffer(buffer, nullptr, contents[i], error))
        return false;
    }
    if (!check || !problem.check)
      return true;
    checker = std::make_unique<Checker>(problem);
    return tool::allocating("the check's fp64 reference of buffers", bytes,
                            [&] { return checker->prepare(contents, error); });
  }

  bool download() {
    for (size_t i = 0; i < contents.size(); ++i)
      if (!contents[i].empty() &&
          !call(hip.memcpy(contents[i].data(), addresses[i], contents[i].size(),
                           DeviceToHost),
                "hipMemcpy"))
        return false;
    return true;
  }

  void *module(const Launch &launch) {
    auto found = loaded.find(launch.codeObject);
    if (found != loaded.end())
      return found->second;
    std::string image, error;
    if (!readImage(launch.codeObject, image, error)) {
      refuse(error);
      return nullptr;
    }
    void *result = nullptr;
    if (!call(modules.load(&result, image.data()),
              "hipModuleLoadData of " + launch.codeObject))
      return nullptr;
    return loaded[launch.codeObject] = result;
  }

  bool runLaunch(const Launch &launch) {
    report.seconds.push_back(0);
    if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0)
      return true;
    void *from = module(launch), *function = nullptr;
    if (!from || !call(modules.function(&function, from, launch.kernel.c_str()),
                       "hipModuleGetFunction of '" + launch.kernel + "'"))
      return false;
    float milliseconds = 0;
    if (!call(hip.eventRecord(start, nullptr), "hipEventRecord") ||
        !call(modules.launchOf(function, launch, addresses),
              "launch of '" + launch.name + "'") ||
        !call(hip.eventRecord(stop, nullptr), "hipEventRecord") ||
        !call(hip.synchronize(), "'" + launch.name + "'") ||
        !call(hip.eventElapsed(&milliseconds, start, stop),
              "hipEventElapsedTime"))
      return false;
    report.seconds.back() = double(milliseconds) * 1e-3;
    return true;
  }

  const Problem &problem;
  Report &report;
  Contents contents;
  std::unique_ptr<Checker> checker;
};

} // namespace

Machine::Machine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Machine::~Machine() = default;

bool Machine::isSimulated() const { return impl->hip.counters != nullptr; }

std::string Machine::deviceOf(const std::string &target) const {
  const int device = impl->findDevice(target);
  return device < 0 ? std::string() : impl->arches[size_t(device)];
}

std::unique_ptr<Machine> Machine::open(const std::string &hip,
                                       std::string &error) {
  auto impl = std::make_unique<Impl>();
  fovea_context_options_t options = {};
  options.struct_size = sizeof(options);
  if (!hip.empty())
    options.hip_library = hip.c_str();
  fovea_device_info_t info = {};
  info.struct_size = sizeof(info);
  int (*countDevices)(int *) = nullptr;
  int count = 0;
  if (fovea_context_create(&options, &impl->context) ||
      !(countDevices = reinterpret_cast<int (*)(int *)>(
            fovea_hip_symbol(impl->context, "hipGetDeviceCount")))) {
    error = fovea_last_message();
    return nullptr;
  }
  if (!impl->hip.load(impl->context, error) ||
      !impl->modules.find(impl->context, error))
    return nullptr;
  if (HipStatus status = countDevices(&count)) {
    error = "hipGetDeviceCount: " + impl->hip.explain(status);
    return nullptr;
  }
  for (int i = 0; i < count; ++i) {
    if (fovea_device_info(impl->context, i, &info)) {
      error = fovea_last_message();
      return nullptr;
    }
    impl->arches.push_back(info.arch);
  }
  return std::unique_ptr<Machine>(new Machine(std::move(impl)));
}

Report Machine::run(const Problem &problem, bool check, int device,
                    const std::string &target) {
  Report report;
  auto refuse = [&](const std::string &why) {
    report.outcome = Outcome::Refused;
    report.message = why;
    return report;
  };
  std::string present;
  for (const std::string &arch : impl->arches)
    present += (present.empty() ? "" : ", ") + arch;
  constexpr const char *kSimulated =
      "; --target or FOVEA_SIM_TARGET chooses the simulated ones";
  const std::string &wanted = target.empty() ? problem.target : target;
  if (device >= 0 && size_t(device) >= impl->arches.size())
    return refuse("no device " + std::to_string(device) +
                  "; there are: " + present + kSimulated);
  if (device < 0)
    device = wanted.empty() ? 0 : impl->findDevice(wanted);
  if (device < 0 || size_t(device) >= impl->arches.size())
    return refuse("no device of target '" + wanted +
                  "'; there are: " + present + kSimulated);
  const std::string &arch = impl->arches[size_t(device)];
  for (const std::string &asked : {target, problem.target})
    if (!asked.empty() && !runsOn(asked, arch))
      return refuse("device " + std::to_string(device) + " is " + arch +
                    ", not of target '" + asked + "'; there are: " + present +
                    kSimulated);
  if (HipStatus status = impl->hip.setDevice(device)) {
    report.outcome = Outcome::DeviceError;
    report.message = "hipSetDevice: " + impl->hip.explain(status);
    return report;
  }
  {
    Run(impl->hip, impl->modules, problem, report).execute(check);
  }
  // A fault leaves the device unusable until it is reset.
  if (report.outcome == Outcome::DeviceError)
    (void)impl->hip.reset();
  return report;
}
