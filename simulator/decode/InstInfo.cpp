//===- InstInfo.cpp - Registers and counters of an instruction ------------===//
//
// Registers come from the operands of LLVM's MCInst and the implicit ones of its
// description. Counters follow from the mnemonic, as the chapters on data
// dependency resolution in AMD's ISA documents tell.
//
//===----------------------------------------------------------------------===//
#include "decode/InstInfo.h"
#include "decode/Disassembler.h"
#include "decode/DisassemblerImpl.h"
#include "decode/Parser.h"
#include "exec/MicroOp.h"

#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCSchedule.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/TargetParser.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fovea::sim {

namespace {

bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The registers that LLVM calls \p name ("VGPR2_VGPR3", "VCC_LO", "M0_gfx11plus"
/// "VGPR5_LO16"); false for what nobody follows (MODE, apertures, null).
bool rangeOf(std::string_view name, RegRange &range) {
  struct Named {
    std::string_view name;
    uint8_t words;
    uint16_t reg;
  };
  // Longer names first: the suffix for a generation may follow.
  static constexpr Named kNamed[] = {
      {"VCC_LO", 1, kVcc},          {"VCC_HI", 1, kVcc + 1},
      {"VCC", 2, kVcc},             {"EXEC_LO", 1, kExec},
      {"EXEC_HI", 1, kExec + 1},    {"EXEC", 2, kExec},
      {"FLAT_SCR_LO", 1, kFlatScratch},
      {"FLAT_SCR_HI", 1, kFlatScratch + 1},
      {"FLAT_SCR", 2, kFlatScratch}, {"M0", 1, kM0},
  };
  for (const Named &named : kNamed)
    if (startsWith(name, named.name)) {
      range = {RegRange::Scalar, named.words, named.reg};
      return true;
    }
  if (startsWith(name, "SCC")) {
    range = {RegRange::Scc, 1, 0};
    return true;
  }
  struct File {
    std::string_view prefix;
    RegRange::File file;
    unsigned base;
  };
  static constexpr File kFiles[] = {{"VGPR", RegRange::Vector, 0},
                                    {"AGPR", RegRange::Vector, kAgprBase},
                                    {"SGPR", RegRange::Scalar, 0},
                                    {"TTMP", RegRange::Scalar, kTtmp0}};
  for (const File &file : kFiles) {
    if (!startsWith(name, file.prefix))
      continue;
    std::string first(name.substr(file.prefix.size()));
    char *end = nullptr;
    unsigned long index = std::strtoul(first.c_str(), &end, 10);
    if (end == first.c_str())
      return false; // SGPR_NULL
    unsigned words = 0;
    for (size_t at = name.find(file.prefix); at != name.npos;
         at = name.find(file.prefix, at + 1))
      ++words;
    range = {file.file, uint8_t(words), uint16_t(file.base + index)};
    return true;
  }
  return false;
}

/// The n of "name(n)" in \p text, or \p otherwise.
uint8_t countIn(const std::string &text, const char *name, uint8_t otherwise) {
  size_t at = text.find(std::string(name) + "(");
  if (at == std::string::npos)
    return otherwise;
  return static_cast<uint8_t>(
      std::strtoul(text.c_str() + text.find('(', at) + 1, nullptr, 0));
}

void fillWaits(const std::string &mnemonic, const std::string &text,
               InstInfo &info) {
  if (mnemonic == "s_waitcnt") {
    info.waits[VmCnt] = countIn(text, "vmcnt", 0xff);
    info.waits[LgkmCnt] = countIn(text, "lgkmcnt", 0xff);
    info.waits[ExpCnt] = countIn(text, "expcnt", 0xff);
    return;
  }
  struct Single {
    const char *mnemonic;
    uint8_t high, low; ///< counters of bits 8 and up, and of the lower bits
  };
  static constexpr Single kSingles[] = {
      {"s_waitcnt_vmcnt", kWaitCounters, VmCnt},
      {"s_waitcnt_vscnt", kWaitCounters, VsCnt},
      {"s_waitcnt_lgkmcnt", kWaitCounters, LgkmCnt},
      {"s_waitcnt_expcnt", kWaitCounters, ExpCnt},
      {"s_wait_loadcnt", kWaitCounters, VmCnt},
      {"s_wait_storecnt", kWaitCounters, VsCnt},
      {"s_wait_dscnt", kWaitCounters, DsCnt},
      {"s_wait_kmcnt", kWaitCounters, KmCnt},
      {"s_wait_expcnt", kWaitCounters, ExpCnt},
      {"s_wait_loadcnt_dscnt", VmCnt, DsCnt},
      {"s_wait_storecnt_dscnt", VsCnt, DsCnt},
  };
  for (const Single &single : kSingles)
    if (mnemonic == single.mnemonic) {
      ParsedInst inst = parseInstruction(text);
      uint64_t value = 0;
      if (!inst.operands.empty())
        value = static_cast<uint64_t>(inst.operands.back().integer);
      info.waits[single.low] = value & 63;
      if (single.high != kWaitCounters)
        info.waits[single.high] = (value >> 8) & 63;
    }
  if (mnemonic == "s_wait_idle")
    info.waits.fill(0);
}

void fillCounts(unsigned major, const std::string &mnemonic, InstInfo &info) {
  auto count = [&](WaitCounter counter) {
    info.counts |= static_cast<uint8_t>(1u << counter);
  };
  WaitCounter lds = major >= 12 ? DsCnt : LgkmCnt;
  WaitCounter scalar = major >= 12 ? KmCnt : LgkmCnt;
  bool flat = startsWith(mnemonic, "flat_");
  if (startsWith(mnemonic, "ds_")) {
    count(lds);
  } else if (startsWith(mnemonic, "s_load") ||
             startsWith(mnemonic, "s_buffer_load") ||
             startsWith(mnemonic, "s_scratch_load") ||
             startsWith(mnemonic, "s_store") ||
             startsWith(mnemonic, "s_buffer_store") ||
             startsWith(mnemonic, "s_atomic") ||
             startsWith(mnemonic, "s_buffer_atomic") ||
             startsWith(mnemonic, "s_memtime") ||
             startsWith(mnemonic, "s_memrealtime") ||
             startsWith(mnemonic, "s_get_barrier_state") ||
             startsWith(mnemonic, "s_sendmsg")) {
    count(scalar);
  } else if (flat || startsWith(mnemonic, "buffer_") ||
             startsWith(mnemonic, "tbuffer_") ||
             startsWith(mnemonic, "global_") ||
             startsWith(mnemonic, "scratch_")) {
    // Cache controls count only on some chips; nothing depends on them.
    if (!info.mayLoad && !info.mayStore)
      return;
    bool toMemory = mnemonic.find("_store") != std::string::npos ||
                    (mnemonic.find("_atomic") != std::string::npos &&
                     (info.writes.empty() ||
                      info.writes[0].file != RegRange::Vector));
    count(toMemory && major >= 10 ? VsCnt : VmCnt);
    if (flat)
      count(lds);
  } else if (startsWith(mnemonic, "exp")) {
    count(ExpCnt);
  }
}

} // namespace

bool Disassembler::describe(const uint8_t *bytes, uint64_t available,
                            uint64_t address, InstInfo &info) {
  Impl &s = *Self;
  llvm::MCInst inst;
  uint64_t size = 0;
  if (!s.decode(bytes, available, address, inst, size))
    return false;
  info = InstInfo();
  const llvm::MCInstrDesc &desc = s.Instructions->get(inst.getOpcode());
  info.mayLoad = desc.mayLoad();
  info.mayStore = desc.mayStore();
  const llvm::MCSchedModel &sched = s.Subtarget->getSchedModel();
  if (sched.hasInstrSchedModel()) {
    info.schedLatency = static_cast<unsigned>(std::max(
        0, sched.computeInstrLatency(*s.Subtarget, *s.Instructions, inst)));
    info.schedThroughput =
        sched.getReciprocalThroughput(*s.Subtarget, *s.Instructions, inst);
  }
  auto add = [&](llvm::MCRegister reg, std::vector<RegRange> &to) {
    if (!reg)
      return;
    RegRange range;
    if (rangeOf(s.Registers->getName(reg), range))
      to.push_back(range);
  };
  for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
    // LLVM decodes what the second half of a dual-issue instruction adds to as
    // the register before, where the result's number is odd.
    const int tied = i < desc.getNumOperands()
                         ? desc.getOperandConstraint(i, llvm::MCOI::TIED_TO)
                         : -1;
    const llvm::MCOperand &operand = inst.getOperand(tied >= 0 ? tied : i);
    if (operand.isReg())
      add(operand.getReg(), i < desc.getNumDefs() ? info.writes : info.reads);
  }
  for (llvm::MCPhysReg reg : desc.implicit_uses())
    add(reg, info.reads);
  for (llvm::MCPhysReg reg : desc.implicit_defs())
    add(reg, info.writes);
  std::string text;
  if (!disassemble(bytes, available, address, text, size))
    return false;
  ParsedInst parsed = parseInstruction(text);
  info.mnemonic = withoutSuffix(parsed.mnemonic);
  fillWaits(info.mnemonic, text, info);
  fillCounts(llvm::AMDGPU::getIsaVersion(s.Subtarget->getCPU()).Major,
             info.mnemonic, info);
  return true;
}

} // namespace fovea::sim
