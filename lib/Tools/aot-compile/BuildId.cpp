//===- BuildId.cpp - which compiler this is -------------------------------===//

#include "BuildId.h"
#include "CompilerHash.h.inc" // made from the compiler's libraries at build time
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"
#include <link.h>

using namespace llvm;

/// The GNU build id of a loaded object, in hexadecimal, or "".
static std::string gnuBuildId(const dl_phdr_info &object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const auto *at =
        reinterpret_cast<const uint8_t *>(object.dlpi_addr + segment.p_vaddr);
    const uint8_t *end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(at);
      const uint8_t *name = at + sizeof(note);
      const uint8_t *description = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          StringRef(reinterpret_cast<const char *>(name), 3) == "GNU")
        return toHex(ArrayRef<uint8_t>(description, note.n_descsz),
                     /*LowerCase=*/true);
      at = description + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return "";
}

/// What is looked for among the loaded objects, and found.
struct Search {
  uintptr_t address; ///< of something in it
  std::string text;
};

static int addLibrary(dl_phdr_info *object, size_t, void *into) {
  auto &search = *static_cast<Search *>(into);
  const uintptr_t offset = search.address - object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || offset < segment.p_vaddr ||
        offset - segment.p_vaddr >= segment.p_memsz)
      continue;
    StringRef path(object->dlpi_name);
    StringRef file = path.substr(path.rfind('/') + 1);
    if (file.starts_with("libLLVM") || file.starts_with("libMLIR"))
      search.text = ", " + file.str() + " " + gnuBuildId(*object).substr(0, 16);
    return 1;
  }
  return 0;
}

std::string fovea::tools::compilerName() {
  return "aot-compile " FOVEA_VERSION;
}

std::string fovea::tools::compilerBuildId() {
  // Those that this code is bound to: a process may have others, and in any
  // order.
  std::string libraries;
  for (uintptr_t address :
       {reinterpret_cast<uintptr_t>(
            static_cast<LogicalResult (*)(mlir::Operation *, bool)>(
                &mlir::verify)),
        reinterpret_cast<uintptr_t>(&sys::getDefaultTargetTriple)}) {
    Search search{address, ""};
    dl_iterate_phdr(addLibrary, &search);
    libraries += search.text;
  }
  return compilerName() +
         " " FOVEA_COMPILER_HASH ", LLVM " LLVM_VERSION_STRING + libraries;
}
