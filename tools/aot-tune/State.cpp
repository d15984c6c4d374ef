//===- State.cpp - what is known already ----------------------------------===//

#include "State.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace fovea::tune;
using nlohmann::json;

State::~State() {
  if (file >= 0)
    (void)close(file);
}

/// The whole lines of the file are taken, and the file is cut behind them.
bool State::read(const std::string &name, std::string &error) {
  std::ifstream stream(name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  size_t begin = 0;
  for (size_t number = 1;; ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos)
      break;
    const json line = json::parse(text.begin() + ptrdiff_t(begin),
                                  text.begin() + ptrdiff_t(end),
                                  /*callback=*/nullptr,
                                  /*allow_exceptions=*/false);
    if (!line.is_object() || !line.contains("question") ||
        !line.contains("answer")) {
      error = name + ":" + std::to_string(number) +
              ": is no line of aot-tune's; name another file with --state, or "
              "take the line out";
      return false;
    }
    answers[line["question"].dump()] = line["answer"];
    begin = end + 1;
  }
  if (begin != text.size() && ftruncate(file, off_t(begin)) != 0) {
    error = "cannot write '" + name + "': " + std::strerror(errno);
    return false;
  }
  return true;
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
  return read(name, error);
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
  // One write: several runs may share the file.
  const ssize_t wrote = write(file, line.data(), line.size());
  if (wrote == ssize_t(line.size()) && fdatasync(file) == 0)
    return true;
  error = "cannot write '" + path + "': " +
          (wrote >= 0 && wrote < ssize_t(line.size()) ? "the disk is full"
                                                      : std::strerror(errno));
  return false;
}
