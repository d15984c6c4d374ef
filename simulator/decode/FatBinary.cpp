//===- FatBinary.cpp - Code objects inside other files --------------------===//
//
// Reads offload bundles. Sizes are checked before anything is allocated for
// them, against the image where its size is known and against fixed limits
// where it is not.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/FatBinary.h"
#include "fovea/Simulator/TargetId.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace fovea::sim {

namespace {
using namespace llvm;

constexpr uint64_t kMaxImage = uint64_t(4) << 30;
constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr uint64_t kBundleMagicSize = sizeof(kBundleMagic) - 1;
constexpr char kCompressedMagic[] = "CCOB";
/// Start of the container that clang's linker wrapper reads.
constexpr uint8_t kOffloadBinaryMagic[] = {0x10, 0xff, 0x10, 0xad};
constexpr uint64_t kMaxEntries = 1024, kMaxEntryId = 4096;
/// Most bytes that a compressed one can stand for: a zstd block of 4 bytes
/// gives at most 128 KiB, and deflate stays below that.
constexpr uint64_t kMaxRatio = 32768;

Status invalidImage(const std::string &why) {
  return {ErrorCode::InvalidImage, "image refused: " + why};
}

/// Copies memory that may not be mapped: the bytes that could be copied.
uint64_t copyMapped(const uint8_t *from, uint8_t *to, uint64_t bytes) {
  uint64_t done = 0;
  constexpr uint64_t kChunk = uint64_t(1) << 20;
  // Systems that forbid the call between processes may forbid it altogether.
  bool viaFile = false;
  int file = -1;
  while (done < bytes) {
    const uint64_t size = std::min(kChunk, bytes - done);
    ssize_t got = -1;
    if (!viaFile) {
      iovec local{to + done, size};
      iovec remote{const_cast<uint8_t *>(from) + done, size};
      got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
      viaFile = got < 0 && (errno == EPERM || errno == ENOSYS);
    }
    if (viaFile) {
      if (file < 0)
        file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
      if (file < 0)
        break;
      got = pread(file, to + done, size,
                  static_cast<off_t>(reinterpret_cast<uint64_t>(from) + done));
    }
    if (got <= 0)
      break;
    done += static_cast<uint64_t>(got);
  }
  if (file >= 0)
    close(file);
  return done;
}

/// Reads [offset, offset + bytes) into `to`.
Status take(const ImageBytes &image, uint64_t offset, uint64_t bytes,
            const std::string &what, std::vector<uint8_t> &to) {
  const std::string part = what + " of " + std::to_string(bytes) +
                           " bytes at " + std::to_string(offset);
  if (bytes > kMaxImage || offset > kMaxImage ||
      (image.size() != UINT64_MAX &&
       (offset > image.size() || bytes > image.size() - offset)))
    return invalidImage(part + " runs past the end (truncated?)");
  // In pieces: a wrong size must not ask for memory that no image fills.
  constexpr uint64_t kPiece = uint64_t(1) << 20;
  to.clear();
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min(kPiece, bytes - done);
    to.resize(done + piece);
    if (!image.read(offset + done, to.data() + done, piece))
      return invalidImage(part + " is not in memory as a whole");
    done += piece;
  }
  return Status::success();
}

/// Calls `each(header)` for the \p count headers of \p entryBytes at \p offset;
/// \p what is "program" or "section".
template <typename Header, typename Each>
Status readHeaders(const ImageBytes &image, uint64_t offset, uint64_t count,
                   uint64_t entryBytes, const std::string &what, Each each) {
  if (entryBytes != sizeof(Header))
    return invalidImage(what + " headers of " + std::to_string(entryBytes) +
                        " bytes");
  std::vector<uint8_t> table;
  if (Status s = take(image, offset, count * entryBytes,
                      "a " + what + " header table", table);
      !s)
    return s;
  for (uint64_t i = 0; i < count; ++i) {
    Header header;
    std::memcpy(&header, table.data() + i * sizeof header, sizeof header);
    each(header);
  }
  return Status::success();
}

