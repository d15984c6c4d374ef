//===- Program.cpp - The decoded code of a code object --------------------===//
//
// Lazy decoding: text from LLVM's disassembler, a row from the table, and the
// operands bound as the row's form asks.
//
//===----------------------------------------------------------------------===//
#include "decode/Program.h"
#include "decode/Binder.h"
#include "decode/CodeObjectImpl.h"
#include "decode/Disassembler.h"
#include "decode/SourceLines.h"
#include "exec/Wave.h"
#include "fovea/Simulator/Device.h"
#include "isa/Table.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {

/// Marks what is not decoded yet; the launch decodes instead of calling it.
void notDecoded(Wave &, const MicroOp &) {}

void undecodable(Wave &w, const MicroOp &op) {
  w.fail(ErrorCode::IllegalInstruction, op, -1,
         "what lies there is no instruction of this chip");
}
void endOfCode(Wave &w, const MicroOp &op) {
  w.fail(ErrorCode::IllegalAddress, op, -1, "execution ran off the end of the code");
}
void notSimulated(Wave &w, const MicroOp &op) {
  w.fail(ErrorCode::IllegalInstruction, op, -1, "instruction not simulated");
}

} // namespace

Program::Program(const ChipInfo &chip, unsigned waveSize, const uint8_t *text,
                 uint32_t dwords)
    : Chip(chip), WaveSize(waveSize), Text(text), Dwords(dwords),
      Ops(new MicroOp[dwords + 8]) {
  for (uint32_t i = 0; i < dwords + 8; ++i)
    Ops[i].fn.store(i < dwords ? notDecoded : endOfCode,
                    std::memory_order_relaxed);
}
Program::~Program() = default;

Handler Program::undecoded() { return notDecoded; }

Status Program::create(const ChipInfo &chip, unsigned waveSize,
                       const uint8_t *text, uint64_t bytes,
                       std::unique_ptr<Program> &result) {
  std::unique_ptr<Program> program(
      new Program(chip, waveSize, text, static_cast<uint32_t>(bytes / 4)));
  program->Table = IsaTable::get();
  if (!program->Table)
    return {ErrorCode::LaunchFailure,
            "no build of the simulator's engine runs on this host's CPU; "
            "configure with -DFOVEA_SIM_VARIANTS=generic"};
  std::string features(chip.decoderFeatures);
  if (chip.otherWaveSize) {
    features += features.empty() ? "" : ",";
    features += waveSize == 32 ? "+wavefrontsize32,-wavefrontsize64"
                               : "+wavefrontsize64,-wavefrontsize32";
  }
  program->Decoder = Disassembler::create(std::string(chip.target), features);
  if (!program->Decoder)
    return {ErrorCode::TargetMismatch,
            "this LLVM has no disassembler for " + std::string(chip.target)};
  result = std::move(program);
  return Status::success();
}

std::string Program::text(uint32_t index) {
  std::lock_guard<std::mutex> lock(Mutex);
  std::string text;
  uint64_t size = 0;
  if (index >= Dwords ||
      !Decoder->disassemble(Text + 4 * uint64_t(index),
                            4 * uint64_t(Dwords - index),
                            begin() + 4 * uint64_t(index), text, size))
    return "(no instruction)";
  for (char &c : text)
    if (c == '\t')
      c = ' ';
  return text;
}

const InstInfo &Program::info(uint32_t index) {
  std::lock_guard<std::mutex> lock(Mutex);
  auto [it, fresh] = Infos.try_emplace(index);
  if (fresh && index < Dwords)
    Decoder->describe(Text + 4 * uint64_t(index),
                      4 * uint64_t(Dwords - index),
                      begin() + 4 * uint64_t(index), it->second);
  return it->second;
}

std::string Program::sourceLine(uint32_t index) {
  return Lines ? Lines->at(FileAddress + 4 * uint64_t(index)) : "";
}

void Program::setSourceLines(std::shared_ptr<SourceLines> lines,
                             uint64_t fileAddress) {
  Lines = std::move(lines);
  FileAddress = fileAddress;
}

