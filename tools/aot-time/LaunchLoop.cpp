//===- LaunchLoop.cpp - a subject's launches on its device ----------------===//

#include "LaunchLoop.h"

#include "Buffers.h"
#include "fovea/Package/CodeObject.h"

using namespace fovea;
using namespace fovea::timing;

static std::string joined(const std::vector<sim::KernelInfo> &kernels) {
  std::string text;
  for (const sim::KernelInfo &kernel : kernels)
    text += (text.empty() ? "" : ", ") + kernel.name;
  return text;
}

namespace {

/// Variables by which a description may say what another says by one.
struct Spelling {
  const char *name;
  std::vector<const char *> others;
};
const Spelling kSpellings[] = {{"heads", {"heads_q"}},
                               {"seqlen", {"seqlen_q", "seqlen_k"}}};

bool hasAll(const describe::Problem &problem,
            const std::vector<const char *> &names) {
  for (const char *name : names)
    if (!problem.variables.count(name))
      return false;
  return true;
}

/// One size for kernels of several sources: a variable that the subject does
/// not have goes to those that it has for it, unless they are set themselves.
describe::Overrides spelledFor(const Subject &subject,
                               describe::Overrides overrides) {
  describe::Problem own;
  std::string ignored; // told when the problem is asked for in earnest
  for (const Spelling &spelling : kSpellings) {
    const auto given = overrides.find(spelling.name);
    if (given == overrides.end())
      continue;
    if (own.variables.empty() && !subject.problem({}, own, ignored))
      break;
    if (own.variables.count(spelling.name) || !hasAll(own, spelling.others))
      continue;
    const std::string value = given->second;
    overrides.erase(given);
    for (const char *name : spelling.others)
      overrides.emplace(name, value);
  }
  return overrides;
}

} // namespace

bool LaunchLoop::run(const describe::Overrides &overrides,
                     const Visitor &visit) {
  if (!subject.problem(spelledFor(subject, overrides), problem, error) ||
      !openDevice())
    return false;
  std::unique_ptr<Buffers> buffers =
      Buffers::create(*device, problem, notes, error);
  if (!buffers)
    return false;
  bool any = false;
  for (const describe::Launch &one : problem.launches)
    if (one.grid[0] && one.grid[1] && one.grid[2]) {
      if (!launch(one, *buffers, visit))
        return false;
      any = true;
    }
  return any || fail("nothing is launched: every grid is empty");
}

bool LaunchLoop::fail(const std::string &why) {
  error = why;
  return false;
}

bool LaunchLoop::openDevice() {
  target = problem.target;
  if (problem.launches.empty())
    return fail(problem.path + " has no launches");
  if (target.empty()) {
    std::string bytes;
    const std::string &name = problem.launches.front().codeObject;
    if (!subject.image(name, bytes, error))
      return false;
    Expected<CodeObjectInfo> info =
        inspectCodeObject(bytes.data(), bytes.size());
    if (!info)
      return fail(name + ": " + info.status().message());
    target = info->target.arch;
  }
  const std::string chip = target.substr(0, target.find(':'));
  const sim::ChipInfo *known = sim::findChip(chip);
  if (prediction) {
    const std::string why = sim::noTimingOf(chip, prediction->board);
    if (!why.empty())
      return fail(!known || sim::hasTiming(*known) ? why : why + ". --count needs none");
  }
  if (sim::Status status = sim::Device::create(target, device); !status)
    return fail(status.message());
  return true;
}

sim::CodeObject *LaunchLoop::load(const std::string &name) {
  std::shared_ptr<sim::CodeObject> &code = codes[name];
  if (code)
    return code.get();
  std::string bytes;
  if (!subject.image(name, bytes, error))
    return nullptr;
  if (sim::Status status =
          sim::CodeObject::load(device, bytes.data(), bytes.size(), code);
      !status) {
    fail(name + ": " + status.message());
    return nullptr;
  }
  return code.get();
}

bool LaunchLoop::launch(const describe::Launch &launch, const Buffers &buffers,
                        const Visitor &visit) {
  sim::CodeObject *code = load(launch.codeObject);
  if (!code)
    return false;
  const std::vector<sim::KernelInfo> &kernels = code->kernels();
  const sim::KernelInfo *kernel =
      launch.kernel.empty() ? (kernels.size() == 1 ? &kernels[0] : nullptr)
                            : code->findKernel(launch.kernel);
  if (!kernel)
    return fail(launch.codeObject +
                (launch.kernel.empty()
                     ? " has several kernels; name one of "
                     : " has no kernel '" + launch.kernel + "'; there are: ") +
                joined(kernels));
  const std::vector<uint8_t> arguments = launch.bind(buffers.addresses());
  sim::LaunchConfig config;
  config.grid = launch.grid;
  config.block = launch.block;
  config.dynamicLdsBytes = launch.dynamicLds;
  config.kernarg = arguments.data();
  config.kernargBytes = arguments.size();
  if (sim::Status status = visit({launch, *code, *kernel, config}); !status) {
    deviceError = true;
    return fail(status.message());
  }
  return true;
}
