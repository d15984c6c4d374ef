//===- CodeObjectTest.cpp - the ELF header of a code object ---------------===//

#include "TestPackage.h"

#include "llvm/BinaryFormat/ELF.h"

#include <random>

using namespace fovea;
using namespace fovea::test;

namespace {
Status inspect(const std::vector<uint8_t> &image) {
  return inspectCodeObject(image.data(), image.size()).status();
}
} // namespace

// LLVM's enumeration is the source of the numbers.
TEST(CodeObjectTest, ChipNumbersAreLLVMs) {
  using namespace llvm::ELF;
#define CHIP(name, NAME)                                                       \
  {                                                                            \
    name, EF_AMDGPU_MACH_AMDGCN_##NAME                                         \
  }
  const std::pair<const char *, uint32_t> chips[] = {
      CHIP("gfx900", GFX900),
      CHIP("gfx902", GFX902),
      CHIP("gfx904", GFX904),
      CHIP("gfx906", GFX906),
      CHIP("gfx908", GFX908),
      CHIP("gfx909", GFX909),
      CHIP("gfx90a", GFX90A),
      CHIP("gfx90c", GFX90C),
      CHIP("gfx942", GFX942),
      CHIP("gfx950", GFX950),
      CHIP("gfx1010", GFX1010),
      CHIP("gfx1011", GFX1011),
      CHIP("gfx1012", GFX1012),
      CHIP("gfx1013", GFX1013),
      CHIP("gfx1030", GFX1030),
      CHIP("gfx1031", GFX1031),
      CHIP("gfx1032", GFX1032),
      CHIP("gfx1033", GFX1033),
      CHIP("gfx1034", GFX1034),
      CHIP("gfx1035", GFX1035),
      CHIP("gfx1036", GFX1036),
      CHIP("gfx1100", GFX1100),
      CHIP("gfx1101", GFX1101),
      CHIP("gfx1102", GFX1102),
      CHIP("gfx1103", GFX1103),
      CHIP("gfx1150", GFX1150),
      CHIP("gfx1151", GFX1151),
      CHIP("gfx1152", GFX1152),
      CHIP("gfx1153", GFX1153),
      CHIP("gfx1200", GFX1200),
      CHIP("gfx1201", GFX1201),
      CHIP("gfx1250", GFX1250),
      CHIP("gfx1251", GFX1251),
      CHIP("gfx9-generic", GFX9_GENERIC),
      CHIP("gfx9-4-generic", GFX9_4_GENERIC),
      CHIP("gfx10-1-generic", GFX10_1_GENERIC),
      CHIP("gfx10-3-generic", GFX10_3_GENERIC),
      CHIP("gfx11-generic", GFX11_GENERIC),
      CHIP("gfx12-generic", GFX12_GENERIC)};
#undef CHIP
  EXPECT_EQ(std::size(chips), allChips().size());
  for (const auto &[name, number] : chips) {
    const Chip *chip = findChip(name);
    ASSERT_TRUE(chip) << name;
    EXPECT_EQ(chip->mach, number) << name;
    EXPECT_EQ(findChip(number), chip) << name;
  }
  EXPECT_FALSE(findChip("gfx000"));
  EXPECT_FALSE(findChip(uint32_t(0)));
}

TEST(CodeObjectTest, ReadsChipAndFeatures) {
  const std::pair<uint32_t, FeatureState> states[] = {{0, FeatureState::Any},
                                                      {1, FeatureState::Any},
                                                      {2, FeatureState::Off},
                                                      {3, FeatureState::On}};
  for (const auto &[xnackBits, xnack] : states)
    for (const auto &[srameccBits, sramecc] : states) {
      std::vector<uint8_t> image =
          makeImage("gfx90a", "code", xnackBits, srameccBits);
      Expected<CodeObjectInfo> info =
          inspectCodeObject(image.data(), image.size());
      ASSERT_TRUE(info) << info.status().message();
      EXPECT_EQ(info->target.arch, "gfx90a");
      EXPECT_EQ(info->target.xnack, xnack);
      EXPECT_EQ(info->target.sramecc, sramecc);
      EXPECT_EQ(info->codeObjectVersion, 5);
      EXPECT_EQ(info->genericVersion, 0);
    }
}

// Every generic target, in V6 with a version; V5 has no place for one, and 0 is
// none.
TEST(CodeObjectTest, GenericCodeIsVersioned) {
  int families = 0;
  for (const Chip &chip : allChips()) {
    if (!chip.isGeneric())
      continue;
    ++families;
    std::vector<uint8_t> image = makeImage(std::string(chip.name), "code");
    image[51] = 7;
    Expected<CodeObjectInfo> info =
        inspectCodeObject(image.data(), image.size());
    ASSERT_TRUE(info) << info.status().message();
    EXPECT_EQ(info->target.arch, chip.name);
    EXPECT_EQ(info->codeObjectVersion, 6);
    EXPECT_EQ(info->genericVersion, 7);
    image[51] = 0;
    expectFailure(inspect(image), StatusCode::Incompatible,
                  "gives no generic version");
    image[51] = 1;
    image[8] = 3;
    expectFailure(inspect(image), StatusCode::Incompatible,
                  "generic target " + std::string(chip.name) +
                      " in code object version 5");
  }
  EXPECT_EQ(families, 6);
}

