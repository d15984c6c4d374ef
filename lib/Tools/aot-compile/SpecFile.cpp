//===- SpecFile.cpp - a list of kernels as a JSON file --------------------===//

#include "SpecFile.h"
#include "JsonLines.h"
#include "Scores.h"
#include "fovea/Package/ReadFile.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace fovea;
using namespace fovea::tools;
namespace json = llvm::json;

namespace {
class SpecReader {
public:
  SpecReader(llvm::StringRef name, llvm::StringRef text,
             const std::vector<Item> &targets, Complaints &complaints,
             std::string &notes)
      : name(name), lines(text), targets(targets), complaints(complaints),
        notes(notes) {}

  void readRoot(const json::Value &root, std::vector<Job> &jobs);

private:
  std::string where(const std::string &path) const {
    return (name + ":" + llvm::Twine(lines.lineOf(path)) +
            (path.empty() ? "" : ": " + path))
        .str();
  }
  /// A path of the spec, which starts at its folder.
  std::string besideSpec(llvm::StringRef path) const {
    llvm::SmallString<128> whole(llvm::sys::path::parent_path(name));
    if (llvm::sys::path::is_absolute(path))
      whole.clear();
    llvm::sys::path::append(whole, path);
    return std::string(whole);
  }
  void readSet(const json::Value &value, const std::string &path,
               std::vector<Job> &jobs);
  void readList(const json::Value &value, const std::string &path, bool numbers,
                std::vector<Item> &items);
  void readRange(const json::Object &range, const std::string &path,
                 std::vector<Item> &items);
  bool readScores(const json::Object &object, const std::string &prefix,
                  Axes &axes);
  void readSchedules(const json::Value &value, const std::string &path,
                     std::vector<ScheduleOverrides> &schedules);
  void readSchedule(const json::Value &value, const std::string &path,
                    ScheduleOverrides &schedule);

  llvm::StringRef name;
  JsonLines lines;
  const std::vector<Item> &targets; ///< of objects that name none
  bool tookTargets = false;
  Complaints &complaints;
  std::string &notes;
};

struct ListKey {
  llvm::StringLiteral key;
  std::vector<Item> Axes::*list;
  bool numbers;
  llvm::StringLiteral fallback; ///< empty: the key is required
};

/// A number of a range of head dimensions.
struct RangeKey {
  llvm::StringLiteral key;
  int64_t fallback; ///< 0: the key is required
};
} // namespace

static constexpr unsigned kMaxDepth = 16; // a spec needs 5

static constexpr RangeKey kRange[] = {
    {"from", 0}, {"to", 0}, {"step", kHeadDimStep}};

static constexpr ListKey kLists[] = {
    {"targets", &Axes::targets, false, ""},
    {"only_targets", &Axes::onlyTargets, false, ""},
    {"ops", &Axes::ops, false, "forward"},
    {"dtypes", &Axes::dtypes, false, ""},
    {"head_dims", &Axes::headDims, true, ""},
    {"head_dims_v", &Axes::headDimsV, true, ""},
    {"masks", &Axes::masks, false, kAnyMask},
    {"groups", &Axes::groups, false, kNoGroups},
};

static const char *kindName(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Null:
    return "null";
  case json::Value::Boolean:
    return "a boolean";
  case json::Value::Number:
    return "a number";
  case json::Value::String:
    return "a string";
  case json::Value::Array:
    return "an array";
  case json::Value::Object:
    return "an object";
  }
  llvm_unreachable("all kinds are listed");
}

void SpecReader::readList(const json::Value &value, const std::string &path,
                          bool numbers, std::vector<Item> &items) {
  const json::Array *array = value.getAsArray();
  if (!array || array->empty())
    return complaints.add(
        where(path), std::string("must be a list of ") +
                         (numbers ? "whole numbers and ranges" : "strings") +
                         " that is not empty, found " +
                         (array ? "an empty one" : kindName(value)));
  for (size_t i = 0; i < array->size(); ++i) {
    const json::Value &element = (*array)[i];
    std::string inner = path + "[" + std::to_string(i) + "]";
    if (auto text = element.getAsString(); text && !numbers)
      items.push_back({text->str(), where(inner)});
    else if (auto number = element.getAsInteger(); number && numbers)
      items.push_back({std::to_string(*number), where(inner)});
    else if (const json::Object *range = element.getAsObject();
             range && numbers)
      readRange(*range, inner, items);
    else
      complaints.add(where(inner),
                     std::string("must be a ") +
                         (numbers ? "whole number or a range" : "string") +
                         ", found " + kindName(element));
  }
}

