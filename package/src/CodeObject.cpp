//===- CodeObject.cpp - the ELF header of a code object -------------------===//
//
// Field offsets are those of the ELF64 header and program header; values of
// e_flags those of LLVM's "User Guide for AMDGPU Backend" (code object V4 on).
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/CodeObject.h"

#include "fovea/Package/Chips.h"

#include <cstdio>
#include <cstring>

namespace fovea {
namespace {

// The library reads little-endian files on little-endian hosts only, as HIP's
// own hosts are; a plain copy is then the decoder.
struct Elf64Header {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, phoff, shoff;
  uint32_t flags;
  uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
struct Elf64ProgramHeader {
  uint32_t type, flags;
  uint64_t offset, vaddr, paddr, filesz, memsz, align;
};
struct Elf64SectionHeader {
  uint32_t name, type;
  uint64_t flags, addr, offset, size;
  uint32_t link, info;
  uint64_t addralign, entsize;
};
struct Elf64Symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
static_assert(sizeof(Elf64SectionHeader) == 64 && sizeof(Elf64Symbol) == 24);
static_assert(sizeof(Elf64Header) == 64 && sizeof(Elf64ProgramHeader) == 56);

enum : uint32_t {
  kClass64 = 2,
  kLittleEndian = 1,
  kOsAbiAmdHsa = 64,
  kTypeDyn = 3,
  kMachineAmdGpu = 224,
  kSectionHeaderBytes = 64,
  kSectionDynsym = 11,
  kFlagMachMask = 0xff,
  kFlagGenericVersionShift = 24, // eight bits, from V6 on
  kAbiVersionV4 = 2,
  kAbiVersionV6 = 4,
};

/// Reads a two-bit feature field of e_flags: 0 unsupported, 1 any, 2 off, 3 on.
/// A chip without the feature runs whatever code says "unsupported": Any.
FeatureState featureOf(uint32_t flags, int shift) {
  switch ((flags >> shift) & 3) {
  case 2:
    return FeatureState::Off;
  case 3:
    return FeatureState::On;
  default:
    return FeatureState::Any;
  }
}

Status corrupt(const std::string &message) {
  return Status(StatusCode::Corrupt, "code object: " + message);
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

/// True when [offset, offset + bytes) lies inside an image of `size` bytes.
bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

Status checkExtents(const Elf64Header &header, const uint8_t *image,
                    size_t size) {
  if (header.phnum == 0 || header.phentsize != sizeof(Elf64ProgramHeader))
    return corrupt("it has " + std::to_string(header.phnum) +
                   " program headers of " + std::to_string(header.phentsize) +
                   " bytes; at least one of 56 is wanted");
  if (!inside(header.phoff, uint64_t(header.phnum) * header.phentsize, size))
    return corrupt("its program headers end beyond the image of " +
                   std::to_string(size) + " bytes: it is cut off");
  if (header.shnum != 0 &&
      (header.shentsize != kSectionHeaderBytes ||
       !inside(header.shoff, uint64_t(header.shnum) * header.shentsize, size)))
    return corrupt("its section headers end beyond the image of " +
                   std::to_string(size) + " bytes: it is cut off");
  for (unsigned index = 0; index != header.phnum; ++index) {
    Elf64ProgramHeader segment;
    std::memcpy(&segment, image + header.phoff + index * sizeof(segment),
                sizeof(segment));
    if (!inside(segment.offset, segment.filesz, size))
      return corrupt("segment " + std::to_string(index) + " (offset " +
                     hex(segment.offset) + ", " + hex(segment.filesz) +
                     " bytes) ends beyond the image of " +
                     std::to_string(size) + " bytes: it is cut off");
    constexpr uint32_t kLoad = 1;
    if (segment.type == kLoad &&
        (segment.memsz < segment.filesz || segment.memsz > kMaxImageBytes))
      return corrupt("segment " + std::to_string(index) + " wants " +
                     hex(segment.memsz) + " bytes of memory for " +
                     hex(segment.filesz) + " bytes of file");
  }
  return Status();
}

} // namespace

Expected<CodeObjectInfo> inspectCodeObject(const void *image, size_t size) {
  if (!image || size < sizeof(Elf64Header))
    return corrupt("it has " + std::to_string(size) +
                   " bytes, fewer than an ELF header (64)");
  if (size > kMaxImageBytes)
    return corrupt("it has " + std::to_string(size) +
                   " bytes, more than the limit of " +
                   std::to_string(kMaxImageBytes));
  Elf64Header header;
  std::memcpy(&header, image, sizeof(header));
  static const uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
  if (std::memcmp(header.ident, magic, sizeof(magic)) != 0)
    return corrupt("its first bytes are not those of an ELF file");
  if (header.ident[4] != kClass64 || header.ident[5] != kLittleEndian)
    return corrupt("it is no 64-bit little-endian ELF file (class " +
                   std::to_string(header.ident[4]) + ", data " +
                   std::to_string(header.ident[5]) + ")");
  if (header.machine != kMachineAmdGpu)
    return corrupt("its machine is " + std::to_string(header.machine) +
                   ", not AMDGPU (224)");
  if (header.ident[7] != kOsAbiAmdHsa)
    return corrupt("its OS ABI is " + std::to_string(header.ident[7]) +
                   ", not AMDGPU_HSA (64)");
  if (header.type != kTypeDyn)
    return corrupt("its ELF type is " + std::to_string(header.type) +
                   ", not a linked shared object (3)");
  const uint32_t abiVersion = header.ident[8];
  if (abiVersion < kAbiVersionV4 || abiVersion > kAbiVersionV6)
    return Status(StatusCode::Incompatible,
                  "code object: its ABI version byte is " +
                      std::to_string(abiVersion) +
                      "; versions 4, 5 and 6 (bytes 2, 3, 4) are known");
  if (Status status =
          checkExtents(header, static_cast<const uint8_t *>(image), size);
      !status.ok())
    return status;

  CodeObjectInfo info;
  info.codeObjectVersion = static_cast<int32_t>(abiVersion) + 2;
  const uint32_t mach = header.flags & kFlagMachMask;
  const Chip *chip = findChip(mach);
  if (!chip)
    return Status(StatusCode::Incompatible, "code object: chip number " +
                                                hex(mach) +
                                                " in its e_flags is not known");
  info.target.arch = chip->name;
  info.target.xnack = featureOf(header.flags, 8);
  info.target.sramecc = featureOf(header.flags, 10);
  if (chip->isGeneric()) {
    if (info.codeObjectVersion < kGenericCodeObjectVersion)
      return Status(StatusCode::Incompatible,
                    "code object: it is for the generic target " +
                        info.target.arch + " in code object version " +
                        std::to_string(info.codeObjectVersion) +
                        ", which has no place for a generic version; compile "
                        "it as version 6");
    info.genericVersion =
        static_cast<int32_t>(header.flags >> kFlagGenericVersionShift);
    if (info.genericVersion < kFirstGenericVersion)
      return Status(StatusCode::Incompatible,
                    "code object: it is for the generic target " +
                        info.target.arch +
                        " and gives no generic version; compile it again");
  }
  return info;
}

Expected<std::vector<std::string>> kernelsOf(const void *image, size_t size) {
  if (Expected<CodeObjectInfo> info = inspectCodeObject(image, size); !info)
    return info.status();
  const auto *bytes = static_cast<const uint8_t *>(image);
  Elf64Header header;
  std::memcpy(&header, bytes, sizeof(header));
  auto section = [&](uint64_t index) {
    Elf64SectionHeader found;
    std::memcpy(&found, bytes + header.shoff + index * sizeof(found),
                sizeof(found));
    return found;
  };
  std::vector<std::string> kernels;
  for (unsigned i = 0; i != header.shnum; ++i) {
    const Elf64SectionHeader symbols = section(i);
    if (symbols.type != kSectionDynsym)
      continue;
    if (symbols.link >= header.shnum ||
        !inside(symbols.offset, symbols.size, size))
      return corrupt("its dynamic symbols lie beyond the image of " +
                     std::to_string(size) + " bytes");
    const Elf64SectionHeader names = section(symbols.link);
    if (!inside(names.offset, names.size, size))
      return corrupt("the names of its dynamic symbols lie beyond the image "
                     "of " +
                     std::to_string(size) + " bytes");
    const std::string_view all(
        reinterpret_cast<const char *>(bytes) + names.offset, names.size);
    for (uint64_t at = 0; at + sizeof(Elf64Symbol) <= symbols.size;
         at += sizeof(Elf64Symbol)) {
      Elf64Symbol symbol;
      std::memcpy(&symbol, bytes + symbols.offset + at, sizeof(symbol));
      if (symbol.name >= all.size())
        return corrupt("a dynamic symbol's name lies beyond its names");
      const std::string_view text =
          all.substr(symbol.name, all.find('\0', symbol.name) - symbol.name);
      constexpr std::string_view kEnding = ".kd";
      if (text.size() > kEnding.size() &&
          text.substr(text.size() - kEnding.size()) == kEnding)
        kernels.emplace_back(text.substr(0, text.size() - kEnding.size()));
    }
  }
  return kernels;
}

} // namespace fovea
