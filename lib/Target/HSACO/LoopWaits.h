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

/// Makes waits of loops, where one of their writes to LDS may be under way,
/// such that LLVM does not drop. Reads need none: what overwrites them waits
/// for what used them, and copies from memory to LDS have waits of the kernels'
/// own.
void addLoopWaits(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
