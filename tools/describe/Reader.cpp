//===- Reader.cpp - JSON with a place for each complaint ------------------===//
//
// Variables and values.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include <algorithm>
#include <cmath>

using namespace fovea::describe;

bool Scope::find(const std::string &name, Number &value, std::string &error) {
  auto found = entries.find(name);
  if (found == entries.end()) {
    std::string known;
    for (const auto &[other, entry] : entries)
      known += (known.empty() ? "" : ", ") + other;
    error = "no variable '" + name + "'" +
            (known.empty() ? ", and there are none" : "; there are: " + known) +
            ";";
    return false;
  }
  Entry &entry = found->second;
  if (entry.state == Entry::Busy) {
    error = "variable '" + name + "' depends on itself";
    return false;
  }
  if (entry.state == Entry::New) {
    entry.state = Entry::Busy;
    if (!evaluate(entry.text, entry.value, error)) {
      entry.state = Entry::New;
      return false;
    }
    entry.state = Entry::Done;
  }
  value = entry.value;
  return true;
}

bool Scope::evaluate(const std::string &text, Number &value,
                     std::string &error) {
  return describe::evaluate(
      text,
      [this](const std::string &name, Number &number, std::string &why) {
        return find(name, number, why);
      },
      value, error);
}

bool Scope::all(std::map<std::string, Number> &values, std::string &culprit,
                std::string &error) {
  for (const auto &[name, entry] : entries)
    if (!find(name, values[name], error)) {
      culprit = name;
      return false;
    }
  return true;
}

void Node::expectFields(std::initializer_list<const char *> known) const {
  if (!value)
    return;
  if (!value->is_object())
    return fail(std::string("expected an object, found ") + value->type_name());
  for (const auto &item : value->items()) {
    const bool fits =
        std::any_of(known.begin(), known.end(),
                    [&](const char *name) { return item.key() == name; });
    if (fits || item.key() == "_comment")
      continue;
    std::string names;
    for (const char *name : known)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return fail("unknown field '" + item.key() + "'; known are: " + names);
  }
}

Node Node::field(const std::string &name) const {
  const nlohmann::json *found = nullptr;
  if (isObject()) {
    auto position = value->find(name);
    if (position != value->end())
      found = &*position;
  }
  return Node(found, where + "/" + name, *scope, *diagnostics);
}

Node Node::required(const std::string &name) const {
  Node found = field(name);
  if (!found)
    fail("field '" + name + "' is missing");
  return found;
}

std::vector<std::pair<std::string, Node>> Node::fields() const {
  std::vector<std::pair<std::string, Node>> result;
  if (!value)
    return result;
  if (!value->is_object()) {
    fail(std::string("expected an object, found ") + value->type_name());
    return result;
  }
  for (const auto &item : value->items())
    if (item.key() != "_comment")
      result.emplace_back(item.key(), field(item.key()));
  return result;
}

std::vector<Node> Node::items() const {
  std::vector<Node> result;
  if (!value)
    return result;
  if (!value->is_array()) {
    fail(std::string("expected a list, found ") + value->type_name());
    return result;
  }
  for (size_t i = 0; i < value->size(); ++i)
    result.emplace_back(&(*value)[i], where + "/" + std::to_string(i), *scope,
                        *diagnostics);
  return result;
}

std::string Node::text() const {
  if (!value)
    return {};
  if (value->is_string())
    return value->get<std::string>();
  fail(std::string("expected a text, found ") + value->type_name());
  return {};
}

std::string Node::expression() const {
  if (!value)
    return "0";
  if (value->is_string())
    return value->get<std::string>();
  if (value->is_boolean())
    return value->get<bool>() ? "1" : "0";
  if (value->is_number())
    return value->dump();
  fail(std::string("expected a number or an expression, found ") +
       value->type_name());
  return "0";
}

Number Node::number() const {
  Number result;
  std::string why;
  // "-1e300" and the like are numbers of JSON and expressions alike.
  if (!scope->evaluate(expression(), result, why))
    fail(why);
  return result;
}

int64_t Node::integer(int64_t least, int64_t most) const {
  const Number found = number();
  if (!value)
    return least > 0 ? least : 0;
  int64_t result = found.whole;
  if (!found.integer) {
    if (found.fraction != std::floor(found.fraction) ||
        std::fabs(found.fraction) >= 0x1p63) {
      fail("expected an integer, found " + std::to_string(found.fraction));
      return least > 0 ? least : 0;
    }
    result = int64_t(found.fraction);
  }
  if (result < least || result > most) {
    fail(std::to_string(result) + " is not within " + std::to_string(least) +
         " and " + std::to_string(most));
    return least > 0 ? least : 0;
  }
  return result;
}

std::vector<int64_t> Node::integers(int64_t least, int64_t most) const {
  std::vector<int64_t> result;
  for (const Node &item : items())
    result.push_back(item.integer(least, most));
  return result;
}
