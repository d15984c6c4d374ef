//===- TuningFile.cpp - tuning rows that a spec takes along ---------------===//

#include "TuningFile.h"
#include "JsonLines.h"
#include "fovea/Package/ReadFile.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <map>
#include <set>

using namespace fovea;
using namespace fovea::tools;
namespace json = llvm::json;

static constexpr unsigned kMaxTableDepth = 8; // a file of rows needs 3

namespace {
struct FileRow {
  TuningRow row;
  ScheduleOverrides parameters;
  std::string where; ///< "tuning/gfx942.json:12: [3]"
};

struct LimitKey {
  llvm::StringLiteral key;
  int64_t TuningRow::*member;
};
} // namespace

static constexpr LimitKey kLimits[] = {
    {"max_seqlen_q", &TuningRow::maxSeqlenQ},
    {"max_seqlen_k", &TuningRow::maxSeqlenK},
    {"max_batch_heads", &TuningRow::maxBatchHeads}};

/// What else a row has; the last two are for people.
static constexpr llvm::StringLiteral kOtherKeys[] = {
    "problem", "schedule", "parameters", "gain", "by"};

/// Empty, or what is wrong with a row.
static std::string readRow(const json::Object &object, FileRow &row) {
  for (const auto &member : object) {
    const llvm::StringRef key = member.first;
    if (!llvm::is_contained(kOtherKeys, key) &&
        llvm::none_of(kLimits,
                      [&](const LimitKey &limit) { return limit.key == key; }))
      return "has the unknown key '" + key.str() +
             "'; known: problem, schedule, max_seqlen_q, max_seqlen_k, "
             "max_batch_heads, parameters, gain, by";
  }
  for (const LimitKey &limit : kLimits) {
    const json::Value *value = object.get(limit.key);
    if (!value || value->getAsNull())
      continue;
    std::optional<int64_t> number = value->getAsInteger();
    if (!number || *number < 0)
      return (limit.key + " must be a whole number from 0 on, or null").str();
    row.row.*limit.member = *number;
  }
  std::optional<llvm::StringRef> problem = object.getString("problem"),
                                 schedule = object.getString("schedule");
  const json::Object *parameters = object.getObject("parameters");
  if (!problem || !schedule || !parameters)
    return "must have a problem, a schedule and parameters; aot-tune writes "
           "such rows";
  fovea::Expected<ProblemKey> key = ProblemKey::parse(problem->str());
  if (!key)
    return "problem: " + key.status().message();
  row.row.problem = *key;
  row.row.schedule = schedule->str();
  for (const auto &[name, value] : *parameters)
    if (std::string wrong =
            setParameter(row.parameters, name.str(), value.getAsInteger(),
                         value.getAsString());
        !wrong.empty())
      return "parameters." + name.str() + ": " + wrong;
  return "";
}

/// The rows of a file that a spec asks for at `where`; none if it is not there.
static std::vector<FileRow> readRows(const std::string &path,
                                     const std::string &where,
                                     Complaints &complaints) {
  std::vector<FileRow> rows;
  fovea::Expected<std::string> read = readWhole(path);
  if (!read) {
    if (read.status().code() != StatusCode::NotFound)
      complaints.add(where, "tuning: " + read.status().message());
    return rows;
  }
  llvm::StringRef text = *read;
  if (unsigned line = lineTooDeep(text, kMaxTableDepth)) {
    complaints.add(path + ":" + std::to_string(line),
                   "brackets are nested more than " +
                       llvm::Twine(kMaxTableDepth) +
                       " deep; a file of tuning rows needs 3");
    return rows;
  }
  llvm::Expected<json::Value> root = json::parse(text);
  const json::Array *array = root ? root->getAsArray() : nullptr;
  if (!array) {
    complaints.add(path, root
                             ? std::string("must be a list of tuning rows")
                             : "not JSON: " + llvm::toString(root.takeError()));
    return rows;
  }
  JsonLines lines(text);
  for (auto [index, value] : llvm::enumerate(*array)) {
    const std::string place = "[" + std::to_string(index) + "]";
    FileRow row;
    row.where = path + ":" + std::to_string(lines.lineOf(place)) + ": " + place;
    const json::Object *object = value.getAsObject();
    std::string wrong = object ? readRow(*object, row) : "must be an object";
    if (wrong.empty())
      rows.push_back(std::move(row));
    else
      complaints.add(row.where, wrong);
  }
  return rows;
}

