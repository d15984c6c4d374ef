//===- DeviceLibraries.cpp - ROCm's device libraries, if needed -----------===//

#include "DeviceLibraries.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TargetParser/TargetParser.h"

using namespace llvm;

namespace fovea::hsaco {

/// Names of functions that the module calls and does not define.
static SmallVector<std::string> undefinedFunctions(const Module &module) {
  SmallVector<std::string> names;
  for (const Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      names.push_back(function.getName().str());
  return names;
}

static SmallVector<std::string> libraryFolders() {
  if (std::optional<std::string> folder =
          sys::Process::GetEnv("FOVEA_DEVICE_LIBS"))
    return {*folder};
  SmallVector<std::string> folders;
  if (std::optional<std::string> rocm = sys::Process::GetEnv("ROCM_PATH"))
    folders.push_back(*rocm + "/amdgcn/bitcode");
  folders.push_back("/opt/rocm/amdgcn/bitcode");
  folders.push_back("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode");
  return folders;
}

static Error linkFile(Module &module, StringRef folder, StringRef file) {
  SmallString<128> path(folder);
  sys::path::append(path, file);
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> library =
      parseIRFile(path, diagnostic, module.getContext());
  if (!library)
    return createStringError("cannot read device library " + path + ": " +
                             diagnostic.getMessage());
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  if (Linker::linkModules(module, std::move(library),
                          Linker::Flags::LinkOnlyNeeded))
    return createStringError("cannot link device library " + path);
  return Error::success();
}

/// The libraries ask these globals what to assume. ROCm ships a file a value;
/// writing them here serves chips younger than the libraries.
static void defineControls(Module &module, const TargetMachine &machine) {
  AMDGPU::IsaVersion isa = AMDGPU::getIsaVersion(machine.getTargetCPU());
  bool wave64 = machine.getMCSubtargetInfo()->checkFeatures("+wavefrontsize64");
  const std::pair<StringRef, unsigned> controls[] = {
      {"__oclc_finite_only_opt", 0},
      {"__oclc_unsafe_math_opt", 0},
      {"__oclc_daz_opt", 0},
      {"__oclc_correctly_rounded_sqrt32", 1},
      {"__oclc_wavefrontsize64", wave64 ? 1 : 0},
      {"__oclc_ISA_version", isa.Major * 1000 + isa.Minor * 100 + isa.Stepping},
      {"__oclc_ABI_version", 500},
  };
  for (auto [name, value] : controls) {
    GlobalVariable *global = module.getNamedGlobal(name);
    if (!global || !global->isDeclaration())
      continue;
    global->setInitializer(ConstantInt::get(global->getValueType(), value));
    global->setConstant(true);
    global->setLinkage(GlobalValue::InternalLinkage);
  }
}

Error linkDeviceLibraries(Module &module, const TargetMachine &machine) {
  SmallVector<std::string> needed = undefinedFunctions(module);
  if (needed.empty())
    return Error::success();
  for (StringRef name : needed)
    if (!name.starts_with("__ocml_") && !name.starts_with("__ockl_"))
      return createStringError("module '" + module.getName() + "' calls '" +
                               name + "', which nothing defines");
  SmallVector<std::string> folders = libraryFolders();
  const std::string *folder = find_if(folders, [](StringRef folder) {
    return sys::fs::exists(folder + "/ocml.bc") &&
           sys::fs::exists(folder + "/ockl.bc");
  });
  if (folder == folders.end())
    return createStringError(
        "module '" + module.getName() + "' calls " + join(needed, ", ") +
        ", but ROCm's device libraries (ocml.bc, ockl.bc) are not in " +
        join(folders, " or ") + "; set FOVEA_DEVICE_LIBS to their folder");
  StringSet<> own;
  for (const Function &function : module)
    if (!function.isDeclaration())
      own.insert(function.getName());
  for (StringRef file : {"ocml.bc", "ockl.bc"})
    if (Error error = linkFile(module, *folder, file))
      return error;
  for (Function &function : module)
    if (!function.isDeclaration() && !own.contains(function.getName()))
      function.setLinkage(GlobalValue::InternalLinkage);
  defineControls(module, machine);
  SmallVector<std::string> missing = undefinedFunctions(module);
  if (!missing.empty())
    return createStringError(
        "module '" + module.getName() + "' calls " + join(missing, ", ") +
        ", which the device libraries in " + *folder + " do not define");
  return Error::success();
}

} // namespace fovea::hsaco
