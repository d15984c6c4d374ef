//===- Serialize.h - from rocdl to a code object, in process ----*- C++ -*-===//
//
// MLIR's translation to LLVM IR, LLVM's AMDGPU backend and lld, as libraries.
// Every function reports failure through an llvm::Error that names the module.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_HSACO_SERIALIZE_H
#define FOVEA_TARGET_HSACO_SERIALIZE_H

#include "fovea/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace fovea::hsaco {

/// The backend for a chip. \param optLevel 0 to 3.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const target::TargetInfo &target, int optLevel);

/// Translates the llvm and rocdl ops of a module, and sets triple and layout.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::gpu::GPUModuleOp module, llvm::LLVMContext &context,
          llvm::TargetMachine &machine);

/// Optimises the module in place, but for placeScalars. Functions of ROCm's
/// device libraries that it calls are linked first; a call of anything else
/// outside it is an error.
/// \param cancelled  passes are skipped, and the module is of no more use, from
/// when it becomes true; null: never
llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     int optLevel,
                     const std::atomic<bool> *cancelled = nullptr);

/// The last passes on what optimize gave, in place: where a kernel reads its
/// arguments, and what it works out again instead of holding it in registers.
/// What follows runs them on a copy; this is for who wants to see that.
void placeScalars(llvm::Module &module, llvm::TargetMachine &machine);

/// Assembly text, or a relocatable object. Kernels that lack registers are
/// emitted anew in other ways, and of each what spills least is taken.
llvm::Expected<std::string> emitAssembly(const llvm::Module &module,
                                         llvm::TargetMachine &machine);
/// \param emissions  raised by how often the module was emitted; or null
llvm::Expected<std::string> emitObject(const llvm::Module &module,
                                       llvm::TargetMachine &machine,
                                       unsigned *emissions = nullptr);

/// Links one object into a code object that a HIP runtime loads. Safe to call
/// from several threads; links run one at a time, since lld keeps global state.
llvm::Expected<std::string> link(llvm::StringRef object);

/// Says how to parse the command line again. lld sets every option of llvm::cl
/// to its default, which is where MLIR's flags and a driver's passes are kept:
/// a program that has parsed such options sets this before it links.
void setOptionRestorer(std::function<void()> restore);

/// What the code object says of a kernel, and what is counted in its code.
struct KernelResources {
  std::string name;
  int vgprs = 0; ///< architectural vector registers
  int agprs = 0; ///< accumulation registers
  int sgprs = 0;
  int vgprSpills = 0, sgprSpills = 0;
  int ldsBytes = 0;     ///< a workgroup
  int scratchBytes = 0; ///< a lane
  int threads = 0;      ///< largest workgroup, work-items
  int kernargBytes = 0;
  int instructions = 0;
  int matrixInstructions = 0;
  int codeBytes = 0;

  /// What it takes of a compute unit.
  target::KernelUse use(const target::TargetInfo &target) const {
    return {vgprs, agprs, ldsBytes, threads / target.waveSize};
  }
};

/// Reads the metadata and code of every kernel in a code object.
llvm::Expected<llvm::SmallVector<KernelResources, 1>>
readResources(llvm::StringRef hsaco, const target::TargetInfo &target);

/// Reads the metadata, but not the code, of every kernel in what emitAssembly
/// or emitObject gave. Of chips whose vector and accumulation registers are one
/// file `vgprs` has both.
llvm::Expected<llvm::SmallVector<KernelResources, 1>>
readMetadata(llvm::StringRef emitted);

/// The figures in a sentence, for remarks.
std::string describe(const KernelResources &kernel,
                     const target::TargetInfo &target);

} // namespace fovea::hsaco

#endif // FOVEA_TARGET_HSACO_SERIALIZE_H
