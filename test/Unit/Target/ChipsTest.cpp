//===- ChipsTest.cpp - the package's chips are LLVM's ---------------------===//
//
// Compares every row of the table by which the runtime lets code run with what
// LLVM's backend says of the chip.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/Chips.h"
#include "fovea/Target/TargetInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/TargetParser.h"
#include "llvm/TargetParser/Triple.h"
#include <gtest/gtest.h>
#include <set>

using namespace fovea;

namespace {

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(llvm::StringRef chip) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  EXPECT_TRUE(target) << error;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, chip, ""));
}

/// LLVM's processors from GFX9 on.
std::vector<std::string> processors() {
  llvm::SmallVector<llvm::StringRef> all;
  llvm::AMDGPU::fillValidArchListAMDGCN(all);
  std::vector<std::string> names;
  for (llvm::StringRef name : all)
    if (name.starts_with("gfx9") || name.starts_with("gfx1"))
      names.push_back(name.str());
  return names;
}

} // namespace

TEST(Chips, EveryProcessorOfLLVMHasARow) {
  std::set<std::string> known;
  for (const Chip &chip : allChips())
    EXPECT_TRUE(known.insert(std::string(chip.name)).second) << chip.name;
  const std::vector<std::string> names = processors();
  EXPECT_GT(names.size(), 30u);
  for (const std::string &name : names)
    EXPECT_EQ(known.erase(name), 1u) << name;
  for (const std::string &name : known)
    ADD_FAILURE() << name << " is no processor of LLVM's";
}

TEST(Chips, FeaturesAreThoseThatLLVMLetsCodeChoose) {
  int with = 0;
  for (const Chip &chip : allChips()) {
    SCOPED_TRACE(std::string(chip.name));
    auto info = subtarget(chip.name);
    EXPECT_EQ(chip.xnack, info->checkFeatures("+xnack-support"));
    EXPECT_EQ(chip.sramecc, info->checkFeatures("+sramecc-support"));
    with += chip.xnack;
  }
  EXPECT_GT(with, 0);
}

TEST(Chips, FamiliesHaveRowsAndMembers) {
  int members = 0, families = 0;
  for (const Chip &chip : allChips()) {
    SCOPED_TRACE(std::string(chip.name));
    EXPECT_EQ(findChip(chip.name), &chip);
    EXPECT_EQ(findChip(chip.mach), &chip) << "a number twice";
    if (chip.isGeneric()) {
      ++families;
      EXPECT_TRUE(chip.family.empty());
      EXPECT_FALSE(membersOf(chip.name).empty());
      continue;
    }
    if (chip.family.empty())
      continue;
    ++members;
    const Chip *family = findChip(chip.family);
    ASSERT_TRUE(family);
    EXPECT_TRUE(family->isGeneric());
    // What the family's code may pin, each member can have.
    EXPECT_LE(family->xnack, chip.xnack);
    EXPECT_LE(family->sramecc, chip.sramecc);
    // A family is one major and, in GFX9 and GFX10, one minor version.
    const auto version = llvm::AMDGPU::getIsaVersion(chip.name);
    const auto common = llvm::AMDGPU::getIsaVersion(chip.family);
    EXPECT_EQ(version.Major, common.Major);
  }
  EXPECT_EQ(families, 6);
  EXPECT_GT(members, 20);
  EXPECT_EQ(membersOf("gfx9-4-generic"), "gfx942, gfx950");
  EXPECT_EQ(membersOf("gfx11-generic"),
            "gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, gfx1151, gfx1152, "
            "gfx1153");
  EXPECT_EQ(membersOf("gfx12-generic"), "gfx1200, gfx1201");
  EXPECT_EQ(membersOf("gfx942"), "");
}

// What the compiler calls a family is what the runtime calls one.
TEST(Chips, EveryTargetOfTheCompilerHasARow) {
  for (const target::TargetInfo &target : target::allTargets()) {
    SCOPED_TRACE(target.name.str());
    const Chip *chip = findChip(std::string_view(target.name));
    ASSERT_TRUE(chip);
    EXPECT_EQ(chip->isGeneric(), target.isGeneric());
    EXPECT_EQ(target.isGeneric() ? chip->name : chip->family,
              std::string_view(target.generic));
  }
}

// Code for a family is chosen and measured by its row, so the row may promise
// nothing that a member does not have.
TEST(Chips, AFamilysRowIsItsWeakestMember) {
  int members = 0;
  for (const target::TargetInfo &family : target::allTargets())
    for (const target::TargetInfo &chip : target::allTargets()) {
      if (!family.isGeneric() || chip.isGeneric() ||
          chip.generic != family.name)
        continue;
      SCOPED_TRACE(family.name.str() + " on " + chip.name.str());
      ++members;
      EXPECT_TRUE(chip.has(family.features));
      EXPECT_EQ(family.waveSize, chip.waveSize);
      EXPECT_EQ(family.bufferFlags, chip.bufferFlags);
      EXPECT_EQ(family.registerFile, chip.registerFile);
      EXPECT_LE(family.ldsBytes, chip.ldsBytes);
      EXPECT_LE(family.maxRegistersPerWave, chip.maxRegistersPerWave);
      EXPECT_LE(family.computeUnits, chip.computeUnits);
      for (int registers = 1; registers <= family.maxRegistersPerWave;
           ++registers)
        for (int lds : {0, 8192, 16384, 24576, 32768, 65536})
          for (int waves : {1, 4, 8}) {
            const target::KernelUse use = {registers, 0, lds, waves};
            ASSERT_LE(wavesPerSimd(family, use), wavesPerSimd(chip, use))
                << registers << " registers, " << lds << " bytes of LDS";
          }
    }
  EXPECT_EQ(members, 2 + 8 + 2);
}
