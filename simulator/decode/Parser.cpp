//===- Parser.cpp - Reading a disassembled instruction --------------------===//
//
// LLVM's AMDGPU assembly syntax: operands separated by commas, then modifiers
// separated by blanks ("offset:16", "neg_lo:[1,0]", "clamp").
//
//===----------------------------------------------------------------------===//
#include "decode/Parser.h"
#include "exec/MicroOp.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace fovea::sim {

namespace {

bool startsWith(const std::string &text, const char *prefix) {
  return text.compare(0, std::strlen(prefix), prefix) == 0;
}

/// "12" or "0x1f" or "-3" in full; false when it is something else.
bool parseInt(const std::string &text, int64_t &value) {
  if (text.empty())
    return false;
  char *end = nullptr;
  bool negative = text[0] == '-';
  value = negative ? std::strtoll(text.c_str(), &end, 0)
                   : int64_t(std::strtoull(text.c_str(), &end, 0));
  return *end == 0;
}

struct NamedScalar {
  const char *name;
  unsigned index, words;
};
constexpr NamedScalar kNamed[] = {
    {"vcc", kVcc, 2},           {"vcc_lo", kVcc, 1},
    {"vcc_hi", kVcc + 1, 1},    {"exec", kExec, 2},
    {"exec_lo", kExec, 1},      {"exec_hi", kExec + 1, 1},
    {"m0", kM0, 1},             {"null", kNull, 1},
    {"flat_scratch", kFlatScratch, 2},
    {"flat_scratch_lo", kFlatScratch, 1},
    {"flat_scratch_hi", kFlatScratch + 1, 1},
    {"xnack_mask", kXnackMask, 2},
    {"xnack_mask_lo", kXnackMask, 1},
    {"xnack_mask_hi", kXnackMask + 1, 1},
};

/// Registers "v5", "s[0:3]", "ttmp[4:5]"; false when it is something else.
bool parseRegister(const std::string &text, ParsedOperand &op) {
  for (const NamedScalar &named : kNamed)
    if (text == named.name) {
      op.kind = ParsedOperand::Sgpr;
      op.index = named.index;
      op.words = named.words;
      return true;
    }
  size_t digits;
  unsigned base = 0;
  if (startsWith(text, "ttmp")) {
    op.kind = ParsedOperand::Sgpr;
    base = kTtmp0;
    digits = 4;
  } else if (text[0] == 'v' || text[0] == 'a' || text[0] == 's') {
    op.kind = text[0] == 'v'   ? ParsedOperand::Vgpr
              : text[0] == 'a' ? ParsedOperand::Agpr
                               : ParsedOperand::Sgpr;
    digits = 1;
  } else {
    return false;
  }
  if (digits >= text.size())
    return false;
  char *end = nullptr;
  if (text[digits] == '[') {
    unsigned long first = std::strtoul(text.c_str() + digits + 1, &end, 10);
    unsigned long last = first;
    if (*end == ':')
      last = std::strtoul(end + 1, &end, 10);
    if (*end != ']' || last < first || last > 511)
      return false;
    op.index = base + first;
    op.words = last - first + 1;
    return true;
  }
  if (!std::isdigit(static_cast<unsigned char>(text[digits])))
    return false;
  op.index = base + std::strtoul(text.c_str() + digits, &end, 10);
  op.words = 1;
  if (text[0] == 'v' && (!std::strcmp(end, ".l") || !std::strcmp(end, ".h"))) {
    op.half = end[1] == 'h' ? ParsedOperand::High : ParsedOperand::Low;
    end += 2;
  }
  return *end == 0 && op.index < 512;
}

ParsedOperand parseOperand(std::string text) {
  ParsedOperand op;
  auto unwrap = [&](const char *name) {
    size_t n = std::strlen(name);
    if (!startsWith(text, name) || text.back() != ')')
      return false;
    text = text.substr(n, text.size() - n - 1);
    return true;
  };
  if (unwrap("neg("))
    op.neg = true;
  if (text.size() > 1 && text[0] == '-' &&
      !std::isdigit(static_cast<unsigned char>(text[1]))) {
    op.neg = true;
    text.erase(0, 1);
  }
  if (text.size() > 2 && text.front() == '|' && text.back() == '|') {
    op.abs = true;
    text = text.substr(1, text.size() - 2);
  }
  if (unwrap("abs("))
    op.abs = true;
  if (unwrap("sext("))
    op.sext = true;
  unwrap("lit(") || unwrap("lit64(");
  op.text = text;
  if (text.empty())
    return op;
  if (text == "off") {
    op.kind = ParsedOperand::Off;
    return op;
  }
  if (parseRegister(text, op))
    return op;
  op.kind = ParsedOperand::Text;
  if (startsWith(text, "src_") || text == "scc" || text == "vccz" ||
      text == "execz") {
    op.kind = ParsedOperand::Special;
    return op;
  }
  if (parseInt(text, op.integer)) {
    op.kind = ParsedOperand::Int;
    return op;
  }
  char *end = nullptr;
  op.real = std::strtod(text.c_str(), &end);
  if (*end == 0)
    op.kind = ParsedOperand::Float;
  return op;
}

ParsedModifier parseModifier(const std::string &text) {
  ParsedModifier m;
  size_t colon = text.find(':');
  m.key = text.substr(0, colon);
  if (colon == std::string::npos) {
    m.values.push_back(1);
    return m;
  }
  std::string rest = text.substr(colon + 1);
  m.word = rest;
  for (char &c : rest)
    if (c == '[' || c == ']' || c == ',')
      c = ' ';
  const char *p = rest.c_str();
  while (*p) {
    char *end = nullptr;
    long long value = std::strtoll(p, &end, 0);
    if (end == p)
      break;
    m.values.push_back(value);
    p = end;
    while (*p == ' ')
      ++p;
  }
  return m;
}

} // namespace

