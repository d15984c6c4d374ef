//===- Targets.cpp - chips by name, by family, or all ---------------------===//

#include "Targets.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fovea;
using namespace fovea::tools;
using target::TargetInfo;

static constexpr llvm::StringLiteral kAll = "all";

/// The chips that a text stands for if it is no name: all, or those whose names
/// begin so. Generic targets are never meant: their code is that of chips which
/// are in the list themselves.
static std::vector<const TargetInfo *> familyOf(llvm::StringRef text) {
  std::vector<const TargetInfo *> family;
  llvm::StringRef digits = text;
  const bool isPrefix = digits.consume_front("gfx") && !digits.empty();
  for (const TargetInfo &row : target::allTargets())
    if (!row.isGeneric() &&
        (text == kAll || (isPrefix && row.name.starts_with(text))))
      family.push_back(&row);
  return family;
}

std::vector<Selected>
fovea::tools::selectTargets(const std::vector<Item> &items,
                            Complaints &complaints) {
  std::vector<Selected> selected;
  auto find = [&](const TargetInfo *target) {
    return llvm::find_if(selected, [&](const Selected &other) {
      return other.target == target;
    });
  };
  for (const Item &item : items) {
    if (const TargetInfo *target = target::lookupTarget(item.text)) {
      if (auto at = find(target); at == selected.end())
        selected.push_back({target, /*byName=*/true});
      else if (at->byName)
        complaints.add(item.where, "'" + item.text + "' is named twice");
      else
        at->byName = true;
      continue;
    }
    std::vector<const TargetInfo *> family = familyOf(item.text);
    for (const TargetInfo *target : family)
      if (find(target) == selected.end())
        selected.push_back({target, /*byName=*/false});
    if (!family.empty())
      continue;
    llvm::StringRef chip = llvm::StringRef(item.text).split(':').first;
    if (chip != item.text && target::lookupTarget(chip))
      complaints.add(item.where, "'" + item.text +
                                     "': code is compiled for either state of "
                                     "xnack and sramecc; give '" +
                                     chip + "'");
    else
      complaints.add(item.where,
                     "unknown chip '" + item.text +
                         "'; known: " + target::targetNames() +
                         "; a beginning of names, such as gfx11, is the chips "
                         "that it begins; all is every chip");
  }
  return selected;
}

/// "mfma", "wmma": the family of the matrix instructions that a chip has.
static llvm::StringRef matrixFamily(const TargetInfo &target) {
  for (const target::MatrixInstr &instr : target::allMatrixInstrs())
    if (target.has(instr.feature) && instr.waveSize == target.waveSize &&
        instr.family != target::MatrixFamily::Lanes)
      return instr.family == target::MatrixFamily::Mfma ? "mfma" : "wmma";
  return "none";
}

std::string fovea::tools::targetTable() {
  std::string text;
  llvm::raw_string_ostream os(text);
  constexpr llvm::StringLiteral kFormat =
      "{0,-14} {1,4} {2,8} {3,10} {4,5} {5,4} {6,-7} {7,-14} {8}\n";
  os << llvm::formatv(kFormat.data(), "name", "wave", "LDS KiB", "registers",
                      "CUs", "XCDs", "matrix", "family", "product");
  for (const TargetInfo &row : target::allTargets()) {
    os << llvm::formatv(
        kFormat.data(), row.name, row.waveSize, row.ldsBytes / 1024,
        row.registersPerSimdLane, row.computeUnits, row.xcds, matrixFamily(row),
        row.isGeneric() || row.generic.empty() ? "-" : row.generic,
        row.product);
  }
  return text;
}
