//===- DropoutToLanes.cpp - random words where weights are ----------------===//
//
// A call of the generator gives the words of four keys, and costs more than all
// else that is done with four scores. So none is made twice: where a lane has
// all four keys, or shares them with lanes that have the same query, it makes
// the words of one query for all, and lanes trade what they have made.
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Coord;
using layout::TileLayout;

namespace {

using PhiloxWords = std::array<Value, 4>;

/// Philox4x32-10 (Salmon et al. 2011) of counters whose upper half is 0.
class Philox {
public:
  Philox(ImplicitLocOpBuilder &b, Value seed) : b(b) {
    std::tie(keys[0], keys[1]) = halves(seed);
  }
  /// \param counter  i64
  PhiloxWords operator()(Value counter) {
    auto [low, high] = halves(counter);
    PhiloxWords state = {low, high, constant(0), constant(0)};
    std::array<Value, 2> key = keys;
    constexpr int rounds = 10;
    for (int round = 0; round != rounds; ++round) {
      if (round != 0) {
        key[0] = arith::AddIOp::create(b, key[0], constant(0x9e3779b9));
        key[1] = arith::AddIOp::create(b, key[1], constant(0xbb67ae85));
      }
      auto even = product(state[0], 0xd2511f53),
           odd = product(state[2], 0xcd9e8d57);
      state = {mix(odd.second, state[1], key[0]), odd.first,
               mix(even.second, state[3], key[1]), even.first};
    }
    return state;
  }

private:
  Value constant(uint32_t value) {
    return arith::ConstantIntOp::create(b, int32_t(value), 32).getResult();
  }
  std::pair<Value, Value> halves(Value wide) {
    Type word = b.getI32Type();
    Value upper = arith::ShRUIOp::create(
        b, wide, arith::ConstantIntOp::create(b, 32, 64).getResult());
    return {arith::TruncIOp::create(b, word, wide),
            arith::TruncIOp::create(b, word, upper)};
  }
  /// Its lower and upper half.
  std::pair<Value, Value> product(Value x, uint32_t y) {
    auto both = arith::MulUIExtendedOp::create(b, x, constant(y));
    return {both.getLow(), both.getHigh()};
  }
  Value mix(Value x, Value y, Value key) {
    return arith::XOrIOp::create(b, arith::XOrIOp::create(b, x, y), key);
  }

  ImplicitLocOpBuilder &b;
  std::array<Value, 2> keys;
};

/// Where a bit of a key's number among four comes from.
struct KeyBit {
  int reg = -1;  ///< bit of the register; or else
  int lane = -1; ///< bit of the lane, and
  /// bit of the register by which the lanes share out the calls.
  int partner = -1;
};

struct LowerDropout : public LanePattern<DropoutOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(DropoutOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileLayout layout = layoutOf(op.getTile());
    std::optional<std::array<KeyBit, 2>> bits =
        findKeyBits(layout, op.getQueriesAreRows() ? 1 : 0);
    if (!bits)
      return op.emitOpError("finds no four keys of a query in registers, or in "
                            "lanes and as many registers, of its layout ")
             << layout.str();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    // Here, or its key would be a pair of scalar registers for each round
    // throughout a loop.
    Philox philox(b, makeOpaque(b, op.getLoc(), op.getSeed()));
    SmallVector<Value> fragments;
    for (auto [number, fragment] : llvm::enumerate(adaptor.getTile()))
      fragments.push_back(
          lowerFragment(b, philox, op, layout, *bits, int(number), fragment));
    rewriter.replaceOpWithMultiple(op, {fragments});
    return success();
  }

private:
  static std::optional<std::array<KeyBit, 2>>
  findKeyBits(const TileLayout &layout, int keyDim) {
    std::array<KeyBit, 2> bits;
    uint32_t taken = 0; // register bits
    for (int bit = 0; bit != 2; ++bit) {
      Coord basis = {0, 0};
      basis[keyDim] = 1 << bit;
      auto find = [&](ArrayRef<Coord> bases) {
        auto found = llvm::find(bases, basis);
        return found == bases.end() ? -1 : int(found - bases.begin());
      };
      bits[bit].reg = find(layout.registers());
      if (bits[bit].reg >= 0)
        taken |= 1u << bits[bit].reg;
      else if ((bits[bit].lane = find(layout.lanes())) < 0)
        return std::nullopt;
    }
    for (KeyBit &bit : bits) {
      if (bit.reg >= 0)
        continue;
      const int free = llvm::countr_one(taken);
      if (free >= int(layout.registers().size()))
        return std::nullopt;
      bit.partner = free;
      taken |= 1u << free;
    }
    return bits;
  }

  /// The fragment's elements, each kept or not.
  Value lowerFragment(ImplicitLocOpBuilder &b, Philox &philox, DropoutOp op,
                      const TileLayout &layout,
                      const std::array<KeyBit, 2> &bits, int number,
                      Value fragment) const {
    SmallVector<Value> words(layout.elementsPerFragment());
    uint32_t shared = 0; // register bits whose elements have a call together
    for (const KeyBit &bit : bits)
      shared |= 1u << (bit.reg >= 0 ? bit.reg : bit.partner);
    for (uint32_t reg = 0; reg != words.size(); ++reg)
      if (!(reg & shared))
        makeWords(b, philox, op, layout, bits, number, reg, words);
    SmallVector<Value> kept;
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    for (auto [reg, word] : llvm::enumerate(words)) {
      Value value = element(b, fragment, int64_t(reg));
      kept.push_back(op.getNegates() ? signedBy(b, op, value, word)
                                     : arith::SelectOp::create(
                                           b,
                                           arith::CmpIOp::create(
                                               b, arith::CmpIPredicate::sge,
                                               word, op.getThreshold()),
                                           value, zero)
                                           .getResult());
    }
    return vector::FromElementsOp::create(
        b, cast<VectorType>(fragment.getType()), kept);
  }

