//===- BackendPasses.cpp - our passes among the backend's -----------------===//

#include "BackendPasses.h"
#include "LoopOrder.h"
#include "SumRegisters.h"
#include "UnusedFrame.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"

using namespace llvm;

/// LLVM knows of one list of callbacks in a process, and asks each for whatever
/// is compiled in it, by others too.
static thread_local bool isOurs = false;

namespace fovea::hsaco {

BackendPasses::BackendPasses() {
  static const RegisterTargetPassConfigCallback registered(
      [](TargetMachine &, legacy::PassManagerBase &, TargetPassConfig *config) {
        if (!isOurs)
          return;
        addSumRegisters(*config);
        addLoopOrder(*config);
        addUnusedFrame(*config);
      });
  isOurs = true;
}

BackendPasses::~BackendPasses() { isOurs = false; }

} // namespace fovea::hsaco
