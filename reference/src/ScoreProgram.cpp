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

/// What a comparison may find; of a predicate, which of these it holds for.
enum Relation : unsigned {
  kLess = 1,
  kEqual = 2,
  kGreater = 4,
  kUnordered = 8
};

struct Predicate {
  const char *name;
  unsigned relations;
  bool isSigned; ///< of integers
};

constexpr Predicate kOfFloats[] = {
    {"false", 0, false},
    {"oeq", kEqual, false},
    {"ogt", kGreater, false},
    {"oge", kGreater | kEqual, false},
    {"olt", kLess, false},
    {"ole", kLess | kEqual, false},
    {"one", kLess | kGreater, false},
    {"ord", kLess | kEqual | kGreater, false},
    {"ueq", kUnordered | kEqual, false},
    {"ugt", kUnordered | kGreater, false},
    {"uge", kUnordered | kGreater | kEqual, false},
    {"ult", kUnordered | kLess, false},
    {"ule", kUnordered | kLess | kEqual, false},
    {"une", kUnordered | kLess | kGreater, false},
    {"uno", kUnordered, false},
    {"true", kUnordered | kLess | kEqual | kGreater, false},
};
constexpr Predicate kOfIntegers[] = {
    {"eq", kEqual, true},     {"ne", kLess | kGreater, true},
    {"slt", kLess, true},     {"sle", kLess | kEqual, true},
    {"sgt", kGreater, true},  {"sge", kGreater | kEqual, true},
    {"ult", kLess, false},    {"ule", kLess | kEqual, false},
    {"ugt", kGreater, false}, {"uge", kGreater | kEqual, false},
};

template <typename Value>
unsigned relationOf(Value x, Value y) {
  return x < y ? kLess : x > y ? kGreater : x == y ? kEqual : kUnordered;
}

struct Operation;

/// A line, whose operands are numbers of earlier values. Names are looked up
/// when it is read: a program runs for each element of the scores.
struct Instruction {
  const Operation *operation = nullptr; ///< null: attn.at
  std::vector<int> operands;
  const Predicate *predicate = nullptr;
  double constant = 0;
  int32_t bits = 0;
  int capture = 0; ///< of attn.at
};

/// An instruction with the values of its operands.
template <typename Real>
struct Call {
  const Instruction &op;
  const std::vector<Dual<Real>> &all;

  const Dual<Real> &operator()(size_t i) const {
    return all[size_t(op.operands[i])];
  }
  uint32_t word(size_t i) const { return uint32_t((*this)(i).bits); }
  static Dual<Real> real(Real value, Real slope) { return {value, slope, 0}; }
  static Dual<Real> integer(int64_t value) {
    return {0, 0, int32_t(uint32_t(value))};
  }
  Dual<Real> constant() const { return {Real(op.constant), 0, op.bits}; }
};

struct Operation {
  template <typename Evaluate>
  constexpr Operation(const char *name, size_t operands, Evaluate evaluate)
      : name(name), operands(operands), inF64(evaluate), inF32(evaluate) {}

  Dual<double> evaluate(const Call<double> &in) const { return inF64(in); }
  Dual<float> evaluate(const Call<float> &in) const { return inF32(in); }

  const char *name;
  size_t operands;

private:
  Dual<double> (*inF64)(const Call<double> &);
  Dual<float> (*inF32)(const Call<float> &);
};

