//===- Tuning.cpp - aot-package tune --------------------------------------===//

#include "Commands.h"
#include "Fields.h"
#include "fovea/Package/Counted.h"
#include "fovea/Package/PackageWriter.h"
#include "fovea/Package/ReadFile.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

using nlohmann::ordered_json;

namespace fovea::pkg {
namespace {

Status wrong(const std::string &where, const std::string &what) {
  return Status(StatusCode::InvalidArgument, where + ": " + what);
}

/// A limit; absent or null is none.
Status readLimit(const ordered_json &row, const char *name,
                 const std::string &where, int64_t &limit) {
  auto at = row.find(name);
  if (at == row.end() || at->is_null())
    return Status();
  if (!at->is_number_integer() || at->get<int64_t>() < 0)
    return wrong(where + "." + name, "is " + at->dump() +
                                         "; a whole number from 0 on, or null "
                                         "for no limit");
  limit = at->get<int64_t>();
  return Status();
}

/// What aot-tune says of a row beside what a package holds: for aot-compile,
/// and for readers.
struct Note {
  const char *key;
  bool (ordered_json::*isRight)() const noexcept;
  const char *what;
};
constexpr Note kNotes[] = {
    {"parameters", &ordered_json::is_object, "an object"},
    {"gain", &ordered_json::is_number, "a number"},
    {"by", &ordered_json::is_string, "a text"},
};

/// A row of the file, whose schedule the package must have.
Expected<TuningRow> readRow(const ordered_json &json, const std::string &where,
                            const PackageReader &package) {
  if (!json.is_object())
    return wrong(where, "is no object");
  TuningRow row;
  const std::pair<const char *, int64_t TuningRow::*> limits[] = {
      {"max_seqlen_q", &TuningRow::maxSeqlenQ},
      {"max_seqlen_k", &TuningRow::maxSeqlenK},
      {"max_batch_heads", &TuningRow::maxBatchHeads}};
  std::set<std::string> known = {"problem", "schedule"};
  for (const auto &[name, member] : limits) {
    known.insert(name);
    if (Status status = readLimit(json, name, where, row.*member); !status.ok())
      return status;
  }
  for (const Note &note : kNotes) {
    known.insert(note.key);
    if (json.contains(note.key) && !(json[note.key].*note.isRight)())
      return wrong(where + "." + note.key, std::string("must be ") + note.what);
  }
  for (const auto &[key, value] : json.items())
    if (!known.count(key))
      return wrong(where, "has the unknown key '" + key +
                              "'; known: problem, schedule, max_seqlen_q, "
                              "max_seqlen_k, max_batch_heads, parameters, "
                              "gain, by");
  for (const char *key : {"problem", "schedule"})
    if (!json.contains(key) || !json[key].is_string())
      return wrong(where, std::string("'") + key + "' is missing or no text");
  Expected<ProblemKey> problem =
      ProblemKey::parse(json["problem"].get<std::string>());
  if (!problem)
    return wrong(where + ".problem", problem.status().message());
  row.problem = *problem;
  row.schedule = json["schedule"].get<std::string>();
  const std::vector<const KernelRecord *> kernels =
      package.candidates(row.problem);
  if (std::none_of(kernels.begin(), kernels.end(),
                   [&](const KernelRecord *kernel) {
                     return kernel->schedule == row.schedule;
                   })) {
    std::string there;
    for (const KernelRecord *kernel : kernels)
      there += "\n  " + kernel->schedule;
    return wrong(where + ".schedule",
                 "the package has no kernel '" + row.schedule + "' of '" +
                     row.problem.str() + "'; it has" +
                     (there.empty() ? " none of that problem" : ":" + there));
  }
  return row;
}

Expected<std::vector<TuningRow>> readRows(const std::string &path,
                                          const PackageReader &package) {
  const Expected<std::string> text = readWhole(path);
  if (!text)
    return text.status();
  ordered_json json;
  try {
    json = ordered_json::parse(*text);
  } catch (const ordered_json::parse_error &error) {
    return wrong("'" + path + "'", error.what());
  }
  if (!json.is_array())
    return wrong("'" + path + "'", "is no list of rows");
  if (json.empty())
    return wrong("'" + path + "'",
                 "has no rows, so there is no problem whose rows it replaces");
  std::vector<TuningRow> rows;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, size_t> buckets;
  for (size_t i = 0; i != json.size(); ++i) {
    const std::string where = "'" + path + "': row " + std::to_string(i);
    Expected<TuningRow> row = readRow(json[i], where, package);
    if (!row)
      return row.status();
    auto [first, isNew] =
        buckets.try_emplace({row->problem.str(), row->maxSeqlenQ,
                             row->maxSeqlenK, row->maxBatchHeads},
                            i);
    if (!isNew)
      return wrong(where, "has the problem and the limits of row " +
                              std::to_string(first->second) +
                              "; the table holds one row of them");
    rows.push_back(std::move(*row));
  }
  return rows;
}

} // namespace

int tune(const std::string &path, const std::optional<std::string> &rows,
         Streams io) {
  Expected<PackageReader> package = PackageReader::open(path);
  if (!package)
    return complain(package.status(), io);
  if (!rows) {
    ordered_json json = ordered_json::array();
    for (const TuningRow &row : package->tuning())
      json.push_back(toJson(row));
    io.out << json.dump(2) << "\n";
    return kGood;
  }
  Expected<std::vector<TuningRow>> read = readRows(*rows, *package);
  if (!read)
    return complain(read.status(), io);
  Expected<PackageWriter> writer = PackageWriter::open(path, package->target());
  if (!writer)
    return complain(writer.status(), io);
  if (Status status = writer->replaceTuning(*read); !status.ok())
    return complain(status, io);
  std::set<std::string> problems;
  for (const TuningRow &row : *read)
    problems.insert(row.problem.str());
  io.out << path << ": " << counted(read->size(), "tuning row") << " of "
         << counted(problems.size(), "problem") << "\n";
  return kGood;
}

} // namespace fovea::pkg
