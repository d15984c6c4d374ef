//===- Emit.cpp - machine code, and again where registers lack ------------===//
//
// What a kernel takes is known when its machine code is there. Where it lacks
// registers, it is emitted anew with an attribute of the table below, which
// costs something else, and so not all have it.
//
//===----------------------------------------------------------------------===//

#include "BackendPasses.h"
#include "DeferArguments.h"
#include "RecomputeLanes.h"
#include "TrackedPressure.h"
#include "fovea/Target/HSACO/KernelAttributes.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <map>

using namespace llvm;

namespace fovea::hsaco {

void placeScalars(Module &module, TargetMachine &machine) {
  if (machine.getOptLevel() == CodeGenOptLevel::None)
    return;
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  FunctionPassManager last;
  addDeferArguments(last);
  addRecomputeLanes(last);
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(last)));
  passes.run(module, modules);
}

namespace {
/// A kernel as it was emitted.
struct Emitted {
  KernelResources took;
  bool hasBanks = false; ///< operands of WMMA have banks of their own
  bool hasMatrices = false; ///< products by matrix instructions
  /// What it was emitted with, by attribute.
  std::map<StringRef, StringRef> attributes;
};

/// What kernels are emitted anew with.
struct Retry {
  StringRef attribute, value;
  bool (*isFor)(const Emitted &kernel);
  bool isAlone = false; ///< without what retries before gave
};

/// A module as it was emitted.
struct Emission {
  std::string text;
  std::vector<Emitted> kernels;
};
} // namespace

static bool spillsScalars(const Emitted &kernel) {
  return kernel.took.sgprSpills != 0;
}

/// Where vector registers are in memory still, as in a row of the schedules'
/// table that is too large for a score program, the scalars are not why.
static bool spillsScalarsAlone(const Emitted &kernel) {
  return spillsScalars(kernel) && kernel.took.scratchBytes == 0;
}

/// Of many, leaving a few registers more does not help, and takes long.
static bool spillsFewScalarsAlone(const Emitted &kernel) {
  constexpr unsigned kFew = 12;
  return spillsScalarsAlone(kernel) && kernel.took.sgprSpills <= kFew;
}

static bool spillsAlone(const Emitted &kernel) {
  return kernel.took.sgprSpills + kernel.took.vgprSpills != 0 &&
         kernel.took.scratchBytes == 0;
}

/// Of WMMA, whose operands take all registers of a wave.
static bool lacksBanks(const Emitted &kernel) {
  return kernel.hasBanks && kernel.took.scratchBytes != 0;
}

/// Or of products by lanes, whose operands do.
static bool lacksRegisters(const Emitted &kernel) {
  return lacksBanks(kernel) ||
         (!kernel.hasMatrices && kernel.took.scratchBytes != 0);
}

/// In the order in which they are tried. Kernels with many scalars have those
/// outside of loops worked out again from the first (RecomputeScalars.h).
static constexpr Retry kRetries[] = {
    {kRecomputedLanesAttrName, "", lacksRegisters},
    // LLVM's estimate lets it move reads of LDS ahead of products whose
    // operands then no longer fit.
    {kTrackedPressureAttrName, "", lacksRegisters},
    {kAnyBanksAttrName, "", lacksBanks, /*isAlone=*/true},
    {kAnyBanksAttrName, "", lacksBanks},
    {kRecomputedScalarsAttrName, "", spillsScalars},
    // Registers that are left, since descriptors of several begin at some only:
    // the more, the more is worked out again in loops.
    {kRecomputedAtUsesAttrName, "4", spillsScalarsAlone},
    {kRecomputedAtUsesAttrName, "6", spillsFewScalarsAlone},
    {kRecomputedAtUsesAttrName, "8", spillsFewScalarsAlone},
    {kRecomputedAtUsesAttrName, "12", spillsFewScalarsAlone},
    {kRecomputedAtUsesAttrName, "16", spillsFewScalarsAlone},
    {kTrackedPressureAttrName, "", spillsAlone},
};

/// Memory is the dearest. Without it a register goes to another one and back,
/// be it of vectors or scalars.
static auto costOf(const KernelResources &kernel) {
  return std::pair(kernel.scratchBytes, kernel.vgprSpills + kernel.sgprSpills);
}

static bool hasMatrixProducts(const Function &function) {
  return any_of(instructions(function), [](const Instruction &instruction) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call)
      return false;
    StringRef name = call->getCalledFunction()->getName();
    return name.starts_with("llvm.amdgcn.mfma.") ||
           name.starts_with("llvm.amdgcn.wmma.");
  });
}

