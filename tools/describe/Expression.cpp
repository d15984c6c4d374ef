//===- Expression.cpp - arithmetic on named numbers -----------------------===//
//
// A parser by operator precedence that computes as it reads. A subexpression
// whose value does not count (the other arm of ?:) is read with errors of
// arithmetic ignored.
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace fovea::describe;

namespace {

/// Deeper nesting than anybody writes; keeps the recursion off the stack's end.
constexpr int kMaxDepth = 1000;
/// Of the expressions that are being read: a variable's is read within that
/// which names it.
thread_local int depth = 0;

enum class Op {
  Or,
  And,
  BitOr,
  BitXor,
  BitAnd,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  ShiftLeft,
  ShiftRight,
  Add,
  Subtract,
  Multiply,
  Divide,
  Modulo
};

struct OpRow {
  const char *text;
  Op op;
  int precedence; // larger binds tighter, as in C
  bool integersOnly;
};

// A text comes before those that it begins with.
constexpr OpRow kOps[] = {
    {"||", Op::Or, 1, false},           {"&&", Op::And, 2, false},
    {"|", Op::BitOr, 3, true},          {"^", Op::BitXor, 4, true},
    {"&", Op::BitAnd, 5, true},         {"==", Op::Equal, 6, false},
    {"!=", Op::NotEqual, 6, false},     {"<<", Op::ShiftLeft, 8, true},
    {">>", Op::ShiftRight, 8, true},    {"<=", Op::LessEqual, 7, false},
    {">=", Op::GreaterEqual, 7, false}, {"<", Op::Less, 7, false},
    {">", Op::Greater, 7, false},       {"+", Op::Add, 9, false},
    {"-", Op::Subtract, 9, false},      {"*", Op::Multiply, 10, false},
    {"/", Op::Divide, 10, false},       {"%", Op::Modulo, 10, true},
};

constexpr const char *kTooDeep =
    "more than 1000 levels of nesting, of one variable in another among them,";

/// Rounds towards minus infinity where `up` is false, else plus infinity.
bool divideRounded(int64_t a, int64_t b, bool up, int64_t &result) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  result = a / b;
  if (a % b != 0 && ((a < 0) != (b < 0)) != up)
    result += up ? 1 : -1;
  return true;
}

class Parser {
public:
  Parser(const std::string &text, const Variables &variables)
      : text(text), at(text.c_str()), variables(variables) {}

  bool run(Number &value, std::string &message) {
    const int before = depth;
    value = conditional(true);
    depth = before;
    skipBlanks();
    if (error.empty() && *at)
      fail("unexpected '" + std::string(at) + "'");
    message = error;
    return error.empty();
  }

private:
  Number fail(const std::string &why) {
    if (error.empty())
      error = why + " in '" + text + "'";
    return {};
  }

  void skipBlanks() { at += std::strspn(at, " \t\r\n"); }

  bool take(const char *token) {
    skipBlanks();
    const size_t length = std::strlen(token);
    if (std::strncmp(at, token, length) != 0)
      return false;
    at += length;
    return true;
  }

  Number conditional(bool counts) {
    if (++depth > kMaxDepth)
      return fail(kTooDeep);
    Number condition = binary(1, counts);
    if (take("?")) {
      const bool truth = condition.truth();
      Number yes = conditional(counts && truth);
      if (!take(":"))
        return fail("a '?' without its ':'");
      Number no = conditional(counts && !truth);
      condition = truth ? yes : no;
    }
    --depth;
    return condition;
  }

  const OpRow *peekOperator() {
    skipBlanks();
    for (const OpRow &row : kOps)
      if (std::strncmp(at, row.text, std::strlen(row.text)) == 0)
        return &row;
    return nullptr;
  }

  Number binary(int least, bool counts) {
    Number left = unary(counts);
    while (error.empty()) {
      const OpRow *row = peekOperator();
      if (!row || row->precedence < least)
        break;
      at += std::strlen(row->text);
      const bool needed = row->op == Op::And  ? left.truth()
                          : row->op == Op::Or ? !left.truth()
                                              : true;
      Number right = binary(row->precedence + 1, counts && needed);
      if (counts && error.empty())
        left = apply(*row, left, right);
    }
    return left;
  }

