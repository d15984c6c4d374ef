//===- FuzzSpec.cpp - any text as a library spec --------------------------===//
//
// Reading ends with kernels that can be asked for, or with complaints that name
// the file; never with neither, and at no depth of brackets with a full stack.
//
//===----------------------------------------------------------------------===//

#include "SpecFile.h"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  for (const std::vector<tools::Item> &targets :
       {std::vector<tools::Item>(),
        std::vector<tools::Item>{{"gfx1201", "--target"}}}) {
    tools::Complaints complaints;
    size_t repeated = 0;
    std::string notes;
    const std::vector<tools::Job> jobs = tools::parseSpec(
        "spec.json", text, targets, complaints, repeated, notes);
    if (complaints.any()) {
      if (!llvm::StringRef(complaints.str()).contains("spec.json"))
        __builtin_trap();
      continue;
    }
    if (jobs.empty())
      __builtin_trap();
    for (const tools::Job &job : jobs)
      if (!job.target || job.symbol.empty() || job.where.empty() ||
          job.problem.headDim < kMinHeadDim ||
          job.problem.headDim > kMaxHeadDim ||
          job.problem.headDim % kHeadDimStep != 0)
        __builtin_trap();
  }
  return 0;
}