/// What retries gave a kernel, or our passes of themselves.
static std::map<StringRef, StringRef> attributesOf(const Function &function) {
  std::map<StringRef, StringRef> attributes;
  for (const Retry &retry : kRetries)
    if (Attribute given = function.getFnAttribute(retry.attribute);
        given.isValid() && given.getValueAsString() == retry.value)
      attributes[retry.attribute] = retry.value;
  return attributes;
}

/// What is to be emitted. \param kernels  with what; others with nothing
static std::unique_ptr<Module> prepare(const Module &module,
                                       TargetMachine &machine,
                                       ArrayRef<Emitted> kernels) {
  std::unique_ptr<Module> copy = CloneModule(module);
  for (const Emitted &kernel : kernels)
    for (auto [attribute, value] : kernel.attributes)
      copy->getFunction(kernel.took.name)->addFnAttr(attribute, value);
  placeScalars(*copy, machine);
  return copy;
}

static Expected<Emission> emitOnce(std::unique_ptr<Module> module,
                                   TargetMachine &machine,
                                   CodeGenFileType type) {
  SmallString<0> text;
  raw_svector_ostream os(text);
  legacy::PassManager passes;
  const BackendPasses ours;
  const OptionsHeld held(*module);
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return createStringError("the backend cannot emit this kind of file");
  passes.run(*module);
  auto found = readMetadata(text);
  if (!found)
    return found.takeError();
  Emission emission;
  emission.text = std::string(text);
  for (KernelResources &took : *found) {
    Emitted &kernel = emission.kernels.emplace_back();
    kernel.hasBanks = ours.hintedFunctions().contains(took.name);
    kernel.took = std::move(took);
    kernel.hasMatrices =
        hasMatrixProducts(*module->getFunction(kernel.took.name));
    kernel.attributes = attributesOf(*module->getFunction(kernel.took.name));
  }
  return emission;
}

static Expected<std::string> emit(const Module &module, TargetMachine &machine,
                                  CodeGenFileType type, unsigned *emissions) {
  auto emitCounted = [&](std::unique_ptr<Module> copy) {
    if (emissions)
      ++*emissions;
    return emitOnce(std::move(copy), machine, type);
  };
  Expected<Emission> best = emitCounted(prepare(module, machine, {}));
  if (!best)
    return best.takeError();
  // Without optimisation everything spills, whatever is asked for.
  if (machine.getOptLevel() == CodeGenOptLevel::None)
    return std::move(best->text);
  bool isMixed = false; // its kernels are of several emissions
  for (const Retry &retry : kRetries) {
    std::vector<Emitted> kernels = best->kernels;
    bool isWanted = false;
    for (Emitted &kernel : kernels)
      if (retry.isFor(kernel)) {
        std::map<StringRef, StringRef> attributes;
        if (!retry.isAlone)
          attributes = kernel.attributes;
        attributes[retry.attribute] = retry.value;
        isWanted |= attributes != kernel.attributes;
        kernel.attributes = std::move(attributes);
      }
    if (!isWanted)
      continue;
    std::unique_ptr<Module> again = prepare(module, machine, kernels);
    // Our passes found nothing to do otherwise, and so would LLVM.
    if (all_of(best->kernels, [&](const Emitted &kernel) {
          return attributesOf(*again->getFunction(kernel.took.name)) ==
                 kernel.attributes;
        }))
      continue;
    Expected<Emission> other = emitCounted(std::move(again));
    if (!other)
      return other.takeError();
    bool isBetter = false, isWorse = false;
    for (auto [kernel, was] : zip_equal(other->kernels, best->kernels)) {
      if (costOf(kernel.took) < costOf(was.took)) {
        isBetter = true;
      } else if (kernel.attributes != was.attributes) {
        isWorse = true;
        kernel = was;
      }
    }
    if (!isBetter)
      continue;
    isMixed = isWorse;
    best = std::move(other);
  }
  if (isMixed)
    best = emitCounted(prepare(module, machine, best->kernels));
  if (!best)
    return best.takeError();
  return std::move(best->text);
}

Expected<std::string> emitAssembly(const Module &module,
                                   TargetMachine &machine) {
  return emit(module, machine, CodeGenFileType::AssemblyFile,
              /*emissions=*/nullptr);
}

Expected<std::string> emitObject(const Module &module, TargetMachine &machine,
                                 unsigned *emissions) {
  return emit(module, machine, CodeGenFileType::ObjectFile, emissions);
}

} // namespace fovea::hsaco
