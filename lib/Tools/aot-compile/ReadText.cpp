//===- ReadText.cpp - texts that people name ------------------------------===//

#include "ReadText.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace fs = llvm::sys::fs;

/// Specs are some KB, IR with kernels some MB.
static constexpr size_t kMostMiB = 64;

llvm::Expected<std::string> fovea::tools::readText(const std::string &path) {
  const bool isStandard = path == "-";
  llvm::Expected<fs::file_t> file =
      isStandard ? fs::getStdinHandle() : fs::openNativeFileForRead(path);
  if (!file)
    return file.takeError();
  auto close = llvm::make_scope_exit([&] {
    if (!isStandard)
      (void)fs::closeFile(*file);
  });
  constexpr size_t kChunk = size_t(1) << 16;
  llvm::SmallString<0> text;
  while (text.size() <= kMostMiB << 20) {
    const size_t before = text.size();
    text.resize_for_overwrite(before + kChunk);
    llvm::Expected<size_t> read = fs::readNativeFile(
        *file, llvm::MutableArrayRef(text.data() + before, kChunk));
    if (!read)
      return read.takeError();
    text.resize(before + *read);
    if (*read == 0)
      return std::string(text);
  }
  return llvm::createStringError(
      "it is longer than " + llvm::Twine(kMostMiB) +
      " MiB, which no such text is; name a file that ends");
}
