//===- State.cpp - what is known already ----------------------------------===//

#include "State.h"

#include "FileLock.h"
#include "Main.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using namespace fovea::tune;
using nlohmann::json;

namespace {
struct Field {
  const char *name;
  bool (json::*isRight)() const noexcept;
};
} // namespace

/// What an answer may have (Bench.cpp).
static constexpr Field kFields[] = {
    {"seconds", &json::is_number},  {"tie_error", &json::is_number},
    {"refused", &json::is_string},  {"faults", &json::is_string},
    {"wrong", &json::is_string},    {"guess", &json::is_boolean},
    {"compiled", &json::is_boolean}};

/// Of an ensemble: pairs of a name and seconds.
static bool areMembers(const json &members) {
  return members.is_array() &&
         std::all_of(members.begin(), members.end(), [](const json &member) {
           return member.is_array() && member.size() == 2 &&
                  member[0].is_string() && member[1].is_number();
         });
}

/// A line is some hundred bytes, and each kernel and size has one.
static constexpr size_t kMostMiB = 1024;

static bool isAnswer(const json &answer) {
  return answer.is_object() &&
         (!answer.contains("members") || areMembers(answer["members"])) &&
         std::all_of(std::begin(kFields), std::end(kFields),
                     [&](const Field &field) {
                       const auto at = answer.find(field.name);
                       return at == answer.end() || ((*at).*field.isRight)();
                     });
}

State::~State() {
  if (file >= 0)
    (void)close(file);
}

/// Whether it is, as far as it goes, a line that a run was killed in.
static bool isCutOff(std::string_view end) {
  for (std::string_view begin : {"{\"answer\"", "{\"question\""})
    if (end.substr(0, begin.size()) == begin.substr(0, end.size()))
      return true;
  return false;
}

/// The whole lines of the file are taken, and the file is cut behind them.
bool State::read(std::string &error) {
  const FileLock lock(file); // half of another's line is no cut-off one
  std::string text;
  if (!tool::readFile(path, text, error, kMostMiB))
    return false;
  size_t begin = 0;
  for (size_t number = 1;; ++number) {
    const size_t end = text.find('\n', begin);
    const bool isWhole = end != std::string::npos;
    if (!isWhole && isCutOff(std::string_view(text).substr(begin)))
      break;
    const json line =
        isWhole ? json::parse(text.begin() + ptrdiff_t(begin),
                              text.begin() + ptrdiff_t(end),
                              /*callback=*/nullptr, /*allow_exceptions=*/false)
                : json();
    if (!line.is_object() || !line.contains("question") ||
        !line.contains("answer") || !isAnswer(line["answer"])) {
      error = path + ":" + std::to_string(number) +
              ": is no line of aot-tune's; name another file with --state, or "
              "take the line out";
      return false;
    }
    answers[line["question"].dump()] = line["answer"];
    begin = end + 1;
  }
  if (begin != text.size() && ftruncate(file, off_t(begin)) != 0) {
    error = "cannot write '" + path + "': " + std::strerror(errno);
    return false;
  }
  return true;
}

/// The place behind the last whole line of a file of so many bytes.
static off_t endOfLines(int file, off_t size) {
  for (char last = 0; size > 0; --size)
    if (pread(file, &last, 1, size - 1) != 1 || last == '\n')
      break;
  return size;
}

/// False with errno set; the file then is as it was.
bool State::append(const std::string &line) {
  const FileLock lock(file);
  struct stat status;
  if (fstat(file, &status) != 0)
    return false;
  // A run that was killed in the middle of its line has left half of it.
  const off_t end = endOfLines(file, status.st_size);
  if (end != status.st_size && ftruncate(file, end) != 0)
    return false;
  const ssize_t wrote = write(file, line.data(), line.size());
  if (wrote == ssize_t(line.size()) && fdatasync(file) == 0)
    return true;
  const int reason =
      wrote >= 0 && wrote < ssize_t(line.size()) ? ENOSPC : errno;
  (void)ftruncate(file, end);
  errno = reason;
  return false;
}

bool State::open(const std::string &name, std::string &error) {
  path = name;
  file = ::open(name.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) {
    error = "cannot write '" + name + "': " + std::strerror(errno);
    return false;
  }
  struct stat status;
  if (fstat(file, &status) == 0 && !S_ISREG(status.st_mode)) {
    error = "'" + name + "' is no file that answers can be kept in";
    return false;
  }
  return read(error);
}

const json *State::find(const json &question) const {
  const auto at = answers.find(question.dump());
  return at == answers.end() ? nullptr : &at->second;
}

bool State::add(const json &question, const json &answer, std::string &error) {
  answers[question.dump()] = answer;
  if (file < 0)
    return true;
  const std::string line =
      json{{"question", question}, {"answer", answer}}.dump() + "\n";
  if (append(line))
    return true;
  error = "cannot write '" + path +
          "': " + (errno == ENOSPC ? "the disk is full" : std::strerror(errno));
  return false;
}
