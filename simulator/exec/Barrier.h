//===- Barrier.h - Barriers in two halves -----------------------*- C++ -*-===//
//
// GFX12 waves signal a barrier and wait for it in separate instructions. A
// workgroup has one barrier for all its waves, one for trap handlers, and named
// ones that waves join. Source: AMD's RDNA4 ISA document, chapter on barriers.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_BARRIER_H
#define FOVEA_SIMULATOR_EXEC_BARRIER_H

#include "exec/Wave.h"

namespace fovea::sim {

/// One more arrival at barrier \p id (-1: the workgroup's, -2: trap, 1 to 16:
/// named). \p count, when not 0: the named barrier's new number of members.
void signalBarrier(Wave &w, const MicroOp &op, int id, uint32_t count);
/// Whether nobody has signalled barrier \p id since it last completed.
bool isFirstToSignal(const Wave &w, int id);
/// Stops the wave until barrier \p id (1: the one it joined) has completed.
void waitForBarrier(Wave &w, const MicroOp &op, int id);
void initBarrier(Wave &w, const MicroOp &op, int id, uint32_t members);
void joinBarrier(Wave &w, const MicroOp &op, int id);
/// Leaves the joined barrier for good.
void leaveBarrier(Wave &w, const MicroOp &op);
/// Members and arrivals of a barrier, as s_get_barrier_state has them.
uint32_t stateOfBarrier(const Wave &w, int id);
/// A wave has ended: the others wait for one arrival less.
void endedAtBarriers(Group &group);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_BARRIER_H
