//===- ScoreProgram.cpp - score programs on the host ----------------------===//

#include "fovea/Reference/ScoreProgram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

namespace fovea::reference {
namespace {

/// A value, its derivative for the product, or for what is captured, and, of an
/// integer, its bits.
template <typename Real>
struct Dual {
  Real value = 0, slope = 0;
  int32_t bits = 0;
};

/// A line, whose operands are numbers of earlier values.
struct Instruction {
  std::string name;
  std::vector<int> operands;
  std::string predicate;
  double constant = 0;
  int32_t bits = 0;
  int capture = 0; ///< of attn.at
};

template <typename Real>
bool holds(const std::string &predicate, Real x, Real y) {
  const bool isOrdered = !std::isnan(x) && !std::isnan(y);
  if (predicate == "true" || predicate == "false")
    return predicate == "true";
  if (predicate == "ord" || predicate == "uno")
    return isOrdered == (predicate == "ord");
  if (!isOrdered)
    return predicate[0] == 'u';
  const std::string kind = predicate.substr(1);
  return kind == "eq"   ? x == y
         : kind == "ne" ? x != y
         : kind == "gt" ? x > y
         : kind == "ge" ? x >= y
         : kind == "lt" ? x < y
                        : x <= y;
}

bool holds(const std::string &predicate, int32_t x, int32_t y) {
  if (predicate == "eq" || predicate == "ne")
    return (x == y) == (predicate == "eq");
  const bool isSigned = predicate[0] == 's';
  const int64_t a = isSigned ? int64_t(x) : int64_t(uint32_t(x)),
                b = isSigned ? int64_t(y) : int64_t(uint32_t(y));
  const std::string kind = predicate.substr(1);
  return kind == "lt"   ? a < b
         : kind == "le" ? a <= b
         : kind == "gt" ? a > b
                        : a >= b;
}

template <typename Real>
Dual<Real> evaluate(const Instruction &op, const std::vector<Dual<Real>> &all,
                    bool &isKnown) {
  isKnown = true;
  auto in = [&](size_t i) -> const Dual<Real> & {
    return all[size_t(op.operands[i])];
  };
  auto real = [](Real value, Real slope) {
    return Dual<Real>{value, slope, 0};
  };
  auto integer = [](int64_t value) {
    return Dual<Real>{0, 0, int32_t(uint32_t(value))};
  };
  const std::string &name = op.name;
  if (name == "arith.constant")
    return {Real(op.constant), 0, op.bits};
  if (name == "arith.addf")
    return real(in(0).value + in(1).value, in(0).slope + in(1).slope);
  if (name == "arith.subf")
    return real(in(0).value - in(1).value, in(0).slope - in(1).slope);
  if (name == "arith.mulf")
    return real(in(0).value * in(1).value,
                in(0).slope * in(1).value + in(0).value * in(1).slope);
  if (name == "arith.divf")
    return real(in(0).value / in(1).value,
                (in(0).slope - in(0).value / in(1).value * in(1).slope) /
                    in(1).value);
  if (name == "arith.negf")
    return real(-in(0).value, -in(0).slope);
  if (name == "arith.maximumf" || name == "arith.maxnumf")
    return in(0).value >= in(1).value ? in(0) : in(1);
  if (name == "arith.minimumf" || name == "arith.minnumf")
    return in(0).value <= in(1).value ? in(0) : in(1);
  if (name == "arith.select")
    return in(0).bits & 1 ? in(1) : in(2);
  if (name == "arith.cmpf")
    return integer(holds(op.predicate, in(0).value, in(1).value));
  if (name == "arith.cmpi")
    return integer(holds(op.predicate, in(0).bits, in(1).bits));
  if (name == "arith.addi")
    return integer(int64_t(in(0).bits) + in(1).bits);
  if (name == "arith.subi")
    return integer(int64_t(in(0).bits) - in(1).bits);
  if (name == "arith.muli")
    return integer(int64_t(in(0).bits) * in(1).bits);
  // What no hardware faults on is no fault here.
  if (name.compare(0, 9, "arith.div") == 0 && op.operands.size() == 2 &&
      name != "arith.divf" && in(1).bits == 0)
    return integer(0);
  if (name.compare(0, 9, "arith.rem") == 0 && in(1).bits == 0)
    return integer(in(0).bits);
  if (name == "arith.divsi")
    return integer(int64_t(in(0).bits) / in(1).bits);
  if (name == "arith.divui")
    return integer(uint32_t(in(0).bits) / uint32_t(in(1).bits));
  if (name == "arith.remsi")
    return integer(int64_t(in(0).bits) % in(1).bits);
  if (name == "arith.remui")
    return integer(uint32_t(in(0).bits) % uint32_t(in(1).bits));
  if (name == "arith.maxsi")
    return integer(std::max(in(0).bits, in(1).bits));
  if (name == "arith.minsi")
    return integer(std::min(in(0).bits, in(1).bits));
  if (name == "arith.maxui")
    return integer(std::max(uint32_t(in(0).bits), uint32_t(in(1).bits)));
  if (name == "arith.minui")
    return integer(std::min(uint32_t(in(0).bits), uint32_t(in(1).bits)));
  if (name == "arith.shli")
    return integer(int64_t(uint32_t(in(0).bits) << (in(1).bits & 31)));
  if (name == "arith.shrsi")
    return integer(in(0).bits >> (in(1).bits & 31));
  if (name == "arith.extui")
    return integer(in(0).bits & 1);
  if (name == "arith.fptosi")
    return integer(int64_t(in(0).value));
  if (name == "arith.andi")
    return integer(in(0).bits & in(1).bits);
  if (name == "arith.ori")
    return integer(in(0).bits | in(1).bits);
  if (name == "arith.xori")
    return integer(in(0).bits ^ in(1).bits);
  if (name == "arith.shrui")
    return integer(uint32_t(in(0).bits) >> in(1).bits);
  if (name == "arith.sitofp")
    return real(Real(in(0).bits), 0);
  if (name == "arith.uitofp")
    return real(Real(uint32_t(in(0).bits)), 0);
  if (name == "math.absf")
    return in(0).value < 0 ? real(-in(0).value, -in(0).slope) : in(0);
  if (name == "math.floor")
    return real(std::floor(in(0).value), 0);
  if (name == "math.ceil")
    return real(std::ceil(in(0).value), 0);
  if (name == "math.trunc")
    return real(std::trunc(in(0).value), 0);
  if (name == "math.fma")
    return real(std::fma(in(0).value, in(1).value, in(2).value),
                in(0).slope * in(1).value + in(0).value * in(1).slope +
                    in(2).slope);
  if (name == "math.exp") {
    const Real y = std::exp(in(0).value);
    return real(y, y * in(0).slope);
  }
  if (name == "math.exp2") {
    const Real y = std::exp2(in(0).value);
    return real(y, y * Real(M_LN2) * in(0).slope);
  }
  if (name == "math.log")
    return real(std::log(in(0).value), in(0).slope / in(0).value);
  if (name == "math.log2")
    return real(std::log2(in(0).value),
                in(0).slope / in(0).value / Real(M_LN2));
  if (name == "math.sqrt") {
    const Real y = std::sqrt(in(0).value);
    return real(y, in(0).slope / (2 * y));
  }
  if (name == "math.tanh") {
    const Real y = std::tanh(in(0).value);
    return real(y, (1 - y * y) * in(0).slope);
  }
  isKnown = false;
  return {};
}

constexpr const char *kArguments[] = {"x",   "batch",    "head",    "query",
                                      "key", "seqlen_q", "seqlen_k"};
constexpr size_t kArgumentCount = std::size(kArguments);

class Program : public ScoreFunction {
public:
  explicit Program(const std::vector<CapturedValues> &captured)
      : captured(captured) {}

