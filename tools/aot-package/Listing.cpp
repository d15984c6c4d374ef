//===- Listing.cpp - aot-package list and show ----------------------------===//

#include "Commands.h"
#include "Fields.h"
#include "fovea/Package/Counted.h"

#include <filesystem>
#include <iomanip>
#include <map>
#include <ostream>
#include <set>

using nlohmann::ordered_json;

namespace fovea::pkg {

std::vector<const KernelRecord *>
Selection::of(const PackageReader &package) const {
  std::vector<const KernelRecord *> found;
  for (const KernelRecord &kernel : package.kernels()) {
    const std::string name =
        kernel.symbol + " " + kernel.problem.str() + " " + kernel.schedule;
    bool all = true;
    for (const std::string &text : texts)
      all = all && name.find(text) != std::string::npos;
    if (all)
      found.push_back(&kernel);
  }
  return found;
}

int complain(const Status &status, Streams io) {
  io.err << "aot-package: error: " << status.message() << "\n";
  return status.code() == StatusCode::Corrupt ? kFound : kUsage;
}

int complainOfNone(const std::string &path, Streams io) {
  io.err << "aot-package: no kernel of '" << path
         << "' has all of the texts in its symbol, problem or schedule; "
            "'aot-package list' shows what there is\n";
  return kFound;
}

namespace {

/// What a package is as a whole.
ordered_json describe(const PackageReader &package) {
  std::set<ImageHash> images;
  uint64_t imageBytes = 0;
  for (const KernelRecord &kernel : package.kernels())
    if (images.insert(kernel.imageHash).second)
      imageBytes += kernel.imageBytes;
  std::error_code ignored;
  const auto fileBytes = std::filesystem::file_size(package.path(), ignored);
  return {{"package", package.path()},
          {"target", package.target().str()},
          {"part", package.shard() ? package.shard()->str() : ""},
          {"creator", package.creator()},
          {"content", contentDigest(package)},
          {"kernels", package.kernels().size()},
          {"images", images.size()},
          {"image_bytes", imageBytes},
          {"file_bytes", ignored ? 0 : uint64_t(fileBytes)},
          {"tuning_rows", package.tuning().size()}};
}

void printSummary(const ordered_json &summary, std::ostream &out) {
  out << summary["package"].get<std::string>() << ": "
      << summary["target"].get<std::string>()
      << (summary["part"] == "" ? "" : ", part ")
      << summary["part"].get<std::string>()
      << (summary["part"] == "" ? "" : " of a library") << ", by "
      << summary["creator"].get<std::string>() << "; "
      << counted(summary["kernels"], "kernel") << ", "
      << counted(summary["images"], "code object") << " of "
      << summary["image_bytes"] << " bytes in a file of "
      << summary["file_bytes"] << "; "
      << counted(summary["tuning_rows"], "tuning row") << "; content "
      << summary["content"].get<std::string>() << "\n";
}

ordered_json toJson(const KernelRecord &kernel) {
  ordered_json json;
  for (const Field &field : kernelFields())
    if (field.isOf(kernel))
      json[field.name] = field.value(kernel);
  return json;
}

} // namespace

int list(const std::vector<std::string> &paths, const Selection &selection,
         bool json, Streams io) {
  ordered_json all = ordered_json::array();
  size_t found = 0;
  for (const std::string &path : paths) {
    Expected<PackageReader> package = PackageReader::open(path);
    if (!package)
      return complain(package.status(), io);
    const std::vector<const KernelRecord *> kernels = selection.of(*package);
    found += kernels.size();
    ordered_json summary = describe(*package);
    if (json) {
      summary["list"] = ordered_json::array();
      for (const KernelRecord *kernel : kernels)
        summary["list"].push_back(toJson(*kernel));
      all.push_back(std::move(summary));
      continue;
    }
    printSummary(summary, io.out);
    std::map<std::string, std::string> scores;
    for (const KernelRecord *kernel : kernels)
      if (kernel->problem.score)
        scores[scoreDigits(kernel->problem.score)] = kernel->score.name;
    for (const auto &[digest, name] : scores)
      io.out << "  score program " << digest << " " << name << "\n";
    size_t widest = 0;
    for (const KernelRecord *kernel : kernels)
      widest = std::max(widest, kernel->symbol.size());
    for (const KernelRecord *kernel : kernels)
      io.out << "  " << std::left << std::setw(int(widest)) << kernel->symbol
             << std::right << std::setw(5) << kernel->resources.vgprs
             << " vgprs" << std::setw(7) << kernel->resources.ldsBytes << " lds"
             << std::setw(3) << kernel->resources.occupancy << " waves"
             << std::setw(7) << kernel->imageBytes << " bytes  "
             << kernel->schedule << "\n";
  }
  if (json)
    io.out << all.dump(2) << "\n";
  if (found == 0 && !selection.texts.empty()) {
    io.err << "aot-package: no kernel has all of the texts in its symbol, "
              "problem or schedule\n";
    return kFound;
  }
  return kGood;
}

int show(const std::string &path, const Selection &selection, bool json,
         Streams io) {
  if (json)
    return list({path}, selection, true, io);
  Expected<PackageReader> package = PackageReader::open(path);
  if (!package)
    return complain(package.status(), io);
  printSummary(describe(*package), io.out);
  const std::vector<const KernelRecord *> kernels = selection.of(*package);
  for (const KernelRecord *kernel : kernels) {
    io.out << "\n" << kernel->symbol << "\n";
    for (const Field &field : kernelFields()) {
      if (!field.isOf(*kernel))
        continue;
      const ordered_json value = field.value(*kernel);
      std::string text = value.is_string() ? value.get<std::string>()
                         : value.is_null() ? "not known"
                                           : value.dump();
      // Further lines below the first.
      for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 23)
        text.insert(at + 1, 22, ' ');
      io.out << "  " << std::left << std::setw(20) << field.name << text
             << "\n";
    }
    for (const TuningRow &row : package->tuning())
      if (row.problem == kernel->problem && row.schedule == kernel->schedule)
        io.out << "  tuning              " << pkg::toJson(row).dump() << "\n";
  }
  return kernels.empty() ? complainOfNone(path, io) : kGood;
}

} // namespace fovea::pkg
