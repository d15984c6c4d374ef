//===- ScalarPhis.cpp - carry vectors of one element as scalars -----------===//

#include "ScalarPhis.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;
using namespace fovea;

static bool hasOneElement(const PHINode &phi) {
  auto *type = dyn_cast<FixedVectorType>(phi.getType());
  return type && type->getNumElements() == 1;
}

static void makeScalar(PHINode &phi) {
  IRBuilder<> b(&phi);
  Type *type = cast<FixedVectorType>(phi.getType())->getElementType();
  PHINode *element =
      b.CreatePHI(type, phi.getNumIncomingValues(), phi.getName());
  // A predecessor that comes twice must bring the same value.
  SmallDenseMap<BasicBlock *, Value *> brought;
  for (auto [block, value] : zip(phi.blocks(), phi.incoming_values())) {
    Value *&scalar = brought[block];
    if (!scalar) {
      b.SetInsertPoint(block->getTerminator());
      scalar = b.CreateExtractElement(value, uint64_t(0));
    }
    element->addIncoming(scalar, block);
  }
  b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  phi.replaceAllUsesWith(b.CreateInsertElement(PoisonValue::get(phi.getType()),
                                               element, uint64_t(0)));
  phi.eraseFromParent();
}

namespace {
class ScalarPhis : public PassInfoMixin<ScalarPhis> {
public:
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    bool isChanged = false;
    for (BasicBlock &block : function)
      for (PHINode &phi : make_early_inc_range(block.phis()))
        if (hasOneElement(phi)) {
          makeScalar(phi);
          isChanged = true;
        }
    if (!isChanged)
      return PreservedAnalyses::all();
    PreservedAnalyses preserved;
    preserved.preserveSet<CFGAnalyses>();
    return preserved;
  }
};
} // namespace

void hsaco::addScalarPhis(FunctionPassManager &passes) {
  passes.addPass(ScalarPhis());
}
