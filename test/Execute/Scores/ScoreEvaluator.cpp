//===- ScoreEvaluator.cpp - score programs on the host --------------------===//

#include "ScoreEvaluator.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::test;
using reference::ScoreFunction;

namespace {

/// A value, its derivative for the product, and, of an integer, its bits.
template <typename Real>
struct Dual {
  Real value = 0, slope = 0;
  int32_t bits = 0;
};

/// An op whose operands are numbers of earlier values.
struct Instruction {
  std::string name;
  std::vector<int> operands;
  int predicate = 0;
  double constant = 0;
  int32_t bits = 0;
};

template <typename Real>
bool holds(arith::CmpFPredicate predicate, Real x, Real y) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return x == y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::ONE:
    return x < y || x > y;
  case P::UNE:
    return x != y;
  default:
    return false;
  }
}

bool holds(arith::CmpIPredicate predicate, int32_t x, int32_t y) {
  using P = arith::CmpIPredicate;
  const uint32_t ux = uint32_t(x), uy = uint32_t(y);
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return x < y;
  case P::sle:
    return x <= y;
  case P::sgt:
    return x > y;
  case P::sge:
    return x >= y;
  case P::ult:
    return ux < uy;
  case P::ule:
    return ux <= uy;
  case P::ugt:
    return ux > uy;
  case P::uge:
    return ux >= uy;
  }
  return false;
}

template <typename Real>
Dual<Real> evaluate(const Instruction &op, const std::vector<Dual<Real>> &all) {
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
    return integer(
        holds(arith::CmpFPredicate(op.predicate), in(0).value, in(1).value));
  if (name == "arith.cmpi")
    return integer(
        holds(arith::CmpIPredicate(op.predicate), in(0).bits, in(1).bits));
  if (name == "arith.addi")
    return integer(int64_t(in(0).bits) + in(1).bits);
  if (name == "arith.subi")
    return integer(int64_t(in(0).bits) - in(1).bits);
  if (name == "arith.muli")
    return integer(int64_t(in(0).bits) * in(1).bits);
  if (name == "arith.divsi")
    return integer(in(0).bits / in(1).bits);
  if (name == "arith.divui")
    return integer(uint32_t(in(0).bits) / uint32_t(in(1).bits));
  if (name == "arith.remsi")
    return integer(in(0).bits % in(1).bits);
  if (name == "arith.remui")
    return integer(uint32_t(in(0).bits) % uint32_t(in(1).bits));
  if (name == "arith.maxsi")
    return integer(std::max(in(0).bits, in(1).bits));
  if (name == "arith.minsi")
    return integer(std::min(in(0).bits, in(1).bits));
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
  return real(std::numeric_limits<Real>::quiet_NaN(), 0);
}

class Evaluator : public ScoreFunction {
public:
  explicit Evaluator(const std::vector<CapturedValues> &captured)
      : captured(captured) {}

  std::vector<Instruction> instructions;
  int result = 0;

  Result<double> apply(double product, const Place &place) const override {
    return run(product, place);
  }
  Result<float> apply(float product, const Place &place) const override {
    return run(product, place);
  }

private:
  template <typename Real>
  Result<Real> run(Real product, const Place &p) const {
    std::vector<Dual<Real>> all;
    all.reserve(instructions.size() + attn::kScoreArguments);
    all.push_back({product, 1, 0});
    for (int64_t index :
         {p.batch, p.head, p.query, p.key, p.seqlenQ, p.seqlenK})
      all.push_back({0, 0, int32_t(index)});
    for (const CapturedValues &capture : captured)
      all.push_back(capture.extents.empty()
                        ? element<Real>(capture.values.front())
                        : Dual<Real>());
    for (const Instruction &instruction : instructions)
      all.push_back(instruction.name == "attn.at" ? read(instruction, all)
                                                  : evaluate(instruction, all));
    return {all[size_t(result)].value, all[size_t(result)].slope};
  }

  /// For a program it is what its type says.
  template <typename Real>
  static Dual<Real> element(double value) {
    return {Real(value), 0, std::fabs(value) < 0x1p31 ? int32_t(value) : 0};
  }
  template <typename Real>
  Dual<Real> read(const Instruction &at,
                  const std::vector<Dual<Real>> &all) const {
    std::vector<int64_t> indices;
    for (int operand : llvm::ArrayRef(at.operands).drop_front())
      indices.push_back(all[size_t(operand)].bits);
    const size_t number = size_t(at.operands[0]) - attn::kScoreArguments;
    return element<Real>(captured[number].at(indices));
  }

  const std::vector<CapturedValues> &captured;
};

} // namespace

double CapturedValues::at(const std::vector<int64_t> &indices) const {
  size_t place = 0;
  for (auto [index, extent, stride] :
       llvm::zip_equal(indices, extents, strides)) {
    if (index < 0 || index >= extent)
      return 0;
    place += size_t(index * stride);
  }
  return values[place];
}

std::shared_ptr<const ScoreFunction>
fovea::test::evaluatorOf(Region &program,
                         const std::vector<CapturedValues> &captured) {
  auto evaluator = std::make_shared<Evaluator>(captured);
  DenseMap<Value, int> numbers;
  for (Value argument : program.getArguments())
    numbers[argument] = int(numbers.size());
  for (mlir::Operation &op : program.front().without_terminator()) {
    Instruction &made = evaluator->instructions.emplace_back();
    made.name = op.getName().getStringRef().str();
    for (Value operand : op.getOperands())
      made.operands.push_back(numbers.lookup(operand));
    if (auto compare = dyn_cast<arith::CmpFOp>(op))
      made.predicate = int(compare.getPredicate());
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      made.predicate = int(compare.getPredicate());
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
        made.constant = value.getValueAsDouble();
      else
        made.bits = int32_t(cast<IntegerAttr>(constant.getValue()).getInt());
    }
    const int number = int(numbers.size());
    numbers[op.getResult(0)] = number;
  }
  evaluator->result =
      numbers.lookup(program.front().getTerminator()->getOperand(0));
  return evaluator;
}
