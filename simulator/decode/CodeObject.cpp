//===- CodeObject.cpp - Loading a HSACO -----------------------------------===//
//
// Reads the ELF with LLVM's object library, copies its segments into device
// memory, relocates, and collects kernels from the symbol table, the kernel
// descriptors and the metadata note. Layouts: LLVM's "User Guide for AMDGPU
// Backend", sections on code objects, kernel descriptors and metadata.
//
//===----------------------------------------------------------------------===//
#include "decode/CodeObjectImpl.h"
#include "decode/Metadata.h"
#include "decode/SourceLines.h"
#include "fovea/Simulator/Device.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/AMDHSAKernelDescriptor.h"

#include <algorithm>
#include <cstring>

namespace fovea::sim {

namespace {
using namespace llvm;
using Elf = object::ELFFile<object::ELF64LE>;

/// Code objects larger than this in memory are refused: a wrong size in a
/// program header must not ask for terabytes.
constexpr uint64_t kMaxSpan = uint64_t(4) << 30;

Status invalid(const std::string &why) {
  return {ErrorCode::InvalidImage, "code object refused: " + why};
}

/// The gfx names of EF_AMDGPU_MACH values that can occur; "" when unknown.
StringRef machName(unsigned mach) {
  switch (mach) {
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX900: return "gfx900";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX906: return "gfx906";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX908: return "gfx908";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX90A: return "gfx90a";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX942: return "gfx942";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX950: return "gfx950";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC: return "gfx9-4-generic";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX9_GENERIC: return "gfx9-generic";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1030: return "gfx1030";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1100: return "gfx1100";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1101: return "gfx1101";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1102: return "gfx1102";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1103: return "gfx1103";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1150: return "gfx1150";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1151: return "gfx1151";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1152: return "gfx1152";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1153: return "gfx1153";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1200: return "gfx1200";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1201: return "gfx1201";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX1250: return "gfx1250";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX10_1_GENERIC: return "gfx10-1-generic";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX10_3_GENERIC: return "gfx10-3-generic";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC: return "gfx11-generic";
  case ELF::EF_AMDGPU_MACH_AMDGCN_GFX12_GENERIC: return "gfx12-generic";
  default: return "";
  }
}

/// Compares what a code object asks of a feature with what the device has.
Status checkFeature(const char *name, unsigned bits, unsigned off, unsigned on,
                    Feature device, const ChipInfo &chip) {
  if (bits != on && bits != off)
    return Status::success(); // it runs with either
  const std::string needs =
      std::string("code object needs ") + name + (bits == on ? "+" : "-");
  if (device == Feature::Unsupported)
    return {ErrorCode::TargetMismatch,
            needs + ", " + std::string(chip.target) + " has no " + name};
  if ((bits == on) != (device == Feature::On))
    return {ErrorCode::TargetMismatch,
            needs + ", the device runs with " + name +
                (device == Feature::On ? "+" : "-") + " (simulate " +
                std::string(chip.target) + ":" + name +
                (bits == on ? "+)" : "-)")};
  return Status::success();
}

/// Code of a generic target needs the version of the code object format that
/// gives it a version of its own; all members have run it since version 1.
Status checkGeneric(StringRef mach, unsigned abi, unsigned flags) {
  if (abi < ELF::ELFABIVERSION_AMDGPU_HSA_V6)
    return {ErrorCode::TargetMismatch,
            "code object is for " + mach.str() + " in version " +
                std::to_string(abi + 2) +
                "; generic targets need version 6 (-mcode-object-version=6)"};
  const unsigned version = (flags & ELF::EF_AMDGPU_GENERIC_VERSION) >>
                           ELF::EF_AMDGPU_GENERIC_VERSION_OFFSET;
  if (version < ELF::EF_AMDGPU_GENERIC_VERSION_MIN)
    return {ErrorCode::TargetMismatch,
            "code object is for " + mach.str() +
                " and gives no generic version"};
  return Status::success();
}

Status checkHeader(const Elf &elf, const ChipInfo &chip) {
  const auto &header = elf.getHeader();
  if (header.e_machine != ELF::EM_AMDGPU)
    return invalid("ELF machine " + std::to_string(header.e_machine) +
                   " is not AMDGPU (224)");
  if (header.e_ident[ELF::EI_OSABI] != ELF::ELFOSABI_AMDGPU_HSA)
    return invalid("OS ABI " + std::to_string(header.e_ident[ELF::EI_OSABI]) +
                   " is not amdhsa (64)");
  unsigned abi = header.e_ident[ELF::EI_ABIVERSION];
  if (abi < ELF::ELFABIVERSION_AMDGPU_HSA_V4 ||
      abi > ELF::ELFABIVERSION_AMDGPU_HSA_V6)
    return invalid("ABI version " + std::to_string(abi) +
                   "; code object versions 4 to 6 (ABI 2 to 4) are known");
  if (header.e_type != ELF::ET_DYN)
    return invalid("ELF type " + std::to_string(header.e_type) +
                   " is not a shared object (3): was it linked?");
  unsigned flags = header.e_flags;
  StringRef mach = machName(flags & ELF::EF_AMDGPU_MACH);
  if (mach != StringRef(chip.target) &&
      (chip.genericTarget.empty() || mach != StringRef(chip.genericTarget)))
    return {ErrorCode::TargetMismatch,
            "code object is for " +
                (mach.empty()
                     ? "an unknown chip (machine flags " +
                           std::to_string(flags & ELF::EF_AMDGPU_MACH) + ")"
                     : mach.str()) +
                ", the device is " + std::string(chip.target)};
  if (mach != StringRef(chip.target))
    if (Status s = checkGeneric(mach, abi, flags); !s)
      return s;
  if (Status s = checkFeature(
          "xnack", flags & ELF::EF_AMDGPU_FEATURE_XNACK_V4,
          ELF::EF_AMDGPU_FEATURE_XNACK_OFF_V4,
          ELF::EF_AMDGPU_FEATURE_XNACK_ON_V4, chip.xnack, chip);
      !s)
    return s;
  return checkFeature("sramecc", flags & ELF::EF_AMDGPU_FEATURE_SRAMECC_V4,
                      ELF::EF_AMDGPU_FEATURE_SRAMECC_OFF_V4,
                      ELF::EF_AMDGPU_FEATURE_SRAMECC_ON_V4, chip.sramecc, chip);
}

/// Loads one image; every step fails with a Status.
class Loader {
public:
  Loader(CodeObject::Impl &result, const Elf &elf, StringRef image)
      : Result(result), File(elf), Image(image) {}

