//===- Serialize.cpp - from rocdl to a code object, in process ------------===//

#include "fovea/Target/HSACO/Serialize.h"
#include "DeviceLibraries.h"
#include "ScalarPhis.h"
#include "TrackedPressure.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "fovea/Target/TargetInfo.h"
#include "lld/Common/Driver.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace fovea::hsaco {

static constexpr StringLiteral kTriple = "amdgcn-amd-amdhsa";

static void initializeBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUDisassembler();
  });
}

static CodeGenOptLevel codeGenLevel(int optLevel) {
  return *CodeGenOpt::getLevel(std::clamp(optLevel, 0, 3));
}

Expected<std::unique_ptr<TargetMachine>>
createTargetMachine(const target::TargetInfo &target, int optLevel) {
  initializeBackend();
  Triple triple(kTriple);
  std::string message;
  const Target *backend = TargetRegistry::lookupTarget(triple, message);
  if (!backend)
    return createStringError("no AMDGPU backend in this LLVM: " + message);
  std::unique_ptr<TargetMachine> machine(backend->createTargetMachine(
      triple, target.name, target.codegenFeatures, TargetOptions(), Reloc::PIC_,
      std::nullopt, codeGenLevel(optLevel)));
  if (!machine)
    return createStringError("LLVM's AMDGPU backend does not know " +
                             target.name);
  return machine;
}

/// Names the arguments of kernels, so that the code object's metadata does.
static void nameArguments(mlir::gpu::GPUModuleOp module, Module &ir) {
  for (auto kernel : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    auto names = kernel->getAttrOfType<mlir::ArrayAttr>(kArgumentNamesAttrName);
    Function *function = ir.getFunction(kernel.getName());
    if (!names || !function)
      continue;
    for (auto [argument, name] : zip(function->args(), names))
      if (auto text = dyn_cast<mlir::StringAttr>(name))
        argument.setName(text.getValue());
  }
}

Expected<std::unique_ptr<Module>> translate(mlir::gpu::GPUModuleOp module,
                                            LLVMContext &context,
                                            TargetMachine &machine) {
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(module, context, module.getName());
  if (!result)
    return createStringError("gpu.module '" + module.getName() +
                             "' cannot be translated to LLVM IR");
  nameArguments(module, *result);
  // The first version of the format that generic targets are possible in;
  // whatever LLVM's default is, they need it.
  constexpr unsigned kCodeObjectV6 = 600;
  const target::TargetInfo *target =
      target::lookupTarget(machine.getTargetCPU());
  if (target && target->isGeneric())
    result->setModuleFlag(Module::Error, "amdhsa_code_object_version",
                          kCodeObjectV6);
  result->setTargetTriple(Triple(kTriple));
  result->setDataLayout(machine.createDataLayout());
  return result;
}

Error optimize(Module &module, TargetMachine &machine, int optLevel,
               const std::atomic<bool> *cancelled) {
  if (Error error = linkDeviceLibraries(module, machine))
    return error;
  // Vectorisers and unrolling would undo what the schedule laid out.
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  PassInstrumentationCallbacks callbacks;
  if (cancelled)
    callbacks.registerShouldRunOptionalPassCallback(
        [cancelled](StringRef, Any) {
          return !cancelled->load(std::memory_order_relaxed);
        });
  PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  OptimizationLevel level = optLevel <= 0   ? OptimizationLevel::O0
                            : optLevel == 1 ? OptimizationLevel::O1
                            : optLevel == 2 ? OptimizationLevel::O2
                                            : OptimizationLevel::O3;
  builder.registerPipelineStartEPCallback(
      [](ModulePassManager &start, OptimizationLevel) {
        FunctionPassManager first;
        addScalarPhis(first);
        start.addPass(createModuleToFunctionPassAdaptor(std::move(first)));
      });
  ModulePassManager passes = optLevel <= 0
                                 ? builder.buildO0DefaultPipeline(level)
                                 : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
  return Error::success();
}

static constexpr StringLiteral kOtherFolder =
    "; TMPDIR can name another folder";

namespace {
/// A file in the temporary folder, removed at the end.
class TemporaryFile {
public:
  static Expected<TemporaryFile> create(StringRef suffix) {
    TemporaryFile file;
    if (std::error_code code =
            sys::fs::createTemporaryFile("fovea", suffix, file.path))
      return createStringError(code, "cannot make the temporary file " +
                                         file.path + ": " + code.message() +
                                         kOtherFolder);
    return file;
  }
  TemporaryFile(TemporaryFile &&other) : path(std::move(other.path)) {
    other.path.clear();
  }
  ~TemporaryFile() {
    if (!path.empty())
      sys::fs::remove(path);
  }
  StringRef getPath() const { return path; }

private:
  TemporaryFile() = default;
  SmallString<128> path;
};
} // namespace

/// What lld said. Where the temporary folder takes no more, it has no code for
/// that, but the system's words.
static Error linkError(StringRef messages) {
  for (std::errc reason :
       {std::errc::no_space_on_device, std::errc::file_too_large})
    if (std::error_code code = std::make_error_code(reason);
        messages.contains(code.message()))
      return createStringError(code, "lld failed: " + messages.rtrim() +
                                         kOtherFolder);
  return createStringError("lld failed: " + messages);
}

static std::function<void()> restoreOptions;

void setOptionRestorer(std::function<void()> restore) {
  restoreOptions = std::move(restore);
}

Expected<std::string> link(StringRef object) {
  Expected<TemporaryFile> input = TemporaryFile::create("o");
  if (!input)
    return input.takeError();
  Expected<TemporaryFile> output = TemporaryFile::create("hsaco");
  if (!output)
    return output.takeError();
  std::error_code code;
  {
    raw_fd_ostream os(input->getPath(), code);
    if (!code) {
      os << object;
      os.close();
      code = os.error();
      os.clear_error(); // or its end would be the process's
    }
  }
  if (code)
    return createStringError(code, "cannot write the temporary file " +
                                       input->getPath() + ": " +
                                       code.message() + kOtherFolder);
  std::string messages;
  raw_string_ostream os(messages);
  static std::mutex oneAtATime;
  {
    std::lock_guard<std::mutex> guard(oneAtATime);
    const OptionsHeld held; // all are set to their defaults
    std::string in = input->getPath().str(), out = output->getPath().str();
    lld::Result result = lld::lldMain(
        {"ld.lld", "--threads=1", "-shared", "-o", out.c_str(), in.c_str()}, os,
        os, {{lld::Gnu, &lld::elf::link}});
    if (restoreOptions)
      restoreOptions();
    if (result.retCode != 0)
      return linkError(messages);
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(output->getPath(), /*IsText=*/false,
                            /*RequiresNullTerminator=*/false,
                            /*IsVolatile=*/true);
  if (!buffer)
    return createStringError(buffer.getError(), "cannot read lld's output");
  return (*buffer)->getBuffer().str();
}

} // namespace fovea::hsaco