/// Of integers, what no hardware faults on is no fault here.
const Operation kOperations[] = {
    {"arith.constant", 0, [](const auto &in) { return in.constant(); }},
    {"arith.addf", 2,
     [](const auto &in) {
       return in.real(in(0).value + in(1).value, in(0).slope + in(1).slope);
     }},
    {"arith.subf", 2,
     [](const auto &in) {
       return in.real(in(0).value - in(1).value, in(0).slope - in(1).slope);
     }},
    {"arith.mulf", 2,
     [](const auto &in) {
       return in.real(in(0).value * in(1).value,
                      in(0).slope * in(1).value + in(0).value * in(1).slope);
     }},
    {"arith.divf", 2,
     [](const auto &in) {
       return in.real(in(0).value / in(1).value,
                      (in(0).slope - in(0).value / in(1).value * in(1).slope) /
                          in(1).value);
     }},
    {"arith.negf", 1,
     [](const auto &in) { return in.real(-in(0).value, -in(0).slope); }},
    {"arith.maximumf", 2,
     [](const auto &in) { return in(0).value >= in(1).value ? in(0) : in(1); }},
    {"arith.maxnumf", 2,
     [](const auto &in) {
       return in(0).value >= in(1).value || std::isnan(in(1).value) ? in(0)
                                                                    : in(1);
     }},
    {"arith.minimumf", 2,
     [](const auto &in) { return in(0).value <= in(1).value ? in(0) : in(1); }},
    {"arith.minnumf", 2,
     [](const auto &in) {
       return in(0).value <= in(1).value || std::isnan(in(1).value) ? in(0)
                                                                    : in(1);
     }},
    {"arith.select", 3,
     [](const auto &in) { return in(0).bits & 1 ? in(1) : in(2); }},
    {"arith.cmpf", 2,
     [](const auto &in) {
       return in.integer((in.op.predicate->relations &
                          relationOf(in(0).value, in(1).value)) != 0);
     }},
    {"arith.cmpi", 2,
     [](const auto &in) {
       return in.integer((in.op.predicate->relations &
                          (in.op.predicate->isSigned
                               ? relationOf(in(0).bits, in(1).bits)
                               : relationOf(in.word(0), in.word(1)))) != 0);
     }},
    {"arith.addi", 2,
     [](const auto &in) {
       return in.integer(int64_t(in(0).bits) + in(1).bits);
     }},
    {"arith.subi", 2,
     [](const auto &in) {
       return in.integer(int64_t(in(0).bits) - in(1).bits);
     }},
    {"arith.muli", 2,
     [](const auto &in) {
       return in.integer(int64_t(in(0).bits) * in(1).bits);
     }},
    {"arith.divsi", 2,
     [](const auto &in) {
       return in.integer(in(1).bits ? int64_t(in(0).bits) / in(1).bits : 0);
     }},
    {"arith.divui", 2,
     [](const auto &in) {
       return in.integer(in(1).bits ? in.word(0) / in.word(1) : 0);
     }},
    {"arith.remsi", 2,
     [](const auto &in) {
       return in.integer(in(1).bits ? int64_t(in(0).bits) % in(1).bits
                                    : in(0).bits);
     }},
    {"arith.remui", 2,
     [](const auto &in) {
       return in.integer(in(1).bits ? in.word(0) % in.word(1) : in.word(0));
     }},
    {"arith.maxsi", 2,
     [](const auto &in) {
       return in.integer(std::max(in(0).bits, in(1).bits));
     }},
    {"arith.minsi", 2,
     [](const auto &in) {
       return in.integer(std::min(in(0).bits, in(1).bits));
     }},
    {"arith.maxui", 2,
     [](const auto &in) {
       return in.integer(std::max(in.word(0), in.word(1)));
     }},
    {"arith.minui", 2,
     [](const auto &in) {
       return in.integer(std::min(in.word(0), in.word(1)));
     }},
    {"arith.shli", 2,
     [](const auto &in) {
       return in.integer(int64_t(in.word(0) << (in.word(1) & 31)));
     }},
    {"arith.shrsi", 2,
     [](const auto &in) {
       return in.integer(in(0).bits >> (in.word(1) & 31));
     }},
    {"arith.shrui", 2,
     [](const auto &in) {
       return in.integer(in.word(0) >> (in.word(1) & 31));
     }},
    {"arith.extui", 1,
     [](const auto &in) { return in.integer(in(0).bits & 1); }},
    {"arith.fptosi", 1,
     [](const auto &in) { return in.integer(int64_t(in(0).value)); }},
    {"arith.andi", 2,
     [](const auto &in) { return in.integer(in(0).bits & in(1).bits); }},
    {"arith.ori", 2,
     [](const auto &in) { return in.integer(in(0).bits | in(1).bits); }},
    {"arith.xori", 2,
     [](const auto &in) { return in.integer(in(0).bits ^ in(1).bits); }},
    {"arith.sitofp", 1, [](const auto &in) { return in.real(in(0).bits, 0); }},
    {"arith.uitofp", 1, [](const auto &in) { return in.real(in.word(0), 0); }},
    {"math.absf", 1,
     [](const auto &in) {
       return in(0).value < 0 ? in.real(-in(0).value, -in(0).slope) : in(0);
     }},
    {"math.floor", 1,
     [](const auto &in) { return in.real(std::floor(in(0).value), 0); }},
    {"math.ceil", 1,
     [](const auto &in) { return in.real(std::ceil(in(0).value), 0); }},
    {"math.trunc", 1,
     [](const auto &in) { return in.real(std::trunc(in(0).value), 0); }},
    {"math.fma", 3,
     [](const auto &in) {
       return in.real(std::fma(in(0).value, in(1).value, in(2).value),
                      in(0).slope * in(1).value + in(0).value * in(1).slope +
                          in(2).slope);
     }},
    {"math.exp", 1,
     [](const auto &in) {
       const auto y = std::exp(in(0).value);
       return in.real(y, y * in(0).slope);
     }},
    {"math.exp2", 1,
     [](const auto &in) {
       const auto y = std::exp2(in(0).value);
       return in.real(y, y * decltype(y)(M_LN2) * in(0).slope);
     }},
    {"math.log", 1,
     [](const auto &in) {
       return in.real(std::log(in(0).value), in(0).slope / in(0).value);
     }},
    {"math.log2", 1,
     [](const auto &in) {
       return in.real(std::log2(in(0).value),
                      in(0).slope / in(0).value / decltype(in(0).value)(M_LN2));
     }},
    {"math.sqrt", 1,
     [](const auto &in) {
       const auto y = std::sqrt(in(0).value);
       return in.real(y, in(0).slope / (2 * y));
     }},
    {"math.tanh", 1,
     [](const auto &in) {
       const auto y = std::tanh(in(0).value);
       return in.real(y, (1 - y * y) * in(0).slope);
     }},
};

/// The row of a table with this name; null: there is none.
template <typename Row, size_t size>
const Row *findRow(const Row (&rows)[size], const std::string &name) {
  const Row *row =
      std::find_if(std::begin(rows), std::end(rows),
                   [&](const Row &row) { return row.name == name; });
  return row == std::end(rows) ? nullptr : row;
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
      if (op.operation) {
        all.push_back(op.operation->evaluate(Call<Real>{op, all}));
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
  const std::string &name = words[2];
  const bool reads = name == "attn.at";
  op.operation = findRow(kOperations, name);
  if (!op.operation && !reads)
    return name + " is not known here";
  const std::string type = words.back();
  size_t next = 3, end = words.size() - 2;
  if (name == "arith.constant") {
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
  if (name == "arith.cmpf" || name == "arith.cmpi") {
    const std::string &predicate = words[next++];
    op.predicate = name == "arith.cmpf" ? findRow(kOfFloats, predicate)
                                        : findRow(kOfIntegers, predicate);
    if (!op.predicate || next > end)
      return "'" + predicate + "' is no predicate";
  }
  if (reads) {
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
  if (!reads && op.operands.size() != op.operation->operands)
    return name + " has " + std::to_string(op.operation->operands) +
           " operands, found " + std::to_string(op.operands.size());
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
