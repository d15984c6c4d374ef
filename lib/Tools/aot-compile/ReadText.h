//===- ReadText.h - texts that people name ----------------------*- C++ -*-===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_READTEXT_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_READTEXT_H

#include "llvm/Support/Error.h"
#include <string>

namespace fovea::tools {

/// The text of a file, a pipe or, of "-", of standard input. An error says why
/// there is none: of what never ends, such as /dev/zero, that it is longer than
/// any such text.
llvm::Expected<std::string> readText(const std::string &path);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_READTEXT_H
