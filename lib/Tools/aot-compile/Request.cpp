//===- Request.cpp - what aot-compile was asked for -----------------------===//

#include "Request.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>

using namespace fovea;
using namespace fovea::tools;

static constexpr EmitInfo kEmits[] = {
    {Emit::Mlir, "mlir", "mlir", true,
     "MLIR after the stage that --stage names"},
    {Emit::Llvm, "llvm", "ll", true, "optimised LLVM IR"},
    {Emit::Asm, "asm", "s", true, "AMDGPU assembly"},
    {Emit::Obj, "obj", "o", false, "relocatable object"},
    {Emit::Hsaco, "hsaco", "hsaco", false,
     "code object that a HIP runtime loads (default)"},
    {Emit::Package, "package", "fovea", false,
     "kernel package, one file a chip; adds what is missing"},
    {Emit::Contract, "contract", "json", true,
     "JSON: what a launch of the kernel must pass"},
    {Emit::Description, "description", "json", true,
     "JSON: what aot-launch and aot-time read to launch it"},
    {Emit::None, "none", "", true, "nothing; for --report alone"},
};

llvm::ArrayRef<EmitInfo> fovea::tools::allEmits() { return kEmits; }

const EmitInfo &fovea::tools::emitInfo(Emit emit) {
  return *std::find_if(std::begin(kEmits), std::end(kEmits),
                       [&](const EmitInfo &info) { return info.emit == emit; });
}

static constexpr OverrideInfo kOverrides[] = {
    {"block-m", "bm", &ScheduleOverrides::blockM, 1, true,
     "query rows of a workgroup (of dK and dV: keys)"},
    {"block-n", "bn", &ScheduleOverrides::blockN, 1, true,
     "keys of an iteration (of dK and dV: queries)"},
    {"waves", "w", &ScheduleOverrides::waves, 1, true, "waves of a workgroup"},
    {"stages", "s", &ScheduleOverrides::stages, 1, true,
     "1: load a key block, then use it; 2: load the next one meanwhile; 3: "
     "compute its scores meanwhile too (forward, with --direct-copy=1); 4: "
     "segments that compute and that move data in turn"},
    {"waves-per-simd", "o", &ScheduleOverrides::wavesPerSimd, 1, true,
     "occupancy to allocate registers for"},
    {"rescale-threshold", "t", &ScheduleOverrides::rescaleThreshold, 0, false,
     "growth of a row's maximum, in powers of two, that triggers a rescale"},
    {"value-split", "v", &ScheduleOverrides::valueSplit, 1, true,
     "waves that share queries, each with its part of the output's columns"},
    {"queries-in-lds", "q", &ScheduleOverrides::queriesInLds, 0, true,
     "0: queries stay in registers, 1: in LDS, 2: in memory (with "
     "--column-chunk), 3: of gradients what the scores take in LDS"},
    {"direct-copy", "dc", &ScheduleOverrides::directCopy, 0, false,
     "0: keys and values reach LDS through registers, 1: without"},
    {"column-chunk", "cc", &ScheduleOverrides::columnChunk, 0, true,
     "columns of the head dimension that are taken at a time, of gradients and "
     "with --queries-in-lds=2 (0: all)"},
};

llvm::ArrayRef<OverrideInfo> fovea::tools::allOverrides() { return kOverrides; }

bool fovea::tools::isAlgorithm(llvm::StringRef name) {
  return llvm::any_of(spec::allOperations(),
                      [&](const spec::OperationSpec &operation) {
                        return operation.findAlgorithm(name) != nullptr;
                      });
}

std::string fovea::tools::algorithmNames() {
  return llvm::join(llvm::map_range(spec::allOperations(),
                                    [](const spec::OperationSpec &operation) {
                                      return spec::namesOf(
                                                 operation.algorithms) +
                                             " (" + operation.name + ")";
                                    }),
                    ", ");
}

