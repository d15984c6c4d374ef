//===- LoopOrder.h - the order of a loop's instructions ---------*- C++ -*-===//
//
// A wave that has its SIMD to itself runs nothing beside a product but what its
// own instructions leave room for, in their order. LLVM's scheduler weighs
// registers, and knows neither how long the matrix cores are busy nor how far
// ahead LDS must be read.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_LOOPORDER_H
#define FOVEA_LIB_TARGET_HSACO_LOOPORDER_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace fovea::hsaco {

/// Of functions with fovea::kOrderedLoopsAttrName.
void addLoopOrder(llvm::TargetPassConfig &config);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_LOOPORDER_H
