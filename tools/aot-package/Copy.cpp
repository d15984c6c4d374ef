//===- Copy.cpp - aot-package extract and merge ---------------------------===//

#include "Commands.h"
#include "Fields.h"
#include "fovea/Package/Counted.h"
#include "fovea/Package/PackageWriter.h"
#include "fovea/Package/WriteFile.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

namespace fovea::pkg {
namespace {

namespace fs = std::filesystem;

Status ioFailure(const std::string &what, const std::error_code &error) {
  return Status(StatusCode::Io, what + ": " + error.message() +
                                    "; check the path, its permissions and "
                                    "free space");
}

/// A file that is removed again unless it is given its name.
class Unfinished {
public:
  explicit Unfinished(const std::string &name)
      : name(name), path(temporaryBeside(name)) {
    std::error_code ignored;
    while (fs::exists(path, ignored)) // of a run that was killed
      path = temporaryBeside(name);
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!done)
      for (const char *ending : {"", "-journal"})
        fs::remove(path + ending, ignored);
  }
  Status finish() {
    // A hard link and not a rename: it fails where meanwhile somebody else made
    // a file of the name. Some file systems have none.
    std::error_code error;
    fs::create_hard_link(path, name, error);
    if (error == std::errc::operation_not_permitted ||
        error == std::errc::operation_not_supported ||
        error == std::errc::function_not_supported) {
      fs::rename(path, name, error);
      done = !error;
      return error ? ioFailure("'" + name + "' can't be created", error)
                   : Status();
    }
    if (error)
      return ioFailure("'" + name + "' can't be created", error);
    fs::remove(path, error);
    done = true;
    return Status();
  }
  const std::string name;
  std::string path;

private:
  bool done = false;
};

struct Merge {
  std::vector<PackageReader> packages;
  /// By problem and schedule, by bucket: the package that it is taken from.
  std::map<std::pair<std::string, std::string>,
           std::pair<size_t, const KernelRecord *>>
      kernels;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>,
           std::pair<size_t, const TuningRow *>>
      tuning;
  std::vector<std::string> conflicts;
};

/// Puts a row into a map, where there may be another with its key.
template <typename Map, typename Row>
void place(Map &rows, const typename Map::key_type &key, size_t package,
           const Row &row, bool same, Prefer prefer, bool &conflict) {
  auto [at, isNew] = rows.try_emplace(key, package, &row);
  conflict = !isNew && !same && prefer == Prefer::Neither;
  if (!isNew && !same && prefer == Prefer::Last)
    at->second = {package, &row};
}

bool isSame(const KernelRecord &a, const KernelRecord &b) {
  return std::all_of(
      kernelFields().begin(), kernelFields().end(), [&](const Field &field) {
        return !field.isPartOfDiff || field.value(a) == field.value(b);
      });
}

void collect(Merge &merge, Prefer prefer) {
  for (size_t i = 0; i != merge.packages.size(); ++i) {
    const PackageReader &package = merge.packages[i];
    auto clash = [&](const std::string &what, size_t other) {
      merge.conflicts.push_back(what + " differs between '" +
                                merge.packages[other].path() + "' and '" +
                                package.path() + "'");
    };
    for (const KernelRecord &kernel : package.kernels()) {
      const std::pair<std::string, std::string> key = {kernel.problem.str(),
                                                       kernel.schedule};
      auto there = merge.kernels.find(key);
      const bool same =
          there != merge.kernels.end() && isSame(*there->second.second, kernel);
      bool conflict = false;
      place(merge.kernels, key, i, kernel, same, prefer, conflict);
      if (conflict)
        clash("kernel '" + key.first + "' ('" + key.second + "')",
              there->second.first);
    }
    for (const TuningRow &row : package.tuning()) {
      const std::tuple<std::string, int64_t, int64_t, int64_t> key = {
          row.problem.str(), row.maxSeqlenQ, row.maxSeqlenK, row.maxBatchHeads};
      auto there = merge.tuning.find(key);
      const bool same = there != merge.tuning.end() &&
                        there->second.second->schedule == row.schedule;
      bool conflict = false;
      place(merge.tuning, key, i, row, same, prefer, conflict);
      if (conflict)
        clash("tuning row " + toJson(row).dump(), there->second.first);
    }
  }
}

/// "2, 5 and 7".
std::string listOf(const std::vector<uint32_t> &numbers) {
  std::string text;
  for (size_t i = 0; i != numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") +
            std::to_string(numbers[i]);
  return text;
}

/// What keeps parts of a library (aot-compile --shard) from being all parts of
/// one, or "" if nothing does.
std::string complaintOfParts(const std::vector<PackageReader> &packages) {
  const PackageReader *first = nullptr;
  for (const PackageReader &package : packages)
    if (package.shard() && !first)
      first = &package;
  if (!first)
    return "";
  const ShardInfo &whole = *first->shard();
  std::map<uint32_t, const PackageReader *> parts;
  for (const PackageReader &package : packages) {
    const std::string names =
        "'" + package.path() + "' and '" + first->path() + "' ";
    const std::optional<ShardInfo> &part = package.shard();
    if (!part)
      return "'" + package.path() + "' is no part of a library, and '" +
             first->path() + "' is part " + whole.str() +
             "; merge the parts alone first";
    if (part->build != whole.build)
      return names + "were built by different compilers or with different "
                     "options: " +
             part->build + "; " + whole.build +
             "; build all parts with one compiler";
    if (part->count != whole.count)
      return names + "are parts " + part->str() + " and " + whole.str() +
             ", which are not of one division; build all with one --shard=i/n";
    if (part->plan != whole.plan)
      return names + "are parts of different libraries: what aot-compile was "
                     "asked for differs, the spec, its tuning rows or the "
                     "options; build all parts of one";
    if (!part->finished)
      return "'" + package.path() + "' is part " + part->str() +
             ", of which kernels are missing: its build was interrupted or had "
             "failures; run its aot-compile again";
    auto [at, isNew] = parts.try_emplace(part->index, &package);
    if (!isNew)
      return "'" + package.path() + "' and '" + at->second->path() +
             "' are both part " + part->str() + "; name each part once";
  }
  std::vector<uint32_t> missing;
  for (uint32_t index = 1; index <= whole.count; ++index)
    if (!parts.count(index))
      missing.push_back(index);
  if (missing.empty())
    return "";
  return "of the " + std::to_string(whole.count) +
         " parts of the library there " +
         (missing.size() == 1 ? "is no part " : "are no parts ") +
         listOf(missing) + "; build " +
         (missing.size() == 1 ? "it" : "each") + " with aot-compile --shard=" +
         std::to_string(missing.front()) + "/" + std::to_string(whole.count) +
         (missing.size() == 1 ? "" : " and so on") + ", and name all of them";
}

Status write(const Merge &merge, const std::string &path) {
  PackageWriter::Options options;
  options.creator = merge.packages.front().creator();
  Expected<PackageWriter> writer =
      PackageWriter::open(path, merge.packages.front().target(), options);
  if (!writer)
    return writer.status();
  for (const auto &[key, from] : merge.kernels) {
    Expected<std::vector<uint8_t>> image =
        merge.packages[from.first].loadImage(*from.second);
    if (!image)
      return image.status();
    if (Status status = writer->put(*from.second, image->data(), image->size());
        !status.ok())
      return status;
  }
  for (const auto &[key, from] : merge.tuning)
    if (Status status = writer->putTuning(*from.second); !status.ok())
      return status;
  if (Status status = writer->pack(); !status.ok())
    return status;
  return writer->settle();
}

} // namespace

int extract(const std::string &path, const Selection &selection,
            const std::string &folder, Streams io) {
  Expected<PackageReader> package = PackageReader::open(path);
  if (!package)
    return complain(package.status(), io);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return complain(ioFailure("folder '" + folder + "' can't be made", error),
                    io);
  const std::vector<const KernelRecord *> kernels = selection.of(*package);
  std::multiset<std::string> symbols;
  for (const KernelRecord *kernel : kernels)
    symbols.insert(kernel->symbol);
  int result = kernels.empty() ? complainOfNone(path, io) : kGood;
  for (const KernelRecord *kernel : kernels) {
    Expected<std::vector<uint8_t>> image = package->loadImage(*kernel);
    if (!image) {
      complain(image.status(), io);
      result = kFound;
      continue;
    }
    // A symbol is a name in a code object and may hold anything.
    std::string name = kernel->symbol;
    for (char &c : name)
      if (c == '/' || c == '\0')
        c = '_';
    // Schedules of one problem may have one symbol.
    if (symbols.count(kernel->symbol) > 1)
      name += "." + toString(kernel->imageHash).substr(0, 8);
    const fs::path file =
        fs::path(folder) / (name + "." + package->target().str() + ".hsaco");
    if (const std::error_code code = writeWhole(
            file.string(),
            {reinterpret_cast<const char *>(image->data()), image->size()}))
      return complain(
          ioFailure("'" + file.string() + "' can't be written", code), io);
    io.out << file.string() << "\n";
  }
  return result;
}

int merge(const std::vector<std::string> &paths, const std::string &output,
          Prefer prefer, Streams io) {
  std::error_code error;
  const bool isThere = fs::exists(output, error);
  if (error)
    return complain(ioFailure("'" + output + "' can't be created", error), io);
  if (isThere)
    return complain(Status(StatusCode::InvalidArgument,
                           "'" + output +
                               "' is there already, and merge makes a new "
                               "package; give another name, or delete it"),
                    io);
  Merge merge;
  for (const std::string &path : paths) {
    Expected<PackageReader> package = PackageReader::open(path);
    if (!package)
      return complain(package.status(), io);
    merge.packages.push_back(std::move(*package));
    const PackageReader &first = merge.packages.front();
    if (merge.packages.back().target() != first.target())
      return complain(
          Status(StatusCode::Incompatible,
                 "'" + path + "' is for " +
                     merge.packages.back().target().str() + ", '" +
                     first.path() + "' for " + first.target().str() +
                     "; a package holds the kernels of one target: put them "
                     "into one folder, which opens as a whole"),
          io);
  }
  if (const std::string complaint = complaintOfParts(merge.packages);
      !complaint.empty()) {
    io.err << "aot-package: error: " << complaint << "\n";
    return kUsage;
  }
  collect(merge, prefer);
  if (!merge.conflicts.empty()) {
    for (const std::string &conflict : merge.conflicts)
      io.err << "aot-package: error: " << conflict << "\n";
    io.err
        << "aot-package: --prefer=first or --prefer=last takes one of each\n";
    return kFound;
  }
  Unfinished file(output);
  if (Status status = write(merge, file.path); !status.ok())
    return complain(status, io);
  if (Status status = file.finish(); !status.ok())
    return complain(status, io);
  io.out << output << ": " << counted(merge.kernels.size(), "kernel") << " and "
         << counted(merge.tuning.size(), "tuning row") << " of "
         << counted(paths.size(), "package") << "\n";
  return kGood;
}

} // namespace fovea::pkg
