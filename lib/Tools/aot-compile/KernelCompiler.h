//===- KernelCompiler.h - compiles one kernel -------------------*- C++ -*-===//
//
// From a job to its artifact and figures. Every job has an MLIRContext and an
// LLVMContext of its own, so that jobs run in parallel and leave nothing
// behind.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_KERNELCOMPILER_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_KERNELCOMPILER_H

#include "Request.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "llvm/Support/Error.h"

namespace fovea::tools {

/// What a kernel takes of the chip.
struct KernelFigures {
  hsaco::KernelResources resources;
  int occupancy = 0;       ///< waves a SIMD, by registers and LDS
  uint64_t imageBytes = 0; ///< size of the image that it is in
};

/// What compiling a job gave. Its figures are those of the kernel, or of
/// several what suits a row of a package: the largest of registers and sizes,
/// the smallest occupancy, sums of what is counted in the code.
struct CompiledKernel : KernelFigures {
  std::string
      artifact;      ///< the form that was asked for, if it is no code object
  std::string image; ///< code object; empty if the request ends before it
  std::vector<KernelFigures> launches; ///< of each; empty if not compiled now
  double cpuMs = 0;       ///< CPU time of this thread, milliseconds
  unsigned emissions = 0; ///< machine code was generated so often, all rows
  std::string messages; ///< remarks and warnings
};

/// Chooses the job's schedule and fills in what follows from it. Fails, with a
/// message that names value and limit, if the chip cannot run it; with the code
/// invalid_argument, if a parameter is not of the operation.
llvm::Error planJob(Job &job, const Request &request);

/// Compiles a planned job as far as the request needs. Where the schedule
/// leaves values without registers, so that a kernel uses scratch memory, it is
/// compiled with the next one of the table, and so on; the job is then planned
/// anew, with the schedule that was taken. Where none is without, that is what
/// uses least. Forms ahead of machine code don't know, and are those of the
/// job's schedule.
llvm::Expected<CompiledKernel> compileJob(Job &job, const Request &request);

/// Whether compileJob may have given the job this schedule; the job is then
/// planned with it. Else it is as it was.
bool planAs(Job &job, llvm::StringRef schedule, const Request &request);

/// What a package says of a compiled kernel, without the build.
KernelRecord recordOf(const Job &job, const CompiledKernel &kernel);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_KERNELCOMPILER_H
