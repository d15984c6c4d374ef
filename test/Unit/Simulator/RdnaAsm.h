//===- RdnaAsm.h - Assembly kernels for RDNA chips --------------*- C++ -*-===//
//
// As AsmKernels.h, for GFX11 and GFX12 in waves of 32 or 64 lanes.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_RDNAASM_H
#define FOVEA_TEST_UNIT_SIMULATOR_RDNAASM_H

#include "AsmKernels.h"

#include <ostream>
#include <string>
#include <vector>

namespace fovea::sim::test {

struct RdnaTarget {
  std::string chip = "gfx1100";
  unsigned lanes = 32;
  bool gfx12() const { return chip.compare(0, 5, "gfx12") == 0; }
  /// "gfx1100_wave32", for names of tests.
  std::string name() const { return chip + "_wave" + std::to_string(lanes); }
};

inline std::ostream &operator<<(std::ostream &out, const RdnaTarget &target) {
  return out << target.name();
}

/// A module of kernels. Each gets the address of its arguments (16 x 8 bytes)
/// in s[0:1] and the work-item id in v0; 256 VGPRs, 100 SGPRs.
std::string rdnaModule(const RdnaTarget &target,
                       const std::vector<AsmKernel> &kernels);

/// The same, assembled.
std::vector<char> assembleRdna(const RdnaTarget &target,
                               const std::vector<AsmKernel> &kernels);

/// Waits for all loads.
std::string rdnaWait(const RdnaTarget &target);

/// A kernel (a, b, c, d: addresses of a word for each lane and register) that
/// loads v[8:15] from a, v[16:23] from b, v[24:31] from c, with register r at
/// 256 r, executes \p instructions and stores v[24:31] to d.
std::string rdnaVectorBody(const RdnaTarget &target,
                           const std::string &instructions);

/// A kernel (a, d) that loads s[16:31] from a, executes \p instructions and
/// stores s[16:31] and then SCC, VCC and EXEC (five words) to d.
std::string rdnaScalarBody(const RdnaTarget &target,
                           const std::string &instructions);

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_RDNAASM_H
