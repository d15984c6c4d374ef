//===- RecomputeScalars.h - what loops need not hold ------------*- C++ -*-===//
//
// What all lanes share is worked out once, where a kernel begins, and LLVM holds
// what comes after a loop in scalar registers through it. Of those there are
// about a hundred: descriptors, bounds and strides of a kernel with several
// features take more, and the rest would be moved to lanes of vector registers.
// Most of it follows from arguments, which are in memory: it is worked out again
// behind the loop.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_RECOMPUTESCALARS_H
#define FOVEA_LIB_TARGET_HSACO_RECOMPUTESCALARS_H

namespace llvm {
class DominatorTree;
class Function;
class LoopInfo;
template <typename> class GenericUniformityInfo;
template <typename> class GenericSSAContext;
} // namespace llvm

namespace fovea::hsaco {

/// Of what is needed behind each loop, and in the bodies of outer loops, the
/// fewest registers' worth of values stays, and the others are made of them
/// again. Returns false, and does nothing, for functions without
/// kRecomputedScalarsAttrName and so few scalars that they may fit; others
/// without it get it.
bool recomputeScalars(
    llvm::Function &function, llvm::DominatorTree &dominators,
    llvm::LoopInfo &loops,
    llvm::GenericUniformityInfo<llvm::GenericSSAContext<llvm::Function>>
        &uniformity);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_RECOMPUTESCALARS_H
