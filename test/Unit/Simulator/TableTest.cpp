//===- TableTest.cpp - The semantics table against the assembler ----------===//
//
// Every row's mnemonic is one that LLVM's assembler knows on some GFX9 chip,
// with the operands that the row's form and types ask for. That they bind, and
// that no instruction lacks a row, is CoverageTest's business.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"
#include "KernelTest.h"

#include "isa/Table.h"

#include <fstream>
#include <set>
#include <unistd.h>

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

std::string reg(char file, int first, unsigned words) {
  return words == 1 ? file + std::to_string(first)
                    : file + ("[" + std::to_string(first) + ":" +
                              std::to_string(first + static_cast<int>(words) - 1) + "]");
}

unsigned memoryWords(const Row &row) {
  if (row.flags & kAtomic)
    return row.param / 4 * (row.mnemonic.find("cmpswap") != std::string_view::npos ? 2 : 1);
  return row.param < 4 ? 1 : row.count;
}

/// Candidates for an instruction of the row; one of them has to assemble.
std::vector<std::string> candidates(const Row &row) {
  std::string name(row.mnemonic);
  std::vector<std::string> lines;
  auto add = [&](const std::string &operands) {
    lines.push_back(name + " " + operands);
  };
  bool has = name.find("_lds_") != std::string::npos;
  switch (row.form) {
  case Form::Vector: {
    std::string suffix;
    if (name.size() > 6 && name.substr(name.size() - 6) == "_clamp") {
      name.resize(name.size() - 6);
      suffix = " clamp";
    }
    std::string text = reg('v', 8, wordsOf(row.d));
    if (row.flags & kCarryOut)
      text += ", vcc";
    int at = 20;
    for (int i = 0; i < 3 && row.s[i] != Ty::None; ++i, at += 4) {
      bool last = i == 2 || row.s[i + 1] == Ty::None;
      if ((row.flags & kTied) && last)
        break;
      text += ", ";
      if (row.s[i] == Ty::Mask)
        text += "vcc";
      else if (name.find("ak_f") != std::string::npos && i == 2)
        text += name.back() == '6' ? "0x4049" : "0x40490fdb";
      else if (name.find("mk_f") != std::string::npos && i == 1)
        text += name.back() == '6' ? "0x4049" : "0x40490fdb";
      else if (name == "v_accvgpr_read_b32" || name == "v_accvgpr_mov_b32")
        text += "a20";
      else
        text += reg('v', at, wordsOf(row.s[i]));
    }
    if (name == "v_accvgpr_write_b32" || name == "v_accvgpr_mov_b32")
      text[0] = 'a';
    add(text + suffix);
    lines.push_back(name + "_e64 " + text + suffix);
    // GFX11: masks of waves of 32, halves of registers, dual issue.
    std::string narrow = text, halves = text + ",";
    for (size_t i; (i = narrow.find("vcc,")) != std::string::npos;)
      narrow.replace(i, 4, "vcc_lo,");
    if (narrow.size() > 3 && narrow.substr(narrow.size() - 3) == "vcc")
      narrow += "_lo";
    add(narrow + suffix);
    for (const char *half : {"v8,", "v20,", "v24,", "v28,"})
      if (size_t i = halves.find(half); i != std::string::npos)
        halves.insert(i + std::strlen(half) - 1, ".l");
    halves.pop_back();
    add(halves);
    add("v8.l, v20.l, v24.l, vcc_lo");
    add("v8.l, v20.l, v24.l, 0x1234");
    add("v8.l, v20.l, 0x1234, v24.l");
    if (wordsOf(row.d) == 1 && !(row.flags & kCarryOut))
      lines.push_back("v_dual_" + name.substr(2) + " " + text +
                      " :: v_dual_mov_b32 v9, v21");
    break;
  }
  case Form::Compare:
    add("vcc, " + reg('v', 20, wordsOf(row.s[0])) + ", " +
        reg('v', 24, wordsOf(row.s[1])));
    add("vcc_lo, " + reg('v', 20, wordsOf(row.s[0])) + ", " +
        reg('v', 24, wordsOf(row.s[1])));
    add("vcc_lo, v20.l, v24.l");
    break;
  case Form::Custom:
    add("v8, v20");
    add("s8, v20");
    add("s8, v20, s4");
    add("v8, s20, s4");
    add("v8, v20, v21");
    add("v8, v20, s4, s5");
    add("v8.l, v20.l");
    add("v8, v20, v21, v22");
    add("v[8:9], v[20:21], v[22:23]");
    add("v[8:9], v[20:21], v[22:23], v[24:25]");
    add("v[8:11], v[20:21], v22, v[24:27]");
    break;
  case Form::Convert: {
    std::string text = reg('v', 8, wordsOf(row.d));
    int at = 40;
    for (int i = 0; i < 3 && row.s[i] != Ty::None; ++i, at += 40)
      text += ", " + reg('v', at, wordsOf(row.s[i]));
    add(text);
    break;
  }
  case Form::Scalar:
  case Form::ScalarNoDst: {
    std::string text;
    auto join = [&](const std::string &x) { text += (text.empty() ? "" : ", ") + x; };
    if (row.form == Form::Scalar)
      join(reg('s', 8, wordsOf(row.d)));
    int at = 20;
    for (int i = 0; i < 2 && row.s[i] != Ty::None; ++i, at += 4)
      join(reg('s', at, wordsOf(row.s[i])));
    add(text);
    add("s8, 0x1234");
    add("s8, hwreg(HW_REG_MODE)");
    add("hwreg(HW_REG_MODE), s8");
    add("hwreg(HW_REG_MODE), 0x1234");
    add("s8, gpr_idx(SRC0)");
    add("s8, s20, s24, 0x40490fdb");
    add("s8, s20, 0x40490fdb, s24");
    add("s[8:9], sendmsg(MSG_RTN_GET_REALTIME)");
    add("-1");
    add("m0");
    add("s8, -1");
    break;
  }
  case Form::Branch:
    add("0");
    add("s[8:9], 0");
    break;
  case Form::Nop:
    add("");
    add("0");
    add("1");
    add("gpr_idx(SRC0)");
    add("null, 0");
    add("s[4:5], 0x10, s8, 1");
    add("s[4:7], 0x10, s8, 1");
    add("0, s[4:5], 0x10");
    add("0, s[4:7], 0x10");
    add("s[4:5], 0x10");
    break;
  case Form::Smem:
    add(reg('s', 8, row.count) + ", s[4:5], 0x10");
    add(reg('s', 8, row.count) + ", s[4:7], 0x10");
    add(reg('s', 8, row.count) + ", s[4:5], 0x10 glc");
    add(reg('s', 8, row.count) + ", s[4:7], 0x10 glc");
    break;
  case Form::Flat: {
    std::string data = reg('v', 8, memoryWords(row));
    bool scratch = row.flags & kScratch, flat = !(row.flags & (kGlobal | kScratch));
    std::string address = scratch ? "v2" : "v[2:3]";
    std::string tail = flat ? "" : ", off";
    if (has)
      add(address + ", off");
    else if (row.flags & kLoad)
      add(data + ", " + address + tail);
    else
      add(address + ", " + data + tail);
    break;
  }
  case Form::Buffer: {
    unsigned words = memoryWords(row);
    if (name.find("_d16_") != std::string::npos && name.find("format") != std::string::npos)
      words = (words + 1) / 2;
    std::string data = reg('v', 8, words);
    add(has ? "v2, s[4:7], 0 offen" : data + ", v2, s[4:7], 0 offen");
    add(data + ", v2, s[4:7], null offen"); // gfx12 has no constants there
    break;
  }
  case Form::Ds: {
    unsigned words = row.flags & kAtomic ? row.param / 4 : memoryWords(row);
    std::string d = reg('v', 20, (row.flags & kTwo) ? 2 * words : words);
    std::string x = reg('v', 30, words), y = reg('v', 40, words);
    add("v20");
    if (row.flags & kTwo)
      add(d + ", v2, " + x + ", " + y);
    if (row.flags & kLoad)
      add(d + ", v2");
    else if (row.flags & kStore)
      add("v2, " + x + (row.flags & kTwo ? ", " + y : ""));
    else {
      add("v2, " + x);
      add("v2, " + x + ", " + y);
      add(d + ", v2, " + x);
      add(d + ", v2, " + x + ", " + y);
      add("v20, v2");
    }
    break;
  }
  case Form::Smfmac:
    for (const char *c : {"v[0:15]", "v[0:3]"})
      for (const char *ab : {"v[32:33], v[36:39]", "v[32:35], v[40:47]"})
        add(std::string(c) + ", " + ab + ", v50");
    break;
  case Form::MfmaSmall:
    for (const char *c : {"v[0:15]", "v[0:3]"})
      for (const char *scales : {"", ", v60, v61"})
        add(std::string(c) + ", v[32:39], v[40:47], " + c + scales);
    break;
  case Form::Mfma:
    if (name.find("wmma") != std::string::npos ||
        name.find("swmmac") != std::string::npos) {
      for (const char *c : {"v[0:7]", "v[0:3]"})
        for (unsigned a : {8u, 4u, 2u, 1u})
          for (unsigned b : {8u, 4u, 2u}) {
            std::string ab = std::string(c) + ", " + reg('v', 40, a) + ", ";
            add(ab + reg('v', 50, a) + ", " + c);
            add(ab + reg('v', 50, b) + ", v60");
          }
      break;
    }
    for (const char *c : {"v[0:31]", "v[0:15]", "v[0:7]", "v[0:3]", "v[0:1]"})
      for (const char *a : {"v32, v34", "v[32:33], v[34:35]", "v[32:35], v[36:39]"})
        add(std::string(c) + ", " + a + ", " + c);
    break;
  }
  return lines;
}