  Status run() {
    for (auto step : {&Loader::mapSegments, &Loader::readSymbols,
                      &Loader::relocate, &Loader::readDescriptors,
                      &Loader::readMetadata})
      if (Status s = (this->*step)(); !s)
        return s;
    if (Result.Kernels.empty())
      return invalid("it has no kernels");
    return Status::success();
  }

private:
  struct Symbol {
    StringRef Name;
    uint64_t Value, Size;
    unsigned Type;
    bool Defined;
  };

  static Status fail(Error error) { return invalid(toString(std::move(error))); }

  /// The host place of [vaddr, vaddr + size), null when outside the image.
  uint8_t *at(uint64_t vaddr, uint64_t size) {
    if (vaddr > Result.Span || size > Result.Span - vaddr)
      return nullptr;
    return reinterpret_cast<uint8_t *>(Result.Base + vaddr);
  }

  Status mapSegments() {
    auto headers = File.program_headers();
    if (!headers)
      return fail(headers.takeError());
    uint64_t end = 0, textBegin = UINT64_MAX, textEnd = 0, lastEnd = 0;
    for (const auto &segment : *headers) {
      if (segment.p_type != ELF::PT_LOAD)
        continue;
      uint64_t vaddr = segment.p_vaddr, memory = segment.p_memsz;
      if (segment.p_filesz > memory || vaddr > kMaxSpan || memory > kMaxSpan)
        return invalid("a segment of " + std::to_string(memory) +
                       " bytes at " + std::to_string(vaddr) +
                       " has impossible sizes");
      if (segment.p_offset > Image.size() ||
          segment.p_filesz > Image.size() - segment.p_offset)
        return invalid("a segment of " + std::to_string(segment.p_filesz) +
                       " bytes runs past the end of the file (truncated?)");
      if (vaddr < lastEnd)
        return invalid("segments overlap or are out of order");
      lastEnd = vaddr + memory;
      end = std::max(end, vaddr + memory);
      if (segment.p_flags & ELF::PF_X) {
        textBegin = std::min<uint64_t>(textBegin, vaddr);
        textEnd = std::max<uint64_t>(textEnd, vaddr + segment.p_filesz);
      }
    }
    if (end == 0 || textBegin >= textEnd)
      return invalid("it has no executable segment");
    if (textBegin % 4)
      return invalid("its code does not start at a multiple of 4 bytes");
    if (Status s = Result.Dev->memory().allocate(end, 4096, Result.Base); !s)
      return s;
    Result.Span = end;
    for (const auto &segment : *headers)
      if (segment.p_type == ELF::PT_LOAD && segment.p_filesz)
        std::memcpy(at(segment.p_vaddr, segment.p_filesz),
                    Image.data() + segment.p_offset, segment.p_filesz);
    Result.TextBegin = Result.Base + textBegin;
    Result.TextEnd = Result.Base + textEnd;
    return Status::success();
  }