TEST(CodeObjectTest, RefusesWhatIsNoCodeObject) {
  struct Case {
    size_t offset;
    uint8_t value;
    StatusCode code;
    const char *part;
  } cases[] = {
      {0, 'x', StatusCode::Corrupt, "not those of an ELF file"},
      {4, 1, StatusCode::Corrupt, "no 64-bit little-endian"},
      {5, 2, StatusCode::Corrupt, "no 64-bit little-endian"},
      {7, 0, StatusCode::Corrupt, "OS ABI is 0"},
      {8, 1, StatusCode::Incompatible, "ABI version byte is 1"},
      {8, 9, StatusCode::Incompatible, "ABI version byte is 9"},
      {16, 1, StatusCode::Corrupt, "ELF type is 1"},
      {18, 62, StatusCode::Corrupt, "machine is 62"},
      {33, 1, StatusCode::Corrupt, "program headers end beyond"},
      {39, 0xff, StatusCode::Corrupt, "program headers end beyond"},
      {48, 0, StatusCode::Incompatible, "chip number 0x0"},
      {54, 0, StatusCode::Corrupt, "program headers of 0 bytes"},
      {56, 0, StatusCode::Corrupt, "0 program headers"},
      {60, 1, StatusCode::Corrupt, "section headers end beyond"},
      {64 + 15, 0x80, StatusCode::Corrupt, "segment 0"},
      {64 + 39, 0xff, StatusCode::Corrupt, "segment 0"},
      {64 + 47, 0x01, StatusCode::Corrupt, "of memory"},
  };
  for (const Case &c : cases) {
    std::vector<uint8_t> image = makeImage("gfx942", "payload");
    image[c.offset] = c.value;
    expectFailure(inspect(image), c.code, c.part);
  }
}

TEST(CodeObjectTest, RefusesEveryTruncation) {
  const std::vector<uint8_t> image = makeImage("gfx942", "payload");
  ASSERT_TRUE(inspect(image).ok());
  for (size_t size = 0; size != image.size(); ++size)
    EXPECT_FALSE(inspectCodeObject(image.data(), size)) << size;
  EXPECT_FALSE(inspectCodeObject(nullptr, 1000));
}

// Whatever the bytes, the answer is a refusal with a reason or a known chip;
// reading beyond the image is the sanitizers' to see.
TEST(CodeObjectTest, MutatedHeadersAreRefusedOrSound) {
  const std::vector<uint8_t> sound = makeImage("gfx942", "payload");
  std::mt19937 random(11);
  int accepted = 0;
  for (int round = 0; round != 20000; ++round) {
    std::vector<uint8_t> image = sound;
    for (unsigned n = 1 + random() % 3; n != 0; --n)
      image[random() % 120] = uint8_t(random());
    image.resize(image.size() - random() % 4);
    Expected<CodeObjectInfo> info =
        inspectCodeObject(image.data(), image.size());
    if (info) {
      ++accepted;
      EXPECT_TRUE(findChip(info->target.arch));
    } else {
      EXPECT_FALSE(info.status().message().empty());
    }
  }
  EXPECT_GT(accepted, 100);
}

namespace {

/// An image whose dynamic symbols are a kernel's descriptor, its code, and
/// another kernel's descriptor.
std::vector<uint8_t> makeImageWithSymbols() {
  const std::string names("\0one.kd\0one\0two.kd\0", 19);
  constexpr uint64_t kStart = 64 + 56;
  std::string payload = names + std::string(5, '\0');
  auto put = [&](uint64_t value, size_t bytes) {
    payload.append(reinterpret_cast<const char *>(&value), bytes);
  };
  const uint64_t symbols = kStart + payload.size();
  for (uint64_t name : {0, 1, 8, 12}) {
    put(name, 4);
    for (size_t bytes : {1, 1, 2, 8, 8})
      put(0, bytes);
  }
  const uint64_t sections = kStart + payload.size();
  const struct {
    uint64_t type, offset, size, link;
  } rows[] = {{0, 0, 0, 0},
              {11, symbols, 4 * 24, 2},      // SHT_DYNSYM
              {3, kStart, names.size(), 0}}; // SHT_STRTAB
  for (const auto &row : rows) {
    put(0, 4);
    put(row.type, 4);
    put(0, 8);
    put(0, 8);
    put(row.offset, 8);
    put(row.size, 8);
    put(row.link, 4);
    put(0, 4);
    put(0, 8);
    put(24, 8);
  }
  std::vector<uint8_t> image = makeImage("gfx942", payload);
  const uint16_t counts[] = {64, 3};
  std::memcpy(image.data() + 40, &sections, 8);
  std::memcpy(image.data() + 58, counts, sizeof(counts));
  return image;
}

} // namespace

TEST(CodeObjectTest, KernelsAreThoseOfDescriptors) {
  const std::vector<uint8_t> image = makeImageWithSymbols();
  Expected<std::vector<std::string>> kernels =
      kernelsOf(image.data(), image.size());
  ASSERT_TRUE(kernels) << kernels.status().message();
  EXPECT_EQ(*kernels, (std::vector<std::string>{"one", "two"}));
  const std::vector<uint8_t> none = makeImage("gfx942", "payload");
  kernels = kernelsOf(none.data(), none.size());
  ASSERT_TRUE(kernels) << kernels.status().message();
  EXPECT_TRUE(kernels->empty());
}

TEST(CodeObjectTest, MutatedSymbolsAreRefusedOrInside) {
  const std::vector<uint8_t> sound = makeImageWithSymbols();
  std::mt19937 random(12);
  int refused = 0;
  for (int round = 0; round != 20000; ++round) {
    std::vector<uint8_t> image = sound;
    for (unsigned n = 1 + random() % 3; n != 0; --n)
      image[120 + random() % (image.size() - 120)] = uint8_t(random());
    Expected<std::vector<std::string>> kernels =
        kernelsOf(image.data(), image.size());
    refused += !kernels;
    if (kernels)
      for (const std::string &kernel : *kernels)
        EXPECT_LT(kernel.size(), image.size());
  }
  EXPECT_GT(refused, 100);
}