TEST(Table, EveryRowIsAnInstructionOfSomeChip) {
  const IsaTable *table = IsaTable::get();
  ASSERT_NE(table, nullptr);
  std::vector<std::string> lines;
  std::vector<size_t> rowOf;
  for (size_t i = 0; i < table->rows().size(); ++i)
    for (const std::string &line : candidates(table->rows()[i])) {
      lines.push_back(line);
      rowOf.push_back(i);
    }
  std::set<size_t> known;
  for (const char *target : {"gfx942", "gfx950", "gfx90a", "gfx908", "gfx906", "gfx900",
                             "gfx1030", "gfx1100", "gfx1151", "gfx1201"}) {
    // What one chip is known to have need not be asked for again.
    std::vector<std::string> open;
    std::vector<size_t> openRow;
    for (size_t i = 0; i < lines.size(); ++i)
      if (!known.count(rowOf[i])) {
        open.push_back(lines[i]);
        openRow.push_back(rowOf[i]);
      }
    std::vector<bool> ok = assembles(open, target);
    for (size_t i = 0; i < open.size(); ++i)
      if (ok[i])
        known.insert(openRow[i]);
  }
  for (size_t i = 0; i < table->rows().size(); ++i)
    EXPECT_TRUE(known.count(i))
        << "no chip has " << table->rows()[i].mnemonic << "; tried "
        << candidates(table->rows()[i]).front();
  EXPECT_GT(known.size(), 900u);

}

TEST(Table, MnemonicsAreUnique) {
  std::set<std::pair<std::string_view, uint32_t>> seen;
  for (const Row &row : IsaTable::get()->rows())
    EXPECT_TRUE(seen.insert({row.mnemonic, row.traits}).second) << row.mnemonic;
}

} // namespace