  Number apply(const OpRow &row, Number a, Number b) {
    if (row.op == Op::And)
      return int64_t(a.truth() && b.truth());
    if (row.op == Op::Or)
      return int64_t(a.truth() || b.truth());
    if (a.integer && b.integer)
      return applyIntegers(row, a.whole, b.whole);
    if (row.integersOnly)
      return fail(std::string("'") + row.text + "' wants integers");
    const double x = a.real(), y = b.real();
    auto finite = [&](double result) {
      return std::isfinite(result)
                 ? Number(result)
                 : fail(std::string("fp64 overflow of '") + row.text + "'");
    };
    switch (row.op) {
    case Op::Equal:
      return int64_t(x == y);
    case Op::NotEqual:
      return int64_t(x != y);
    case Op::Less:
      return int64_t(x < y);
    case Op::LessEqual:
      return int64_t(x <= y);
    case Op::Greater:
      return int64_t(x > y);
    case Op::GreaterEqual:
      return int64_t(x >= y);
    case Op::Add:
      return finite(x + y);
    case Op::Subtract:
      return finite(x - y);
    case Op::Multiply:
      return finite(x * y);
    default: // Divide: the others want integers
      return y == 0 ? fail("division by zero") : finite(x / y);
    }
  }

  Number applyIntegers(const OpRow &row, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflow = false;
    switch (row.op) {
    case Op::BitOr:
      return a | b;
    case Op::BitXor:
      return a ^ b;
    case Op::BitAnd:
      return a & b;
    case Op::Equal:
      return int64_t(a == b);
    case Op::NotEqual:
      return int64_t(a != b);
    case Op::Less:
      return int64_t(a < b);
    case Op::LessEqual:
      return int64_t(a <= b);
    case Op::Greater:
      return int64_t(a > b);
    case Op::GreaterEqual:
      return int64_t(a >= b);
    case Op::ShiftLeft:
      overflow = b < 0 || b > 62 ||
                 __builtin_mul_overflow(a, int64_t(1) << b, &result);
      break;
    case Op::ShiftRight:
      overflow = b < 0 || b > 63;
      result = overflow ? 0 : a >> b;
      break;
    case Op::Add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::Subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::Multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::Divide:
    case Op::Modulo:
      if (b == 0)
        return fail("division by zero");
      overflow = a == INT64_MIN && b == -1;
      if (!overflow)
        result = row.op == Op::Divide ? a / b : a % b;
      break;
    default:
      break;
    }
    return overflow ? fail("64-bit overflow of " + std::to_string(a) + " " +
                           row.text + " " + std::to_string(b))
                    : Number(result);
  }

  Number unary(bool counts) {
    if (++depth > kMaxDepth)
      return fail(kTooDeep);
    Number value;
    skipBlanks();
    if (*at == '!' && at[1] != '=') {
      ++at;
      value = int64_t(!unary(counts).truth());
    } else if (take("-")) {
      value = unary(counts);
      if (!value.integer)
        value = -value.fraction;
      else if (value.whole != INT64_MIN)
        value = -value.whole;
      else if (counts)
        value = fail("64-bit overflow of a negation");
    } else if (take("+")) {
      value = unary(counts);
    } else if (take("~")) {
      value = unary(counts);
      value =
          value.integer ? Number(~value.whole) : fail("'~' wants an integer");
    } else {
      value = primary(counts);
    }
    --depth;
    return value;
  }

  Number primary(bool counts) {
    skipBlanks();
    if (take("(")) {
      Number value = conditional(counts);
      return take(")") ? value : fail("a '(' without its ')'");
    }
    if ((*at >= '0' && *at <= '9') || *at == '.')
      return literal();
    const size_t length =
        std::strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_");
    if (length == 0)
      return fail(*at ? "unexpected '" + std::string(at) + "'"
                      : std::string("something is missing at the end"));
    const std::string name(at, length);
    at += length;
    if (take("("))
      return call(name, counts);
    Number value;
    std::string why;
    if (!variables(name, value, why))
      return fail(why);
    return value;
  }

