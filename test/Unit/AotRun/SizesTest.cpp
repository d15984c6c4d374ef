//===- SizesTest.cpp - a case's types and masks as the library's ----------===//

#include "SessionImpl.h"

#include "gtest/gtest.h"

using namespace fovea;
using reference::ElemType;
using reference::Mask;

namespace {

fovea_forward_params_t sizesOf(ElemType type, Mask mask) {
  run::ForwardCase c;
  c.type = type;
  c.mask = mask;
  fovea_forward_params_t params{};
  run::fillSizes(c, params);
  return params;
}

TEST(Sizes, EveryTypeAndMaskHasItsValue) {
  for (ElemType type : {ElemType::F16, ElemType::BF16})
    for (auto [mask, value] :
         {std::pair(Mask::None, FOVEA_MASK_NONE),
          std::pair(Mask::CausalTopLeft, FOVEA_MASK_CAUSAL_TOP_LEFT),
          std::pair(Mask::CausalBottomRight, FOVEA_MASK_CAUSAL_BOTTOM_RIGHT)}) {
      EXPECT_EQ(value, sizesOf(type, mask).mask);
      EXPECT_EQ(type == ElemType::F16 ? FOVEA_DTYPE_F16 : FOVEA_DTYPE_BF16,
                sizesOf(type, mask).dtype);
    }
}

// The library refuses what is none of its values; a mask of its would be taken
// for what was asked.
TEST(Sizes, UnknownOnesHaveNone) {
  EXPECT_EQ(-1, sizesOf(ElemType::F16, static_cast<Mask>(7)).mask);
  EXPECT_EQ(-1, sizesOf(static_cast<ElemType>(7), Mask::None).dtype);
}

} // namespace
