//===- DisassemblerImpl.h - LLVM objects of a disassembler ------*- C++ -*-===//
//
// Shared by the sources that ask LLVM's MC layer about an instruction.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_DISASSEMBLERIMPL_H
#define FOVEA_SIMULATOR_DECODE_DISASSEMBLERIMPL_H

#include "decode/Disassembler.h"

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/TargetParser/Triple.h"

namespace fovea::sim {

struct Disassembler::Impl {
  llvm::Triple Triple{"amdgcn-amd-amdhsa"};
  llvm::MCTargetOptions Options;
  std::unique_ptr<llvm::MCRegisterInfo> Registers;
  std::unique_ptr<llvm::MCAsmInfo> AsmInfo;
  std::unique_ptr<llvm::MCInstrInfo> Instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> Subtarget;
  std::unique_ptr<llvm::MCContext> Context;
  std::unique_ptr<llvm::MCDisassembler> Decoder;
  std::unique_ptr<llvm::MCInstPrinter> Printer;
  bool Gfx9 = false; ///< encodings of GFX9, CDNA among them

  /// Decodes one instruction; false when there is none. To be used instead of
  /// the decoder itself, which some reserved encodings crash.
  bool decode(const uint8_t *bytes, uint64_t available, uint64_t address,
              llvm::MCInst &inst, uint64_t &size);
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_DISASSEMBLERIMPL_H
