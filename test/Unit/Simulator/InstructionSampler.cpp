//===- InstructionSampler.cpp - Random instructions of a chip -------------===//
//
// Generates words, disassembles them and binds them as the simulator would.
//
//===----------------------------------------------------------------------===//
#include "InstructionSampler.h"

#include "decode/Binder.h"
#include "decode/Disassembler.h"
#include "decode/Program.h"
#include "fovea/Simulator/Chip.h"
#include "isa/Table.h"

#include "gtest/gtest.h"

#include <random>
#include <regex>

namespace fovea::sim::test {

size_t sampleInstructions(
    const std::string &target, unsigned rounds,
    const std::function<void(const std::string &text,
                             const std::vector<uint32_t> &words)> &visit) {
  std::unique_ptr<Disassembler> decoder = Disassembler::create(
      target, std::string(findChip(target)->decoderFeatures));
  EXPECT_TRUE(decoder) << "no disassembler for " << target;
  if (!decoder)
    return 0;
  std::mt19937 generator(908);
  auto rng = [&] { return static_cast<uint32_t>(generator()); };
  size_t decoded = 0;
  std::string text;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    // VOP3: one opcode a value, and many words that are no instruction.
    bool wide = upper >> 10 == 0x34 || upper >> 10 == 0x35;
    for (unsigned round = 0; round < (wide ? 16 * rounds : rounds); ++round) {
      uint32_t words[4] = {upper << 16 | (rng() & 0xffff), rng(), rng(), rng()};
      // Most of the fields that a chip wants to be zero lie in the second word.
      if (round % 4 == 1)
        words[1] &= rng();
      // LDS loads of RDNA chips have no data registers.
      if (upper >> 10 == 0x36 && round % 3 == 2)
        words[1] &= 0xff0000ff;
      // Tuples of vector registers start at even ones.
      if (wide && round % 2) {
        words[0] &= ~1u;
        words[1] = (words[1] & ~0x40201u) | 0x4020100;
      }
      // v_mfma_ld_scale_b32 is half an instruction (gfx950).
      if (upper == 0xd3ac)
        words[2] = (0xd3adu + (round & 1)) << 16 | (words[2] & 0xffff);
      uint64_t size = 0;
      if (!decoder->disassemble(reinterpret_cast<const uint8_t *>(words),
                                sizeof words, 0, text, size) ||
          size % 4 != 0)
        continue;
      ++decoded;
      visit(text, std::vector<uint32_t>(words, words + size / 4));
    }
  }
  return decoded;
}

std::string formOf(const ParsedInst &inst) {
  std::string form = inst.mnemonic;
  for (const ParsedOperand &o : inst.operands) {
    form += " ";
    if (o.neg)
      form += "-";
    if (o.abs)
      form += "+";
    if (o.sext)
      form += "~";
    std::string words = std::to_string(o.words);
    if (o.index + o.words > 256) // the last register is 255
      words += "!";
    switch (o.kind) {
    case ParsedOperand::Vgpr:
      form += "v" + words;
      break;
    case ParsedOperand::Agpr:
      form += "a" + words;
      break;
    case ParsedOperand::Sgpr:
      form += "s" + words;
      break;
    case ParsedOperand::Int:
      form += "int";
      break;
    case ParsedOperand::Float:
      form += "float";
      break;
    case ParsedOperand::Off:
      form += "off";
      break;
    case ParsedOperand::Special:
      form += o.text;
      break;
    case ParsedOperand::Text:
      form += o.text.substr(0, o.text.find('('));
      break;
    }
  }
  for (const ParsedModifier &m : inst.modifiers)
    form += " " + m.key;
  return form;
}

Coverage coverageOf(const std::string &target, unsigned rounds) {
  Coverage coverage;
  const ChipInfo *chip = findChip(target);
  const IsaTable *table = IsaTable::get();
  EXPECT_TRUE(chip && table) << target;
  if (!chip || !table)
    return coverage;
  // Constants of a program live as long as it does: a new one now and then.
  std::unique_ptr<Program> program;
  static const uint32_t code[2] = {0, 0};
  size_t count = 0;
  coverage.decoded = sampleInstructions(
      target, rounds,
      [&](const std::string &text, const std::vector<uint32_t> &words) {
        if (count++ % 4096 == 0) {
          Status status =
              Program::create(*chip, chip->waveSize,
                              reinterpret_cast<const uint8_t *>(code),
                              sizeof code, program);
          ASSERT_TRUE(status.ok()) << status.message();
        }
        // Each half of a dual-issue instruction for itself.
        size_t middle = text.find(" :: ");
        if (middle != std::string::npos) {
          for (const std::string &part :
               {text.substr(0, middle), text.substr(middle + 4)}) {
            ParsedInst inst = parseInstruction(part);
            std::string form = formOf(inst);
            ++coverage.forms[form];
            MicroOp op;
            if (!Binder(*program, *table, 0, words[0]).bind(op, inst))
              coverage.unbound.emplace(form, text);
          }
          return;
        }
        ParsedInst inst = parseInstruction(text);
        std::string form = formOf(inst);
        ++coverage.forms[form];
        MicroOp op;
        if (!Binder(*program, *table, 0, words[0]).bind(op, inst))
          coverage.unbound.emplace(form, text);
      });
  return coverage;
}

std::vector<std::string> unexplained(const Coverage &coverage,
                                     const std::vector<Refusal> &refusals,
                                     std::vector<size_t> &used) {
  std::vector<std::regex> patterns;
  for (const Refusal &refusal : refusals)
    patterns.emplace_back(refusal.form, std::regex::optimize);
  used.resize(refusals.size());
  std::vector<std::string> result;
  for (const auto &[form, text] : coverage.unbound) {
    bool explained = false;
    for (size_t i = 0; i < patterns.size() && !explained; ++i)
      if (std::regex_match(form, patterns[i])) {
        explained = true;
        ++used[i];
      }
    if (!explained)
      result.push_back(form + "    e.g. " + text);
  }
  return result;
}

} // namespace fovea::sim::test
