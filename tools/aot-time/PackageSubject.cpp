//===- PackageSubject.cpp - kernels of packages as subjects ---------------===//
//
// Kernels of a package become a description: the same path as everybody else's
// kernels, and the same variables.
//
//===----------------------------------------------------------------------===//

#include "Packages.h"
#include "TimeRun.h"

#include "fovea/Package/Description.h"
#include "fovea/Package/PackageReader.h"

#include <algorithm>
#include <set>

using namespace fovea;
using namespace fovea::timing;

namespace {

class Packed : public Subject {
public:
  Packed(std::shared_ptr<PackageReader> reader, const KernelRecord &record,
         const PackageQuery &query, std::string label)
      : reader(std::move(reader)), record(record), query(query),
        name(std::move(label)) {}
  std::string label() const override { return name; }
  std::string schedule() const override { return record.schedule; }

  bool problem(const describe::Overrides &overrides, describe::Problem &result,
               std::string &error) const override {
    DescriptionOptions options;
    options.layout = query.layout;
    options.window = parseWindow(query.mask).value_or(fovea::Window());
    const Expected<std::string> text =
        describeKernel(record, reader->target().str(),
                       reader->path() + ":" + record.schedule, options);
    if (!text) {
      error = reader->path() + ": " + text.status().message();
      return false;
    }
    if (!describe::parse(*text, reader->path(), "", overrides, result, error))
      return false;
    result.name = record.problem.str();
    return true;
  }

  std::string computed(const describe::Problem &) const override {
    return attentionText(query.op, query.dtype, query.headDim, query.headDimV,
                         query.mask) +
           (query.score.empty() ? "" : ", score " + query.score);
  }

  bool image(const std::string &, std::string &bytes,
             std::string &error) const override {
    Expected<std::vector<uint8_t>> image = reader->loadImage(record);
    if (!image) {
      error = image.status().message();
      return false;
    }
    bytes.assign(image->begin(), image->end());
    return true;
  }

private:
  std::shared_ptr<PackageReader> reader;
  const KernelRecord &record;
  PackageQuery query;
  std::string name;
};

} // namespace

bool timing::packageSubjects(const PackageQuery &query,
                             std::vector<std::unique_ptr<Subject>> &subjects,
                             std::string &error) {
  const std::optional<fovea::Window> window = parseWindow(query.mask);
  if (!window) {
    error = "'" + query.mask +
            "' is none of none, causal-top-left, causal-bottom-right, and no "
            "window LEFT:RIGHT";
    return false;
  }
  Expected<ProblemKey> key =
      ProblemKey::parse(query.op + ";dtype=" + query.dtype +
                        ";head_dim=" + std::to_string(query.headDim) +
                        (query.headDimV
                             ? ";head_dim_v=" + std::to_string(query.headDimV)
                             : ""));
  if (!key) {
    error = key.status().message();
    return false;
  }
  std::vector<std::string> files;
  if (!cli::packageFiles(query.package, files, error))
    return false;
  std::vector<std::string> schedules; // each once, in order
  std::set<std::string> targets;
  std::vector<std::pair<std::shared_ptr<PackageReader>, const KernelRecord *>>
      found;
  for (const std::string &file : files) {
    Expected<PackageReader> opened = PackageReader::open(file);
    if (!opened) {
      error = opened.status().message();
      return false;
    }
    auto reader = std::make_shared<PackageReader>(std::move(*opened));
    targets.insert(reader->target().arch);
    if (!query.target.empty() && reader->target().arch != query.target)
      continue;
    for (const KernelRecord &record : reader->kernels()) {
      const bool hasScore =
          query.score.empty()
              ? record.problem.score == 0
              : record.problem.score &&
                    (record.score.name == query.score ||
                     scoreDigits(record.problem.score) == query.score);
      if (!hasScore || record.problem.withoutScore() != *key ||
          (!record.problem.takesWindow() &&
           maskInfo(record.problem.mask).window != *window))
        continue;
      found.push_back({reader, &record});
      if (std::find(schedules.begin(), schedules.end(), record.schedule) ==
          schedules.end())
        schedules.push_back(record.schedule);
    }
  }
  auto shortName = [&](const std::string &schedule) {
    const auto at = std::find(schedules.begin(), schedules.end(), schedule);
    return "s" + std::to_string(at - schedules.begin() + 1);
  };
  const size_t before = subjects.size();
  for (const auto &[reader, record] : found) {
    const std::string name = shortName(record->schedule);
    if (!query.schedule.empty() && query.schedule != record->schedule &&
        query.schedule != name)
      continue;
    std::string label = "fovea";
    if (files.size() > 1 && query.target.empty())
      label += " " + reader->target().arch;
    if (schedules.size() > 1 && query.schedule.empty())
      label += " " + name;
    subjects.push_back(
        std::make_unique<Packed>(reader, *record, query, std::move(label)));
  }
  if (subjects.size() > before)
    return true;
  std::string known;
  for (const std::string &arch : targets)
    known += "\n  " + arch;
  if (!query.target.empty() && !targets.count(query.target))
    error = "'" + query.package + "' has no package of " + query.target +
            "; there are:" + known;
  else if (schedules.empty())
    error = "'" + query.package + "' has no kernel of '" + key->str() +
            "' for mask " + query.mask +
            (query.score.empty()
                 ? ""
                 : " with the score program '" + query.score + "'") +
            "; compile one with aot-compile, or see aot-run --list";
  else {
    known.clear();
    for (const std::string &schedule : schedules)
      known += "\n  " + shortName(schedule) + "  " + schedule;
    error = "no kernel of '" + key->str() + "' has the schedule '" +
            query.schedule + "'; there are:" + known;
  }
  return false;
}
