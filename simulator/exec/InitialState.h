//===- InitialState.h - What a wave starts with -----------------*- C++ -*-===//
//
// The registers that the command processor sets up, and what is in those that
// it leaves alone.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_INITIALSTATE_H
#define FOVEA_SIMULATOR_EXEC_INITIALSTATE_H

#include "exec/LaunchRun.h"
#include "exec/Wave.h"

namespace fovea::sim {

/// The part of the grid that one workgroup has.
struct GroupExtent {
  uint32_t size[3] = {0, 0, 0}; ///< work-items; fewer at the grid's end
  uint32_t items = 0;           ///< their product
  unsigned waves = 0;
};

/// The extent of the workgroup at \p id.
GroupExtent extentOf(const Run &run, const uint32_t (&id)[3]);

/// What registers, LDS and scratch hold before they are written.
uint32_t unwrittenWord(const Run &run);

/// Readies wave \p index of its workgroup, which has \p extent, for its first
/// instruction. Its storage (Wave::v, scratch) and group are there already.
void setInitialState(Wave &w, unsigned index, const Run &run,
                     const GroupExtent &extent);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_EXEC_INITIALSTATE_H