  std::string read(const std::string &text);

  Result<double> apply(double product, const Place &place) const override {
    return run(product, place);
  }
  Result<float> apply(float product, const Place &place) const override {
    return run(product, place);
  }
  Term termOf(int capture, double product, const Place &place) const override {
    Term term;
    term.derivative = run(product, place, capture, &term.element).slope;
    return term;
  }

private:
  std::string readLine(const std::string &line);
  /// Number of a value by its name; -1: there is none.
  int find(const std::string &name) const {
    auto found = numbers.find(name);
    return found == numbers.end() ? -1 : found->second;
  }

  /// For a program it is what its type says.
  template <typename Real>
  static Dual<Real> valueOf(double value) {
    return {Real(value), 0, std::fabs(value) < 0x1p31 ? int32_t(value) : 0};
  }

  /// \param seed     the capture that derivatives are for; -1: the product
  /// \param element  receives the place of what is read of it
  template <typename Real>
  Result<Real> run(Real product, const Place &p, int seed = -1,
                   int64_t *element = nullptr) const {
    std::vector<Dual<Real>> all;
    all.reserve(instructions.size() + kArgumentCount + captured.size());
    all.push_back({product, Real(seed < 0), 0});
    for (int64_t index :
         {p.batch, p.head, p.query, p.key, p.seqlenQ, p.seqlenK})
      all.push_back({0, 0, int32_t(index)});
    for (const CapturedValues &capture : captured) {
      const bool isScalar = capture.extents.empty();
      all.push_back(isScalar ? valueOf<Real>(capture.values.front())
                             : Dual<Real>());
      if (isScalar && seed == &capture - captured.data()) {
        all.back().slope = 1;
        *element = 0;
      }
    }
    std::vector<int64_t> indices;
    for (const Instruction &op : instructions) {
      if (op.name != "attn.at") {
        bool isKnown;
        all.push_back(evaluate(op, all, isKnown));
        continue;
      }
      indices.clear();
      for (int operand : op.operands)
        indices.push_back(all[size_t(operand)].bits);
      const CapturedValues &from = captured[size_t(op.capture)];
      all.push_back(valueOf<Real>(from.at(indices)));
      if (seed == op.capture && from.contains(indices)) {
        all.back().slope = 1;
        *element = 0;
        for (size_t dim = 0; dim != indices.size(); ++dim)
          *element = *element * from.extents[dim] + indices[dim];
      }
    }
    return {all[size_t(result)].value, all[size_t(result)].slope,
            seen < 0 || all[size_t(seen)].bits & 1};
  }

