//===- LoopWaits.h - waits that loops need ----------------------*- C++ -*-===//
//
// What orders memory ahead of a barrier is a wait that LLVM drops where nothing
// is under way. In a loop it knows, when it looks there first, only what comes
// from ahead of the loop: a wait that is dropped then is not put back when it
// finds that iterations end with accesses of LDS under way.
//
// LLVM mended this in llvm/llvm-project#220357, merged in September 2026,
// behind version 22 (#211684, open then, is another way): with a version that
// has it, this pass can go, and loop-waits*.test stay.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
#define FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Makes waits such that LLVM does not drop, where a write to LDS of an
/// iteration before may be under way, which another wave reads behind the
/// barrier, or a read, whose place another wave writes.
///
/// Each barrier is taken to have a wait for LDS ahead of it: that of its fence
/// or, where it is inline assembly, one of the kernel's own, which LLVM keeps.
///
/// Only instructions of LDS count. Copies from memory to LDS are on another
/// counter, and have waits of the kernels' own; flat ones are not made. A wait
/// may be kept that finds nothing to wait for: LLVM's waits for scalar loads,
/// which are on the same counter up to gfx11, are not known here.
void addLoopWaits(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_LOOPWAITS_H