/// {"from": 16, "to": 256, "step": 8}, both ends in it.
void SpecReader::readRange(const json::Object &range, const std::string &path,
                           std::vector<Item> &items) {
  int64_t numbers[std::size(kRange)];
  bool sound = true;
  auto wrong = [&](const std::string &place, const llvm::Twine &message) {
    complaints.add(where(place), message);
    sound = false;
  };
  for (auto [row, number] : llvm::zip_equal(kRange, numbers)) {
    number = row.fallback;
    const std::string inner = path + "." + row.key.str();
    if (const json::Value *given = range.get(row.key)) {
      // Beyond the head dimensions that there are a range need not go.
      auto value = given->getAsInteger();
      if (value && *value >= 1 && *value <= kMaxHeadDim)
        number = *value;
      else
        wrong(inner,
              "must be a whole number from 1 to " + llvm::Twine(kMaxHeadDim));
    } else if (number == 0) {
      wrong(path, "key \"" + row.key + "\" of the range is missing");
    }
  }
  for (const auto &[key, ignored] : range)
    if (llvm::none_of(kRange, [&, &key = key](const RangeKey &row) {
          return row.key == key.str();
        }))
      wrong(path + "." + key.str(), "unknown key; a range has from, to, step");
  if (!sound)
    return;
  const auto [from, to, step] = numbers;
  if (from > to || (to - from) % step != 0)
    return complaints.add(
        where(path), "steps of " + llvm::Twine(step) + " do not lead from " +
                         llvm::Twine(from) + " to " + llvm::Twine(to));
  for (int64_t value = from; value <= to; value += step)
    items.push_back({std::to_string(value), where(path)});
}

void SpecReader::readSchedule(const json::Value &value, const std::string &path,
                              ScheduleOverrides &schedule) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return complaints.add(where(path),
                          std::string("must be an object of "
                                      "schedule parameters, found ") +
                              kindName(value));
  for (const auto &[key, parameter] : *object) {
    const std::string inner = path + "." + key.str();
    const std::string wrong = setParameter(
        schedule, key.str(), parameter.getAsInteger(), parameter.getAsString());
    if (!wrong.empty())
      complaints.add(where(inner), wrong);
  }
}

void SpecReader::readSchedules(const json::Value &value,
                               const std::string &path,
                               std::vector<ScheduleOverrides> &schedules) {
  const json::Array *array = value.getAsArray();
  if (!array || array->empty())
    return complaints.add(where(path),
                          "must be a list of objects that is not empty");
  llvm::StringSet<> seen;
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string inner = path + "[" + std::to_string(i) + "]";
    const size_t said = complaints.str().size();
    readSchedule((*array)[i], inner, schedules.emplace_back());
    if (said == complaints.str().size() &&
        !seen.insert(schedules.back().suffix()).second)
      complaints.add(where(inner), "is in the list twice");
  }
}

/// "score", "score_file" and the gradients; false after complaints.
bool SpecReader::readScores(const json::Object &object,
                            const std::string &prefix, Axes &axes) {
  const json::Value *score = object.get("score");
  const json::Value *file = object.get("score_file");
  const json::Value *gradients = object.get("score_gradients");
  const json::Value *stored = object.get("stored_gradients");
  constexpr llvm::StringLiteral ofCaptures =
      "none, all, or names or numbers of what is captured, joined by commas";
  for (auto [key, given, wanted] :
       {std::tuple("score", score, "names of score programs, joined by commas"),
        {"score_file", file, "the name of an .mlir file"},
        {"score_gradients", gradients, ofCaptures.data()},
        {"stored_gradients", stored, ofCaptures.data()}})
    if (given && given->getAsString().value_or("").empty()) {
      complaints.add(
          where(prefix + key),
          std::string("must be ") + wanted + ", found " +
              (given->getAsString() ? "an empty one" : kindName(*given)));
      return false;
    }
  std::shared_ptr<InputFile> own;
  if (file) {
    own = std::make_shared<InputFile>();
    own->name = besideSpec(*file->getAsString());
    fovea::Expected<std::string> read = readWhole(own->name);
    if (!read) {
      complaints.add(where(prefix + "score_file"), read.status().message());
      return false;
    }
    own->text = std::move(*read);
  }
  if (score || file)
    axes.scores = chooseScores(score ? *score->getAsString() : "", own,
                               where(prefix + (score ? "score" : "score_file")),
                               complaints, notes);
  if (gradients && *gradients->getAsString() != "none")
    axes.scoreGradients = {gradients->getAsString()->str(),
                           where(prefix + "score_gradients")};
  if (stored && *stored->getAsString() != "none")
    axes.storedGradients = {stored->getAsString()->str(),
                            where(prefix + "stored_gradients")};
  return axes.scores || (!score && !file);
}

