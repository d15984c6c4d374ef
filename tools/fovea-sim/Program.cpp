//===- Program.cpp - the file of a program --------------------------------===//
//
// Programs that the loader does not link, or that have HIP in them, would go past
// the simulated library without a word.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace fovea::foveasim;
using namespace llvm;
using namespace llvm::object;

/// Of HIP's functions those that every program with a kernel calls: by the module
/// interface, and by what clang makes of <<<>>>.
static constexpr StringLiteral kLaunches[] = {"hipModuleLaunchKernel",
                                              "hipLaunchKernel"};

/// A launch function that the file itself has, or "".
static StringRef launchIn(const ELFObjectFileBase &file) {
  auto find = [](auto &&symbols) -> StringRef {
    for (const ELFSymbolRef symbol : symbols) {
      Expected<uint32_t> flags = symbol.getFlags();
      Expected<StringRef> name = symbol.getName();
      if (!flags || !name) {
        consumeError(flags.takeError());
        consumeError(name.takeError());
        continue;
      }
      if (*flags & SymbolRef::SF_Undefined)
        continue;
      for (StringRef launch : kLaunches)
        if (*name == launch)
          return launch;
    }
    return "";
  };
  StringRef found = find(file.getDynamicSymbolIterators());
  return found.empty() ? find(file.symbols()) : found;
}

template <typename ELFT>
static bool isDynamic(const ELFObjectFile<ELFT> &file) {
  auto headers = file.getELFFile().program_headers();
  if (!headers) {
    consumeError(headers.takeError());
    return true;
  }
  for (const auto &header : *headers)
    if (header.p_type == ELF::PT_INTERP)
      return true;
  return false;
}

/// What keeps an ELF file from running on the simulated device, or "".
static std::string complaintOf(const ELFObjectFileBase &file) {
  const Triple host(sys::getProcessTriple());
  if (file.getArch() != host.getArch())
    return "is a program for " + Triple::getArchTypeName(file.getArch()).str() +
           ", and this machine is " +
           Triple::getArchTypeName(host.getArch()).str() +
           ": build it for this one";
  const auto *of64 = dyn_cast<ELF64LEObjectFile>(&file);
  if (of64 && !isDynamic(*of64))
    return "is linked statically, so no library can be put in HIP's place: link "
           "it dynamically (without -static), with HIP as a shared library";
  StringRef launch = launchIn(file);
  if (!launch.empty())
    return "has HIP itself in it (it defines " + launch.str() +
           "), so no library can be put in HIP's place: link the shared library "
           "(-lamdhip64 and not libamdhip64.a), or, for the simulated one alone, "
           "-lfovea_hipsim";
  return "";
}

ProgramState fovea::foveasim::findProgram(const std::string &name,
                                          std::string &text) {
  const bool isPath = StringRef(name).contains('/');
  std::string path = name;
  if (!isPath) {
    ErrorOr<std::string> found = sys::findProgramByName(name);
    if (!found) {
      text = "there is no program '" + name + "' in the folders of PATH";
      if (sys::fs::exists(name))
        text += "; the file here is run as ./" + name;
      return ProgramState::NotFound;
    }
    path = *found;
  }
  const std::string quoted = "'" + path + "'";
  if (!sys::fs::exists(path)) {
    text = "there is no program " + quoted;
    return ProgramState::NotFound;
  }
  if (sys::fs::is_directory(path)) {
    text = quoted + " is a folder; name a program in it";
    return ProgramState::Unusable;
  }
  if (!sys::fs::can_execute(path)) {
    text = quoted + " is not executable: chmod +x makes it so; a script can be "
                    "given to its interpreter, as in fovea-sim python3 " +
           name;
    return ProgramState::Unusable;
  }
  // Scripts and whatever else the system starts are not looked at.
  Expected<OwningBinary<ObjectFile>> file = ObjectFile::createObjectFile(path);
  if (!file) {
    consumeError(file.takeError());
  } else if (const auto *elf =
                 dyn_cast<ELFObjectFileBase>(file->getBinary())) {
    if (std::string complaint = complaintOf(*elf); !complaint.empty()) {
      text = quoted + " " + complaint;
      return ProgramState::Unusable;
    }
  }
  text = path;
  return ProgramState::Good;
}

std::string fovea::foveasim::demangled(const std::string &symbol) {
  return demangle(symbol);
}
