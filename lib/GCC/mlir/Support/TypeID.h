//===- TypeID.h - traits by the names that Clang gives them -----*- C++ -*-===//
//
// MLIR knows a trait by the name of its instance for a class `Empty` that is
// local to TypeID::get, as the compiler spells it:
// `mlir::OpTrait::Elementwise<Empty>` by Clang,
// `mlir::OpTrait::Elementwise<mlir::TypeID::get<mlir::OpTrait::Elementwise>()::Empty>`
// by GCC. Distributions' libMLIR is built by Clang: what GCC builds would find
// no trait of its operations, and libMLIR none of ours, and neither would say
// so. This header stands before MLIR's for GCC (fovea_llvm_options) and gives
// traits Clang's names. Where CMake finds that libMLIR has GCC's names it is
// left out.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_GCC_MLIR_SUPPORT_TYPEID_H
#define FOVEA_GCC_MLIR_SUPPORT_TYPEID_H

#include_next "mlir/Support/TypeID.h"

#include <string>
#include <string_view>

namespace mlir::detail {
/// Where the argument of a trait's instance begins in GCC's name of it; npos:
/// no such name.
template <typename T>
constexpr size_t kTraitArgument =
    std::string_view(llvm::getTypeName<T>()).rfind("<mlir::TypeID::get<");

template <template <typename> class Trait, typename Empty>
class TypeIDResolver<
    Trait<Empty>,
    std::enable_if_t<kTraitArgument<Trait<Empty>> != std::string_view::npos>>
    : public FallbackTypeIDResolver {
public:
  static TypeID resolveTypeID() {
    static const std::string name = llvm::getTypeName<Trait<Empty>>()
                                        .substr(0, kTraitArgument<Trait<Empty>>)
                                        .str() +
                                    "<Empty>";
    static TypeID id = registerImplicitTypeID(name);
    return id;
  }
};
} // namespace mlir::detail

#endif // FOVEA_GCC_MLIR_SUPPORT_TYPEID_H
