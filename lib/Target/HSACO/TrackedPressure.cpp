//===- TrackedPressure.cpp - schedule by exact pressure -------------------===//

#include "TrackedPressure.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include <shared_mutex>

using namespace llvm;
using namespace fovea::hsaco;

/// LLVM's option. Null: this LLVM has none, or whoever started the program has
/// said what it is to be.
static cl::opt<bool> *findOption() {
  auto &options = cl::getRegisteredOptions();
  const auto found = options.find("amdgpu-use-amdgpu-trackers");
  if (found == options.end() || found->second->getNumOccurrences() != 0)
    return nullptr;
  return static_cast<cl::opt<bool> *>(found->second);
}

static bool isTracked(const Function &function) {
  return function.hasFnAttribute(kTrackedPressureAttrName);
}

namespace {
/// Ahead of the scheduler and behind it.
class TrackedPressure : public MachineFunctionPass {
public:
  static char ID;
  explicit TrackedPressure(bool isOn) : MachineFunctionPass(ID), isOn(isOn) {}

  StringRef getPassName() const override {
    return isOn ? "Track register pressure" : "Estimate register pressure";
  }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override {
    if (isTracked(function.getFunction()))
      if (cl::opt<bool> *option = findOption())
        option->setValue(isOn);
    return false;
  }

private:
  const bool isOn;
};
} // namespace

char TrackedPressure::ID;

void fovea::hsaco::addTrackedPressure(TargetPassConfig &config) {
  config.insertPass(&RegisterCoalescerID, new TrackedPressure(true));
  config.insertPass(&MachineSchedulerID, new TrackedPressure(false));
}

static std::shared_mutex options;

OptionsHeld::OptionsHeld(bool isAlone) : isAlone(isAlone) {
  if (isAlone)
    options.lock();
  else
    options.lock_shared();
}

OptionsHeld::OptionsHeld(const Module &module)
    : OptionsHeld(any_of(module, isTracked)) {}

OptionsHeld::~OptionsHeld() {
  if (isAlone)
    options.unlock();
  else
    options.unlock_shared();
}
