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
  run::CallGroups groups;
  run::fillSizes(c, params, groups);
  EXPECT_EQ(nullptr, params.groups) << "a mask with a name needs no window";
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

TEST(Sizes, WindowsWithoutANameAreAGroup) {
  run::ForwardCase c;
  c.mask = {7, Window::kInfinite, Alignment::TopLeft, Alignment::BottomRight};
  fovea_forward_params_t params{};
  run::CallGroups groups;
  run::fillSizes(c, params, groups);
  const fovea_window_t &window = groups.window;
  EXPECT_EQ(FOVEA_MASK_NONE, params.mask);
  ASSERT_EQ(&window.header, params.groups);
  EXPECT_EQ(sizeof(window), window.header.struct_size);
  EXPECT_EQ(FOVEA_GROUP_WINDOW, int32_t(window.header.group));
  EXPECT_EQ(nullptr, window.header.next);
  EXPECT_EQ(7, window.left);
  EXPECT_EQ(FOVEA_WINDOW_INFINITE, window.right);
  EXPECT_EQ(FOVEA_ALIGN_TOP_LEFT, window.left_alignment);
  EXPECT_EQ(FOVEA_ALIGN_BOTTOM_RIGHT, window.right_alignment);
}

// The library refuses what is none of its values; a type of its would be taken
// for what was asked.
TEST(Sizes, UnknownTypesHaveNone) {
  EXPECT_EQ(-1, sizesOf(static_cast<ElemType>(7), Mask::None).dtype);
}

} // namespace