  Number literal() {
    const bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    const size_t digits =
        std::strspn(at, hex ? "0123456789abcdefABCDEFxX" : "0123456789");
    char *end;
    errno = 0;
    if (!hex && (at[digits] == '.' || at[digits] == 'e' || at[digits] == 'E')) {
      const double value = std::strtod(at, &end);
      if (end == at)
        return fail("a number is malformed");
      if (!std::isfinite(value))
        return fail("a number exceeds fp64");
      at = end;
      return value;
    }
    const unsigned long long value = std::strtoull(at, &end, hex ? 16 : 10);
    if (errno || value > INT64_MAX)
      return fail("a number exceeds 64 bits");
    at = end;
    return int64_t(value);
  }

  Number call(const std::string &name, bool counts) {
    Number arguments[2];
    int count = 0;
    if (!take(")")) {
      do {
        Number value = conditional(counts);
        if (count < 2)
          arguments[count] = value;
        ++count;
      } while (error.empty() && take(","));
      if (!take(")"))
        return fail("the arguments of '" + name + "' do not end in ')'");
    }
    struct Real {
      const char *name;
      double (*function)(double);
    };
    static constexpr Real kReals[] = {
        {"sqrt", [](double x) { return std::sqrt(x); }},
        {"exp2", [](double x) { return std::exp2(x); }},
        {"log2", [](double x) { return std::log2(x); }},
        {"log", [](double x) { return std::log(x); }}};
    const Number a = arguments[0], b = arguments[1];
    const bool whole = a.integer && b.integer;
    auto wants = [&](int wanted) {
      if (count != wanted)
        fail("'" + name + "' takes " + std::to_string(wanted) +
             (wanted == 1 ? " argument, not " : " arguments, not ") +
             std::to_string(count));
      return count == wanted;
    };
    auto finite = [&](double result) {
      return std::isfinite(result) || !counts
                 ? Number(result)
                 : fail("'" + name + "' has no finite value here,");
    };
    for (const Real &row : kReals)
      if (name == row.name)
        return wants(1) ? finite(row.function(a.real())) : Number();
    if (name == "pow")
      return wants(2) ? finite(std::pow(a.real(), b.real())) : Number();
    if (name == "min" || name == "max") {
      if (!wants(2))
        return {};
      const bool less = whole ? a.whole < b.whole : a.real() < b.real();
      return less == (name == "min") ? a : b;
    }
    if (name == "abs") {
      if (!wants(1) || !counts)
        return {};
      if (!a.integer)
        return std::fabs(a.fraction);
      return a.whole == INT64_MIN ? fail("64-bit overflow of 'abs'")
                                  : Number(a.whole < 0 ? -a.whole : a.whole);
    }
    if (name == "floor" || name == "ceil") {
      if (!wants(1) || a.integer || !counts)
        return a;
      const double rounded =
          name == "floor" ? std::floor(a.fraction) : std::ceil(a.fraction);
      if (!(std::fabs(rounded) < 0x1p63))
        return fail("64-bit overflow of '" + name + "'");
      return int64_t(rounded);
    }
    if (name == "ceildiv" || name == "align") {
      if (!wants(2) || !counts)
        return {};
      int64_t quotient, product;
      if (!whole)
        return fail("'" + name + "' wants integers");
      if (!divideRounded(a.whole, b.whole, true, quotient))
        return fail("division by zero");
      if (name == "ceildiv")
        return quotient;
      return __builtin_mul_overflow(quotient, b.whole, &product)
                 ? fail("64-bit overflow of 'align'")
                 : Number(product);
    }
    return fail("no function '" + name +
                "'; there are: min, max, ceildiv, align, abs, floor, ceil, "
                "sqrt, exp2, log2, log, pow");
  }

  const std::string &text;
  const char *at;
  const Variables &variables;
  std::string error;
};

} // namespace

bool fovea::describe::evaluate(const std::string &text,
                               const Variables &variables, Number &value,
                               std::string &error) {
  return Parser(text, variables).run(value, error);
}
