//===- MachineCode.cpp - faults planted into machine code -----------------===//

#include "MachineCode.h"
#include "decode/Disassembler.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <map>

using namespace llvm;
using namespace fovea;
using namespace fovea::test;

namespace {

struct Inst {
  size_t at = 0; ///< in the code object
  uint32_t word = 0;
  std::string text;
  sim::InstInfo info;
};

struct Code {
  std::string name;
  std::vector<Inst> insts;
};

/// A counter of a wait: bits of its first word, the lower ones first.
struct WaitField {
  StringRef mnemonic;
  StringRef chips; ///< beginning of their names
  sim::WaitCounter counter;
  struct {
    uint8_t first, bits;
  } low, high;

  unsigned most() const { return (1u << (low.bits + high.bits)) - 1; }
  bool isOf(StringRef mnemonic, StringRef chip) const {
    return mnemonic == this->mnemonic && chip.starts_with(chips);
  }
};

const WaitField kWaitFields[] = {
    {"s_waitcnt", "gfx9", sim::VmCnt, {0, 4}, {14, 2}},
    {"s_waitcnt", "gfx9", sim::LgkmCnt, {8, 4}, {}},
    {"s_waitcnt", "gfx11", sim::VmCnt, {10, 6}, {}},
    {"s_waitcnt", "gfx11", sim::LgkmCnt, {4, 6}, {}},
    {"s_wait_loadcnt", "gfx12", sim::VmCnt, {0, 6}, {}},
    {"s_wait_dscnt", "gfx12", sim::DsCnt, {0, 6}, {}},
    {"s_wait_loadcnt_dscnt", "gfx12", sim::VmCnt, {8, 6}, {}},
    {"s_wait_loadcnt_dscnt", "gfx12", sim::DsCnt, {0, 6}, {}},
};

/// All that are in one word.
constexpr uint32_t kNop = 0xbf800000; // s_nop 0

} // namespace

std::string CodeFault::plantedInto(std::string code) const {
  for (auto [at, word] : words)
    support::endian::write32le(code.data() + at, word);
  return code;
}

StringRef fovea::test::describe(CodeFault::Kind kind) {
  switch (kind) {
  case CodeFault::WaitShort:
    return "a wait one short";
  case CodeFault::WaitDropped:
    return "a wait dropped";
  case CodeFault::NoBarrier:
    return "no barrier";
  }
  llvm_unreachable("all kinds are listed");
}

static std::vector<Code> functionsOf(const std::string &code,
                                     sim::Disassembler &disassembler) {
  std::vector<Code> functions;
  auto object = cantFail(object::ObjectFile::createELFObjectFile(
      MemoryBufferRef(code, "code object")));
  for (object::SymbolRef symbol : object->symbols()) {
    if (cantFail(symbol.getType()) != object::SymbolRef::ST_Function)
      continue;
    const object::SectionRef section = *cantFail(symbol.getSection());
    const StringRef contents = cantFail(section.getContents());
    size_t at = cantFail(symbol.getAddress()) - section.getAddress();
    const size_t end = at + object::ELFSymbolRef(symbol).getSize();
    Code &function =
        functions.emplace_back(Code{cantFail(symbol.getName()).str(), {}});
    while (at < end) {
      const auto *bytes =
          reinterpret_cast<const uint8_t *>(contents.data()) + at;
      Inst inst;
      uint64_t size = 4;
      if (disassembler.disassemble(bytes, end - at, at, inst.text, size))
        disassembler.describe(bytes, end - at, at, inst.info);
      inst.at = size_t(contents.data() - code.data()) + at;
      inst.word = support::endian::read32le(bytes);
      function.insts.push_back(std::move(inst));
      at += size;
    }
  }
  return functions;
}

/// Instructions [first, last] of each innermost loop with matrix products.
static std::vector<std::pair<size_t, size_t>> loopsOf(const Code &function) {
  std::vector<std::pair<size_t, size_t>> loops;
  const auto &insts = function.insts;
  for (auto [last, inst] : enumerate(insts)) {
    const StringRef name = inst.info.mnemonic;
    if (!name.starts_with("s_cbranch") && name != "s_branch")
      continue;
    const size_t target = inst.at + 4 + 4 * int64_t(int16_t(inst.word));
    if (target > inst.at)
      continue;
    const size_t first = size_t(
        partition_point(insts, [&](const Inst &i) { return i.at < target; }) -
        insts.begin());
    if (any_of(ArrayRef(insts).slice(first, last - first), [](const Inst &i) {
          const StringRef name = i.info.mnemonic;
          return name.starts_with("v_mfma") || name.starts_with("v_wmma");
        }))
      loops.emplace_back(first, last);
  }
  // Several branches go back to a loop's head.
  std::map<size_t, size_t> ends;
  for (auto [first, last] : loops)
    ends[first] = std::max(ends[first], last);
  loops.assign(ends.begin(), ends.end());
  std::vector<std::pair<size_t, size_t>> innermost;
  for (auto outer : loops)
    if (none_of(loops, [&](auto other) {
          const bool isWithin = other != outer && other.first >= outer.first &&
                                other.second <= outer.second;
          // What is rare lies behind its loop, and goes back to its middle.
          const bool isEntered = other.first < outer.first &&
                                 outer.first < other.second &&
                                 other.second < outer.second;
          return isWithin || isEntered;
        }))
      innermost.push_back(outer);
  return innermost;
}

