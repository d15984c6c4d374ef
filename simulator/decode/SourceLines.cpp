//===- SourceLines.cpp - From program counters to source lines ------------===//
//
// LLVM's DWARF reader over the file's image. A damaged table gives no line, and
// nothing is printed about it.
//
//===----------------------------------------------------------------------===//
#include "decode/SourceLines.h"

#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"

namespace fovea::sim {

using namespace llvm;

struct SourceLines::Impl {
  std::unique_ptr<object::ObjectFile> File;
  std::unique_ptr<DWARFContext> Context;
};

SourceLines::SourceLines() = default;
SourceLines::~SourceLines() = default;

namespace {
std::unique_ptr<object::ObjectFile> open(const char *data, size_t bytes) {
  auto file = object::ObjectFile::createELFObjectFile(
      MemoryBufferRef(StringRef(data, bytes), "code object"));
  if (!file) {
    consumeError(file.takeError());
    return nullptr;
  }
  return std::move(*file);
}
} // namespace

std::unique_ptr<SourceLines> SourceLines::create(const void *data,
                                                 size_t bytes) {
  auto file = open(static_cast<const char *>(data), bytes);
  bool found = false;
  if (file)
    for (const object::SectionRef &section : file->sections()) {
      auto name = section.getName();
      if (name)
        found |= *name == ".debug_line";
      else
        consumeError(name.takeError());
    }
  if (!found)
    return nullptr;
  std::unique_ptr<SourceLines> lines(new SourceLines);
  const char *p = static_cast<const char *>(data);
  lines->Image.assign(p, p + bytes);
  return lines;
}

std::string SourceLines::at(uint64_t address) {
  std::lock_guard<std::mutex> lock(Mutex);
  if (!Self) {
    Self = std::make_unique<Impl>();
    Self->File = open(Image.data(), Image.size());
    if (Self->File)
      Self->Context = DWARFContext::create(
          *Self->File, DWARFContext::ProcessDebugRelocations::Process, nullptr,
          "", [](Error error) { consumeError(std::move(error)); },
          [](Error error) { consumeError(std::move(error)); });
  }
  if (!Self->Context)
    return "";
  DILineInfoSpecifier how(DILineInfoSpecifier::FileLineInfoKind::RawValue);
  auto info = Self->Context->getLineInfoForAddress(
      {address, object::SectionedAddress::UndefSection}, how);
  if (!info || !info->Line || info->FileName == DILineInfo::BadString)
    return "";
  return info->FileName + ":" + std::to_string(info->Line);
}

} // namespace fovea::sim