  const std::vector<CapturedValues> &captured;
  std::map<std::string, int> numbers;
  std::vector<Instruction> instructions;
  int result = -1, seen = -1; ///< numbers of values; the latter -1: all are
};

/// Words of a line; commas end one.
std::vector<std::string> wordsOf(const std::string &line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    if (word.back() == ',')
      word.pop_back();
    words.push_back(word);
  }
  return words;
}

/// Of any op that is known here.
size_t operandsOf(const std::string &name) {
  constexpr const char *kOfOne[] = {
      "arith.negf",   "arith.extui", "arith.fptosi", "arith.sitofp",
      "arith.uitofp", "math.absf",   "math.floor",   "math.ceil",
      "math.trunc",   "math.exp",    "math.exp2",    "math.log",
      "math.log2",    "math.sqrt",   "math.tanh"};
  if (name == "arith.constant")
    return 0;
  if (name == "arith.select" || name == "math.fma")
    return 3;
  return std::find(std::begin(kOfOne), std::end(kOfOne), name) !=
                 std::end(kOfOne)
             ? 1
             : 2;
}

/// "%3 = arith.cmpi eq %1, x : i1", or "yield %3", or "yield %3 seen %4".
std::string Program::readLine(const std::string &line) {
  std::vector<std::string> words = wordsOf(line);
  if (words.size() >= 2 && words[0] == "yield") {
    // A derivative of its own is not what is checked.
    const bool hasSeen = words.size() >= 4 && words[2] == "seen";
    result = find(words[1]);
    if (hasSeen)
      seen = find(words[3]);
    return result < 0            ? "no value is named " + words[1]
           : hasSeen && seen < 0 ? "no value is named " + words[3]
                                 : "";
  }
  if (words.size() < 5 || words[1] != "=" || words[words.size() - 2] != ":")
    return "it is none of a score program";
  Instruction op;
  op.name = words[2];
  const std::string type = words.back();
  size_t next = 3, end = words.size() - 2;
  if (op.name == "arith.constant") {
    const bool isFloat = type == "f32";
    char *stop = nullptr;
    const long long bits = std::strtoll(words[next].c_str(), &stop, 0);
    if (*stop || end != next + 1)
      return "'" + words[next] + "' is no number";
    op.bits = int32_t(bits);
    if (isFloat) {
      float value;
      std::memcpy(&value, &op.bits, sizeof(value));
      op.constant = value;
    }
    next = end;
  }
  if (op.name == "arith.cmpf" || op.name == "arith.cmpi") {
    op.predicate = words[next++];
    if (op.predicate.size() < 2 || next > end)
      return "'" + op.predicate + "' is no predicate";
  }
  if (op.name == "attn.at") {
    if (next == end)
      return "it reads nothing";
    op.capture = find(words[next++]) - int(kArgumentCount);
    if (op.capture < 0 || size_t(op.capture) >= captured.size() ||
        captured[size_t(op.capture)].extents.size() != end - next)
      return words[3] + " is not captured, or of another rank";
  }
  for (; next != end; ++next) {
    const int operand = find(words[next]);
    if (operand < 0)
      return "no value is named " + words[next];
    op.operands.push_back(operand);
  }
  if (op.name != "attn.at" && op.operands.size() != operandsOf(op.name))
    return op.name + " has " + std::to_string(operandsOf(op.name)) +
           " operands, found " + std::to_string(op.operands.size());
  if (op.name != "attn.at") {
    bool isKnown;
    Instruction probe = op;
    probe.predicate = op.name == "arith.cmpf" ? "oeq" : "eq";
    // Enough operands for any op; values do not matter, but for divisors.
    probe.operands.resize(3, 0);
    std::vector<Dual<double>> ones(numbers.size(), Dual<double>{1, 0, 1});
    (void)evaluate(probe, ones, isKnown);
    if (!isKnown)
      return op.name + " is not known here";
  }
  const int number = int(numbers.size());
  numbers[words[0]] = number;
  instructions.push_back(std::move(op));
  return "";
}

std::string Program::read(const std::string &text) {
  for (const char *name : kArguments)
    numbers.emplace(name, int(numbers.size()));
  for (size_t i = 0; i != captured.size(); ++i)
    numbers.emplace("c" + std::to_string(i), int(numbers.size()));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line.rfind("score 1", 0) != 0)
    return "'" + line + "' does not begin a score program of version 1";
  while (std::getline(lines, line))
    if (std::string wrong = readLine(line); !wrong.empty())
      return "line '" + line + "' of the score program: " + wrong;
  return result < 0 ? "the score program yields nothing" : "";
}

} // namespace

bool CapturedValues::contains(const std::vector<int64_t> &indices) const {
  for (size_t dim = 0; dim != indices.size(); ++dim)
    if (indices[dim] < 0 || indices[dim] >= extents[dim])
      return false;
  return true;
}

double CapturedValues::at(const std::vector<int64_t> &indices) const {
  if (!contains(indices))
    return 0;
  int64_t place = 0;
  for (size_t dim = 0; dim != indices.size(); ++dim)
    place += indices[dim] * strides[dim];
  return values[size_t(place)];
}

std::shared_ptr<const ScoreFunction>
readScoreProgram(const std::string &text,
                 const std::vector<CapturedValues> &captured,
                 std::string &error) {
  auto program = std::make_shared<Program>(captured);
  error = program->read(text);
  return error.empty() ? program : nullptr;
}

} // namespace fovea::reference
