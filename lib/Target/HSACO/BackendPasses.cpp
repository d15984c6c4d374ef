//===- BackendPasses.cpp - our passes among the backend's -----------------===//

#include "BackendPasses.h"
#include "IllegalCopies.h"
#include "LoopOrder.h"
#include "LoopWaits.h"
#include "OperandBanks.h"
#include "RecomputeAtUses.h"
#include "SumRegisters.h"
#include "TrackedPressure.h"
#include "UnusedFrame.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"

using namespace llvm;

/// LLVM knows of one list of callbacks in a process, and asks each for whatever
/// is compiled in it, by others too.
static thread_local StringSet<> *hintedInThread = nullptr;

namespace fovea::hsaco {

BackendPasses::BackendPasses() {
  static const RegisterTargetPassConfigCallback registered(
      [](TargetMachine &, legacy::PassManagerBase &, TargetPassConfig *config) {
        if (!hintedInThread)
          return;
        addIllegalCopies(*config);
        addSumRegisters(*config);
        addLoopOrder(*config);
        addLoopWaits(*config);
        addUnusedFrame(*config);
        addTrackedPressure(*config);
        addOperandBanks(*config, *hintedInThread);
        addRecomputeAtUses(*config);
      });
  hintedInThread = &hinted;
}

BackendPasses::~BackendPasses() { hintedInThread = nullptr; }

} // namespace fovea::hsaco
