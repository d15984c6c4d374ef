//===- Parser.h - Reading a disassembled instruction ------------*- C++ -*-===//
//
// The text of one instruction, taken apart: mnemonic, operands, modifiers.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_PARSER_H
#define FOVEA_SIMULATOR_DECODE_PARSER_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fovea::sim {

struct ParsedOperand {
  enum Kind { Vgpr, Agpr, Sgpr, Special, Int, Float, Off, Text };
  Kind kind = Text;
  unsigned index = 0; ///< first register
  unsigned words = 1; ///< registers
  int64_t integer = 0;
  double real = 0;
  bool neg = false, abs = false, sext = false;
  enum Half : uint8_t { Whole, Low, High } half = Whole; ///< "v3.l", "v3.h"
  std::string text;   ///< as printed, without modifiers
};

struct ParsedModifier {
  std::string key;
  std::string word;            ///< "WORD_1" of dst_sel:WORD_1
  std::vector<int64_t> values; ///< numbers, also of lists
};

struct ParsedInst {
  std::string mnemonic; ///< with encoding suffix
  std::vector<ParsedOperand> operands;
  std::vector<ParsedModifier> modifiers;
  const ParsedModifier *find(const char *key) const {
    for (const ParsedModifier &m : modifiers)
      if (m.key == key)
        return &m;
    return nullptr;
  }
  int64_t number(const char *key, int64_t otherwise) const {
    const ParsedModifier *m = find(key);
    return m && !m->values.empty() ? m->values[0] : otherwise;
  }
};

/// Takes \p text apart. Never fails: what it does not understand becomes an
/// operand of kind Text, which no row accepts.
ParsedInst parseInstruction(const std::string &text);

/// \p mnemonic without the suffix of its encoding (_e32, _e64, _dpp, _sdwa).
std::string withoutSuffix(std::string mnemonic);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_PARSER_H
