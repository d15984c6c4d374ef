//===- DeviceView.cpp - the catalog as one device sees it -----------------===//

#include "DeviceView.h"

#include "Problem.h"

#include <map>

namespace fovea::rt {
namespace {

std::atomic<uint64_t> nextSerial{1};

/// Fills in what is known of a kernel's launches.
Refusal readLaunches(Candidate &candidate) {
  const Kernel &kernel = *candidate.kernel;
  for (size_t i = 0; i != kernel.launches.size(); ++i) {
    const spec::OperationSpec::Found kind =
        spec::specOf(kernel.record->problem.op)
            .findLaunch(kernel.launches[i].suffix);
    if (!kind.launch || i == spec::kMaxLaunches)
      return {Refusal::UnknownLaunch, uint8_t(i)};
    if (candidate.algorithm && kind.algorithm &&
        kind.algorithm != candidate.algorithm)
      return {Refusal::MixedAlgorithms, uint8_t(i)};
    candidate.kinds[i] = kind.launch;
    if (kind.algorithm)
      candidate.algorithm = kind.algorithm;
    candidate.writes |= kind.launch->writes;
  }
  if (!candidate.algorithm)
    return {Refusal::NoAlgorithm};
  auto captures = spec::capturesOfProgram(kernel.record->score.text);
  if (!captures)
    return {Refusal::UnknownCaptures};
  candidate.captures = std::move(*captures);
  const spec::Signature signature = spec::signatureOf(
      kernel.record->problem, candidate.algorithm, candidate.captures);
  candidate.argumentBytes = signature.bytes;
  for (const spec::Argument &argument : signature.arguments) {
    const bool ofTensor = spec::isOfTensor(argument.source);
    const size_t index =
        ofTensor ? spec::numberOf(kernel.record->problem.op,
                                  *signature.tensors[argument.index])
                 : argument.index;
    candidate.arguments.push_back({uint16_t(argument.offset), argument.source,
                                   uint8_t(spec::sizeOf(argument.kind)),
                                   uint8_t(index), argument.dim});
  }
  return {};
}

} // namespace

DeviceView::DeviceView(std::shared_ptr<const Catalog> catalog,
                       uint64_t generation, const DeviceTraits &device,
                       std::deque<FunctionSlot> &slots)
    : kernels(std::move(catalog)), number(generation),
      serialNumber(nextSerial.fetch_add(1, std::memory_order_relaxed)),
      traits(device) {
  struct Fit {
    bool runs;
    int fit;
  };
  std::map<const PackageReader *, Fit> fits;
  std::map<std::pair<const PackageReader *, std::string_view>,
           std::vector<const Candidate *>>
      bySchedule;
  candidates.resize(kernels->kernels().size()); // never moved from here on
  for (const std::shared_ptr<const Kernel> &kernel : kernels->kernels()) {
    Candidate &candidate = candidates[kernel->id - 1];
    const PackageReader *package = kernel->package.get();
    auto [fit, isNew] = fits.try_emplace(package);
    if (isNew)
      fit->second = {checkTargetRunsOn(package->target(), device.target).ok(),
                     targetFit(package->target(), device.target)};
    candidate.kernel = kernel.get();
    candidate.slot = &slots[kernel->id - 1];
    candidate.fit = fit->second.fit;
    const KernelRecord &record = *kernel->record;
    if (record.abiVersion != abiVersionOf(record.problem.op))
      candidate.refusal = {Refusal::AbiVersion};
    else if (!fit->second.runs)
      candidate.refusal = {Refusal::Target};
    else
      candidate.refusal = readLaunches(candidate);
    ProblemView &problem = problems[record.problem.base()];
    (candidate.refusal ? problem.refused : problem.usable)
        .push_back(&candidate);
    if (record.problem.score && !candidate.refusal) {
      programs[record.score.name].push_back(&candidate);
      programs[scoreDigits(record.problem.score)].push_back(&candidate);
    }
    bySchedule[{package, record.schedule}].push_back(&candidate);
    if (record.problem.cutsColumns() && !candidate.refusal)
      dims.push_back({record.problem.headDim, record.problem.dimOfV()});
  }
  auto columnsOf = [](const HeadDims &dims) {
    return std::pair(dims.first + dims.second, dims.first);
  };
  std::sort(dims.begin(), dims.end(),
            [&](const HeadDims &a, const HeadDims &b) {
              return columnsOf(a) < columnsOf(b);
            });
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  for (const std::shared_ptr<const PackageReader> &package :
       kernels->openPackages())
    for (const TuningRow &row : package->tuning()) {
      auto problem = problems.find(row.problem.base());
      if (problem == problems.end())
        continue; // a row for what no package has
      const Candidate *named = nullptr;
      if (auto found = bySchedule.find({package.get(), row.schedule});
          found != bySchedule.end())
        for (const Candidate *candidate : found->second)
          if (candidate->kernel->record->problem == row.problem)
            named = candidate;
      problem->second.tuning.push_back({package.get(), &row, named});
    }
}

} // namespace fovea::rt