/// The size of an ELF file whose owner does not say it: up to the end of the
/// last table, section or segment.
Status elfExtent(const ImageBytes &image, uint64_t &size) {
  ELF::Elf64_Ehdr header;
  if (!image.read(0, &header, sizeof header))
    return invalidImage("its ELF header is not in memory as a whole");
  if (header.e_ident[ELF::EI_CLASS] != ELF::ELFCLASS64 ||
      header.e_ident[ELF::EI_DATA] != ELF::ELFDATA2LSB)
    return invalidImage("it is no 64-bit little-endian ELF file");
  uint64_t end = sizeof header;
  // Ends past 2^64 count as too large.
  auto reach = [&end](uint64_t offset, uint64_t bytes) {
    end = std::max(end,
                   offset > UINT64_MAX - bytes ? UINT64_MAX : offset + bytes);
  };
  if (header.e_phnum != 0) {
    if (Status s = readHeaders<ELF::Elf64_Phdr>(
            image, header.e_phoff, header.e_phnum, header.e_phentsize,
            "program",
            [&](const ELF::Elf64_Phdr &segment) {
              reach(segment.p_offset, segment.p_filesz);
            });
        !s)
      return s;
    reach(header.e_phoff, uint64_t(header.e_phnum) * header.e_phentsize);
  }
  if (header.e_shnum != 0) {
    if (Status s = readHeaders<ELF::Elf64_Shdr>(
            image, header.e_shoff, header.e_shnum, header.e_shentsize,
            "section",
            [&](const ELF::Elf64_Shdr &section) {
              if (section.sh_type != ELF::SHT_NOBITS)
                reach(section.sh_offset, section.sh_size);
            });
        !s)
      return s;
    reach(header.e_shoff, uint64_t(header.e_shnum) * header.e_shentsize);
  }
  if (end > kMaxImage)
    return invalidImage("its headers claim " + std::to_string(end) +
                        " bytes; at most " + std::to_string(kMaxImage));
  size = end;
  return Status::success();
}

/// The target of a bundle's entry ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack-"),
/// or "" when it is no HIP code for an AMD GPU.
std::string_view targetOfEntry(std::string_view id) {
  const size_t kind = id.find('-');
  if (kind == std::string_view::npos || id.substr(0, 3) != "hip")
    return {};
  id.remove_prefix(kind + 1);
  constexpr std::string_view kTriple = "amdgcn-amd-amdhsa-";
  if (id.substr(0, kTriple.size()) != kTriple)
    return {};
  id.remove_prefix(kTriple.size());
  // The triple's environment is empty, and old bundles leave it out.
  if (!id.empty() && id.front() == '-')
    id.remove_prefix(1);
  return id;
}

Status fromBundle(const ImageBytes &image, const ChipInfo &chip,
                  std::vector<uint8_t> &elf) {
  uint64_t count = 0;
  if (!image.read(kBundleMagicSize, &count, sizeof count))
    return invalidImage("the offload bundle ends in its header");
  if (count > kMaxEntries)
    return invalidImage("an offload bundle of " + std::to_string(count) +
                        " entries; at most " + std::to_string(kMaxEntries));
  uint64_t at = kBundleMagicSize + sizeof count;
  uint64_t bestOffset = 0, bestBytes = 0;
  unsigned best = 0;
  std::string seen;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t entry[3]; // offset, size, size of the id
    if (!image.read(at, entry, sizeof entry))
      return invalidImage("the offload bundle ends in entry " +
                          std::to_string(i) + " of " + std::to_string(count));
    at += sizeof entry;
    std::string id;
    if (entry[2] > kMaxEntryId)
      return invalidImage("a name of " + std::to_string(entry[2]) +
                          " bytes in the offload bundle");
    id.resize(entry[2]);
    if (!image.read(at, id.data(), id.size()))
      return invalidImage("the offload bundle ends in entry " +
                          std::to_string(i) + " of " + std::to_string(count));
    at += id.size();
    const std::string_view target = targetOfEntry(id);
    if (target.empty())
      continue;
    seen += (seen.empty() ? "" : ", ") + std::string(target);
    TargetId parsed;
    if (!parseTargetId(target, parsed))
      continue;
    if (unsigned suits = suitability(parsed, chip); suits > best) {
      best = suits;
      bestOffset = entry[0];
      bestBytes = entry[1];
    }
  }
  if (!best)
    return {ErrorCode::TargetMismatch,
            "the offload bundle has code for " +
                (seen.empty() ? "no AMD GPU" : seen) + "; the device is " +
                std::string(chip.target) + std::string(chip.features)};
  if (bestBytes == 0)
    return invalidImage("the offload bundle's code object is empty");
  return take(image, bestOffset, bestBytes, "the bundle's code object", elf);
}

