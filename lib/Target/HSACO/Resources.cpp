//===- Resources.cpp - what a code object says of its kernels -------------===//

#include "fovea/Target/HSACO/Serialize.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace fovea::hsaco {

using ElfFile = object::ELFObjectFile<object::ELF64LE>;

static constexpr StringLiteral kDamaged = "damaged AMDGPU metadata";

/// Reads the AMDGPU metadata of a note among those of a segment or section.
/// False: none of them is that.
template <typename Header>
static Expected<bool> readNotes(const ElfFile &elf, const Header &header,
                                msgpack::Document &document) {
  Error error = Error::success();
  for (const auto &note : elf.getELFFile().notes(header, error))
    if (note.getName() == "AMDGPU" &&
        note.getType() == ELF::NT_AMDGPU_METADATA) {
      consumeError(std::move(error));
      StringRef blob(reinterpret_cast<const char *>(note.getDesc(4).data()),
                     note.getDesc(4).size());
      if (!document.readFromBlob(blob, /*Multi=*/false))
        return createStringError(kDamaged);
      return true;
    }
  if (error)
    return std::move(error);
  return false;
}

/// The AMDGPU metadata of a code object, which has it in a segment, or of an
/// object that is to be linked, which has sections alone.
static Error readMetadata(const ElfFile &elf, msgpack::Document &document) {
  const auto &file = elf.getELFFile();
  auto segments = file.program_headers();
  if (!segments)
    return segments.takeError();
  for (const auto &segment : *segments)
    if (segment.p_type == ELF::PT_NOTE) {
      Expected<bool> found = readNotes(elf, segment, document);
      if (!found || *found)
        return found.takeError();
    }
  auto sections = file.sections();
  if (!sections)
    return sections.takeError();
  for (const auto &section : *sections)
    if (section.sh_type == ELF::SHT_NOTE) {
      Expected<bool> found = readNotes(elf, section, document);
      if (!found || *found)
        return found.takeError();
    }
  return createStringError("no AMDGPU metadata note");
}

/// That of assembly, which has it as YAML.
static Error readMetadata(StringRef assembly, msgpack::Document &document) {
  const StringRef text = assembly.split(".amdgpu_metadata\n")
                             .second.split(".end_amdgpu_metadata")
                             .first;
  if (text.empty())
    return createStringError("no AMDGPU metadata");
  return document.fromYAML(text) ? Error::success()
                                 : createStringError(kDamaged);
}

static int field(msgpack::MapDocNode &map, StringRef key) {
  auto it = map.find(key);
  if (it == map.end())
    return 0;
  msgpack::DocNode &node = it->second;
  return node.getKind() == msgpack::Type::UInt  ? int(node.getUInt())
         : node.getKind() == msgpack::Type::Int ? int(node.getInt())
                                                : 0;
}

/// What metadata says of each kernel.
static Expected<SmallVector<KernelResources, 1>>
kernelsOf(msgpack::Document &document) {
  if (!document.getRoot().isMap())
    return createStringError(kDamaged);
  msgpack::MapDocNode root = document.getRoot().getMap();
  if (!root["amdhsa.kernels"].isArray())
    return createStringError("no kernels in the AMDGPU metadata");
  SmallVector<KernelResources, 1> kernels;
  for (msgpack::DocNode &node : root["amdhsa.kernels"].getArray()) {
    if (!node.isMap() ||
        node.getMap()[".name"].getKind() != msgpack::Type::String)
      return createStringError("damaged kernel in the AMDGPU metadata");
    msgpack::MapDocNode map = node.getMap();
    KernelResources &kernel = kernels.emplace_back();
    kernel.name = map[".name"].getString().str();
    kernel.agprs = field(map, ".agpr_count");
    kernel.vgprs = field(map, ".vgpr_count");
    kernel.sgprs = field(map, ".sgpr_count");
    kernel.vgprSpills = field(map, ".vgpr_spill_count");
    kernel.sgprSpills = field(map, ".sgpr_spill_count");
    kernel.ldsBytes = field(map, ".group_segment_fixed_size");
    kernel.scratchBytes = field(map, ".private_segment_fixed_size");
    kernel.threads = field(map, ".max_flat_workgroup_size");
    kernel.kernargBytes = field(map, ".kernarg_segment_size");
  }
  return kernels;
}

