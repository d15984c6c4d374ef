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
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace {
/// Where lld writes: a pipe, which a thread empties. A file lld would map, and
/// where the disk has no room for it that ends the process (SIGBUS).
class LinkOutput {
public:
  LinkOutput() = default;
  LinkOutput(const LinkOutput &) = delete;
  ~LinkOutput() {
    (void)take();
    for (int file : {out, in, ended})
      if (file >= 0)
        ::close(file);
    if (isNamed)
      ::unlink(name.c_str());
  }

  /// Before all else.
  Error open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return failed(errno);
    out = ends[0];
    in = ends[1];
    name = "/proc/self/fd/" + std::to_string(in);
    if (const int again = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
        again >= 0)
      ::close(again);
    else if (const int error = openNamed())
      return failed(error, ": neither /proc/self/fd nor the named pipe " +
                               name + " can be opened");
    // Not the pipe's end tells it: a process that was forked meanwhile has
    // that.
    ended = ::eventfd(0, EFD_CLOEXEC);
    if (ended < 0 || ::fcntl(out, F_SETFL, O_NONBLOCK) != 0)
      return failed(errno);
    if (const int error = ::pthread_create(
            &reader, nullptr,
            [](void *self) -> void * {
              static_cast<LinkOutput *>(self)->read();
              return nullptr;
            },
            this))
      return failed(error);
    reads = true;
    return Error::success();
  }
  const std::string &path() const { return name; }

  /// What came, once lld has ended.
  std::string take() {
    if (reads) {
      (void)::eventfd_write(ended, 1);
      (void)::pthread_join(reader, nullptr);
      reads = false;
    }
    return std::move(bytes);
  }

private:
  static Error failed(int error, const std::string &how = "") {
    const std::error_code code(error, std::generic_category());
    return createStringError(code, "cannot take lld's output" + how + ": " +
                                       code.message() +
                                       (how.empty() ? "" : kOtherFolder));
  }
  /// In the temporary folder, for processes that see no /proc.
  int openNamed() {
    for (int tries = 0; tries != 16; ++tries) {
      SmallString<128> path;
      sys::fs::getPotentiallyUniqueTempFileName("fovea", "pipe", path);
      name = path.str().str();
      if (::mkfifo(name.c_str(), 0600) == 0)
        break;
      if (errno != EEXIST || tries == 15)
        return errno;
    }
    isNamed = true;
    // For both, or it would wait for somebody who writes.
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
      return errno;
    ::close(out);
    out = file;
    return 0;
  }
  void read() {
    pollfd files[] = {{out, POLLIN, 0}, {ended, POLLIN, 0}};
    while (!files[1].revents) {
      if (::poll(files, 2, -1) < 0)
        continue;
      char part[65536];
      for (ssize_t got; (got = ::read(out, part, sizeof(part))) > 0;)
        bytes.append(part, size_t(got));
    }
  }

  int out = -1, in = -1, ended = -1;
  std::string name;     ///< of the end to write to
  bool isNamed = false; ///< by a file of its own
  pthread_t reader;
  bool reads = false;
  std::string bytes;
};
} // namespace

namespace {
/// Keeps the numbers of the standard streams taken where a program has closed
/// them: what it writes there all the same must not get into files of ours.
class StandardNumbers {
public:
  StandardNumbers() {
    for (int file; (file = ::open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0;) {
      struct stat info;
      if (file > STDERR_FILENO || ::fstat(file, &info) != 0) {
        ::close(file);
        return;
      }
      taken[file] = {true, info.st_dev, info.st_ino};
    }
  }
  ~StandardNumbers() {
    for (int file = 0; file <= STDERR_FILENO; ++file)
      if (isOurs(file))
        ::close(file);
  }
  StandardNumbers(const StandardNumbers &) = delete;

private:
  struct Taken {
    bool is = false;
    dev_t device;
    ino_t inode;
  };
  /// Another thread may have given the number to a stream meanwhile, which is
  /// another file or, by dup2(), not closed by exec().
  bool isOurs(int file) const {
    struct stat info;
    const int flags = taken[file].is ? ::fcntl(file, F_GETFD) : -1;
    return flags >= 0 && (flags & FD_CLOEXEC) && ::fstat(file, &info) == 0 &&
           info.st_dev == taken[file].device &&
           info.st_ino == taken[file].inode;
  }

  Taken taken[STDERR_FILENO + 1];
};
} // namespace

static std::function<void()> restoreOptions;

void setOptionRestorer(std::function<void()> restore) {
  restoreOptions = std::move(restore);
}

Expected<std::string> link(StringRef object) {
  static std::mutex oneAtATime;
  const std::lock_guard<std::mutex> guard(oneAtATime);
  const StandardNumbers taken;
  Expected<TemporaryFile> input = TemporaryFile::create("o");
  if (!input)
    return input.takeError();
  LinkOutput output;
  if (Error error = output.open())
    return std::move(error);
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
  const OptionsHeld held; // all are set to their defaults
  const std::string in = input->getPath().str(), &out = output.path();
  lld::Result result = lld::lldMain(
      {"ld.lld", "--threads=1", "-shared", "-o", out.c_str(), in.c_str()}, os,
      os, {{lld::Gnu, &lld::elf::link}});
  if (restoreOptions)
    restoreOptions();
  if (result.retCode != 0)
    return createStringError("lld failed: " + messages);
  return output.take();
}

} // namespace fovea::hsaco
