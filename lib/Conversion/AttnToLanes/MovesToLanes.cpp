//===- MovesToLanes.cpp - attn.convert_layout for lanes -------------------===//
//
// What moves, and where to, is the layout algebra's to say (TileLayout.h,
// Conversion); here it becomes register moves, exchanges between lanes and
// selections.
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"
#include "fovea/Conversion/Passes.h"
#include <functional>
#include <map>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Conversion;
using layout::TileLayout;

/// Whether elements 2i and 2i + 1 of the destination always come from elements
/// 2j and 2j + 1 of one lane.
static bool pairsStayTogether(const Conversion &conversion) {
  int classes = 1 << conversion.parities.size();
  int registers = int(conversion.moves.size()) / classes;
  for (int reg = 0; reg < registers; reg += 2)
    for (int laneClass = 0; laneClass < classes; ++laneClass) {
      Conversion::Move low = conversion.move(reg, laneClass),
                       high = conversion.move(reg + 1, laneClass);
      if (low.source % 2 != 0 || high.source != low.source + 1 ||
          high.laneXor != low.laneXor)
        return false;
    }
  return true;
}

namespace {

/// What lanes have in registers, as words of 32 bits: each of one element of 32
/// bits, or of one or two of 16.
class Words {
public:
  Words(ImplicitLocOpBuilder &b, VectorType fragment, int perWord)
      : b(b), perWord(perWord), count(fragment.getNumElements() / perWord),
        narrow(fragment.getElementTypeBitWidth() == 16 && perWord == 1) {
    inWords = VectorType::get({count}, narrow ? Type(b.getIntegerType(16))
                                              : Type(b.getI32Type()));
  }

  SmallVector<Value> split(ValueRange fragments) {
    SmallVector<Value> words;
    for (Value fragment : fragments) {
      Value bits = vector::BitCastOp::create(b, inWords, fragment);
      for (int64_t index = 0; index < count; ++index) {
        Value word = element(b, bits, index);
        words.push_back(
            narrow ? Value(arith::ExtUIOp::create(b, b.getI32Type(), word))
                   : word);
      }
    }
    return words;
  }

  /// Fragments of a type with as large elements.
  SmallVector<Value> join(SmallVector<Value> words, VectorType type) {
    if (narrow)
      for (Value &word : words)
        word = arith::TruncIOp::create(b, b.getIntegerType(16), word);
    SmallVector<Value> fragments;
    int64_t perFragment = type.getNumElements() / perWord;
    auto bits = VectorType::get({perFragment}, inWords.getElementType());
    for (size_t first = 0; first < words.size(); first += perFragment)
      fragments.push_back(vector::BitCastOp::create(
          b, type,
          vector::FromElementsOp::create(
              b, bits, ArrayRef(words).slice(first, perFragment))));
    return fragments;
  }

private:
  ImplicitLocOpBuilder &b;
  int64_t perWord, count;
  bool narrow;
  VectorType inWords;
};

struct LowerConvertLayout : public LanePattern<ConvertLayoutOp> {
  using LanePattern::LanePattern;
  LogicalResult
  matchAndRewrite(ConvertLayoutOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    TileLayout from = layoutOf(op.getTile()), to = layoutOf(op.getResult());
    Conversion conversion = layout::classifyConversion(from, to);
    using Kind = Conversion::Kind;
    if (conversion.kind > Kind::Lane)
      return op.emitOpError()
             << "would have to move elements between waves, which is not "
                "supported; from <"
             << from.str() << "> to <" << to.str() << ">";
    if (conversion.kind == Kind::Lane && isRepeat(conversion, op) &&
        ldsOfWave(adaptor.getTile()) * lanes.getWaves() <= lanes.getLdsLeft()) {
      rewriter.replaceOpWithMultiple(op, {repeat(b, op, adaptor.getTile())});
      return success();
    }
    if (conversion.kind == Kind::Lane) {
      unsigned bits = op.getType().getElementTypeBitWidth();
      if (bits != 16 && bits != 32)
        return op.emitOpError() << "moves elements of 16 or 32 bits between "
                                   "lanes, found "
                                << op.getType().getElementType();
      rewriter.replaceOpWithMultiple(
          op, {moveBetweenLanes(b, op, adaptor.getTile(), conversion)});
      return success();
    }
    auto take = [&](int fragment, int reg) -> Value {
      int source = conversion.source[fragment * to.elementsPerFragment() + reg];
      return element(b, adaptor.getTile()[source / from.elementsPerFragment()],
                     source % from.elementsPerFragment());
    };
    rewriter.replaceOpWithMultiple(op, {makeFragments(b, op.getType(), take)});
    return success();
  }

private:
  static constexpr int kWordsOfLane = 4; ///< that an access takes
  static constexpr uint32_t kHalf = 16;  ///< lanes

