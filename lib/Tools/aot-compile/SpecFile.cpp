//===- SpecFile.cpp - a list of kernels as a JSON file --------------------===//

#include "SpecFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

using namespace fovea;
using namespace fovea::tools;
namespace json = llvm::json;

namespace {
/// Lines of the values of a JSON text, by path: "dtypes[1]", "[0].masks[2]".
/// llvm::json keeps no positions and the last of two values of one key, so the
/// text, known to be sound, is walked once more.
class LineMap {
public:
  explicit LineMap(llvm::StringRef text) : text(text) { value(""); }
  unsigned lineOf(llvm::StringRef path) const { return lines.lookup(path); }

  /// A key that its object has already, and where.
  struct Repeat {
    std::string path;
    unsigned line, firstLine;
  };
  llvm::ArrayRef<Repeat> getRepeats() const { return repeats; }

private:
  char peek() {
    while (at < text.size() && llvm::isSpace(text[at]))
      line += text[at++] == '\n';
    return at < text.size() ? text[at] : '\0';
  }
  /// The string that starts here, its escapes resolved.
  std::string string() {
    size_t begin = at++;
    while (at < text.size() && text[at] != '"')
      at += text[at] == '\\' ? 2 : 1;
    llvm::Expected<json::Value> value = json::parse(text.slice(begin, ++at));
    return llvm::cantFail(std::move(value)).getAsString()->str();
  }
  void value(const std::string &path) {
    char first = peek();
    lines.try_emplace(path, line);
    if (first == '"') {
      string();
    } else if (first == '{' || first == '[') {
      ++at;
      llvm::StringMap<unsigned> keys; // and their lines
      for (unsigned i = 0; peek() != '}' && peek() != ']' && peek(); ++i) {
        if (peek() == ',') {
          ++at;
          peek();
        }
        std::string inner = path;
        if (first == '[') {
          inner += "[" + std::to_string(i) + "]";
        } else {
          const std::string key = string();
          inner += (path.empty() ? "" : ".") + key;
          if (auto [first, isNew] = keys.try_emplace(key, line); !isNew)
            repeats.push_back({inner, line, first->second});
          peek();
          ++at; // the colon
        }
        value(inner);
      }
      ++at;
    } else {
      while (at < text.size() && !llvm::isSpace(text[at]) &&
             !llvm::StringRef(",]}").contains(text[at]))
        ++at;
    }
  }

  llvm::StringRef text;
  size_t at = 0;
  unsigned line = 1;
  llvm::StringMap<unsigned> lines;
  std::vector<Repeat> repeats;
};

class SpecReader {
public:
  SpecReader(llvm::StringRef name, llvm::StringRef text, Complaints &complaints)
      : name(name), lines(text), complaints(complaints) {}

  void readRoot(const json::Value &root, std::vector<Job> &jobs);

private:
  std::string where(const std::string &path) const {
    return (name + ":" + llvm::Twine(lines.lineOf(path)) +
            (path.empty() ? "" : ": " + path))
        .str();
  }
  void readSet(const json::Value &value, const std::string &path,
               std::vector<Job> &jobs);
  void readList(const json::Value &value, const std::string &path, bool numbers,
                std::vector<Item> &items);
  void readSchedules(const json::Value &value, const std::string &path,
                     std::vector<ScheduleOverrides> &schedules);
  void readSchedule(const json::Value &value, const std::string &path,
                    ScheduleOverrides &schedule);

  llvm::StringRef name;
  LineMap lines;
  Complaints &complaints;
};

struct ListKey {
  llvm::StringLiteral key;
  std::vector<Item> Axes::*list;
  bool numbers;
  llvm::StringLiteral fallback; ///< empty: the key is required
};
} // namespace

static constexpr ListKey kLists[] = {
    {"targets", &Axes::targets, false, ""},
    {"ops", &Axes::ops, false, "forward"},
    {"dtypes", &Axes::dtypes, false, ""},
    {"head_dims", &Axes::headDims, true, ""},
    {"masks", &Axes::masks, false, "none"},
};

/// The option's name as a key: "block_m" of "block-m".
static std::string keyOf(const OverrideInfo &info) {
  std::string key = info.option.str();
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

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
    return complaints.add(where(path),
                          std::string("must be a list of ") +
                              (numbers ? "whole numbers" : "strings") +
                              " that is not empty, found " +
                              (array ? "an empty one" : kindName(value)));
  for (size_t i = 0; i < array->size(); ++i) {
    const json::Value &element = (*array)[i];
    std::string inner = path + "[" + std::to_string(i) + "]";
    if (auto text = element.getAsString(); text && !numbers)
      items.push_back({text->str(), where(inner)});
    else if (auto number = element.getAsInteger(); number && numbers)
      items.push_back({std::to_string(*number), where(inner)});
    else
      complaints.add(where(inner), std::string("must be a ") +
                                       (numbers ? "whole number" : "string") +
                                       ", found " + kindName(element));
  }
}

