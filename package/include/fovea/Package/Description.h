//===- Description.h - kernels of this project described --------*- C++ -*-===//
//
// The kernel description (docs/KernelDescription.md) of a kernel: buffers,
// arguments (docs/KernelAbi.md), grids, operations and what the results should
// be. For those who launch kernels by descriptions, and for the compiler, which
// hands it to them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_DESCRIPTION_H
#define FOVEA_PACKAGE_DESCRIPTION_H

#include "fovea/Package/Package.h"

#include <string>

namespace fovea {

struct DescriptionOptions {
  std::string name;            ///< of the description; empty: none
  std::string layout = "bhsd"; ///< of the tensors: "bhsd", "bshd", "sbhd"
  /// What the variables say of themselves; each can be replaced.
  int heads = 16, seqlen = 4096;
  /// Shares of the keys, where kernels split them.
  int splits = 8;
  /// What the variables of a kernel that takes a window say of it.
  Window window;
  /// With the check, and the inputs that it makes: out and lse of a forward
  /// pass, for gradients.
  bool isChecked = false;
};

/// The description, as JSON text. Its variables are batch, heads, heads_k,
/// seqlen, seqlen_q, seqlen_k and dim, as is usual in descriptions of attention
/// kernels, splits where they split the keys, and of scalars that a score
/// program captures `capture0` and so on. NotSupported for kernels that
/// this build does not know.
/// \param target  chip, with or without its features, or generic target, which
///   the description does not name: it is for any device of the family
/// \param codeObject  what each launch names
Expected<std::string> describeKernel(const KernelRecord &record,
                                     const std::string &target,
                                     const std::string &codeObject,
                                     const DescriptionOptions &options = {});

} // namespace fovea

#endif // FOVEA_PACKAGE_DESCRIPTION_H
