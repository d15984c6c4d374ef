//===- Disassembler.cpp - LLVM's AMDGPU disassembler ----------------------===//
//
// Sets up the MC objects for one chip and prints single instructions.
//
//===----------------------------------------------------------------------===//
#include "decode/DisassemblerImpl.h"

#include "llvm/MC/MCInst.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstring>
#include <mutex>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace fovea::sim {

namespace {

/// Reserved encodings of GFX9 on which LLVM's disassembler or printer does not
/// answer "no instruction" but runs into what it holds to be unreachable.
bool isTrapOfGfx9(uint32_t first, uint32_t second) {
  auto field = [](uint32_t word, unsigned shift, unsigned width) {
    return (word >> shift) & ((1u << width) - 1);
  };
  constexpr uint32_t kSdwaSource = 0xf9, kLiteral = 0xff;
  if (!(first >> 31)) { // VOP1, VOP2, VOPC
    if (field(first, 0, 9) != kSdwaSource)
      return false;
    bool compare = field(first, 25, 6) == 0x3e;
    return field(second, 16, 3) == 7 || field(second, 24, 3) == 7 ||
           (!compare && (field(second, 8, 3) == 7 || field(second, 11, 2) == 3));
  }
  if (first >> 26 == 0x34) { // VOP3 and VOP3P: no literals
    uint32_t opcode = field(first, 16, 10);
    // v_mfma_*_f8f6f4: formats of A and B.
    if ((opcode == 0x3ad || opcode == 0x3ae) &&
        (field(first, 8, 3) > 4 || field(second, 29, 3) > 4))
      return true;
    bool scalarResult = opcode < 0x100 || opcode == 0x142 || opcode == 0x289;
    return field(second, 0, 9) == kLiteral || field(second, 9, 9) == kLiteral ||
           field(second, 18, 9) == kLiteral ||
           (scalarResult && field(first, 0, 8) == kLiteral);
  }
  if (first >> 26 == 0x38 || first >> 26 == 0x3a) // MUBUF and MTBUF: soffset
    return second >> 24 == kLiteral;
  return false;
}

} // namespace

Disassembler::Disassembler() : Self(new Impl) {}
Disassembler::~Disassembler() = default;

std::unique_ptr<Disassembler> Disassembler::create(const std::string &target,
                                                   const std::string &features) {
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
  s.Subtarget.reset(t->createMCSubtargetInfo(s.Triple, target, features));
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
  s.Gfx9 = target.compare(0, 4, "gfx9") == 0;
  return result;
}

bool Disassembler::Impl::decode(const uint8_t *bytes, uint64_t available,
                                uint64_t address, llvm::MCInst &inst,
                                uint64_t &size) {
  size = 0;
  // LLVM 22 crashes on a literal constant behind the end of its bytes: the last
  // instructions are decoded with zeros behind them.
  constexpr uint64_t kLongest = 32;
  uint8_t padded[kLongest] = {};
  const uint64_t given = std::max(available, kLongest);
  if (available < kLongest) {
    std::memcpy(padded, bytes, available);
    bytes = padded;
  }
  if (Gfx9) {
    uint32_t words[4];
    std::memcpy(words, bytes, sizeof words);
    // v_mfma_scale_* is a prefix with the scales before the instruction itself.
    bool scaled = words[0] >> 16 == 0xd3ac;
    if (isTrapOfGfx9(words[0], words[1]) ||
        (scaled && isTrapOfGfx9(words[2], words[3])))
      return false;
  }
  return Decoder->getInstruction(inst, size,
                                 llvm::ArrayRef<uint8_t>(bytes, given), address,
                                 llvm::nulls()) ==
             llvm::MCDisassembler::Success &&
         size != 0 && size <= available;
}

bool Disassembler::disassemble(const uint8_t *bytes, uint64_t available,
                               uint64_t address, std::string &text,
                               uint64_t &size) {
  llvm::MCInst inst;
  size = 0;
  text.clear();
  if (!Self->decode(bytes, available, address, inst, size))
    return false;
  llvm::raw_string_ostream stream(text);
  Self->Printer->printInst(&inst, address, "", *Self->Subtarget, stream);
  stream.flush();
  // The printer's way to say that an operand or a modifier is not one that the
  // instruction can have: "v[1:2]/*Invalid register ...*/".
  if (text.find("/*") != std::string::npos)
    return false;
  size_t start = text.find_first_not_of(" \t");
  text.erase(0, start == std::string::npos ? text.size() : start);
  return true;
}

} // namespace fovea::sim
