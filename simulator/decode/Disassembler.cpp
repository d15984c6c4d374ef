//===- Disassembler.cpp - LLVM's AMDGPU disassembler ----------------------===//
//
// Sets up the MC objects for one chip and prints single instructions.
//
//===----------------------------------------------------------------------===//
#include "decode/DisassemblerImpl.h"

#include "llvm/MC/MCInst.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace fovea::sim {

Disassembler::Disassembler() : Self(new Impl) {}
Disassembler::~Disassembler() = default;

std::unique_ptr<Disassembler> Disassembler::create(const std::string &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  std::unique_ptr<Disassembler> result(new Disassembler);
  Impl &s = *result->Self;
  std::string error;
  const llvm::Target *t = llvm::TargetRegistry::lookupTarget(s.Triple, error);
  if (!t)
    return nullptr;
  s.Registers.reset(t->createMCRegInfo(s.Triple));
  s.AsmInfo.reset(t->createMCAsmInfo(*s.Registers, s.Triple, s.Options));
  s.Instructions.reset(t->createMCInstrInfo());
  s.Subtarget.reset(t->createMCSubtargetInfo(s.Triple, target, ""));
  if (!s.Registers || !s.AsmInfo || !s.Instructions || !s.Subtarget ||
      !s.Subtarget->isCPUStringValid(target))
    return nullptr;
  s.Context.reset(new llvm::MCContext(s.Triple, s.AsmInfo.get(),
                                      s.Registers.get(), s.Subtarget.get()));
  s.Decoder.reset(t->createMCDisassembler(*s.Subtarget, *s.Context));
  s.Printer.reset(t->createMCInstPrinter(s.Triple,
                                         s.AsmInfo->getAssemblerDialect(),
                                         *s.AsmInfo, *s.Instructions,
                                         *s.Registers));
  if (!s.Decoder || !s.Printer)
    return nullptr;
  return result;
}

bool Disassembler::disassemble(const uint8_t *bytes, uint64_t available,
                               uint64_t address, std::string &text,
                               uint64_t &size) {
  llvm::MCInst inst;
  size = 0;
  auto status = Self->Decoder->getInstruction(
      inst, size, llvm::ArrayRef<uint8_t>(bytes, available), address,
      llvm::nulls());
  text.clear();
  if (status != llvm::MCDisassembler::Success || size == 0)
    return false;
  llvm::raw_string_ostream stream(text);
  Self->Printer->printInst(&inst, address, "", *Self->Subtarget, stream);
  stream.flush();
  size_t start = text.find_first_not_of(" \t");
  text.erase(0, start == std::string::npos ? text.size() : start);
  return true;
}

} // namespace fovea::sim
