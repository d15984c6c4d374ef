//===- Catalog.cpp - the kernels of the open packages ---------------------===//

#include "Catalog.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <new>
#include <string_view>
#include <sys/stat.h>

namespace fovea::rt {

std::string Kernel::name() const {
  return "kernel " + std::to_string(id) + " '" + record->symbol + "' (" +
         record->schedule + ") of package '" + package->path() + "'";
}

/// What the schedule says, "combine_v2:block_m=1,block_n=64,...": its block_n;
/// and \p shares where it says nothing.
static int64_t combinedAtOnceOf(const std::string &schedule, int64_t shares) {
  const size_t launch = schedule.find(";combine");
  const std::string_view key = "block_n=";
  if (const size_t place = schedule.find(key, launch);
      launch != std::string::npos && place < schedule.find(';', launch + 1))
    std::from_chars(schedule.data() + place + key.size(),
                    schedule.data() + schedule.size(), shares);
  return std::max<int64_t>(shares, 1);
}

std::shared_ptr<const Catalog>
Catalog::with(std::vector<std::shared_ptr<const PackageReader>> more,
              const std::string &origin) const {
  auto next = std::make_shared<Catalog>(*this);
  // What was missing then may be there for others, too.
  if (!origin.empty()) {
    next->noCompiler = nullptr;
    next->notMade.erase(
        std::remove_if(next->notMade.begin(), next->notMade.end(),
                       [](const auto &each) { return each->passes; }),
        next->notMade.end());
  }
  for (std::shared_ptr<const PackageReader> &package : more) {
    for (const KernelRecord &record : package->kernels()) {
      auto kernel = std::make_shared<Kernel>();
      kernel->id = uint32_t(next->all.size() + 1);
      kernel->package = package;
      kernel->record = &record;
      kernel->problem = record.problem.str();
      kernel->target = package->target().str();
      // Those that combine blocks of rows cost about what their fit has for
      // runs of 64, whether they take one or two at once.
      if (record.launches.empty() || record.launches.back().blockRows == 1)
        kernel->combinedAtOnce =
            combinedAtOnceOf(record.schedule, kernel->combinedAtOnce);
      kernel->origin = origin;
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

std::shared_ptr<const Catalog>
Catalog::without(std::shared_ptr<const NotMade> kernel) const {
  auto next = std::make_shared<Catalog>(*this);
  auto &known = next->notMade;
  known.erase(std::remove_if(known.begin(), known.end(),
                             [&](const auto &each) {
                               return each->isOf(kernel->chip, kernel->problem,
                                                 kernel->split);
                             }),
              known.end());
  known.push_back(std::move(kernel));
  return next;
}

std::shared_ptr<const Catalog>
Catalog::withoutCompiler(const std::string &why) const {
  auto next = std::make_shared<Catalog>(*this);
  next->noCompiler = std::make_shared<const NotMade>(
      "", ProblemKey(), /*split=*/false, why, /*passes=*/false);
  return next;
}

const NotMade *Catalog::findNotMade(const std::string &chip,
                                    const ProblemKey &problem,
                                    bool split) const {
  for (const std::shared_ptr<const NotMade> &each : notMade)
    if (each->isOf(chip, problem, split))
      return each->passes && noCompiler ? noCompiler.get() : each.get();
  return noCompiler.get();
}

namespace {

/// The packages of a folder, in the order of their names. The C library's
/// functions, since those of C++ end the process where memory runs out.
Result listPackages(const std::string &folder,
                    std::vector<std::string> &files) {
  std::unique_ptr<DIR, int (*)(DIR *)> stream(::opendir(folder.c_str()),
                                              ::closedir);
  const std::string extension = kPackageExtension;
  while (stream) {
    errno = 0;
    const dirent *entry = ::readdir(stream.get());
    if (!entry)
      break;
    const std::string name = entry->d_name;
    if (name.size() > extension.size() &&
        name.compare(name.size() - extension.size(), extension.size(),
                     extension) == 0)
      files.push_back(folder + (folder.back() == '/' ? "" : "/") + name);
  }
  if (const int error = errno; !stream || error != 0) {
    if (error == ENOMEM)
      throw std::bad_alloc();
    return Result(FOVEA_STATUS_IO, "folder '" + folder + "' can't be read: " +
                                       std::strerror(error));
  }
  if (files.empty())
    return Result(FOVEA_STATUS_NOT_FOUND,
                  "folder '" + folder + "' holds no package (*" + extension +
                      "); build one with aot-compile, or name the file");
  std::sort(files.begin(), files.end());
  return Result();
}

} // namespace

Result openPackages(const std::string &path,
                    std::vector<std::shared_ptr<const PackageReader>> &opened) {
  std::vector<std::string> files;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    if (Result result = listPackages(path, files); !result.ok())
      return result;
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
