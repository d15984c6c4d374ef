//===- Opcodes.cpp - instructions by name ---------------------------------===//

#include "Opcodes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"

using namespace llvm;

std::optional<unsigned> fovea::hsaco::opcodeNamed(StringRef name,
                                                  const TargetInstrInfo &info) {
  for (unsigned opcode = 0; opcode != info.getNumOpcodes(); ++opcode)
    if (info.getName(opcode) == name)
      return opcode;
  return std::nullopt;
}