Expected<SmallVector<KernelResources, 1>> readMetadata(StringRef emitted) {
  msgpack::Document document;
  if (!emitted.starts_with(StringRef(ELF::ElfMagic))) {
    if (Error error = readMetadata(emitted, document))
      return std::move(error);
    return kernelsOf(document);
  }
  Expected<ElfFile> elf = ElfFile::create(MemoryBufferRef(emitted, "object"));
  if (!elf)
    return elf.takeError();
  if (Error error = readMetadata(*elf, document))
    return std::move(error);
  return kernelsOf(document);
}

namespace {
/// LLVM's disassembler for one chip.
class Disassembler {
public:
  explicit Disassembler(const target::TargetInfo &target)
      : machine(cantFail(createTargetMachine(target, 0))) {
    const Target &backend = machine->getTarget();
    context = std::make_unique<MCContext>(
        machine->getTargetTriple(), machine->getMCAsmInfo(),
        machine->getMCRegisterInfo(), machine->getMCSubtargetInfo());
    disassembler.reset(
        backend.createMCDisassembler(*machine->getMCSubtargetInfo(), *context));
  }

  /// Counts the instructions of one function.
  Error count(ArrayRef<uint8_t> code, KernelResources &kernel) {
    const MCInstrInfo &info = *machine->getMCInstrInfo();
    for (uint64_t at = 0; at < code.size();) {
      MCInst inst;
      uint64_t size = 0;
      if (disassembler->getInstruction(inst, size, code.slice(at), at,
                                       nulls()) != MCDisassembler::Success)
        return createStringError("kernel '" + kernel.name +
                                 "': undecodable instruction at offset " +
                                 Twine(at));
      at += size;
      ++kernel.instructions;
      StringRef name = info.getName(inst.getOpcode());
      if (name.contains("MFMA") || name.contains("WMMA"))
        ++kernel.matrixInstructions;
    }
    kernel.codeBytes = code.size();
    return Error::success();
  }

private:
  std::unique_ptr<TargetMachine> machine;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCDisassembler> disassembler;
};
} // namespace

Expected<SmallVector<KernelResources, 1>>
readResources(StringRef hsaco, const target::TargetInfo &target) {
  Expected<ElfFile> elf =
      ElfFile::create(MemoryBufferRef(hsaco, "code object"));
  if (!elf)
    return elf.takeError();
  msgpack::Document document;
  if (Error error = readMetadata(*elf, document))
    return error;
  Expected<SmallVector<KernelResources, 1>> kernels = kernelsOf(document);
  if (!kernels)
    return kernels.takeError();
  Disassembler disassembler(target);
  for (KernelResources &kernel : *kernels) {
    // The metadata counts the whole file on chips whose registers share one.
    if (target.registerFile == target::RegisterFile::Unified)
      kernel.vgprs -= kernel.agprs;
    for (const object::ELFSymbolRef symbol : elf->symbols()) {
      Expected<StringRef> name = symbol.getName();
      if (!name)
        return name.takeError();
      if (*name != kernel.name)
        continue;
      Expected<object::section_iterator> section = symbol.getSection();
      Expected<uint64_t> address = symbol.getAddress();
      if (!section || !address)
        return joinErrors(section.takeError(), address.takeError());
      Expected<StringRef> contents = (*section)->getContents();
      if (!contents)
        return contents.takeError();
      uint64_t offset = *address - (*section)->getAddress();
      if (offset + symbol.getSize() > contents->size())
        return createStringError("kernel '" + *name +
                                 "' reaches past its section");
      if (Error error = disassembler.count(
              arrayRefFromStringRef(contents->substr(offset, symbol.getSize())),
              kernel))
        return error;
      break;
    }
  }
  return kernels;
}

std::string describe(const KernelResources &kernel,
                     const target::TargetInfo &target) {
  return formatv("{0} on {1}: {2} VGPRs, {3} AGPRs, {4} SGPRs, {5} bytes of "
                 "LDS, {6} bytes of scratch, {7} waves a SIMD",
                 kernel.name, target.name, kernel.vgprs, kernel.agprs,
                 kernel.sgprs, kernel.ldsBytes, kernel.scratchBytes,
                 target::wavesPerSimd(target, kernel.use(target)))
      .str();
}

} // namespace fovea::hsaco
