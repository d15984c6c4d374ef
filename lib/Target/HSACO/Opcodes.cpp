//===- Opcodes.cpp - instructions by name ---------------------------------===//

#include "Opcodes.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"

using namespace llvm;

std::optional<unsigned> fovea::hsaco::opcodeNamed(StringRef name,
                                                  const TargetInstrInfo &info) {
  for (unsigned opcode = 0; opcode != info.getNumOpcodes(); ++opcode)
    if (info.getName(opcode) == name)
      return opcode;
  return std::nullopt;
}

void fovea::hsaco::reportMissing(StringRef what, StringRef file,
                                 const MachineFunction &function) {
  function.getFunction().getContext().emitError(
      "this LLVM has no " + what + "; what takes its place is to be named in " +
      file);
}
