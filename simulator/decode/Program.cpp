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

Program::Program(const ChipInfo &chip, const uint8_t *text, uint32_t dwords)
    : Chip(chip), Text(text), Dwords(dwords), Ops(new MicroOp[dwords + 8]) {
  for (uint32_t i = 0; i < dwords + 8; ++i)
    Ops[i].fn.store(i < dwords ? notDecoded : endOfCode,
                    std::memory_order_relaxed);
}
Program::~Program() = default;

Handler Program::undecoded() { return notDecoded; }

Status Program::create(const ChipInfo &chip, const uint8_t *text,
                       uint64_t bytes, std::unique_ptr<Program> &result) {
  std::unique_ptr<Program> program(
      new Program(chip, text, static_cast<uint32_t>(bytes / 4)));
  program->Table = IsaTable::get();
  if (!program->Table)
    return {ErrorCode::LaunchFailure,
            "no build of the simulator's engine runs on this host's CPU; "
            "configure with -DFOVEA_SIM_VARIANTS=generic"};
  program->Decoder = Disassembler::create(std::string(chip.target));
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
    uint32_t word;
    std::memcpy(&word, Text + 4 * uint64_t(index), 4);
    Binder binder(*this, *Table, index, word);
    handler = binder.bind(op, parseInstruction(text));
    if (!handler)
      handler = notSimulated;
  }
  op.size = dwords;
  op.fn.store(handler, std::memory_order_release);
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
  return Program::create(Dev->chip(),
                         reinterpret_cast<const uint8_t *>(TextBegin),
                         TextEnd - TextBegin, Code);
}

} // namespace fovea::sim
