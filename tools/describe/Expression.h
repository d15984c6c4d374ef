//===- Expression.h - arithmetic on named numbers ---------------*- C++ -*-===//
//
// The expressions of kernel descriptions: C's operators on 64-bit integers and
// fp64 numbers, a few functions, and variables. docs/KernelDescription.md lists
// them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_EXPRESSION_H
#define FOVEA_TOOLS_DESCRIBE_EXPRESSION_H

#include <cstdint>
#include <functional>
#include <string>

namespace fovea::describe {

/// A 64-bit integer or an fp64 number.
struct Number {
  Number() = default;
  Number(int64_t value) : whole(value) {}
  Number(double value) : integer(false), fraction(value) {}

  bool integer = true;
  int64_t whole = 0;
  double fraction = 0;

  double real() const { return integer ? double(whole) : fraction; }
  bool truth() const { return integer ? whole != 0 : fraction != 0; }
};

/// Finds the value of a variable; false with `error` set when it has none.
using Variables = std::function<bool(const std::string &name, Number &value,
                                     std::string &error)>;

/// Value of `text`. False with `error` set: what is wrong and where, on
/// overflow of an integer operation, division by zero and malformed text among
/// others. Both sides of `&&`, `||` and `?:` are read, only the needed one
/// counts.
bool evaluate(const std::string &text, const Variables &variables,
              Number &value, std::string &error);

} // namespace fovea::describe

#endif // FOVEA_TOOLS_DESCRIBE_EXPRESSION_H