  Status readSymbols() {
    auto sections = File.sections();
    if (!sections)
      return fail(sections.takeError());
    for (const auto &section : *sections) {
      if (section.sh_type != ELF::SHT_DYNSYM)
        continue;
      auto symbols = File.symbols(&section);
      if (!symbols)
        return fail(symbols.takeError());
      auto strings = File.getStringTableForSymtab(section);
      if (!strings)
        return fail(strings.takeError());
      for (const auto &symbol : *symbols) {
        auto name = symbol.getName(*strings);
        if (!name)
          return fail(name.takeError());
        Symbols.push_back({*name, symbol.st_value, symbol.st_size,
                           symbol.getType(),
                           symbol.st_shndx != ELF::SHN_UNDEF});
      }
    }
    for (const Symbol &symbol : Symbols)
      if (symbol.Defined && symbol.Type == ELF::STT_OBJECT &&
          !symbol.Name.ends_with(".kd")) {
        if (!at(symbol.Value, symbol.Size))
          return invalid("variable '" + symbol.Name.str() +
                         "' lies outside its segments");
        Result.Globals.push_back(
            {symbol.Name.str(), Result.Base + symbol.Value, symbol.Size});
      }
    return Status::success();
  }

  Status relocate() {
    auto sections = File.sections();
    if (!sections)
      return fail(sections.takeError());
    for (const auto &section : *sections) {
      if (section.sh_type != ELF::SHT_RELA)
        continue;
      auto relocations = File.relas(section);
      if (!relocations)
        return fail(relocations.takeError());
      for (const auto &relocation : *relocations)
        if (Status s = apply(relocation.r_offset, relocation.getType(false),
                             relocation.getSymbol(false), relocation.r_addend);
            !s)
          return s;
    }
    return Status::success();
  }

  Status apply(uint64_t offset, unsigned type, unsigned index, int64_t addend) {
    uint64_t value = Result.Base + addend;
    if (type == ELF::R_AMDGPU_NONE)
      return Status::success();
    if (type != ELF::R_AMDGPU_RELATIVE64) {
      if (index >= Symbols.size())
        return invalid("a relocation names symbol " + std::to_string(index) +
                       " of " + std::to_string(Symbols.size()));
      if (!Symbols[index].Defined)
        return invalid("symbol '" + Symbols[index].Name.str() +
                       "' is not defined");
      value += Symbols[index].Value;
    }
    unsigned bytes = 8;
    switch (type) {
    case ELF::R_AMDGPU_RELATIVE64:
    case ELF::R_AMDGPU_ABS64:
      break;
    case ELF::R_AMDGPU_ABS32:
    case ELF::R_AMDGPU_ABS32_LO:
      bytes = 4;
      break;
    case ELF::R_AMDGPU_ABS32_HI:
      bytes = 4;
      value >>= 32;
      break;
    default:
      return invalid("relocation type " + std::to_string(type) +
                     " is not known");
    }
    uint8_t *place = at(offset, bytes);
    if (!place)
      return invalid("a relocation at " + std::to_string(offset) +
                     " lies outside its segments");
    std::memcpy(place, &value, bytes);
    return Status::success();
  }

