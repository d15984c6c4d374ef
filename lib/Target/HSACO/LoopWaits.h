//===- LoopWaits.h - waits that loops need -----------------------*- C++
//-*-===//
//
// What orders memory ahead of a barrier is a wait that LLVM drops where nothing
// is under way. Of a loop's first block it knows, when it looks there first,
// only what comes from ahead of the loop: a wait that is dropped then is not
// put back when it finds that iterations end with accesses of LDS under way.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
#define FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Makes waits of first blocks of loops such that LLVM does not drop.
void addLoopWaits(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
