//===- TargetInfo.cpp - the table of chips --------------------------------===//

#include "fovea/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace fovea::target {

static const TargetInfo kTargets[] = {
    {/*name=*/"gfx942", /*product=*/"AMD Instinct MI300X",
     /*waveSize=*/64, /*ldsBytes=*/65536, /*ldsBanks=*/32, /*simdsPerCu=*/4,
     /*registersPerSimdLane=*/512, /*maxRegistersPerWave=*/512,
     /*registerGranule=*/8, /*maxWavesPerSimd=*/8, /*computeUnits=*/304,
     /*xcds=*/8, /*bufferFlags=*/0x27000,
     kMfmaF16 | kMfmaBf16_1k | kDot2F32F16},
};

llvm::ArrayRef<TargetInfo> allTargets() { return kTargets; }

const TargetInfo *lookupTarget(llvm::StringRef name) {
  for (const TargetInfo &target : kTargets)
    if (target.name == name)
      return &target;
  return nullptr;
}

std::string targetNames() {
  return llvm::join(
      llvm::map_range(kTargets,
                      [](const TargetInfo &target) { return target.name; }),
      ", ");
}

int wavesPerSimd(const TargetInfo &target, int registers, int ldsBytes,
                 int waves) {
  int rounded = int(
      llvm::alignTo(std::max(registers, 1), uint64_t(target.registerGranule)));
  int byRegisters =
      std::min(target.registersPerSimdLane / rounded, target.maxWavesPerSimd);
  if (ldsBytes == 0)
    return byRegisters;
  int workgroups = target.ldsBytes / ldsBytes;
  // Waves of a workgroup spread evenly over the SIMDs of a compute unit.
  int byLds = workgroups * waves / target.simdsPerCu;
  return std::max(std::min(byRegisters, byLds), workgroups > 0 ? 1 : 0);
}

} // namespace fovea::target
