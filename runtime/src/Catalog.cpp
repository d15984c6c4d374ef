//===- Catalog.cpp - the kernels of the open packages ---------------------===//

#include "Catalog.h"

#include <algorithm>
#include <filesystem>

namespace fovea::rt {

std::string Kernel::name() const {
  return "kernel " + std::to_string(id) + " '" + record->symbol + "' (" +
         record->schedule + ") of package '" + package->path() + "'";
}

std::shared_ptr<const Catalog>
Catalog::with(std::vector<std::shared_ptr<const PackageReader>> more) const {
  auto next = std::make_shared<Catalog>(*this);
  for (std::shared_ptr<const PackageReader> &package : more) {
    for (const KernelRecord &record : package->kernels()) {
      auto kernel = std::make_shared<Kernel>();
      kernel->id = uint32_t(next->all.size() + 1);
      kernel->package = package;
      kernel->record = &record;
      kernel->problem = record.problem.str();
      kernel->target = package->target().str();
      for (const LaunchRecord &launch : record.launches)
        kernel->launches.push_back({launch.suffix, record.symbolOf(launch),
                                    launch.blockRows, launch.threads});
      if (record.launches.empty())
        kernel->launches.push_back(
            {"", record.symbol, record.blockM, record.threads});
      next->all.push_back(std::move(kernel));
    }
    next->packages.push_back(std::move(package));
  }
  return next;
}

Result openPackages(const std::string &path,
                    std::vector<std::shared_ptr<const PackageReader>> &opened) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    fs::directory_iterator entry(path, error), end;
    for (; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == kPackageExtension)
        files.push_back(entry->path().string());
    if (error)
      return Result(FOVEA_STATUS_IO,
                    "folder '" + path + "' can't be read: " + error.message());
    if (files.empty())
      return Result(FOVEA_STATUS_NOT_FOUND,
                    "folder '" + path + "' holds no package (*" +
                        kPackageExtension +
                        "); build one with aot-compile, or name the file");
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  for (const std::string &file : files) {
    Expected<PackageReader> reader = PackageReader::open(file);
    if (!reader)
      return reader.status();
    opened.push_back(std::make_shared<PackageReader>(std::move(*reader)));
  }
  return Result();
}

} // namespace fovea::rt