void SpecReader::readSet(const json::Value &value, const std::string &path,
                         std::vector<Job> &jobs) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return complaints.add(where(path),
                          std::string("must be an object with targets, dtypes "
                                      "and head_dims, found ") +
                              kindName(value));
  std::string prefix = path.empty() ? "" : path + ".";
  Axes axes;
  axes.where = where(path);
  std::string known = "comment, schedules, score, score_file, score_gradients, "
                      "stored_gradients, skip_unsupported, tuning";
  for (const ListKey &list : kLists) {
    known += ", " + list.key.str();
    if (const json::Value *given = object->get(list.key))
      readList(*given, prefix + list.key.str(), list.numbers, axes.*list.list);
    else if (!list.fallback.empty())
      (axes.*list.list).push_back({list.fallback.str(), where(path)});
    else if (list.list == &Axes::headDimsV ||
             list.list == &Axes::onlyTargets)
      continue;
    else if (list.list == &Axes::headDims)
      axes.noHeadDims = {("key \"" + list.key + "\" is missing").str(),
                         where(path)};
    else if (list.list != &Axes::targets)
      complaints.add(where(path), "key \"" + list.key + "\" is missing");
    else if (targets.empty())
      complaints.add(where(path), "key \"" + list.key +
                                      "\" is missing; name chips in it or with "
                                      "--target");
    else
      axes.targets = targets;
    tookTargets |= list.list == &Axes::targets && !object->get(list.key);
  }
  if (object->get("targets") && object->get("only_targets"))
    complaints.add(where(prefix + "only_targets"),
                   "is about the chips of --target, and the object names its "
                   "own; leave one of them out");
  for (const auto &[key, given] : *object) {
    const std::string inner = prefix + key.str();
    if (key.str() == "schedules") {
      readSchedules(given, inner, axes.schedules);
    } else if (key.str() == "skip_unsupported") {
      if (auto flag = given.getAsBoolean())
        axes.skipUnsupported = *flag;
      else
        complaints.add(where(inner), std::string("must be true or false, "
                                                 "found ") +
                                         kindName(given));
    } else if (key.str() == "tuning") {
      if (auto text = given.getAsString(); text && !text->empty())
        axes.tuning = besideSpec(*text);
      else
        complaints.add(where(inner),
                       std::string("must be the name of a folder "
                                   "with tuning rows, found ") +
                           (text ? "an empty one" : kindName(given)));
    } else if (key.str() == "score" || key.str() == "score_file" ||
               key.str() == "score_gradients" ||
               key.str() == "stored_gradients") {
      continue; // read together
    } else if (key.str() == "comment") {
      if (!given.getAsString())
        complaints.add(where(inner), std::string("must be a string, found ") +
                                         kindName(given));
    } else if (llvm::none_of(kLists, [&, &key = key](const ListKey &list) {
                 return list.key == key.str();
               })) {
      complaints.add(where(inner), "unknown key; known: " + known);
    }
  }
  if (readScores(*object, prefix, axes))
    addJobs(axes, jobs, complaints);
}

void SpecReader::readRoot(const json::Value &root, std::vector<Job> &jobs) {
  for (const JsonLines::Repeat &repeat : lines.getRepeats())
    complaints.add(
        (name + ":" + llvm::Twine(repeat.line) + ": " + repeat.path).str(),
        "the key is there already, in line " + llvm::Twine(repeat.firstLine));
  if (const json::Array *sets = root.getAsArray()) {
    if (sets->empty())
      complaints.add(where(""), "the list is empty: no kernels");
    for (size_t i = 0; i < sets->size(); ++i)
      readSet((*sets)[i], "[" + std::to_string(i) + "]", jobs);
  } else {
    readSet(root, "", jobs);
  }
  if (!targets.empty() && !tookTargets)
    complaints.add(targets.front().where,
                   "contradicts " + name +
                       ", whose objects all name their targets; leave one out");
}

std::vector<Job> fovea::tools::parseSpec(llvm::StringRef name,
                                         llvm::StringRef text,
                                         const std::vector<Item> &targets,
                                         Complaints &complaints,
                                         size_t &repeated, std::string &notes) {
  std::vector<Job> jobs;
  if (unsigned line = lineTooDeep(text, kMaxDepth)) {
    complaints.add((name + ":" + llvm::Twine(line)).str(),
                   "brackets are nested more than " + llvm::Twine(kMaxDepth) +
                       " deep; a spec needs 5");
    return jobs;
  }
  llvm::Expected<json::Value> root = json::parse(text);
  if (!root) {
    // "[line:column, byte=n]: what is wrong"
    llvm::StringRef said;
    std::string message = llvm::toString(root.takeError());
    auto [place, what] = llvm::StringRef(message).split(": ");
    std::string position = place.split(',').first.drop_front().str();
    said = what.empty() ? llvm::StringRef(message) : what;
    complaints.add(what.empty() ? name.str() : name.str() + ":" + position,
                   "not JSON: " + said);
    return jobs;
  }
  SpecReader(name, text, targets, complaints, notes).readRoot(*root, jobs);
  if (jobs.empty() && !complaints.any())
    complaints.add(name, "has no kernels for the chips of --target: all of "
                         "its objects are for those of only_targets; ask for "
                         "one of them, or take only_targets out");
  repeated = dropRepeats(jobs);
  return jobs;
}
