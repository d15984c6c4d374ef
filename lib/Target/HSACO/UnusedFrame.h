//===- UnusedFrame.h - frames that nothing touches --------------*- C++ -*-===//
//
// LLVM moves scalar registers that it spills to lanes of vector registers, but
// where it took several apart, their places in the frame stay, and the launch
// would allocate scratch memory that no instruction reads or writes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_UNUSEDFRAME_H
#define FOVEA_LIB_TARGET_HSACO_UNUSEDFRAME_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Code has no frame where no instruction touches it.
void addUnusedFrame(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_UNUSEDFRAME_H
