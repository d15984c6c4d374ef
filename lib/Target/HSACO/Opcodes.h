//===- Opcodes.h - instructions by name -------------------------*- C++ -*-===//
//
// Numbers of the target's instructions, which no header that is installed
// tells.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_OPCODES_H
#define FOVEA_LIB_TARGET_HSACO_OPCODES_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace llvm {
class MachineFunction;
class TargetInstrInfo;
} // namespace llvm

namespace fovea::hsaco {

/// The number of the instruction of this name; none: this LLVM has none. A walk
/// through all of them, to be done once.
std::optional<unsigned> opcodeNamed(llvm::StringRef name,
                                    const llvm::TargetInstrInfo &info);

/// An error of the function's context: this LLVM has no instruction or pass
/// `what`, and `file` of this folder is to name what takes its place.
void reportMissing(llvm::StringRef what, llvm::StringRef file,
                   const llvm::MachineFunction &function);

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_OPCODES_H
