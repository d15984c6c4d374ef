//===- FaultText.h - Where and why a wave failed ----------------*- C++ -*-===//
//
// The messages of failures, with kernel, program counter, instruction, line of
// the source, workgroup, wave and lanes.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_FAULTTEXT_H
#define FOVEA_SIMULATOR_EXEC_FAULTTEXT_H

#include "exec/LaunchRun.h"
#include "exec/Wave.h"

namespace fovea::sim {

/// What Wave::fault says of \p w.
Status faultStatus(const Run &run, const Wave &w);
/// The wave waits in the second half of a barrier, and no other one runs.
Status deadlockStatus(const Run &run, const Wave &w);
/// The wave has executed more than LaunchOptions::waveBudget.
Status budgetStatus(const Run &run, const Wave &w);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_FAULTTEXT_H