  Status readDescriptors() {
    for (const Symbol &symbol : Symbols) {
      if (!symbol.Defined || !symbol.Name.ends_with(".kd"))
        continue;
      std::string name = symbol.Name.drop_back(3).str();
      const uint8_t *place = at(symbol.Value, sizeof(amdhsa::kernel_descriptor_t));
      if (!place || symbol.Value % 64)
        return invalid("the descriptor of kernel '" + name +
                       "' lies outside its segments or is misaligned");
      amdhsa::kernel_descriptor_t descriptor;
      std::memcpy(&descriptor, place, sizeof descriptor);
      KernelInfo kernel;
      kernel.name = name;
      kernel.descriptorAddress = Result.Base + symbol.Value;
      kernel.entryAddress = kernel.descriptorAddress +
                            descriptor.kernel_code_entry_byte_offset;
      if (kernel.entryAddress < Result.TextBegin ||
          kernel.entryAddress >= Result.TextEnd || kernel.entryAddress % 4)
        return invalid("the entry of kernel '" + name +
                       "' lies outside the code");
      kernel.kernargSize = descriptor.kernarg_size;
      kernel.staticLdsBytes = descriptor.group_segment_fixed_size;
      kernel.privateBytes = descriptor.private_segment_fixed_size;
      kernel.rsrc1 = descriptor.compute_pgm_rsrc1;
      kernel.rsrc2 = descriptor.compute_pgm_rsrc2;
      kernel.rsrc3 = descriptor.compute_pgm_rsrc3;
      kernel.codeProperties = descriptor.kernel_code_properties;
      kernel.kernargPreload = descriptor.kernarg_preload;
      kernel.usesDynamicStack = AMDHSA_BITS_GET(
          descriptor.kernel_code_properties,
          amdhsa::KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK);
      bool wave32 = AMDHSA_BITS_GET(
          descriptor.kernel_code_properties,
          amdhsa::KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32);
      kernel.waveSize = wave32 ? 32 : 64;
      if (kernel.waveSize != Result.Dev->chip().waveSize &&
          kernel.waveSize != Result.Dev->chip().otherWaveSize)
        return invalid("kernel '" + name + "' is built for waves of " +
                       std::to_string(kernel.waveSize) + " lanes, " +
                       std::string(Result.Dev->chip().target) + " has " +
                       std::to_string(Result.Dev->chip().waveSize));
      if (kernel.privateBytes > (1u << 20))
        return invalid("kernel '" + name + "' asks for " +
                       std::to_string(kernel.privateBytes) +
                       " bytes of scratch a lane; at most 1 MiB");
      if (Status s = checkKernargSize(kernel); !s)
        return s;
      Result.Kernels.push_back(std::move(kernel));
    }
    return Status::success();
  }

  Status readMetadata() {
    auto headers = File.program_headers();
    if (!headers)
      return fail(headers.takeError());
    for (const auto &segment : *headers) {
      if (segment.p_type != ELF::PT_NOTE)
        continue;
      Error error = Error::success();
      for (const auto &note : File.notes(segment, error)) {
        if (note.getName() != "AMDGPU" ||
            note.getType() != ELF::NT_AMDGPU_METADATA)
          continue;
        Status s = readNote(toStringRef(note.getDesc(4)));
        if (!s) {
          consumeError(std::move(error));
          return s;
        }
        HaveNote = true;
      }
      if (error)
        return fail(std::move(error));
    }
    if (!HaveNote)
      return invalid("it has no AMDGPU metadata note");
    return Status::success();
  }

  Status readNote(StringRef blob) {
    MetaNode root;
    if (!fovea::sim::readMetadata({blob.data(), blob.size()}, root) ||
        root.kind != MetaNode::Map)
      return invalid("its metadata note is damaged");
    Result.Target = root.text("amdhsa.target");
    if (!root.find("amdhsa.kernels"))
      return invalid("its metadata lists no kernels");
    for (const MetaNode &node : root.array("amdhsa.kernels")) {
      std::string symbol = node.text(".symbol");
      for (KernelInfo &kernel : Result.Kernels)
        if (kernel.name + ".kd" == symbol)
          if (Status s = readKernel(node, kernel); !s)
            return s;
    }
    return Status::success();
  }

  static uint32_t number32(const MetaNode &map, const char *key,
                           uint64_t otherwise) {
    return static_cast<uint32_t>(
        std::min<uint64_t>(map.number(key, otherwise), UINT32_MAX));
  }

  Status readKernel(const MetaNode &map, KernelInfo &kernel) {
    kernel.kernargSize =
        std::max(kernel.kernargSize, number32(map, ".kernarg_segment_size", 0));
    if (Status s = checkKernargSize(kernel); !s)
      return s;
    kernel.kernargAlign = number32(map, ".kernarg_segment_align", 8);
    kernel.vgprs = number32(map, ".vgpr_count", 0);
    kernel.agprs = number32(map, ".agpr_count", 0);
    kernel.sgprs = number32(map, ".sgpr_count", 0);
    kernel.maxWorkgroupSize = number32(map, ".max_flat_workgroup_size", 1024);
    const auto &required = map.array(".reqd_workgroup_size");
    for (unsigned i = 0; i < 3 && required.size() == 3; ++i)
      if (required[i].kind == MetaNode::Int)
        kernel.requiredWorkgroupSize[i] =
            static_cast<uint32_t>(required[i].integer);
    for (const MetaNode &node : map.array(".args")) {
      KernelArg arg;
      arg.name = node.text(".name");
      arg.kind = node.text(".value_kind");
      arg.addressSpace = node.text(".address_space");
      arg.offset = number32(node, ".offset", 0);
      arg.size = number32(node, ".size", 0);
      if (arg.offset > kernel.kernargSize ||
          arg.size > kernel.kernargSize - arg.offset)
        return invalid("argument '" + arg.name + "' of kernel '" + kernel.name +
                       "' lies outside its argument segment");
      kernel.args.push_back(std::move(arg));
    }
    return Status::success();
  }