/// Takes the bundle out of its compressed form.
Status decompress(const ImageBytes &image, std::vector<uint8_t> &bundle) {
  struct {
    char magic[4];
    uint16_t version, method;
  } start;
  if (!image.read(0, &start, sizeof start))
    return invalidImage("the compressed offload bundle ends in its header");
  // Version 1 says the uncompressed size (4 bytes) and a hash (8), version 2
  // the file's size before these (4), version 3 both sizes in 8 bytes.
  uint64_t fileBytes = 0, bytes = 0, header = 0;
  bool whole = false;
  if (start.version == 1) {
    uint32_t size = 0;
    whole = image.read(8, &size, sizeof size);
    bytes = size, fileBytes = image.size(), header = 20;
    if (fileBytes == UINT64_MAX)
      return invalidImage(
          "a compressed offload bundle of version 1 does not say "
          "its size; load it from a file");
  } else if (start.version == 2) {
    uint32_t sizes[2] = {0, 0};
    whole = image.read(8, sizes, sizeof sizes);
    fileBytes = sizes[0], bytes = sizes[1], header = 24;
  } else if (start.version == 3) {
    uint64_t sizes[2] = {0, 0};
    whole = image.read(8, sizes, sizeof sizes);
    fileBytes = sizes[0], bytes = sizes[1], header = 32;
  } else {
    return invalidImage("a compressed offload bundle of version " +
                        std::to_string(start.version) + "; 1 to 3 are known");
  }
  if (!whole || fileBytes < header)
    return invalidImage("the compressed offload bundle ends in its header");
  std::vector<uint8_t> packed;
  if (Status s = take(image, header, fileBytes - header,
                      "a compressed offload bundle", packed);
      !s)
    return s;
  if (bytes > kMaxImage || bytes > (packed.size() + 4) * kMaxRatio)
    return invalidImage(std::to_string(packed.size()) +
                        " compressed bytes cannot stand for " +
                        std::to_string(bytes));
  SmallVector<uint8_t, 0> plain;
  const auto format = static_cast<compression::Format>(start.method);
  if (format != compression::Format::Zlib &&
      format != compression::Format::Zstd)
    return invalidImage(
        "compression method " + std::to_string(start.method) +
        " of an offload bundle; 0 (zlib) and 1 (zstd) are known");
  if (const char *why = compression::getReasonIfUnsupported(format))
    return invalidImage(why);
  if (Error failed = compression::decompress(format, packed, plain, bytes))
    return invalidImage("the compressed offload bundle is damaged: " +
                        toString(std::move(failed)));
  if (plain.size() != bytes)
    return invalidImage("the compressed offload bundle holds " +
                        std::to_string(plain.size()) + " bytes and claims " +
                        std::to_string(bytes));
  bundle.assign(plain.begin(), plain.end());
  return Status::success();
}

} // namespace

bool ImageBytes::read(uint64_t offset, void *to, uint64_t bytes) const {
  if (!Probe) {
    if (offset > Size || bytes > Size - offset)
      return false;
    if (bytes)
      std::memcpy(to, Data + offset, bytes);
    return true;
  }
  const uint64_t start = reinterpret_cast<uint64_t>(Data);
  if (offset > UINT64_MAX - start)
    return false;
  return copyMapped(reinterpret_cast<const uint8_t *>(start + offset),
                    static_cast<uint8_t *>(to), bytes) == bytes;
}

Status extractCodeObject(const ImageBytes &image, const ChipInfo &chip,
                         std::vector<uint8_t> &elf) {
  char start[kBundleMagicSize] = {};
  if (!image.read(0, start, 4))
    return invalidImage("it has fewer than 4 bytes");
  if (std::memcmp(start, ELF::ElfMagic, 4) == 0) {
    uint64_t size = image.size();
    if (size == UINT64_MAX)
      if (Status s = elfExtent(image, size); !s)
        return s;
    return take(image, 0, size, "a code object", elf);
  }
  if (std::memcmp(start, kCompressedMagic, 4) == 0) {
    std::vector<uint8_t> bundle;
    if (Status s = decompress(image, bundle); !s)
      return s;
    if (bundle.size() < kBundleMagicSize ||
        std::memcmp(bundle.data(), kBundleMagic, kBundleMagicSize) != 0)
      return invalidImage("what is compressed in it is no offload bundle");
    return fromBundle(ImageBytes::sized(bundle.data(), bundle.size()), chip,
                      elf);
  }
  if (std::memcmp(start, kOffloadBinaryMagic, 4) == 0)
    return invalidImage(
        "it is an offload binary that clang-linker-wrapper has not "
        "unpacked; link the program with clang --offload-link");
  if (image.read(0, start, sizeof start) &&
      std::memcmp(start, kBundleMagic, kBundleMagicSize) == 0)
    return fromBundle(image, chip, elf);
  return invalidImage("it is neither an ELF file nor an offload bundle");
}

} // namespace fovea::sim
