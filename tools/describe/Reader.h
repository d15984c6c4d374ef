//===- Reader.h - JSON with a place for each complaint ----------*- C++ -*-===//
//
// A JSON value that knows where it is, for parsers that report the first thing
// wrong and go on with harmless values until they look.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_READER_H
#define FOVEA_TOOLS_DESCRIBE_READER_H

#include "Description.h"

#include <initializer_list>
#include <nlohmann/json.hpp>

namespace fovea::describe {

/// Variables by name, evaluated when first asked for.
class Scope {
public:
  void define(const std::string &name, const std::string &expression) {
    entries[name] = {expression, Entry::New, {}};
  }
  bool has(const std::string &name) const { return entries.count(name) != 0; }
  bool find(const std::string &name, Number &value, std::string &error);
  bool evaluate(const std::string &text, Number &value, std::string &error);
  /// Values of all; false with `error` set, naming in `culprit` the first
  /// that has none.
  bool all(std::map<std::string, Number> &values, std::string &culprit,
           std::string &error);

private:
  struct Entry {
    std::string text;
    enum { New, Busy, Done } state = New;
    Number value;
  };
  std::map<std::string, Entry> entries;
};

/// The first error of a file.
struct Diagnostics {
  std::string file, error;
  void report(const std::string &place, const std::string &why) {
    if (error.empty())
      error = file + ": " + (place.empty() ? "/" : place) + ": " + why;
  }
};

/// A value of the file. All getters report what does not fit and return
/// something harmless then.
class Node {
public:
  Node(const nlohmann::json *value, std::string place, Scope &scope,
       Diagnostics &diagnostics)
      : value(value), where(std::move(place)), scope(&scope),
        diagnostics(&diagnostics) {}

  /// False: there is no such field.
  explicit operator bool() const { return value != nullptr; }
  const std::string &place() const { return where; }
  void fail(const std::string &why) const { diagnostics->report(where, why); }

  bool isObject() const { return value && value->is_object(); }
  bool isString() const { return value && value->is_string(); }
  /// Reports fields of this object that are none of `known`, or that it is
  /// none.
  void expectFields(std::initializer_list<const char *> known) const;
  /// A field, which may be missing.
  Node field(const std::string &name) const;
  /// A field that must be there.
  Node required(const std::string &name) const;
  /// Fields of an object, in order of name.
  std::vector<std::pair<std::string, Node>> fields() const;
  std::vector<Node> items() const;

  std::string text() const;
  /// Number or expression.
  Number number() const;
  /// The same, which must be whole and within the bounds.
  int64_t integer(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  double real() const { return number().real(); }
  /// As number(), but unevaluated: the text that Scope::define() takes.
  std::string expression() const;
  std::vector<int64_t> integers(int64_t least, int64_t most) const;

private:
  const nlohmann::json *value;
  std::string where;
  Scope *scope;
  Diagnostics *diagnostics;
};

} // namespace fovea::describe

#endif // FOVEA_TOOLS_DESCRIBE_READER_H
