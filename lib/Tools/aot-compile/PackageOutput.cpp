//===- PackageOutput.cpp - kernels into packages --------------------------===//
//
// One package a chip. A kernel that a package already has from the same build
// of the compiler is left alone.
//
//===----------------------------------------------------------------------===//

#include "BuildId.h"
#include "Output.h"
#include "fovea/Package/Counted.h"
#include "fovea/Package/PackageReader.h"
#include "fovea/Package/PackageWriter.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::tools;

static llvm::Error toError(const Status &status) {
  std::error_code code = status.code() == StatusCode::Io
                             ? std::make_error_code(std::errc::io_error)
                             : llvm::inconvertibleErrorCode();
  return llvm::createStringError(code, status.message());
}

/// What a build of this compiler with this request's options is called.
static std::string fingerprintOf(const Request &request) {
  std::string text =
      compilerBuildId() + ", -O" + std::to_string(request.optLevel);
  if (!request.llvmFlags.empty())
    text += ", " + llvm::join(request.llvmFlags, " ");
  return text;
}

namespace {
class PackageOutput : public Output {
public:
  explicit PackageOutput(const Request &request)
      : request(request), fingerprint(fingerprintOf(request)) {}

  llvm::Error open();
  llvm::Expected<bool> isCurrent(Job &job, CompiledKernel &kernel) override;
  llvm::Error store(const Job &job, const CompiledKernel &kernel) override;
  llvm::Expected<std::string> finish(bool all) override;

private:
  struct Package {
    std::string path;
    std::optional<PackageWriter> writer; ///< not of a dry run
    /// As found at the start; none if a dry run finds no file.
    std::optional<PackageReader> before;
  };
  std::string pathOf(const target::TargetInfo &target) const;
  llvm::Error checkPart(const target::TargetInfo &target,
                        const PackageReader &package);
  llvm::Expected<std::string> sweep(const target::TargetInfo &target,
                                    Package &package);
  Status writeTuning(const target::TargetInfo &target, Package &package);

  const Request &request;
  std::string fingerprint;
  llvm::MapVector<const target::TargetInfo *, Package> packages;
};
} // namespace

std::string PackageOutput::pathOf(const target::TargetInfo &target) const {
  if (llvm::StringRef(request.output).ends_with(kPackageExtension))
    return request.output;
  llvm::SmallString<128> path(request.output);
  llvm::sys::path::append(path, target.name + kPackageExtension);
  return std::string(path);
}

llvm::Error PackageOutput::open() {
  for (const Job &job : request.jobs)
    packages[job.target].path = pathOf(*job.target);
  // A shard that has none of a chip's kernels says so, too.
  for (const auto &[target, plan] : request.plans)
    packages[target].path = pathOf(*target);
  const bool isFile =
      llvm::StringRef(request.output).ends_with(kPackageExtension);
  if (isFile && packages.size() > 1) {
    return llvm::createStringError(
        "-o '" + request.output +
        "' is one package, but a package holds one chip's kernels and " +
        llvm::Twine(packages.size()) + " chips are asked for; give a folder");
  }
  if (!request.dryRun)
    if (llvm::Error error =
            isFile ? checkWritable(request.output) : makeFolder(request.output))
      return error;
  for (auto &[target, package] : packages) {
    TargetId id;
    id.arch = target->name.str();
    if (request.dryRun) {
      // A build that is killed at once leaves an empty file, which the next one
      // fills.
      uint64_t bytes = 0;
      if (!llvm::sys::fs::exists(package.path) ||
          (!llvm::sys::fs::file_size(package.path, bytes) && bytes == 0))
        continue;
    } else {
      PackageWriter::Options options;
      options.creator = compilerName();
      if (request.shard)
        options.shard = ShardInfo{request.shard->index, request.shard->count,
                                  request.plans.lookup(target), fingerprint};
      Expected<PackageWriter> writer =
          PackageWriter::open(package.path, id, options);
      if (!writer)
        return toError(writer.status());
      package.writer.emplace(std::move(*writer));
    }
    Expected<PackageReader> reader = PackageReader::open(package.path, id.arch);
    if (!reader)
      return toError(reader.status());
    package.before.emplace(std::move(*reader));
    if (llvm::Error error = checkPart(*target, *package.before))
      return error;
  }
  return llvm::Error::success();
}