  /// Whether both halves of a wave get what either has of a fragment, each 16
  /// bytes a lane, that of the first half first: an operand where these are to
  /// hold the same. By way of LDS that takes no vector instruction, which would
  /// be serial with products; exchanges and selections are three a word.
  bool isRepeat(const Conversion &conversion, ConvertLayoutOp op) const {
    if (!lanes.getTarget().has(target::kWmmaRepeated) || !lanes.isSteady() ||
        op.getType().getElementTypeBitWidth() != 16 ||
        conversion.parities.size() != 1 ||
        conversion.parities[0].lanes != kHalf ||
        conversion.parities[0].waves != 0)
      return false;
    constexpr int kOfLane = 2 * kWordsOfLane;
    const int registers = int(conversion.moves.size() / 2);
    for (int reg = 0; reg < registers; ++reg)
      for (unsigned half : {0, 1}) {
        const Conversion::Move move = conversion.move(reg, half);
        const unsigned from = reg / kOfLane % 2;
        if (move.source != reg / (2 * kOfLane) * kOfLane + reg % kOfLane ||
            move.laneXor != (from == half ? 0 : kHalf))
          return false;
      }
    return registers % (2 * kOfLane) == 0;
  }

  int64_t ldsOfWave(ValueRange fragments) const {
    return int64_t(fragments.size()) * lanes.getTarget().waveSize *
           layout::kWideBytes;
  }

  SmallVector<Value> repeat(ImplicitLocOpBuilder &b, ConvertLayoutOp op,
                            ValueRange fragments) const {
    auto words = VectorType::get({kWordsOfLane}, b.getI32Type());
    VectorType toType = fragmentType(op.getType());
    const int64_t bytes = ldsOfWave(fragments);
    const int32_t ofFragment = lanes.getTarget().waveSize * layout::kWideBytes;
    Value to = lanes.ldsOfWave(op, bytes, lanes.getTarget().waveSize - 1);
    Value from = lanes.ldsOfWave(op, bytes, kHalf - 1);
    for (auto [number, fragment] : llvm::enumerate(fragments))
      LLVM::StoreOp::create(b, vector::BitCastOp::create(b, words, fragment),
                            addBytes(b, to, int32_t(number) * ofFragment),
                            layout::kWideBytes);
    SmallVector<Value> results;
    for (size_t number = 0; number < fragments.size(); ++number) {
      auto read = [&](int32_t half) -> Value {
        return LLVM::LoadOp::create(
            b, words,
            addBytes(b, from,
                     int32_t(number) * ofFragment +
                         half * int32_t(kHalf * layout::kWideBytes)),
            layout::kWideBytes);
      };
      Value first = read(0), second = read(1);
      Value both = vector::ShuffleOp::create(
          b, first, second,
          llvm::to_vector(llvm::seq<int64_t>(0, 2 * kWordsOfLane)));
      results.push_back(vector::BitCastOp::create(b, toType, both));
    }
    return results;
  }

