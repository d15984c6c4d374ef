//===- AsmKernels.h - Kernels around single instructions --------*- C++ -*-===//
//
// Writes assembly for kernels that load operands for every lane, execute a few
// given instructions, and store the result.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_ASMKERNELS_H
#define FOVEA_TEST_UNIT_SIMULATOR_ASMKERNELS_H

#include <string>
#include <vector>

namespace fovea::sim::test {

/// One kernel: its name and what stands between prologue and end.
struct AsmKernel {
  std::string name;
  std::string body;
  unsigned ldsBytes = 0;
  unsigned denormMode = 3; ///< of fp32: 0 flushes, 3 keeps
  unsigned roundMode = 0;  ///< of fp32: nearest, up, down, towards zero
};

/// What the kernels of a module have in common.
struct ModuleForm {
  std::string target;
  unsigned kernargBytes = 64;
  unsigned waveSize = 64;
  unsigned vgprs = 256, sgprs = 96;
  std::string directives, metadata; ///< lines beside those of all targets
};

/// A module of kernels. Each gets the address of its arguments in s[0:1] and
/// the work-item id in v0.
std::string moduleText(const std::vector<AsmKernel> &kernels,
                       const ModuleForm &form);

/// A module of kernels for a CDNA chip. Each gets the address of its arguments
/// in s[0:1], its workgroup id in s2 and the work-item id in v0.
std::string asmModule(const std::vector<AsmKernel> &kernels,
                      unsigned kernargBytes = 64,
                      const std::string &target = "gfx942");

/// The body of a kernel (a, b, c, d: addresses of 64 x 8 bytes) that loads a
/// into v[2:3], b into v[4:5], c into v[6:7] and d into v[8:9], executes
/// \p instructions, and stores v[8:9] to d.
std::string vectorBody(const std::string &instructions);

/// The same with the first element of each in s[16:17], s[18:19], s[20:21] and
/// s[22:23], which is stored to d; the second element of d receives SCC.
std::string scalarBody(const std::string &instructions);

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_ASMKERNELS_H