/// A package that is there already is the same part of the same whole, or, without
/// --shard, no part.
llvm::Error PackageOutput::checkPart(const target::TargetInfo &target,
                                     const PackageReader &package) {
  const std::optional<ShardInfo> &there = package.shard();
  const std::string name = "'" + package.path() + "' is there already and ";
  if (there && !request.shard)
    return llvm::createStringError(
        name + "is part " + there->str() +
        " of a library (--shard); give another -o, or go on with its own");
  if (!request.shard)
    return llvm::Error::success();
  const ShardInfo own{request.shard->index, request.shard->count,
                      request.plans.lookup(&target), fingerprint};
  if (!there)
    return package.kernels().empty() && request.dryRun
               ? llvm::Error::success()
               : llvm::createStringError(name + "is no part of a library; give "
                                                "each part a file of its own");
  if (there->str() != own.str())
    return llvm::createStringError(
        name + "is part " + there->str() + ", not " + own.str() +
        "; give each part a folder or a file of its own");
  if (there->plan != own.plan || there->build != own.build)
    return llvm::createStringError(
        name + "is part " + there->str() +
        (there->build != own.build ? " by another build of the compiler"
                                   : " of other kernels") +
        "; delete it, or give another -o");
  return llvm::Error::success();
}

llvm::Expected<bool> PackageOutput::isCurrent(Job &job,
                                              CompiledKernel &kernel) {
  Package &package = packages[job.target];
  if (!package.before)
    return false;
  for (const KernelRecord *found : package.before->candidates(job.problem)) {
    const KernelRecord &record = *found;
    // An input file may name its function anew.
    if (record.fingerprint != fingerprint || record.symbol != job.symbol ||
        record.score != job.score ||
        (request.reproducible && record.compileMs != 0) ||
        (record.schedule != job.schedule &&
         !planAs(job, record.schedule, request)))
      continue;
    // A damaged image is compiled again, one that cannot be read is not.
    if (Expected<std::vector<uint8_t>> image =
            package.before->loadImage(record);
        !image) {
      if (image.status().code() == StatusCode::Io ||
          image.status().code() == StatusCode::Busy)
        return toError(image.status());
      return false;
    }
    kernel.resources.name = record.symbol;
    kernel.resources.vgprs = record.resources.vgprs;
    kernel.resources.agprs = record.resources.agprs;
    kernel.resources.sgprs = record.resources.sgprs;
    kernel.resources.ldsBytes = record.resources.ldsBytes;
    kernel.resources.scratchBytes = record.resources.scratchBytes;
    kernel.resources.matrixInstructions = record.resources.matrixInstructions;
    kernel.resources.codeBytes = record.resources.codeBytes;
    kernel.resources.vgprSpills = record.resources.vgprSpills;
    kernel.resources.sgprSpills = record.resources.sgprSpills;
    kernel.occupancy = record.resources.occupancy;
    kernel.imageBytes = record.imageBytes;
    kernel.cpuMs = record.compileMs;
    return true;
  }
  return false;
}

llvm::Error PackageOutput::store(const Job &job, const CompiledKernel &kernel) {
  KernelRecord record = recordOf(job, kernel);
  record.fingerprint = fingerprint;
  if (request.reproducible)
    record.compileMs = 0;
  // find() and not []: several threads are here.
  Status status = packages.find(job.target)
                      ->second.writer->put(record, kernel.image.data(),
                                           kernel.image.size());
  return status.ok() ? llvm::Error::success() : toError(status);
}