std::shared_ptr<void> Program::extension(
    const std::function<std::shared_ptr<void>(Program &)> &make) {
  std::lock_guard<std::mutex> lock(ExtensionMutex);
  if (!Extension)
    Extension = make(*this);
  return Extension;
}

void Program::decode(uint32_t index) {
  std::lock_guard<std::mutex> lock(Mutex);
  MicroOp &op = Ops[index];
  if (op.size)
    return;
  std::string text;
  uint64_t size = 0;
  Handler handler = undecodable;
  op.cls = static_cast<uint8_t>(InstClass::Other);
  uint8_t dwords = 1;
  if (Decoder->disassemble(Text + 4 * uint64_t(index),
                           4 * uint64_t(Dwords - index),
                           begin() + 4 * uint64_t(index), text, size) &&
      size % 4 == 0) {
    dwords = static_cast<uint8_t>(size / 4);
    handler = bind(op, index, text);
    if (!handler)
      handler = notSimulated;
  }
  op.size = dwords;
  op.fn.store(handler, std::memory_order_release);
}

Handler Program::bind(MicroOp &op, uint32_t index, const std::string &text) {
  uint32_t word;
  std::memcpy(&word, Text + 4 * uint64_t(index), 4);
  Binder binder(*this, *Table, index, word);
  size_t middle = text.find(" :: ");
  if (middle == std::string::npos)
    return binder.bind(op, parseInstruction(text));
  // Dual issue: both halves read before either writes. Where the second reads
  // what the first writes, the first one's result waits in a spare register.
  Halves.emplace_back();
  auto &[first, second] = Halves.back();
  Handler handlers[] = {
      binder.bind(first, parseInstruction(text.substr(0, middle))),
      binder.bind(second, parseInstruction(text.substr(middle + 4)))};
  if (!handlers[0] || !handlers[1])
    return nullptr;
  first.fn.store(handlers[0], std::memory_order_relaxed);
  second.fn.store(handlers[1], std::memory_order_relaxed);
  op.row = first.row;
  op.cls = first.cls;
  op.d = first.d;
  op.halves = Halves.back().data();
  for (const Operand &source : second.s)
    if (source.kind == Operand::Vgpr && source.reg == first.d.reg)
      first.d.reg = kSpareReg;
  return Table->variant().dual;
}

std::vector<std::string> Program::unsupported() {
  std::vector<std::string> result;
  for (uint32_t index = 0; index < Dwords;) {
    decode(index);
    const MicroOp &op = Ops[index];
    // Padding between functions need not decode.
    if (op.fn.load(std::memory_order_acquire) == notSimulated) {
      std::string mnemonic = parseInstruction(text(index)).mnemonic;
      if (std::find(result.begin(), result.end(), mnemonic) == result.end())
        result.push_back(mnemonic);
    }
    index += op.size;
  }
  return result;
}

const uint32_t *Program::constant(uint64_t value) {
  const uint32_t *&place = Constants[value];
  if (!place) {
    Pool.emplace_back();
    uint32_t *words = Pool.back().words;
    for (unsigned l = 0; l < kLaneStride; ++l) {
      words[l] = static_cast<uint32_t>(value);
      words[kLaneStride + l] = static_cast<uint32_t>(value >> 32);
    }
    place = words;
  }
  return place;
}

Status CodeObject::Impl::createProgram() {
  // Nearly all code objects have kernels of one wave size.
  for (const KernelInfo &kernel : Kernels) {
    bool known = false;
    for (const auto &program : Programs)
      known |= program->waveSize() == kernel.waveSize;
    if (known)
      continue;
    Programs.emplace_back();
    if (Status s = Program::create(Dev->chip(), kernel.waveSize,
                                   reinterpret_cast<const uint8_t *>(TextBegin),
                                   TextEnd - TextBegin, Programs.back());
        !s)
      return s;
  }
  return Status::success();
}

Program &CodeObject::Impl::program(unsigned waveSize) const {
  for (const auto &program : Programs)
    if (program->waveSize() == waveSize)
      return *program;
  return *Programs.front(); // not reached: each kernel's size has one
}

} // namespace fovea::sim