void SpecReader::readSchedule(const json::Value &value, const std::string &path,
                              ScheduleOverrides &schedule) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return complaints.add(where(path),
                          std::string("must be an object of "
                                      "schedule parameters, found ") +
                              kindName(value));
  std::string known = "algorithm, inst";
  for (const OverrideInfo &info : allOverrides())
    known += ", " + keyOf(info);
  for (const auto &[key, parameter] : *object) {
    std::string inner = path + "." + key.str();
    auto info = llvm::find_if(allOverrides(), [&, &key = key](auto &info) {
      return keyOf(info) == key.str();
    });
    if (key.str() == "inst") {
      if (auto text = parameter.getAsString(); text && !text->empty())
        schedule.inst = text->str();
      else
        complaints.add(where(inner),
                       "must be the name of a matrix instruction");
    } else if (key.str() == "algorithm") {
      if (auto text = parameter.getAsString(); text && isAlgorithm(*text))
        schedule.algorithm = text->str();
      else
        complaints.add(where(inner), "must be one of " + algorithmNames());
    } else if (info == allOverrides().end()) {
      complaints.add(where(inner), "unknown parameter; known: " + known);
    } else if (auto number = parameter.getAsInteger();
               number && *number >= info->smallest && *number <= 1 << 20) {
      schedule.*(info->member) = int32_t(*number);
    } else {
      complaints.add(where(inner), "must be a whole number from " +
                                       llvm::Twine(info->smallest) + " on");
    }
  }
}

void SpecReader::readSchedules(const json::Value &value,
                               const std::string &path,
                               std::vector<ScheduleOverrides> &schedules) {
  const json::Array *array = value.getAsArray();
  if (!array || array->empty())
    return complaints.add(where(path),
                          "must be a list of objects that is not empty");
  for (size_t i = 0; i < array->size(); ++i)
    readSchedule((*array)[i], path + "[" + std::to_string(i) + "]",
                 schedules.emplace_back());
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
  std::string known = "schedules";
  for (const ListKey &list : kLists) {
    known += ", " + list.key.str();
    if (const json::Value *given = object->get(list.key))
      readList(*given, prefix + list.key.str(), list.numbers, axes.*list.list);
    else if (!list.fallback.empty())
      (axes.*list.list).push_back({list.fallback.str(), where(path)});
    else
      complaints.add(where(path), "key \"" + list.key + "\" is missing");
  }
  for (const auto &[key, ignored] : *object) {
    if (key.str() == "schedules")
      readSchedules(ignored, prefix + "schedules", axes.schedules);
    else if (llvm::none_of(kLists, [&, &key = key](const ListKey &list) {
               return list.key == key.str();
             }))
      complaints.add(where(prefix + key.str()), "unknown key; known: " + known);
  }
  addJobs(axes, jobs, complaints);
}

void SpecReader::readRoot(const json::Value &root, std::vector<Job> &jobs) {
  for (const LineMap::Repeat &repeat : lines.getRepeats())
    complaints.add(
        (name + ":" + llvm::Twine(repeat.line) + ": " + repeat.path).str(),
        "the key is there already, in line " + llvm::Twine(repeat.firstLine));
  const json::Array *sets = root.getAsArray();
  if (!sets)
    return readSet(root, "", jobs);
  if (sets->empty())
    complaints.add(where(""), "the list is empty: no kernels");
  for (size_t i = 0; i < sets->size(); ++i)
    readSet((*sets)[i], "[" + std::to_string(i) + "]", jobs);
}

/// The line of the bracket that opens level kMaxDepth + 1, or 0. JSON's readers
/// recurse, here and in LLVM, so the text is measured before it is parsed.
static constexpr unsigned kMaxDepth = 16; // a spec needs 4
static unsigned lineTooDeep(llvm::StringRef text) {
  unsigned depth = 0, line = 1;
  bool inString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    line += c == '\n';
    if (inString && c == '\\')
      ++at; // whatever is escaped ends no string
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kMaxDepth)
      return line;
    else if (!inString && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return 0;
}

std::vector<Job> fovea::tools::parseSpec(llvm::StringRef name,
                                         llvm::StringRef text,
                                         Complaints &complaints) {
  std::vector<Job> jobs;
  if (unsigned line = lineTooDeep(text)) {
    complaints.add((name + ":" + llvm::Twine(line)).str(),
                   "brackets are nested more than " + llvm::Twine(kMaxDepth) +
                       " deep; a spec needs 4");
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
  SpecReader(name, text, complaints).readRoot(*root, jobs);
  dropRepeats(jobs, name, complaints);
  return jobs;
}