  static Status checkKernargSize(const KernelInfo &kernel) {
    if (kernel.kernargSize > (1u << 20))
      return invalid("kernel '" + kernel.name + "' asks for " +
                     std::to_string(kernel.kernargSize) +
                     " bytes of arguments; at most 1 MiB");
    return Status::success();
  }

  CodeObject::Impl &Result;
  const Elf &File;
  StringRef Image;
  std::vector<Symbol> Symbols;
  bool HaveNote = false;
};
} // namespace

CodeObject::Impl::~Impl() {
  if (Base)
    (void)Dev->memory().free(Base);
}

CodeObject::CodeObject() : Self(new Impl) {}
CodeObject::~CodeObject() = default;

Status CodeObject::load(const std::shared_ptr<Device> &device, const void *data,
                        size_t bytes, std::shared_ptr<CodeObject> &result) {
  if (!device || !data)
    return {ErrorCode::InvalidArgument, "code object: null device or image"};
  if (bytes < sizeof(ELF::Elf64_Ehdr) ||
      std::memcmp(data, ELF::ElfMagic, 4) != 0)
    return invalid("it is no ELF file (" + std::to_string(bytes) + " bytes)");
  const auto *ident = static_cast<const uint8_t *>(data);
  if (ident[ELF::EI_CLASS] != ELF::ELFCLASS64 ||
      ident[ELF::EI_DATA] != ELF::ELFDATA2LSB)
    return invalid("it is no 64-bit little-endian ELF file");
  // LLVM's reader wants aligned memory.
  std::vector<uint64_t> copy((bytes + 7) / 8);
  std::memcpy(copy.data(), data, bytes);
  StringRef image(reinterpret_cast<const char *>(copy.data()), bytes);
  auto elf = Elf::create(image);
  if (!elf)
    return invalid(toString(elf.takeError()));
  if (Status s = checkHeader(*elf, device->chip()); !s)
    return s;
  std::shared_ptr<CodeObject> object(new CodeObject);
  object->Self->Dev = device;
  if (Status s = Loader(*object->Self, *elf, image).run(); !s)
    return s;
  if (Status s = object->Self->createProgram(); !s)
    return s;
  std::shared_ptr<SourceLines> lines =
      SourceLines::create(image.data(), image.size());
  for (const auto &program : object->Self->Programs)
    program->setSourceLines(lines,
                            object->Self->TextBegin - object->Self->Base);
  result = std::move(object);
  return Status::success();
}

const std::vector<KernelInfo> &CodeObject::kernels() const {
  return Self->Kernels;
}
const std::vector<GlobalVariable> &CodeObject::globals() const {
  return Self->Globals;
}
const KernelInfo *CodeObject::findKernel(std::string_view name) const {
  for (const KernelInfo &kernel : Self->Kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}
const GlobalVariable *CodeObject::findGlobal(std::string_view name) const {
  for (const GlobalVariable &global : Self->Globals)
    if (global.name == name)
      return &global;
  return nullptr;
}
const std::string &CodeObject::targetId() const { return Self->Target; }
const std::shared_ptr<Device> &CodeObject::device() const { return Self->Dev; }

std::vector<std::string> CodeObject::unsupportedInstructions() const {
  std::vector<std::string> result;
  for (const auto &program : Self->Programs)
    for (std::string &mnemonic : program->unsupported())
      if (!is_contained(result, mnemonic))
        result.push_back(std::move(mnemonic));
  return result;
}

uint32_t KernelInfo::explicitKernargSize() const {
  uint32_t end = 0;
  for (const KernelArg &arg : args)
    if (!arg.hidden())
      end = std::max(end, arg.offset + arg.size);
  return end;
}

} // namespace fovea::sim
