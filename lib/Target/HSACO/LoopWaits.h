//===- LoopWaits.h - waits that loops need ----------------------*- C++ -*-===//
//
// What orders memory ahead of a barrier is a wait that LLVM drops where nothing
// is under way. In a loop it knows, when it looks there first, only what comes
// from ahead of the loop: a wait that is dropped then is not put back when it
// finds that iterations end with writes to LDS under way.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
#define FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Makes waits, where a write to LDS of an iteration before may be under way, such
/// that LLVM does not drop. Reads that an iteration leaves under way do not count
/// yet, though what another wave writes behind a barrier waits for its own alone;
/// copies from memory to LDS have waits of the kernels' own.
void addLoopWaits(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
