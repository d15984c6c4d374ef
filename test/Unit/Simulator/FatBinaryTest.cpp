//===- FatBinaryTest.cpp - Code objects inside other files ----------------===//
//
// Which entry of a bundle a device takes, compressed forms, and images that are
// damaged or lie in memory that ends too early.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Device.h"
#include "fovea/Simulator/FatBinary.h"
#include "fovea/Simulator/TargetId.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Compression.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace fovea::sim;

namespace {

using Bytes = std::vector<uint8_t>;

template <typename T>
void put(Bytes &to, T value) {
  const auto *from = reinterpret_cast<const uint8_t *>(&value);
  to.insert(to.end(), from, from + sizeof(T));
}

struct Entry {
  std::string id, content;
};

/// As LLVM's clang-offload-bundler page lays a bundle out.
Bytes bundle(const std::vector<Entry> &entries) {
  const std::string magic = "__CLANG_OFFLOAD_BUNDLE__";
  uint64_t offset = magic.size() + 8;
  for (const Entry &entry : entries)
    offset += 24 + entry.id.size();
  Bytes out(magic.begin(), magic.end());
  put<uint64_t>(out, entries.size());
  for (const Entry &entry : entries) {
    put<uint64_t>(out, offset);
    put<uint64_t>(out, entry.content.size());
    put<uint64_t>(out, entry.id.size());
    out.insert(out.end(), entry.id.begin(), entry.id.end());
    offset += entry.content.size();
  }
  for (const Entry &entry : entries)
    out.insert(out.end(), entry.content.begin(), entry.content.end());
  return out;
}

std::string hip(const std::string &target) {
  return "hipv4-amdgcn-amd-amdhsa--" + target;
}

std::shared_ptr<Device> device(const char *target) {
  std::shared_ptr<Device> result;
  EXPECT_TRUE(Device::create(target, result).ok());
  return result;
}

/// What the device takes; the error's message in brackets.
std::string taken(const Bytes &image, const char *target) {
  Bytes elf;
  const Status status =
      extractCodeObject(ImageBytes::sized(image.data(), image.size()),
                        device(target)->chip(), elf);
  return status ? std::string(elf.begin(), elf.end())
                : "[" + status.message() + "]";
}

TEST(FatBinary, TheBestEntryIsTaken) {
  const Bytes image = bundle({{"host-x86_64-unknown-linux-gnu-", ""},
                              {hip("gfx9-4-generic"), "generic"},
                              {hip("gfx942:xnack+"), "with xnack"},
                              {hip("gfx942"), "plain"},
                              {hip("gfx942:sramecc+:xnack-"), "exact"},
                              {hip("gfx950:sramecc-"), "no sramecc"},
                              {hip("gfx1100"), "rdna"}});
  EXPECT_EQ(taken(image, "gfx942"), "exact");
  EXPECT_EQ(taken(image, "gfx942:xnack+"), "with xnack");
  EXPECT_EQ(taken(image, "gfx942:sramecc-"), "plain");
  EXPECT_EQ(taken(image, "gfx950"), "generic");
  EXPECT_EQ(taken(image, "gfx950:sramecc-"), "no sramecc");
  EXPECT_EQ(taken(image, "gfx1100"), "rdna");
  EXPECT_NE(taken(image, "gfx90a").find("gfx942:xnack+, gfx942,"),
            std::string::npos);
  // A chip without a feature takes nothing that asks for it on or off.
  EXPECT_EQ(taken(bundle({{hip("gfx1100:xnack-"), "pinned"},
                          {hip("gfx11-generic"), "generic"}}),
                  "gfx1100"),
            "generic");
  EXPECT_EQ(taken(bundle({{hip("gfx1100:sramecc+"), "pinned"}}), "gfx1100")[0],
            '[');
  // Old bundles have no environment in the triple.
  EXPECT_EQ(taken(bundle({{"hip-amdgcn-amd-amdhsa-gfx942", "old"}}), "gfx942"),
            "old");
  EXPECT_EQ(taken(bundle({{"hip-spirv64-amd-amdhsa--gfx942", "x"},
                          {"openmp-amdgcn-amd-amdhsa--gfx942", "x"}}),
                  "gfx942")
                .find("[the offload bundle has code for no AMD GPU"),
            0u);
}

TEST(FatBinary, TargetsAreParsed) {
  TargetId id;
  EXPECT_TRUE(parseTargetId("gfx942:sramecc-:xnack+", id));
  EXPECT_EQ(id.processor, "gfx942");
  EXPECT_EQ(id.xnack, TargetId::Setting::On);
  EXPECT_EQ(id.sramecc, TargetId::Setting::Off);
  for (const char *bad : {"", ":xnack+", "gfx942:", "gfx942:xnack",
                          "gfx942:xnack+:xnack-", "gfx942:other+"})
    EXPECT_FALSE(parseTargetId(bad, id)) << bad;
}

TEST(FatBinary, CompressedBundles) {
  const Bytes plain = bundle({{hip("gfx942"), std::string(5000, 'x')}});
  for (unsigned method : {0u, 1u})
    for (unsigned version : {1u, 2u, 3u}) {
      llvm::SmallVector<uint8_t, 0> packed;
      llvm::compression::compress(
          llvm::compression::Params(
              static_cast<llvm::compression::Format>(method)),
          plain, packed);
      auto image = [&](uint64_t bytes) {
        Bytes out = {'C', 'C', 'O', 'B'};
        put<uint16_t>(out, uint16_t(version));
        put<uint16_t>(out, uint16_t(method));
        const uint64_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
        if (version == 2)
          put<uint32_t>(out, uint32_t(header + packed.size()));
        if (version == 3)
          put<uint64_t>(out, header + packed.size());
        if (version == 3)
          put<uint64_t>(out, bytes);
        else
          put<uint32_t>(out, uint32_t(bytes));
        put<uint64_t>(out, 0); // a hash
        out.insert(out.end(), packed.begin(), packed.end());
        return out;
      };
      const Bytes good = image(plain.size());
      EXPECT_EQ(taken(good, "gfx942"), std::string(5000, 'x'))
          << method << " " << version;
      // A wrong size, a damaged stream, a cut one.
      EXPECT_EQ(taken(image(plain.size() - 1), "gfx942")[0], '[');
      EXPECT_EQ(taken(image(0xffffffff), "gfx942")[0], '[');
      Bytes damaged = good;
      damaged[damaged.size() / 2 + 10] ^= 0x55;
      damaged[damaged.size() / 2 + 11] ^= 0x55;
      const std::string got = taken(damaged, "gfx942");
      EXPECT_TRUE(got[0] == '[' || got != std::string(5000, 'x'));
      for (size_t size = 0; size < good.size(); size += 3)
        EXPECT_EQ(taken(Bytes(good.begin(), good.begin() + long(size)),
                        "gfx942")[0],
                  '[')
            << size;
    }
  Bytes unknown = {'C', 'C', 'O', 'B', 9, 0, 1, 0};
  EXPECT_NE(taken(unknown, "gfx942").find("version 9"), std::string::npos);
}

TEST(FatBinary, DamagedBundlesAreRefused) {
  const Bytes good = bundle({{hip("gfx942"), "code"}});
  EXPECT_EQ(taken(good, "gfx942"), "code");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(
        taken(Bytes(good.begin(), good.begin() + long(size)), "gfx942")[0],
        '[');
  const size_t table = 24 + 8;
  for (size_t at : {size_t(24), table, table + 8, table + 16}) {
    Bytes bad = good; // a huge count, offset, size, or name
    for (size_t i = 0; i < 8; ++i)
      bad[at + i] = 0xff;
    EXPECT_EQ(taken(bad, "gfx942")[0], '[') << at;
  }
  EXPECT_EQ(taken({0x10, 0xff, 0x10, 0xad, 1, 0, 0, 0}, "gfx942")
                .find("[image refused: it is an offload binary"),
            0u);
}

/// Memory that ends where the next page may not be touched.
class Guarded : public testing::Test {
protected:
  static constexpr size_t kPage = 4096;
  void SetUp() override {
    Memory = static_cast<uint8_t *>(mmap(nullptr, 2 * kPage,
                                         PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(Memory + kPage, kPage, PROT_NONE), 0);
  }
  void TearDown() override { munmap(Memory, 2 * kPage); }
  Status extract(const Bytes &image, Bytes &elf) {
    uint8_t *place = Memory + kPage - image.size();
    std::memcpy(place, image.data(), image.size());
    return extractCodeObject(ImageBytes::unsized(place),
                             device("gfx942")->chip(), elf);
  }
  uint8_t *Memory = nullptr;
};

TEST_F(Guarded, ImagesWithoutASizeEndWhereMemoryDoes) {
  const Bytes good = bundle({{hip("gfx942"), "code"}});
  Bytes elf;
  ASSERT_TRUE(extract(good, elf).ok());
  EXPECT_EQ(std::string(elf.begin(), elf.end()), "code");
  for (size_t size = 1; size < good.size(); ++size) {
    const Status status =
        extract(Bytes(good.begin(), good.begin() + long(size)), elf);
    EXPECT_EQ(status.code(), ErrorCode::InvalidImage) << size;
  }
}

TEST_F(Guarded, ElfFilesEndWhereTheirHeadersSay) {
  using namespace llvm::ELF;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ElfMagic, 4);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = sizeof header;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr section = {};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof header + sizeof section;
  section.sh_size = 100;
  auto image = [&] {
    Bytes out;
    put(out, header);
    put(out, section);
    out.resize(out.size() + 100);
    return out;
  };
  Bytes elf;
  ASSERT_TRUE(extract(image(), elf).ok());
  EXPECT_EQ(elf.size(), image().size());
  for (uint64_t bad : {uint64_t(101), uint64_t(1) << 31, UINT64_MAX}) {
    section.sh_size = bad;
    EXPECT_EQ(extract(image(), elf).code(), ErrorCode::InvalidImage);
  }
  section.sh_size = 100;
  section.sh_offset = UINT64_MAX - 10;
  EXPECT_EQ(extract(image(), elf).code(), ErrorCode::InvalidImage);
  section.sh_offset = 0;
  header.e_shoff = uint64_t(1) << 40;
  EXPECT_EQ(extract(image(), elf).code(), ErrorCode::InvalidImage);
  header.e_shoff = sizeof header;
  header.e_shnum = 0xffff;
  EXPECT_EQ(extract(image(), elf).code(), ErrorCode::InvalidImage);
  header.e_shentsize = 1;
  EXPECT_EQ(extract(image(), elf).code(), ErrorCode::InvalidImage);
}

} // namespace