ParsedInst parseInstruction(const std::string &text) {
  ParsedInst inst;
  size_t i = 0, n = text.size();
  auto skipBlanks = [&] {
    while (i < n && (text[i] == ' ' || text[i] == '\t'))
      ++i;
  };
  while (i < n && text[i] != ' ' && text[i] != '\t')
    inst.mnemonic += text[i++];
  skipBlanks();
  // Comments after the instruction do not matter.
  if (size_t comment = text.find("//"); comment != std::string::npos)
    n = comment;
  bool expectOperand = true;
  while (i < n) {
    std::string word;
    int depth = 0;
    while (i < n) {
      char c = text[i];
      if (c == '[' || c == '(')
        ++depth;
      else if (c == ']' || c == ')')
        --depth;
      if (depth == 0 && (c == ',' || c == ' ' || c == '\t'))
        break;
      if (c != ' ')
        word += c;
      ++i;
    }
    skipBlanks();
    bool comma = i < n && text[i] == ',';
    if (comma) {
      ++i;
      skipBlanks();
    }
    if (word.empty())
      continue;
    // An operand follows the mnemonic or a comma; the rest are modifiers.
    bool looksLikeModifier =
        word.find(':') != std::string::npos && word.find('[') != 1 &&
        !startsWith(word, "ttmp[") && word[0] != '|' && word[0] != '-' &&
        !startsWith(word, "neg(") && !startsWith(word, "sext(") &&
        !startsWith(word, "abs(");
    if (expectOperand && !looksLikeModifier)
      inst.operands.push_back(parseOperand(word));
    else
      inst.modifiers.push_back(parseModifier(word));
    expectOperand = comma;
  }
  return inst;
}

std::string withoutSuffix(std::string mnemonic) {
  for (const char *suffix : {"_dpp", "_sdwa", "_e64", "_e32"}) {
    size_t n = std::strlen(suffix);
    if (mnemonic.size() >= n &&
        mnemonic.compare(mnemonic.size() - n, n, suffix) == 0)
      mnemonic.resize(mnemonic.size() - n);
  }
  return mnemonic;
}

} // namespace fovea::sim
