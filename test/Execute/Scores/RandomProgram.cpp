//===- RandomProgram.cpp - score programs by chance -----------------------===//

#include "RandomProgram.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>
#include <vector>

using namespace fovea::test;

namespace {

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed) {}

  std::string run() {
    reals = {"%x"};
    const int ops = 1 + int(random() % 12);
    for (int i = 0; i < ops; ++i)
      addOp();
    // The product counts, whatever chance says.
    std::string half = constant(0.5);
    line("%s = math.fma %x, {0}, {1} : f32", half, reals.back());
    std::string all = fresh(), seen = condition();
    line("{0} = arith.constant {1}", all, random() % 2 ? "true" : "false");
    line("%seen = arith.ori {0}, {1} : i1", all, seen);
    return text;
  }

private:
  template <typename... Args>
  void line(const char *format, Args... args) {
    text += llvm::formatv(format, args...).str() + "\n";
  }
  std::string fresh() { return "%v" + std::to_string(count++); }
  std::string constant(double value) {
    std::string name = fresh();
    line("{0} = arith.constant {1} : f32", name,
         llvm::formatv("{0:F4}", value));
    return name;
  }
  std::string integer(int value) {
    std::string name = fresh();
    line("{0} = arith.constant {1} : i32", name, value);
    return name;
  }
  /// What was made last, or anything.
  const std::string &any() {
    return random() % 2 ? reals.back() : reals[random() % reals.size()];
  }
  std::string index() {
    static const char *const all[] = {"%batch", "%head",     "%query",
                                      "%key",   "%seqlen_q", "%seqlen_k"};
    return all[random() % std::size(all)];
  }
  std::string unary(const char *op, const std::string &x) {
    std::string name = fresh();
    line("{0} = {1} {2} : f32", name, op, x);
    return name;
  }
  std::string binary(const char *op, const std::string &x,
                     const std::string &y) {
    std::string name = fresh();
    line("{0} = {1} {2}, {3} : f32", name, op, x, y);
    return name;
  }
  /// 1 + x^2.
  std::string positive(const std::string &x) {
    std::string one = constant(1), name = fresh();
    line("{0} = math.fma {1}, {1}, {2} : f32", name, x, one);
    return name;
  }
  std::string condition() {
    std::string x = index(), y = index(), by = integer(2 + int(random() % 50));
    std::string rest = fresh(), other = fresh(), name = fresh();
    line("{0} = arith.remui {1}, {2} : i32", rest, x, by);
    line("{0} = arith.remui {1}, {2} : i32", other, y, by);
    line("{0} = arith.cmpi {1}, {2}, {3} : i32", name,
         random() % 2 ? "sle" : "ne", rest, other);
    return name;
  }
  /// A number from indices, at most about 3.
  std::string ofIndices() {
    std::string x = index(), by = integer(64), rest = fresh(), real = fresh();
    line("{0} = arith.remui {1}, {2} : i32", rest, x, by);
    line("{0} = arith.sitofp {1} : i32 to f32", real, rest);
    return binary("arith.mulf", real, constant(0.05));
  }

  void addOp() {
    std::string x = any(), made;
    switch (random() % 14) {
    case 0:
      made = binary("arith.addf", x, any());
      break;
    case 1:
      made = binary("arith.subf", x, any());
      break;
    case 2:
      made = binary("arith.mulf", x, unary("math.tanh", any()));
      break;
    case 3:
      made = binary("arith.divf", x, positive(any()));
      break;
    case 4:
      made = unary("math.tanh", x);
      break;
    case 5:
      made = unary("math.exp", binary("arith.minimumf", x, constant(0.75)));
      break;
    case 6:
      made = unary(random() % 2 ? "math.log" : "math.log2", positive(x));
      break;
    case 7:
      made = unary("math.sqrt", positive(x));
      break;
    case 8:
      made = unary(random() % 2 ? "math.absf" : "arith.negf", x);
      break;
    case 9:
      made =
          binary(random() % 2 ? "arith.maximumf" : "arith.minimumf", x, any());
      break;
    case 10: {
      std::string c = condition(), y = any();
      made = fresh();
      line("{0} = arith.select {1}, {2}, {3} : f32", made, c, x, y);
      break;
    }
    case 11:
      made = binary("arith.addf", x, ofIndices());
      break;
    case 12:
      made = unary("math.exp2", binary("arith.minimumf", x, constant(-0.25)));
      break;
    default:
      made = binary("arith.mulf", x,
                    constant(double(int(random() % 200) - 100) / 64));
    }
    reals.push_back(made);
  }

  std::mt19937_64 random;
  std::vector<std::string> reals;
  std::string text;
  int count = 0;
};

} // namespace

std::string fovea::test::randomProgram(uint64_t seed) {
  return Generator(seed).run();
}