/// Drops, or counts, the kernels that were there before and are from another
/// build or not asked for.
llvm::Expected<std::string>
PackageOutput::sweep(const target::TargetInfo &target, Package &package) {
  llvm::StringSet<> asked;
  for (const Job &job : request.jobs)
    if (job.target == &target)
      asked.insert(job.problem.str() + "\n" + job.schedule);
  int dropped = 0, kept = 0;
  for (const KernelRecord &record : package.before->kernels()) {
    if (asked.contains(record.problem.str() + "\n" + record.schedule))
      continue;
    if (!request.prune) {
      kept += record.fingerprint != fingerprint;
      continue;
    }
    Status status = package.writer->remove(record.problem, record.schedule);
    if (!status.ok() && status.code() != StatusCode::NotFound)
      return toError(status);
    ++dropped;
  }
  std::string text;
  if (dropped)
    text = package.path + ": dropped " + counted(uint64_t(dropped), "kernel") +
           " that nothing asked for\n";
  if (kept)
    text = package.path + ": keeps " + counted(uint64_t(kept), "kernel") +
           " of another compiler build that nothing asked for; --prune drops "
           "such\n";
  return text;
}

/// Puts the request's tuning rows in the place of those of their problems,
/// unless they are what is there.
Status PackageOutput::writeTuning(const target::TargetInfo &target,
                                  Package &package) {
  auto textOf = [](const TuningRow &row) {
    return row.problem.str() + "\n" + std::to_string(row.maxSeqlenQ) + " " +
           std::to_string(row.maxSeqlenK) + " " +
           std::to_string(row.maxBatchHeads) + " " + row.schedule;
  };
  // Kernels that were compiled with a later schedule are meant all the same.
  std::map<std::pair<std::string, std::string>, std::string> later;
  for (const Job &job : request.jobs)
    if (job.target == &target && job.schedule != job.firstSchedule)
      later[{job.problem.str(), job.firstSchedule}] = job.schedule;
  std::vector<TuningRow> rows;
  std::set<std::string> wanted, there, problems;
  for (auto [of, row] : request.tuningRows) {
    if (auto at = later.find({row.problem.str(), row.schedule});
        at != later.end())
      row.schedule = at->second;
    if (of != &target || !wanted.insert(textOf(row)).second)
      continue;
    rows.push_back(row);
    problems.insert(row.problem.str());
  }
  // A table that has no rows of a problem any more says so to --prune alone.
  std::set<std::string> tuned;
  for (const Job &job : request.jobs)
    if (job.target == &target && !job.tuning.empty())
      tuned.insert(job.problem.str());
  for (const TuningRow &row : package.before->tuning()) {
    if (problems.count(row.problem.str()))
      there.insert(textOf(row));
    else if (request.prune && tuned.count(row.problem.str()))
      if (Status status = package.writer->dropTuning(row.problem); !status.ok())
        return status;
  }
  return wanted == there ? Status() : package.writer->replaceTuning(rows);
}

llvm::Expected<std::string> PackageOutput::finish(bool all) {
  std::string text;
  for (auto &[target, package] : packages) {
    llvm::Expected<std::string> swept = sweep(*target, package);
    if (!swept)
      return swept.takeError();
    text += *swept;
    if (Status status = writeTuning(*target, package); !status.ok())
      return toError(status);
    if (request.shard && all)
      if (Status status = package.writer->finishShard(); !status.ok())
        return toError(status);
    if (Status status = package.writer->pack(); !status.ok())
      return toError(status);
    if (request.reproducible)
      if (Status status = package.writer->settle(); !status.ok())
        return toError(status);
  }
  return text;
}

llvm::Expected<std::unique_ptr<Output>>
fovea::tools::makePackageOutput(const Request &request) {
  if (request.output.empty() || request.output == "-")
    return llvm::createStringError(
        "--emit=package needs -o FOLDER, which gets one '.fovea' file a chip, "
        "or -o FILE.fovea");
  auto output = std::make_unique<PackageOutput>(request);
  if (llvm::Error error = output->open())
    return error;
  return output;
}