/// The option's name as a key: "block_m" of "block-m".
static std::string keyOf(const OverrideInfo &info) {
  std::string key = info.option.str();
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string fovea::tools::setParameter(ScheduleOverrides &overrides,
                                       llvm::StringRef key,
                                       std::optional<int64_t> number,
                                       std::optional<llvm::StringRef> name) {
  if (key == "inst") {
    // What a chip lacks can be left out, what nothing has is a slip.
    if (!name || !target::lookupMatrixShape(*name))
      return "must be the name of a matrix instruction" +
             (name ? ", and no chip has '" + name->str() + "'" : std::string());
    overrides.inst = name->str();
    return "";
  }
  if (key == "algorithm") {
    if (!name || !isAlgorithm(*name))
      return "must be one of " + algorithmNames();
    overrides.algorithm = name->str();
    return "";
  }
  const auto *info = llvm::find_if(
      kOverrides, [&](const OverrideInfo &row) { return keyOf(row) == key; });
  if (info == std::end(kOverrides)) {
    std::string known = "algorithm, inst";
    for (const OverrideInfo &row : kOverrides)
      known += ", " + keyOf(row);
    return "unknown parameter; known: " + known;
  }
  if (!number || *number < info->smallest || *number > 1 << 20)
    return "must be a whole number from " + std::to_string(info->smallest) +
           " on";
  overrides.*(info->member) = int32_t(*number);
  return "";
}

std::string ScheduleOverrides::suffix() const {
  std::string text;
  for (const OverrideInfo &info : kOverrides)
    if (int32_t value = this->*info.member; value >= info.smallest)
      text += "_" + info.letter.str() + std::to_string(value);
  if (!inst.empty())
    text += "_" + inst;
  if (!algorithm.empty())
    text += "_" + algorithm;
  return text;
}

KernelRecord Job::record() const {
  KernelRecord record;
  record.problem = problem;
  record.score = score;
  record.schedule = schedule;
  record.abiVersion = abiVersionOf(problem.op);
  record.symbol = symbol;
  record.blockM = blockM;
  record.blockN = blockN;
  record.threads = threads;
  if (!isOneLaunch())
    for (const Launch &launch : launches)
      record.launches.push_back(launch.record);
  return record;
}

std::string fovea::tools::kernelSymbol(const ProblemKey &problem,
                                       const ScheduleOverrides &overrides,
                                       llvm::StringRef score) {
  std::string symbol = "attn_";
  switch (problem.op) {
  case OpKind::Forward:
    symbol += "fwd";
    break;
  case OpKind::Backward:
    symbol += "bwd";
    break;
  case OpKind::DropoutMask:
    return symbol + "dropout_mask_" + toString(problem.dtype) +
           overrides.suffix();
  }
  symbol += std::string("_") + toString(problem.dtype) + "_d" +
            std::to_string(problem.headDim);
  if (problem.headDimV)
    symbol += "x" + std::to_string(problem.headDimV);
  GroupVersions groups = problem.groups;
  if (!problem.takesWindow()) // the usual one takes any
    symbol += std::string("_") + toString(problem.mask);
  groups[kWindowGroup] = 0;
  for (size_t row = 0; row != spec::featureGroups().size(); ++row)
    if (groups[row])
      symbol += std::string("_") + spec::featureGroups()[row].name;
  if (!score.empty()) {
    symbol += "_" + score.str();
    std::replace(symbol.begin(), symbol.end(), ',', '_');
  }
  if (problem.scoreGradients) {
    symbol += "_dcapture" + captureNumbers(problem.scoreGradients);
    std::replace(symbol.begin(), symbol.end(), '+', '_');
  }
  if (problem.storedGradients) {
    symbol += "_stored" + captureNumbers(problem.storedGradients);
    std::replace(symbol.begin(), symbol.end(), '+', '_');
  }
  return symbol + overrides.suffix();
}
