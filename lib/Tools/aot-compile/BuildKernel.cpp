//===- BuildKernel.cpp - single kernels, compiled in process --------------===//

#include "fovea/Tools/BuildKernel.h"
#include "KernelCompiler.h"
#include "Targets.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/StringExtras.h"

using namespace fovea;
using namespace fovea::tools;

static Status toStatus(StatusCode code, llvm::Error error) {
  return {code, llvm::toString(std::move(error))};
}

static Request requestOfOne() {
  Request request;
  request.emit = Emit::Package;
  request.takesFlags = false;
  return request;
}

static fovea::Expected<Job> jobOf(const KernelOrder &order) {
  Job job;
  job.target = target::lookupTarget(order.target);
  if (!job.target)
    return Status(StatusCode::InvalidArgument,
                  "unknown chip '" + order.target +
                      "'; known: " + target::targetNames());
  job.problem = order.problem;
  job.keepsFirstRow = true; // another is another order
  if (job.problem.score)
    return Status(StatusCode::InvalidArgument,
                  "'" + job.problem.str() +
                      "' names a score program by its digest, from which none "
                      "can be made; compile it with aot-compile --score");
  std::string wrong;
  auto set = [&](const std::string &key, std::optional<int64_t> number,
                 std::optional<llvm::StringRef> name) {
    std::string why = setParameter(job.overrides, key, number, name);
    if (wrong.empty() && !why.empty())
      wrong = key + ": " + why;
  };
  for (const auto &[key, value] : order.schedule.numbers)
    set(key, value, std::nullopt);
  for (const auto &[key, value] : order.schedule.names)
    set(key, std::nullopt, value);
  if (!wrong.empty())
    return Status(StatusCode::InvalidArgument, wrong);
  job.symbol = kernelSymbol(job.problem, job.overrides);
  if (llvm::Error error = planJob(job, requestOfOne()))
    return toStatus(StatusCode::Incompatible, std::move(error));
  return job;
}

fovea::Expected<KernelRecord>
fovea::tools::planKernel(const KernelOrder &order) {
  fovea::Expected<Job> job = jobOf(order);
  if (!job)
    return job.status();
  return job->record();
}

fovea::Expected<BuiltKernel>
fovea::tools::buildKernel(const KernelOrder &order) {
  fovea::Expected<Job> job = jobOf(order);
  if (!job)
    return job.status();
  llvm::Expected<CompiledKernel> kernel = compileJob(*job, requestOfOne());
  if (!kernel) {
    StatusCode code = StatusCode::Incompatible;
    llvm::Error error = llvm::handleErrors(
        kernel.takeError(), [&](std::unique_ptr<llvm::ErrorInfoBase> info) {
          // What has a code is the system's: a full disk, for one.
          if (info->convertToErrorCode() != llvm::inconvertibleErrorCode())
            code = StatusCode::Io;
          return llvm::Error(std::move(info));
        });
    return toStatus(code, std::move(error));
  }
  BuiltKernel built{recordOf(*job, *kernel), std::move(kernel->image)};
  built.record.imageBytes = built.image.size();
  return built;
}

std::vector<std::string> fovea::tools::matrixInstrsOf(const std::string &chip,
                                                      DataType type) {
  std::vector<std::string> names;
  const target::TargetInfo *target = target::lookupTarget(chip);
  for (const target::MatrixInstr &row : target::allMatrixInstrs())
    if (target &&
        target::elementTypeInfo(row.type).name == dataTypeInfo(type).name &&
        target::lookupMatrixInstr(*target, row.name, row.type) == &row)
      names.push_back(row.name.str());
  return names;
}

fovea::Expected<std::vector<std::string>>
fovea::tools::targetsOf(const std::string &text) {
  Complaints complaints;
  std::vector<std::string> names;
  for (const Selected &selected :
       selectTargets({{text, "--target"}}, complaints))
    names.push_back(selected.target->name.str());
  if (complaints.any())
    return Status(StatusCode::InvalidArgument,
                  llvm::StringRef(complaints.str()).rtrim().str());
  return names;
}
