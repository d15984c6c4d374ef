//===- State.h - what is known already --------------------------*- C++ -*-===//
//
// A file of JSON lines that is only added to. A line says what one question was
// answered with; the question has everything that decides the answer, so that a
// line of another compiler, model or device is never taken for one of this.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_STATE_H
#define FOVEA_TOOLS_AOTTUNE_STATE_H

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace fovea::tune {

class State {
public:
  State() = default; ///< kept in memory alone
  ~State();
  State(const State &) = delete;
  State &operator=(const State &) = delete;

  /// Reads the file, or makes it. A line that was cut off, as a killed run
  /// leaves it, is dropped. False with `error` set: the file can't be read or
  /// written, or it is not one of these.
  bool open(const std::string &path, std::string &error);

  /// The answer to a question; null if there is none.
  const nlohmann::json *find(const nlohmann::json &question) const;
  /// Adds a line, which is on the disk when this returns; other runs may add to
  /// the file, too. False with `error` set when it can't be written; the answer
  /// is known all the same.
  bool add(const nlohmann::json &question, const nlohmann::json &answer,
           std::string &error);

  size_t size() const { return answers.size(); }

private:
  bool read(std::string &error);
  bool append(const std::string &line);

  int file = -1;
  std::string path;
  std::map<std::string, nlohmann::json> answers; ///< by the question's text
};

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_STATE_H