static std::string fileOf(llvm::StringRef folder, llvm::StringRef chip) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, chip + ".json");
  return std::string(path);
}

/// Name of a job's kernel on its chip with other parameters.
static std::string keyOf(const Job &job, const ScheduleOverrides &overrides) {
  return kernelSymbol(job.problem, overrides, job.score.name);
}

bool fovea::tools::sumsNarrowly(OpKind op, const ScheduleOverrides &overrides) {
  return spec::specOf(op).sumsNarrowly(overrides.algorithm);
}

ProblemKey fovea::tools::withoutGroups(ProblemKey key) {
  const int32_t window = key.groups[kWindowGroup];
  key.groups = {};
  key.groups[kWindowGroup] = window;
  return key;
}

void fovea::tools::addTuningRows(std::vector<Job> &jobs,
                                 Complaints &complaints) {
  // The jobs of a chip, by its own file.
  llvm::MapVector<std::string, std::vector<size_t>, llvm::StringMap<unsigned>>
      chips;
  llvm::StringMap<char> folders; // that were looked for
  for (auto [index, job] : llvm::enumerate(jobs)) {
    if (job.tuning.empty())
      continue;
    if (folders.try_emplace(job.tuning).second &&
        !llvm::sys::fs::is_directory(job.tuning))
      complaints.add(job.where,
                     "tuning: there is no folder '" + job.tuning + "'");
    chips[fileOf(job.tuning, job.target->name)].push_back(index);
  }
  llvm::StringMap<std::vector<FileRow>> files; // that were read, by name
  for (const auto &[ownFile, indices] : chips) {
    const Job &any = jobs[indices.front()];
    const std::string path =
        any.target->tunedAs.empty() || llvm::sys::fs::exists(ownFile)
            ? ownFile
            : fileOf(any.tuning, any.target->tunedAs);
    auto [file, isUnread] = files.try_emplace(path);
    if (isUnread)
      file->second = readRows(path, any.where, complaints);
    const std::vector<FileRow> &rows = file->second;
    using Subject = std::pair<std::string, bool>; // problem, narrow sums
    auto subjectOf = [](const ProblemKey &problem,
                        const ScheduleOverrides &overrides) {
      return Subject(problem.str(), sumsNarrowly(problem.op, overrides));
    };
    std::set<Subject> tuned; // have rows of their own
    for (const FileRow &row : rows)
      tuned.insert(subjectOf(row.row.problem, row.parameters));
    llvm::StringMap<size_t> bySymbol;
    // The first job of each subject, by the one whose rows it takes.
    std::map<Subject,
             llvm::MapVector<Subject, size_t, std::map<Subject, unsigned>>>
        bySubject;
    for (size_t index : indices) {
      const auto &[problem, overrides] =
          std::tie(jobs[index].problem, jobs[index].overrides);
      bySymbol.try_emplace(keyOf(jobs[index], overrides), index);
      const Subject own = subjectOf(problem, overrides);
      bySubject[tuned.count(own) ? own
                                 : subjectOf(withoutGroups(problem), overrides)]
          .try_emplace(own, index);
    }
    for (const FileRow &row : rows)
      for (const auto &[subject, index] :
           bySubject[subjectOf(row.row.problem, row.parameters)]) {
        const Job &like = jobs[index];
        const bool isBorrowed = !(row.row.problem == like.problem);
        TuningRow own = row.row;
        own.problem = like.problem;
        auto [at, isNew] =
            bySymbol.try_emplace(keyOf(like, row.parameters), jobs.size());
        if (isNew) {
          Job job = like;
          job.rows.clear();
          job.overrides = row.parameters;
          job.symbol = at->first().str();
          job.where = row.where;
          job.isForRows = true;
          jobs.push_back(std::move(job));
        }
        jobs[at->second].rows.push_back(std::move(own));
        jobs[at->second].borrowsRows = isBorrowed;
      }
  }
}