  /// The value, negative if its word is below the threshold: by the sign of
  /// their difference, since comparisons of many would hold a pair of scalar
  /// registers each.
  static Value signedBy(ImplicitLocOpBuilder &b, DropoutOp op, Value value,
                        Value word) {
    Value above = callIntrinsic(b, b.getI32Type(), "llvm.ssub.sat",
                                {word, op.getThreshold()});
    return math::CopySignOp::create(
        b, value, arith::BitcastOp::create(b, b.getF32Type(), above));
  }

  /// i1: whether a bit of the lane's number is set.
  Value hasLaneBit(DropoutOp op, int bit) const {
    return lanes.hasParity(op, {1u << bit, 0});
  }

  /// The words of the registers that share a call with `reg`.
  void makeWords(ImplicitLocOpBuilder &b, Philox &philox, DropoutOp op,
                 const TileLayout &layout, const std::array<KeyBit, 2> &bits,
                 int number, uint32_t reg, MutableArrayRef<Value> words) const {

    PhiloxWords made = philox(counterOf(b, op, layout, bits, number, reg));
    Value second = arith::SelectOp::create(b, op.getSwaps(), made[2], made[1]);
    made[2] = arith::SelectOp::create(b, op.getSwaps(), made[1], made[2]);
    made[1] = second;
    // Bit by bit, words of a key become words of a register: what a lane made
    // for the other one's keys it sends, and it receives what that made for
    // its.
    for (int bit = 0; bit != 2; ++bit) {
      if (bits[bit].lane < 0)
        continue;
      Value isUpper = hasLaneBit(op, bits[bit].lane);
      for (int low = 0; low != 4; ++low) {
        const int high = low | 1 << bit;
        if (low == high)
          continue;
        Value sent = arith::SelectOp::create(b, isUpper, made[low], made[high]);
        Value received = lanes.exchange(b, op, sent, int(1u << bits[bit].lane));
        Value lower = arith::SelectOp::create(b, isUpper, received, made[low]);
        made[high] = arith::SelectOp::create(b, isUpper, made[high], received);
        made[low] = lower;
      }
    }
    for (int word = 0; word != 4; ++word) {
      uint32_t to = reg;
      for (int bit = 0; bit != 2; ++bit)
        if (word >> bit & 1)
          to |= 1u << (bits[bit].reg >= 0 ? bits[bit].reg : bits[bit].partner);
      words[to] = made[word];
    }
  }

  /// i64: of the call that a lane makes.
  Value counterOf(ImplicitLocOpBuilder &b, DropoutOp op,
                  const TileLayout &layout, const std::array<KeyBit, 2> &bits,
                  int number, uint32_t reg) const {
    const int keyDim = op.getQueriesAreRows() ? 1 : 0;
    // What the lane adds does not change in a loop.
    ImplicitLocOpBuilder before = lanes.builderBefore(op);
    std::array<Value, 2> place = {lanes.coordinate(op, layout, 0),
                                  lanes.coordinate(op, layout, 1)};
    for (const KeyBit &bit : bits) {
      if (bit.lane < 0)
        continue;
      const Coord basis = layout.registers()[bit.partner];
      Value isUpper = hasLaneBit(op, bit.lane);
      for (int dim = 0; dim != 2; ++dim)
        if (basis[dim] != 0)
          place[dim] = arith::AddIOp::create(
              before, place[dim],
              arith::SelectOp::create(before, isUpper,
                                      lanes.i32(before, basis[dim]),
                                      lanes.i32(before, 0)));
    }
    auto wide = [](ImplicitLocOpBuilder &b, Value value) -> Value {
      return arith::ExtUIOp::create(b, b.getI64Type(), value);
    };
    auto add = [](ImplicitLocOpBuilder &b, Value x, Value y) -> Value {
      return arith::AddIOp::create(b, x, y);
    };
    /// How far the counter of a place is behind that of the tile's first.
    auto distance = [&](ImplicitLocOpBuilder &b, Value query, Value key) {
      Value queries =
          arith::MulIOp::create(b, wide(b, query), wide(b, op.getGroups()));
      Value four = arith::ShRUIOp::create(b, key, lanes.i32(b, 2));
      return add(b, queries, wide(b, four));
    };
    const Coord origin = layout.fragmentOrigin(number),
                own = layout.map(reg, 0, 0);
    // The same in all lanes, and so in scalar registers.
    Value shared = distance(
        b, lanes.i32(b, origin[1 - keyDim] + own[1 - keyDim]),
        add(b, op.getKey(), lanes.i32(b, origin[keyDim] + own[keyDim])));
    Value ofLane = distance(before, place[1 - keyDim], place[keyDim]);
    return add(b, add(b, op.getCounter(), shared), ofLane);
  }
};

} // namespace

void fovea::populateDropoutToLanesPatterns(TypeConverter &converter,
                                           RewritePatternSet &patterns,
                                           LaneContext &context) {
  patterns.add<LowerDropout>(converter, context);
}