/// Whether operations may be under way at a wait of a loop for which no wait
/// before it has waited.
static bool holdsUp(ArrayRef<Inst> loop, size_t wait, const WaitField &field) {
  const auto counter = field.counter;
  const unsigned count = loop[wait].info.waits[counter];
  // What it lets go on is what the counter can count.
  if (count + 1 >= field.most())
    return false;
  unsigned begun = 0;
  for (size_t back = 1; back <= loop.size(); ++back) {
    const sim::InstInfo &info =
        loop[(wait + loop.size() - back) % loop.size()].info;
    if (info.waits[counter] + begun <= count)
      return false;
    begun += (info.counts >> counter) & 1;
    if (begun > count)
      return true;
  }
  return false;
}

std::vector<CodeFault> fovea::test::faultsOfLoops(const std::string &code,
                                                  StringRef chip, int waveSize,
                                                  int exceptLast) {
  const auto disassembler = sim::Disassembler::create(
      chip.str(), waveSize == 32 ? "+wavefrontsize32" : "+wavefrontsize64");
  std::vector<CodeFault> faults;
  for (const Code &function : functionsOf(code, *disassembler)) {
    const size_t begin = function.insts.front().at;
    auto describe = [&](const Inst &inst) {
      return formatv("{0} +{1:x}: {2}", function.name, inst.at - begin,
                     StringRef(inst.text).trim())
          .str();
    };
    auto addWaits = [&](ArrayRef<Inst> loop, size_t index) {
      const Inst &inst = loop[index];
      for (const WaitField &field : kWaitFields) {
        const unsigned now = inst.info.waits[field.counter];
        const unsigned most = field.most();
        if (!field.isOf(inst.info.mnemonic, chip) || now >= most ||
            !holdsUp(loop, index, field))
          continue;
        auto with = [&](unsigned count) {
          auto put = [](uint32_t word, auto place, unsigned value) {
            const uint32_t mask = (1u << place.bits) - 1;
            return (word & ~(mask << place.first)) |
                   ((value & mask) << place.first);
          };
          return put(put(inst.word, field.low, count), field.high,
                     count >> field.low.bits);
        };
        for (auto [kind, count] : {std::pair(CodeFault::WaitShort, now + 1),
                                   {CodeFault::WaitDropped, most}}) {
          CodeFault fault = {kind, describe(inst), {{inst.at, with(count)}}};
          // What the disassembler reads of it is what was meant.
          sim::InstInfo info;
          uint8_t bytes[4];
          support::endian::write32le(bytes, fault.words[0].second);
          EXPECT_TRUE(disassembler->describe(bytes, 4, 0, info));
          EXPECT_EQ(info.mnemonic, inst.info.mnemonic);
          // What waits for nothing may be spelled out or left out.
          auto waits = [](const sim::InstInfo &info, const WaitField &field) {
            return std::min<unsigned>(info.waits[field.counter], field.most());
          };
          for (const WaitField &other : kWaitFields)
            if (other.isOf(inst.info.mnemonic, chip))
              EXPECT_EQ(waits(info, other),
                        &other == &field ? count : waits(inst.info, other))
                  << fault.what;
          faults.push_back(std::move(fault));
        }
      }
    };
    const auto loops = loopsOf(function);
    for (auto [first, last] : ArrayRef(loops).drop_back(
             std::min<size_t>(exceptLast, loops.size()))) {
      const auto loop = ArrayRef(function.insts).slice(first, last + 1 - first);
      const Inst *signal = nullptr;
      for (auto [index, inst] : enumerate(loop)) {
        addWaits(loop, index);
        const StringRef name = inst.info.mnemonic;
        if (name == "s_barrier")
          faults.push_back(
              {CodeFault::NoBarrier, describe(inst), {{inst.at, kNop}}});
        else if (name == "s_barrier_signal")
          signal = &inst;
        else if (name == "s_barrier_wait" && signal)
          faults.push_back({CodeFault::NoBarrier,
                            describe(inst),
                            {{signal->at, kNop}, {inst.at, kNop}}});
      }
    }
  }
  return faults;
}