  /// How far on, in a row of DPP, lanes trade by one instruction: lanes of
  /// whose number that bit is `odd` take `other` of the lane so far on, the
  /// rest keep `own`.
  static constexpr uint32_t kTraded[] = {4, 8};
  Value tradeBanks(ImplicitLocOpBuilder &b, Value own, Value other,
                   uint32_t distance, bool odd) const {
    constexpr uint32_t kShiftLeft = 0x100, kShiftRight = 0x110, kRound = 0x120,
                       kAllRows = 0xf;
    const bool isHalf = distance == 8;
    const uint32_t control = (isHalf ? kRound
                              : odd  ? kShiftRight
                                     : kShiftLeft) |
                             distance;
    const uint32_t banks = isHalf ? (odd ? 0xc : 0x3) : odd ? 0xa : 0x5;
    return ROCDL::DPPUpdateOp::create(b, b.getI32Type(), own, other, control,
                                      kAllRows, banks, /*boundCtrl=*/false);
  }

  /// One exchange for each word that lanes of some class have to get, and a
  /// selection by class, which is in the exchange where classes are banks.
  SmallVector<Value> moveBetweenLanes(ImplicitLocOpBuilder &b,
                                      ConvertLayoutOp op, ValueRange fragments,
                                      const Conversion &conversion) const {
    auto fromType = cast<VectorType>(fragments[0].getType());
    VectorType toType = fragmentType(op.getType());
    bool pairs = fromType.getElementTypeBitWidth() == 16 &&
                 fromType.getNumElements() % 2 == 0 &&
                 toType.getNumElements() % 2 == 0 &&
                 pairsStayTogether(conversion);
    int perWord = pairs ? 2 : 1;
    Words words(b, fromType, perWord);
    SmallVector<Value> source = words.split(fragments);
    SmallVector<Value> conditions;
    for (Conversion::Parity parity : conversion.parities)
      conditions.push_back(lanes.hasParity(op, parity));

    std::map<std::pair<int, uint32_t>, Value> exchanged;
    auto moved = [&](Conversion::Move move) {
      int word = move.source / perWord;
      if (move.laneXor == 0)
        return source[word];
      Value &value = exchanged[{word, move.laneXor}];
      if (!value)
        value = lanes.exchange(b, op, source[word], move.laneXor);
      return value;
    };
    // The classes that agree with `laneClass` in the parities from `bit` on.
    std::function<Value(int, unsigned, size_t)> select =
        [&](int reg, unsigned laneClass, size_t bit) -> Value {
      if (bit == 0)
        return moved(conversion.move(reg, laneClass));
      Value even = select(reg, laneClass, bit - 1);
      Value odd = select(reg, laneClass | 1u << (bit - 1), bit - 1);
      return even == odd ? even
                         : Value(arith::SelectOp::create(b, conditions[bit - 1],
                                                         odd, even));
    };
    const Conversion::Parity first = conversion.parities.front();
    const bool areBanks = conditions.size() == 1 && first.waves == 0 &&
                          llvm::is_contained(kTraded, first.lanes);
    auto trade = [&](int reg) -> Value {
      if (!areBanks)
        return nullptr;
      const Conversion::Move even = conversion.move(reg, 0),
                             odd = conversion.move(reg, 1);
      const Conversion::Move &own = even.laneXor ? odd : even,
                             &other = even.laneXor ? even : odd;
      if (own.laneXor != 0 || other.laneXor != first.lanes)
        return nullptr;
      return tradeBanks(b, source[own.source / perWord],
                        source[other.source / perWord], first.lanes,
                        /*odd=*/odd.laneXor != 0);
    };
    SmallVector<Value> result;
    int registers = int(conversion.moves.size() >> conditions.size());
    for (int reg = 0; reg < registers; reg += perWord) {
      Value traded = trade(reg);
      result.push_back(traded ? traded : select(reg, 0, conditions.size()));
    }
    return words.join(result, toType);
  }
};

} // namespace

void fovea::populateMovesToLanesPatterns(TypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         LaneContext &context) {
  patterns.add<LowerConvertLayout>(converter, context);
}
